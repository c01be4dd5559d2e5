//! Notifications for one reader: each once and in order, or [`Missed`] if it fell behind.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    board::{Kind, Missed},
    caller::Caller,
    vocabulary::gid::Gid,
};

/// Notices taken per batch.
const AT_ONCE: usize = 256;

/// A notification about a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The kind of the notification.
    pub kind: Kind,
    gid: Gid,
}

impl Notice {
    /// The download's GID.
    pub fn gid(&self) -> String {
        self.gid.to_string()
    }

    /// The notification as clients read it.
    pub fn message(&self) -> String {
        let Self { kind, gid } = self;
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":[{{\"gid\":\"{gid}\"}}]}}",
            kind.name()
        )
    }
}

/// The notifications since this value was created.
#[derive(Debug)]
pub struct Notices {
    caller: Caller,
    newest: watch::Receiver<u64>,
    /// The number of the last notice taken.
    cursor: u64,
}

impl Notices {
    /// Subscribes to the notifications that `caller` may see.
    pub fn of(caller: &Caller) -> Self {
        let mut newest = caller.dialect.follow_notices();
        let cursor = *newest.borrow_and_update();
        Self {
            caller: caller.clone(),
            newest,
            cursor,
        }
    }

    /// Whether no notice is pending.
    pub fn is_caught_up(&self) -> bool {
        self.caller.dialect.board().newest_notice() == self.cursor
    }

    /// Resolves once a notice is pending. Cancel-safe.
    pub async fn changed(&mut self) {
        // The sender lives as long as the dialect. The borrow ends here, before the board is locked.
        drop(self.newest.wait_for(|newest| *newest > self.cursor).await);
    }

    /// Waits for the next notices: kind and GID. Empty if the reader fell behind and lost some. Cancel-safe.
    pub async fn next(&mut self) -> Vec<(Kind, String)> {
        loop {
            self.changed().await;
            match self.take(AT_ONCE) {
                Ok(Some(notices)) => return notices.iter().map(|notice| (notice.kind, notice.gid())).collect(),
                Ok(None) => {}
                Err(Missed) => return Vec::new(),
            }
        }
    }

    /// Up to `most` notices, in order; `None` once all were taken. May be empty, because notices of other clients'
    /// downloads are skipped.
    pub fn take(&mut self, most: usize) -> Result<Option<Vec<Notice>>, Missed> {
        let dialect = Arc::clone(&self.caller.dialect);
        let board = dialect.board();
        let notices = match board.notices_after(self.cursor, most) {
            Ok(notices) => notices,
            Err(missed) => {
                self.cursor = board.newest_notice();
                return Err(missed);
            }
        };
        if notices.is_empty() {
            return Ok(None);
        }
        self.cursor += u64::try_from(notices.len()).unwrap_or(0);
        let own = notices
            .into_iter()
            .filter(|(_, gid)| self.caller.is_notified(&board, *gid));
        Ok(Some(own.map(|(kind, gid)| Notice { kind, gid }).collect()))
    }
}
