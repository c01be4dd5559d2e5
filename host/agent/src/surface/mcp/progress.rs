//! Calls that take their time, for clients that want to know that something goes on.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, Sse},
};
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// How often something is said. It also keeps proxies from closing a silent connection.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// By which name the client wants to hear of the call.
pub(super) fn token(params: &Map<String, Value>) -> Option<Value> {
    let token = params.get("_meta")?.get("progressToken")?;
    (token.is_string() || token.is_number()).then(|| token.clone())
}

struct Telling<F> {
    answering: Pin<Box<dyn Future<Output = Value> + Send>>,
    finish: F,
    token: Value,
    /// How many were reported, one a second.
    seconds: u64,
}

/// Tells the seconds that have passed, then the result. A client that hangs up waits no more.
pub(super) fn events(
    token: Value,
    answering: impl Future<Output = Value> + Send + 'static,
    finish: impl FnOnce(Value) -> Value + Send + 'static,
) -> Response {
    let telling = Telling {
        answering: Box::pin(answering),
        finish,
        token,
        seconds: 0,
    };
    let events = stream::unfold(Some(telling), async |telling| {
        let mut telling = telling?;
        let result = match telling.seconds {
            0 => None,
            _ => timeout(TELL_EVERY, telling.answering.as_mut()).await.ok(),
        };
        let (message, rest) = if let Some(result) = result {
            ((telling.finish)(result), None)
        } else {
            let progress = telling.seconds;
            telling.seconds += 1;
            let params = json!({ "progressToken": telling.token, "progress": progress,
                "message": format!("{progress} s") });
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            (notice, Some(telling))
        };
        let event = Event::default().event("message").data(message.to_string());
        Some((Ok::<_, Infallible>(event), rest))
    });
    Sse::new(events).into_response()
}
