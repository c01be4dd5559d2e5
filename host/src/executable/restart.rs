//! Restarts: the process replaces itself by its executable, with the same arguments, environment and process id, so that
//! service managers and containers see one process throughout.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use agent::RestartRequest;
use tokio::{process::Command, sync::mpsc};

/// How long the executable may take to print its version.
const CHECK_TIME: Duration = Duration::from_secs(10);

/// Requests of clients, and what is executed.
#[derive(Debug)]
pub(super) struct Restarts {
    pub(super) requests: mpsc::Receiver<RestartRequest>,
    /// Its path at the start of this process: an update puts the new version there.
    pub(super) program: PathBuf,
}

impl Restarts {
    /// Resolves once a request is accepted. A restart that would fail is refused, and the service goes on.
    pub(super) async fn accepted(&mut self) {
        while let Some(request) = self.requests.recv().await {
            let checked = self.check().await;
            let is_possible = checked.is_ok();
            // A client that is gone by now wanted it, too.
            let _gone = request.send(checked);
            if is_possible {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Runs the executable, because it may be gone, half written, or for another machine.
    async fn check(&self) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.arg("--version").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = self.program.display();
        let problem = match tokio::time::timeout(CHECK_TIME, command.status()).await {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => format!("it does not print its version ({status})"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it does not print its version within {CHECK_TIME:?}"),
        };
        Err(format!(
            "the service goes on and is not restarted, because {program} cannot be started: {problem}; install it there again"
        ))
    }

    /// Replaces this process. Returns only if that fails. `bind` is where to listen if the arguments leave the port open.
    #[cfg(unix)]
    pub(super) fn exec(&self, bind: Option<SocketAddr>) -> anyhow::Error {
        use std::os::unix::process::CommandExt as _;

        let mut arguments = std::env::args_os();
        let mut command = std::process::Command::new(&self.program);
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        command.args(arguments);
        if let Some(address) = bind {
            command.args([OsString::from("--bind"), address.to_string().into()]);
        }
        let error = command.exec();
        anyhow::Error::new(error).context(format!("cannot start {} again", self.program.display()))
    }

    /// Nothing asks for it on this system.
    #[cfg(not(unix))]
    pub(super) fn exec(&self, _: Option<SocketAddr>) -> anyhow::Error {
        anyhow::anyhow!("this system cannot replace a process")
    }
}
