//! `agent.task.open`: a finished file is opened, or shown in its directory, on the desktop of the service's own user. This
//! module decides which file it is; what attends to the desktop opens it ([`crate::opener`]).

use std::path::{Component, Path, PathBuf};

use protocol::{ErrorCode, OpenTaskParams, RpcError, TaskDto, TaskStatus};

use crate::{access::peer_user::Peer, gate::sender::Sender, projection::hub::Hub, surface::state::App};

/// Whether a process of the service's own user sent this from this machine; without an origin it is not known.
pub(crate) async fn is_own_users(app: &App, origin: Option<&(Peer, Sender)>) -> bool {
    match origin {
        Some((peer, sender)) => app.gate.is_own_users(peer, sender).await,
        None => false,
    }
}

/// Answers `agent.task.open`. `is_own_user` is whether a process of the service's own user sent it from this machine.
pub(crate) async fn open(app: &App, is_own_user: bool, params: OpenTaskParams) -> Result<(), RpcError> {
    if !is_own_user {
        let message = "only programs of the user who runs this service, on its machine, may open files";
        return Err(RpcError::application(ErrorCode::Unsupported, message));
    }
    let path = finished_file(app.daemon.known().await?, &params.task_id)?;
    app.opener.open(path, params.reveal).await
}

/// The file or directory of a finished task; it may have been removed since.
pub(crate) fn finished_file(hub: &Hub, id: &str) -> Result<PathBuf, RpcError> {
    let text = hub.with_tasks(|tasks| tasks.task(id));
    let text = text.ok_or_else(|| RpcError::application(ErrorCode::NotFound, "not found"))?;
    let task: TaskDto = serde_json::from_str(&text).map_err(|error| RpcError::internal(error.to_string()))?;
    if task.status != TaskStatus::Completed {
        let message = "the download is not complete yet";
        return Err(RpcError::application(ErrorCode::Conflict, message));
    }
    path(&task).ok_or_else(|| RpcError::internal("the task has no path of its own"))
}

/// Save directory and name, if they are the path of an entry of that directory.
fn path(task: &TaskDto) -> Option<PathBuf> {
    let (directory, name) = (Path::new(&task.save_dir), Path::new(&task.file_name));
    // Compared as text: paths ignore a slash at their end.
    let is_name = matches!(name.components().next(), Some(Component::Normal(first)) if first == name.as_os_str());
    (directory.is_absolute() && is_name).then(|| directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_entry_of_the_save_directory_is_a_file_of_the_task() {
        let of = |save_dir: &str, file_name: &str| {
            path(&TaskDto {
                save_dir: save_dir.to_owned(),
                file_name: file_name.to_owned(),
                ..TaskDto::default()
            })
        };
        assert_eq!(of("/d", "a b\n<c>"), Some("/d/a b\n<c>".into()));
        assert_eq!(of("/d", "-rf"), Some("/d/-rf".into()));
        for (save_dir, file_name) in [
            ("/d", ""),
            ("/d", "."),
            ("/d", ".."),
            ("/d", "../x"),
            ("/d", "x/../../y"),
            ("/d", "/etc/passwd"),
            ("/d", "x/"),
            ("d", "x"),
            ("", "x"),
        ] {
            assert_eq!(of(save_dir, file_name), None, "{save_dir} {file_name}");
        }
    }
}
