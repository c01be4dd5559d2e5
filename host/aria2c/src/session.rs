//! Writes the session file: unfinished downloads, in the format of `-i`.

use std::{
    collections::HashSet,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
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

/// The largest file that is read to see whether it is a session file. One with 100,000 downloads has about 30 MiB.
const MAX_SESSION_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Session {
    engine: Engine,
    pub(super) saving: Saving,
    path: Arc<Mutex<Option<PathBuf>>>,
    /// Options of every download, which need not be repeated for each.
    usual: Arc<Options>,
    /// The GIDs of the downloads that were added at start, once known.
    pub(super) began_with: Arc<OnceLock<HashSet<String>>>,
    /// Asked for the trackers of torrents, once it is there.
    pub(super) aria2: Arc<OnceLock<Aria2>>,
}

impl Session {
    pub(super) fn new(engine: Engine, saving: Saving, usual: Options) -> Self {
        Self {
            engine,
            path: Arc::new(Mutex::new(saving.path.clone())),
            saving,
            usual: Arc::new(usual),
            began_with: Arc::default(),
            aria2: Arc::default(),
        }
    }

    /// The file that is written at present.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn write(&self) -> Result<(), String> {
        let path = self.path().ok_or("Filename is not given.")?;
        let shown = path.display().to_string();
        let failed = |cause: String| format!("Failed to serialize session to '{shown}', cause: {cause}");
        let snapshot = self
            .engine
            .snapshot()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        for task in snapshot.tasks.iter().filter(|task| self.is_saved(task)) {
            text.push_str(&self.entry(task).await);
        }
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

    fn change_path(&self, path: String) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let path = (!path.is_empty()).then(|| PathBuf::from(path));
            if let Some(path) = path.clone().filter(|path| Some(path) != self.path().as_ref()) {
                let checked = tokio::task::spawn_blocking(move || check_replaceable(&path)).await;
                checked.expect("the check does not panic")?;
            }
            *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
            Ok(())
        }
        .boxed()
    }
}

/// Whether the session may be written to `path`: a client may name a new file or a session file, and replace nothing else.
fn check_replaceable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let cannot = |why: std::io::Error| format!("The session cannot be saved in {shown}: {why}.");
    let metadata = match path.symlink_metadata() {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(cannot)?,
    };
    let is_session = metadata.is_file()
        && metadata.len() <= MAX_SESSION_BYTES
        && std::fs::read_to_string(path).is_ok_and(|text| text.lines().all(is_session_line));
    is_session.then_some(()).ok_or_else(|| {
        format!("{shown} is there, and is no session file. Choose another path for save-session, or remove the file.")
    })
}

fn is_session_line(line: &str) -> bool {
    let is_uri = |uri: &str| uri.is_empty() || uri.contains("://") || uri.starts_with("magnet:");
    line.starts_with([' ', '\t', '#']) || line.split('\t').all(is_uri)
}

/// Replaces a file atomically: after a crash it has the old or the new content.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_data()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
