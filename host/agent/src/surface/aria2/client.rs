//! The dialect for whoever shares the process with the agent: its calls without HTTP, and what happened to downloads.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

use super::{board::Kind, call::Caller, fault::Fault, option::Refusal, params::Params};
use crate::surface::state::App;

/// Notices taken at once.
const NOTICES_AT_ONCE: usize = 256;

/// A client without a connection. It needs no key.
#[derive(Debug, Clone)]
pub struct Aria2(Caller);

/// What happens to downloads, from the moment on at which these were asked for.
#[derive(Debug)]
pub struct Notices {
    caller: Caller,
    newest: watch::Receiver<u64>,
    cursor: u64,
}

impl Aria2 {
    pub(crate) fn new(app: App) -> Self {
        Self(Caller::within(app))
    }

    /// Calls a method and reads its result.
    pub async fn call<R: DeserializeOwned>(&self, method: &str, params: Vec<Value>) -> Result<R, Refusal> {
        let result = self.0.one(method, Params(params)).await?;
        let read = serde_json::from_str(result.get());
        Ok(read.map_err(|error| Fault::new(error.to_string()))?)
    }

    /// Follows what happens to downloads from now on.
    pub fn notices(&self) -> Notices {
        let mut newest = self.0.app.daemon.hub.follow_notices();
        let cursor = *newest.borrow_and_update();
        let caller = self.0.clone();
        Notices { caller, newest, cursor }
    }
}

impl Notices {
    /// Whether all that has happened was told.
    pub fn is_caught_up(&self) -> bool {
        *self.newest.borrow() == self.cursor
    }

    /// Waits for what happened next: what, and the GID of the download. Empty if some of it is lost, because nobody asked
    /// for too long. Cancel-safe.
    pub async fn next(&mut self) -> Vec<(Kind, String)> {
        // Its sender lives as long as this caller's agent. What it lends is given back at once: who holds the hub may be
        // about to change it.
        drop(self.newest.wait_for(|newest| *newest != self.cursor).await);
        let hub = &self.caller.app.daemon.hub;
        let told = hub.look_at_board(|_, board| {
            let notices = board.notices_after(self.cursor, NOTICES_AT_ONCE);
            notices.map_err(|_| board.newest_notice())
        });
        match told {
            Ok(notices) => {
                self.cursor += u64::try_from(notices.len()).unwrap_or(0);
                let named = notices.into_iter().map(|notice| (notice.kind, notice.gid.to_string()));
                named.collect()
            }
            Err(newest) => {
                self.cursor = newest;
                Vec::new()
            }
        }
    }
}
