//! Writes the session file: unfinished downloads, in the format of `-i`.

use std::{
    collections::HashSet,
    io::Write as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use aria2::{
    Aria2, SessionFile, files,
    option::{self, Options, Row},
};
use engine::{Engine, Phase, Task};
use futures_util::future::{BoxFuture, FutureExt as _};
use metainfo::Magnet;
use protocol::CreateTaskRequest;
use serde_json::json;
use transfer::FailureKind;

use crate::{
    ledger::{KEYS, StatusReply},
    plan::Saving,
};

/// Digits of a GID, with which the id of its task begins.
const GID_DIGITS: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) engine: Engine,
    pub(super) saving: Saving,
    /// Options of every download, which need not be repeated for each.
    pub(super) usual: Arc<Options>,
    /// The GIDs of the downloads that were added at start, once known.
    pub(super) began_with: Arc<OnceLock<HashSet<String>>>,
    /// Asked for the trackers of torrents, once it is there.
    pub(super) aria2: Arc<OnceLock<Aria2>>,
}

impl Session {
    async fn write(&self) -> Result<(), String> {
        let failed = |cause: String| {
            format!(
                "Failed to serialize session to '{}', cause: {cause}",
                self.saving.path.display()
            )
        };
        let snapshot = self
            .engine
            .snapshot()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        for task in snapshot.tasks.iter().filter(|task| self.is_saved(task)) {
            text.push_str(&self.entry(task).await);
        }
        let path = self.saving.path.clone();
        let write = move || replace(&path, &text);
        let written = tokio::task::spawn_blocking(write)
            .await
            .expect("writing does not panic");
        written.map_err(|error| failed(error.to_string()))
    }

    fn is_saved(&self, task: &Task) -> bool {
        match &task.phase {
            Phase::Completed => self.saving.includes_completed,
            Phase::Failed(failure) => {
                self.saving.includes_not_found
                    || !matches!(failure.kind, FailureKind::NotFound | FailureKind::StillNotFound)
            }
            _ => true,
        }
    }

    async fn entry(&self, task: &Task) -> String {
        let mut request = daemon::request_of(task);
        if let Ok(magnet) = request.url.parse::<Magnet>() {
            request.url = self.whole(magnet, &request, &task.id.to_string()).await.to_string();
        }
        let asked = option::saved(&request, &task.id.to_string());
        let mut options = asked.filtered(|row| {
            let usual = self.usual.get(row.name()).or(row.default());
            row.name() == "gid" || asked.get(row.name()) != usual
        });
        let began = self.began_with.get();
        if began.is_some_and(|began| options.get("gid").is_some_and(|gid| began.contains(gid))) {
            options = options.over(&self.saving.command_line_options);
        }
        if task.phase == Phase::Paused {
            options.put(Row::of("pause").expect("it is in the table"), "true".to_owned(), false);
        }
        let uris: Vec<String> = std::iter::once(request.url).chain(request.mirrors).collect();
        files::entry(&uris, &options)
    }
}

impl Session {
    /// The magnet link with everything that another start needs to find the torrent: a task that was added with a torrent
    /// file has its hash and name only.
    async fn whole(&self, mut magnet: Magnet, request: &CreateTaskRequest, task_id: &str) -> Magnet {
        let gid: String = task_id.chars().filter(|digit| *digit != '-').take(GID_DIGITS).collect();
        if let Some(aria2) = self.aria2.get()
            && let Ok(status) = aria2
                .call::<StatusReply>("aria2.tellStatus", vec![gid.into(), json!(KEYS)])
                .await
        {
            for tracker in status.trackers().filter_map(metainfo::tracker) {
                if !magnet.trackers.contains(&tracker) {
                    magnet.trackers.push(tracker);
                }
            }
        }
        let webseeds = request.torrent.iter().flat_map(|torrent| &torrent.webseeds);
        magnet
            .webseeds
            .extend(webseeds.filter_map(|url| metainfo::webseed(url)));
        magnet
    }
}

impl SessionFile for Session {
    fn save(&self) -> BoxFuture<'_, Result<(), String>> {
        self.write().boxed()
    }
}

/// Replaces a file atomically: after a crash it has the old or the new content.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_data()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
