//! What the device link needs of this service: storage in the daemon, tasks, events, and settings.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use aria2::check_directory;
use futures_util::future::{BoxFuture, FutureExt as _};
use link::{Change, Delivery, Link, NotTaken, Unavailable};
use protocol::{
    ConfigSnapshot, CreateTaskParams, CreateTaskRequest, CreatedTask, DownloadRequest, ErrorCode, LinkRow, LinkRows,
    Method, OkResult, Requester, RpcError, client::CallError,
};
use tokio::task::spawn_blocking;

use crate::{
    capture::{
        kept::{self, Kept},
        pending::Pending,
        request::{self, Download},
    },
    daemon_link::daemon::Daemon,
    projection::hub::Hub,
    settings::{
        config::{Config, Edition},
        file::SettingsFile,
        switches::Listening,
    },
    shutdown::Shutdown,
};

/// Whether this device announces itself and searches.
const MDNS: &str = "link_mdns";

/// The interfaces for that, by name and separated by commas; empty: all.
const INTERFACES: &str = "link_interfaces";

/// Directories beside the save directory in which paired devices may have files stored, separated like those of `PATH`.
const SAVE_ROOTS: &str = "link_save_roots";

/// The name of a device that has none.
const NAMELESS: &str = "Svc";
const NAMELESS_SERVER: &str = "Svc Server";

struct Surroundings {
    daemon: Daemon,
    pending: Arc<Pending>,
    kept: Kept,
    /// Whether what awaits the user's decision since an earlier run is in `pending`.
    is_restored: AtomicBool,
    settings: Arc<SettingsFile>,
    is_mdns_allowed: bool,
    edition: Edition,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

/// Starts the link; a drop-in has none.
pub(crate) fn start(
    config: &Config,
    listening: Listening,
    daemon: &Daemon,
    pending: &Arc<Pending>,
    settings: &Arc<SettingsFile>,
    shutdown: &Shutdown,
) -> Result<Option<Link>, String> {
    if listening.edition == Edition::DropIn {
        return Ok(None);
    }
    let surroundings = Surroundings {
        daemon: daemon.clone(),
        pending: Arc::clone(pending),
        kept: Kept::new(daemon.clone()),
        is_restored: AtomicBool::new(false),
        settings: Arc::clone(settings),
        is_mdns_allowed: config.mdns,
        edition: listening.edition,
    };
    let about = about(config, listening.edition);
    let of_link = link::Config::new(about, listening.address);
    let started = Link::start(
        of_link,
        Arc::new(surroundings),
        &shutdown.tracker,
        shutdown.drain.clone(),
    );
    started.map(Some).map_err(|error| error.to_string())
}

/// What this device says of itself.
fn about(config: &Config, edition: Edition) -> link::crypto::transcript::About {
    let is_server = edition == Edition::Headless;
    let name = link::Config::plain_name(config.link_name.as_deref().unwrap_or_default());
    let usual = if is_server {
        NAMELESS_SERVER.to_owned()
    } else {
        own_name()
    };
    link::crypto::transcript::About {
        name: if name.is_empty() { usual } else { name },
        platform: if is_server { "server" } else { std::env::consts::OS }.to_owned(),
        app_version: config.version.clone(),
    }
}

/// Whether a directory is `root` or below it, by its name and by where it really is.
fn lies_in(directory: &str, root: &Path) -> bool {
    let is_named_so = root
        .to_str()
        .is_some_and(|root| check_directory(directory, root).is_ok());
    is_named_so && resolved(Path::new(directory)).starts_with(resolved(root))
}

/// Where a directory really is, once it is made: links of the part that exists are followed.
fn resolved(directory: &Path) -> PathBuf {
    let existing = directory
        .ancestors()
        .find_map(|place| Some((place, place.canonicalize().ok()?)));
    match existing {
        Some((place, real)) => real.join(directory.strip_prefix(place).unwrap_or(Path::new(""))),
        None => directory.to_owned(),
    }
}

/// The name of this machine.
fn own_name() -> String {
    let system = rustix::system::uname();
    let name = link::Config::plain_name(&system.nodename().to_string_lossy());
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}

impl Surroundings {
    /// A key of the configuration; empty until the daemon has reported it.
    fn setting(&self, key: &str) -> String {
        let Ok(hub) = self.daemon.current() else {
            return String::new();
        };
        let config = hub.with_tasks(|daemon| daemon.config().to_owned());
        let config: Option<ConfigSnapshot> = serde_json::from_str(&config).ok();
        config
            .and_then(|mut config| config.values.remove(key))
            .unwrap_or_default()
    }

