//! A relay between agent and daemon that drops an event on demand.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use daemon::Connector;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::io::DuplexStream;
use tokio_tungstenite::{
    WebSocketStream, accept_async, client_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};
use tokio_util::task::TaskTracker;

/// Whether to drop the next event.
pub(crate) type Loses = Arc<AtomicBool>;

/// A stream to `/rpc` of the daemon through the relay.
pub(crate) fn connect(connector: &Connector, loses: &Loses, tracker: &TaskTracker) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (daemon, loses) = (connector.connect(), Arc::clone(loses));
    tracker.spawn(async move {
        let request = "ws://daemon/rpc".into_client_request().unwrap();
        let Ok((daemon, _)) = client_async(request, daemon).await else {
            return;
        };
        if let Ok(agent) = accept_async(far).await {
            pass_on(agent, daemon, &loses).await;
        }
    });
    near
}

async fn pass_on(agent: WebSocketStream<DuplexStream>, daemon: WebSocketStream<DuplexStream>, loses: &Loses) {
    let (to_agent, from_agent) = agent.split();
    let (to_daemon, from_daemon) = daemon.split();
    let is_lost = |message: &Message| {
        let is_event = message.to_text().is_ok_and(|text| text.contains("\"service.event\""));
        is_event && loses.swap(false, Ordering::AcqRel)
    };
    let kept = from_daemon.filter(|message| std::future::ready(!message.as_ref().is_ok_and(is_lost)));
    let down = kept.forward(to_agent.sink_map_err(|error| error)).boxed();
    let up = from_agent.forward(to_daemon).boxed();
    futures_util::future::select(down, up).await;
}
