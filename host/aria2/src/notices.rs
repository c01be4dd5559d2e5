//! Notifications for one reader: each once and in order, or [`Missed`] if it fell too far behind.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    board::{Kind, Missed},
    caller::Caller,
    vocabulary::gid::Gid,
};

/// Notices taken at once.
const AT_ONCE: usize = 256;

/// That something happened to a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// What.
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

/// What happens to downloads from the moment on at which these were asked for.
#[derive(Debug)]
pub struct Notices {
    caller: Caller,
    newest: watch::Receiver<u64>,
    /// The number of the last notice that was taken.
    cursor: u64,
}

impl Notices {
    /// Those that `caller` may see, from now on.
    pub fn of(caller: &Caller) -> Self {
        let mut newest = caller.dialect.follow_notices();
        let cursor = *newest.borrow_and_update();
        Self {
            caller: caller.clone(),
            newest,
            cursor,
        }
    }

    /// Whether all that has happened was taken.
    pub fn is_caught_up(&self) -> bool {
        self.caller.dialect.board().newest_notice() == self.cursor
    }

    /// Resolves once there is something to take. Cancel-safe.
    pub async fn changed(&mut self) {
        // Its sender lives as long as this caller's dialect. What it lends is given back before the board is looked at.
        drop(self.newest.wait_for(|newest| *newest > self.cursor).await);
    }

    /// Waits for what happened next: what, and the GID of the download. Empty if some of it is lost because the
    /// reader fell too far behind. Cancel-safe.
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

    /// Up to `most` notices, in order; none once all were taken. Some may be left out because they are another's.
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