    /// Where a file of another device goes: empty for the default directory. Links in the save directory lead a device
    /// only to where it may write without them.
    async fn save_dir_of(&self, wanted: &str) -> Result<String, NotTaken> {
        // A directory in the style of another system, or none.
        if !Path::new(wanted).is_absolute() {
            return Ok(String::new());
        }
        let save_dir = self.daemon.known().await.map_err(unavailable)?.save_dir();
        let allowed = self.setting(SAVE_ROOTS);
        let roots: Vec<PathBuf> = std::iter::once(PathBuf::from(&save_dir))
            .chain(std::env::split_paths(&allowed).filter(|root| root.is_absolute()))
            .collect();
        let directory = wanted.to_owned();
        let is_in_one = spawn_blocking(move || roots.iter().any(|root| lies_in(&directory, root)));
        if is_in_one.await.unwrap_or_default() {
            return Ok(wanted.to_owned());
        }
        Err(NotTaken::Refused(format!(
            "saveDir must lie in {save_dir} or in one of the directories that the owner of this device allows ({SAVE_ROOTS})"
        )))
    }

    async fn create(&self, delivery: Delivery) -> Result<String, NotTaken> {
        let Delivery {
            task,
            from,
            device_name: _,
            allow_private,
            task_id,
        } = delivery;
        let save_dir = self.save_dir_of(&task.save_dir).await?;
        let checksum = task.checksum;
        let download = request::one(DownloadRequest {
            url: task.url,
            filename: task.file_name,
            save_dir,
            cookies: task.cookies,
            headers: task.headers,
            ..DownloadRequest::default()
        });
        let mut download = download.map_err(|error| NotTaken::Refused(error.to_string()))?;
        download.confine(&format!("link:{from}"));
        let requests = download.requests().iter().cloned();
        let requests = requests.map(|request| CreateTaskRequest {
            checksum: checksum.clone(),
            ..request
        });
        let requests = requests.collect();
        let download = download.only(requests);
        let asks = self.edition == Edition::Desktop && !self.settings.current().is_silent();
        if asks {
            return self.ask(task_id, download).await;
        }
        self.create_task(download, task_id, allow_private).await
    }

    /// Lets a download await the user's decision, also after a crash.
    async fn ask(&self, id: String, download: Download) -> Result<String, NotTaken> {
        if self.pending.has(&id) {
            return Ok(id);
        }
        self.pending.check_room(&download).map_err(unavailable)?;
        let until = self.kept.put(&id, &download).await.map_err(unavailable)?;
        match self.pending.add_kept(id.clone(), download, until) {
            Ok(id) => Ok(id),
            // Others came meanwhile.
            Err(full) => {
                self.kept.remove(&id).await.map_err(unavailable)?;
                Err(unavailable(full))
            }
        }
    }

