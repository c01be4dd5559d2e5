//! Downloads of paired devices that await the user's decision, sealed in the daemon's store: their senders were told that
//! they arrived, and will not send them again.

use protocol::{CreateTaskRequest, LinkRow, LinkRows, Method, OkResult, client::CallError};
use serde::{Deserialize, Serialize};

use crate::{
    capture::{pending::Pending, request::Download},
    clock::unix_seconds,
    daemon_link::daemon::Daemon,
};

/// What their rows are among those of the device link.
const KIND: &str = "capture";

/// How long one awaits the decision, in seconds: as long as its sender would have kept it.
const KEPT_SECS: i64 = 7 * 24 * 60 * 60;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    created_by: String,
    requests: Vec<CreateTaskRequest>,
}

/// The stored ones.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    daemon: Daemon,
}

impl Kept {
    pub(crate) fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }

    /// Stores one; gives when it is given up, in Unix seconds. It is on the disk when this resolves.
    pub(crate) async fn put(&self, id: &str, download: &Download) -> Result<i64, CallError> {
        let record = Record {
            created_by: download.created_by.clone(),
            requests: download.requests().to_vec(),
        };
        let value = serde_json::to_string(&record).map_err(|_| CallError::Unreadable)?;
        let until = unix_seconds().saturating_add(KEPT_SECS);
        self.commit(id, Some(value), Some(until)).await?;
        Ok(until)
    }

    /// Removes one: it is decided.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), CallError> {
        self.commit(id, None, None).await
    }

    async fn commit(&self, id: &str, value: Option<String>, until: Option<i64>) -> Result<(), CallError> {
        let row = LinkRow {
            kind: KIND.to_owned(),
            key: id.to_owned(),
            value,
            until,
        };
        let rows = LinkRows {
            rows: vec![row],
            now: unix_seconds(),
        };
        self.daemon.call::<OkResult>(Method::LinkCommit, &rows).await.map(drop)
    }
}

/// Lets those among the stored rows await the decision again.
pub(crate) fn restore(rows: &[LinkRow], pending: &Pending) {
    let mut kept: Vec<_> = rows
        .iter()
        .filter(|row| row.kind == KIND)
        .filter_map(|row| {
            let (until, value) = (row.until?, row.value.as_deref()?);
            let read = serde_json::from_str::<Record>(value);
            let read = read.inspect_err(|error| tracing::warn!(%error, "a stored download of a device is damaged"));
            Some((until, row.key.clone(), read.ok()?))
        })
        .filter(|(until, ..)| *until > unix_seconds())
        .collect();
    kept.sort_by_key(|(until, ..)| *until);
    for (until, id, Record { created_by, requests }) in kept {
        let mut download = Download::default().only(requests);
        download.created_by = created_by;
        if let Err(full) = pending.add_kept(id, download, until) {
            tracing::warn!(%full, "a stored download of a device waits for the next start");
        }
    }
}
