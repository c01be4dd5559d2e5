//! Progress notifications for slow calls, as server-sent events.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, Sse},
};
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// The interval of notifications, which also keeps proxies from closing an idle connection.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);

/// The progress token of the request, if the client wants notifications.
pub(super) fn token(params: &Map<String, Value>) -> Option<Value> {
    let token = params.get("_meta")?.get("progressToken")?;
    (token.is_string() || token.is_number()).then(|| token.clone())
}

struct Progress<F> {
    answering: Pin<Box<dyn Future<Output = Value> + Send>>,
    finish: F,
    token: Value,
    /// Seconds reported so far.
    seconds: u64,
}

/// Sends the elapsed seconds, then the result. Dropping the response cancels the call.
pub(super) fn events(
    token: Value,
    answering: impl Future<Output = Value> + Send + 'static,
    finish: impl FnOnce(Value) -> Value + Send + 'static,
) -> Response {
    let progress = Progress {
        answering: Box::pin(answering),
        finish,
        token,
        seconds: 0,
    };
    let events = stream::unfold(Some(progress), async |progress| {
        let mut progress = progress?;
        let result = match progress.seconds {
            0 => None,
            _ => timeout(NOTIFY_EVERY, progress.answering.as_mut()).await.ok(),
        };
        let (message, rest) = if let Some(result) = result {
            ((progress.finish)(result), None)
        } else {
            let seconds = progress.seconds;
            progress.seconds += 1;
            let params = json!({ "progressToken": progress.token, "progress": seconds,
                "message": format!("{seconds} s") });
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            (notice, Some(progress))
        };
        let event = Event::default().event("message").data(message.to_string());
        Some((Ok::<_, Infallible>(event), rest))
    });
    Sse::new(events).into_response()
}