    async fn create_task(&self, download: Download, task_id: String, allow_private: bool) -> Result<String, NotTaken> {
        let created_by = download.created_by.clone();
        let Some(request) = download.into_requests().into_iter().next() else {
            return Err(NotTaken::Refused("url is required".to_owned()));
        };
        let user_host = request::host(&request.url)
            .filter(|_| allow_private)
            .unwrap_or_default();
        let mut params = CreateTaskParams {
            request,
            unattended: true,
            task_id: Some(task_id.clone()),
            requester: Some(Requester {
                user_host,
                is_host_allowed: allow_private,
                created_by,
            }),
            ..CreateTaskParams::default()
        };
        loop {
            let created = self.daemon.call::<CreatedTask>(Method::TaskCreate, &params).await;
            let error = match created {
                Ok(CreatedTask { task_id, .. }) => {
                    self.daemon.hub.publish_captured(std::slice::from_ref(&task_id));
                    return Ok(task_id);
                }
                Err(CallError::Refused(error)) => error,
                Err(error) => return Err(unavailable(error)),
            };
            let is_about_directory = error
                .data
                .as_ref()
                .is_some_and(|data| data.field.as_deref() == Some("saveDir"));
            match error.application_code() {
                // An earlier delivery whose answer was lost made the task.
                Some(ErrorCode::Conflict) if is_taken(&error) => return Ok(task_id),
                // The directory cannot be used; the default one can.
                _ if is_about_directory && !params.request.save_dir.is_empty() => params.request.save_dir.clear(),
                Some(ErrorCode::Unavailable | ErrorCode::Timeout | ErrorCode::Internal) => {
                    return Err(NotTaken::Unavailable(error.message));
                }
                _ => return Err(NotTaken::Refused(error.message)),
            }
        }
    }
}

/// Whether a conflict is about the id, and not about what is in the task.
fn is_taken(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| data.reason.is_none())
}

fn unavailable(error: impl std::fmt::Display) -> NotTaken {
    NotTaken::Unavailable(error.to_string())
}

impl link::Service for Surroundings {
    fn load(&self) -> BoxFuture<'_, Result<Vec<LinkRow>, Unavailable>> {
        async move {
            let loaded = self
                .daemon
                .call::<LinkRows>(Method::LinkLoad, &serde_json::Map::new())
                .await;
            let LinkRows { rows, .. } = loaded.map_err(|error| Unavailable(error.to_string()))?;
            // Once: later, the stored ones are those that wait, and one may be decided just now.
            if !self.is_restored.swap(true, Ordering::Relaxed) {
                kept::restore(&rows, &self.pending);
            }
            Ok(rows)
        }
        .boxed()
    }

    fn commit(&self, rows: LinkRows) -> BoxFuture<'_, Result<(), Unavailable>> {
        async move {
            let committed = self.daemon.call::<OkResult>(Method::LinkCommit, &rows).await;
            committed.map(drop).map_err(|error| Unavailable(error.to_string()))
        }
        .boxed()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<String, NotTaken>> {
        self.create(delivery).boxed()
    }

    fn save_dir(&self) -> String {
        self.daemon.current().map(Hub::save_dir).unwrap_or_default()
    }

    fn interfaces(&self) -> Option<Vec<String>> {
        let is_on = self.is_mdns_allowed && self.is_offered() && self.setting(MDNS) != "false";
        let named = self.setting(INTERFACES);
        let names = named.split(',').map(str::trim).filter(|name| !name.is_empty());
        is_on.then(|| names.map(ToOwned::to_owned).collect())
    }

    fn is_offered(&self) -> bool {
        self.settings.current().offers_link(self.edition)
    }

    fn publish(&self, change: Change) {
        self.daemon.hub.publish_link(change);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_lies_in_a_root_only_if_no_link_leads_out_of_it() {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        fs::create_dir_all(root.join("inside")).unwrap();
        fs::create_dir(&outside).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(&outside, root.join("out")).unwrap();
            symlink(root.join("inside"), root.join("in")).unwrap();
            symlink(base.join("nowhere"), root.join("dangling")).unwrap();
            symlink(&root, base.join("root-link")).unwrap();
        }
        let is_in = |path: &str| lies_in(&base.join(path).display().to_string(), &root);
        for path in ["root", "root/inside", "root/new/deep", "root/in", "root/in/new"] {
            assert!(is_in(path), "{path}");
        }
        for path in [
            "root/out",
            "root/out/new",
            "root/../outside",
            "outside",
            "rooted",
            "root-link/inside",
        ] {
            assert!(!is_in(path), "{path}");
        }
        // A root that is a link itself is what it leads to.
        let inside = base.join("root-link/inside").display().to_string();
        assert!(lies_in(&inside, &base.join("root-link")));
    }
}
