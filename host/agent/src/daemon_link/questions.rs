//! Subscriptions of clients to questions of tasks. The daemon has one for all of them: it asks while there is at least one.

use std::sync::Arc;

use protocol::{Method, OkResult};
use tokio::sync::watch;

use super::daemon::Daemon;

/// How many clients have subscribed. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Subscribers(Arc<watch::Sender<usize>>);

/// A client's subscription; ends on drop.
#[derive(Debug)]
pub(crate) struct Subscription(Subscribers);

impl Default for Subscribers {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Subscribers {
    pub(crate) fn subscribe(&self) -> Subscription {
        self.0.send_modify(|count| *count += 1);
        Subscription(self.clone())
    }

    /// Subscribes at the daemon while there is a client, in each session, for ever.
    pub(crate) async fn follow(self, daemon: Daemon) {
        let (mut count, mut sessions) = (self.0.subscribe(), daemon.sessions());
        // A session begins without a subscription.
        let mut is_subscribed = false;
        loop {
            let is_wanted = *count.borrow_and_update() > 0;
            let is_there = sessions.borrow_and_update().is_ok();
            if is_there && is_wanted != is_subscribed {
                let method = if is_wanted {
                    Method::SelectionSubscribe
                } else {
                    Method::SelectionUnsubscribe
                };
                let told = daemon.call::<OkResult>(method, &serde_json::Map::new()).await;
                match told {
                    Ok(OkResult { .. }) => is_subscribed = is_wanted,
                    Err(error) => tracing::debug!(%error, "the daemon does not know who answers questions"),
                }
            }
            tokio::select! {
                changed = sessions.changed() => {
                    is_subscribed = false;
                    if changed.is_err() {
                        return;
                    }
                }
                Ok(()) = count.changed() => {}
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
