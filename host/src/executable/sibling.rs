//! The daemon as a sibling process of the agent: a running one is adopted, else one is started.
//!
//! An endpoint file may be stale, and its port may belong to another program by now. Only the lock on the data
//! directory decides, and only a daemon can try to take it: in doubt one is started, and it exits at once if another
//! daemon holds the lock.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use agent::{ByteStream, Connect, ConnectError, Found};
use futures_util::future::BoxFuture;
use protocol::{
    endpoint::{ENDPOINT_FILE, Endpoint, TOKEN_FILE},
    proof::Token,
};
use store::DataDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::{Mutex, watch},
};

/// How to start a daemon.
#[derive(Debug)]
pub(super) struct DaemonCommand {
    /// This executable.
    pub(super) program: PathBuf,
    /// Its arguments, beginning with the subcommand.
    pub(super) arguments: Vec<OsString>,
    pub(super) data_dir: PathBuf,
}

/// Finds, starts and ends the daemon. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Sibling(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    command: DaemonCommand,
    /// Held while the daemon is searched, so that there is only one search at a time.
    state: Mutex<State>,
    refused: watch::Sender<Option<Refused>>,
}

#[derive(Debug, Default)]
struct State {
    child: Option<Running>,
    /// The start id of the last returned daemon. If the agent asks again, that one was not usable.
    named: Option<String>,
    was_found: bool,
}

/// A daemon started by this process.
#[derive(Debug)]
struct Running {
    child: Child,
    /// Its standard output, on which it prints its endpoint.
    lines: Lines<BufReader<ChildStdout>>,
    endpoint: Option<Endpoint>,
}

/// The first daemon of this process failed to start, and printed the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
}

fn problem(message: impl Into<String>, source: impl Into<Option<io::Error>>) -> ConnectError {
    ConnectError {
        message: message.into(),
        source: source.into(),
    }
}

impl Sibling {
    pub(super) fn new(command: DaemonCommand) -> Self {
        Self(Arc::new(Shared {
            command,
            state: Mutex::default(),
            refused: watch::Sender::new(None),
        }))
    }

    /// Resolves if the first daemon of this process fails to start, because a retry would fail, too. A daemon that ends
    /// later is restarted instead.
    pub(super) async fn refused(&self) -> Refused {
        let mut refused = self.0.refused.subscribe();
        let refused = refused.wait_for(Option::is_some).await;
        refused
            .ok()
            .and_then(|refused| *refused)
            .unwrap_or(Refused { code: None })
    }

    /// Waits for the end of a daemon that was asked to shut down. One that takes longer than `grace` is killed if this
    /// process started it; acknowledged state is durable, so nothing is lost.
    pub(super) async fn ended(&self, grace: Duration) {
        let mut state = self.0.state.lock().await;
        if let Some(running) = &mut state.child {
            if tokio::time::timeout(grace, running.child.wait()).await.is_err() {
                tracing::warn!("the daemon does not end; it is killed");
                // A process that waits for a disk ends once the disk answers.
                let killing = tokio::time::timeout(super::process::GRACE, running.child.kill());
                if killing.await.is_err() {
                    tracing::warn!("the daemon does not end: a disk that it uses does not answer");
                }
            }
            return;
        }
        let free = wait_until_free(self.0.command.data_dir.clone());
        if tokio::time::timeout(grace, free).await.is_err() {
            tracing::warn!("the daemon still runs");
        }
    }

    async fn find(&self) -> Result<Found, ConnectError> {
        let mut state = self.0.state.lock().await;
        let endpoint = match self.adopt(&mut state).await {
            Some(endpoint) => endpoint,
            None => self.start(&mut state).await?,
        };
        let found = Found {
            token: self.token()?,
            port: endpoint.port,
        };
        state.named = Some(endpoint.instance_id);
        state.was_found = true;
        Ok(found)
    }

    /// A daemon that responds and was not returned as usable before.
    async fn adopt(&self, state: &mut State) -> Option<Endpoint> {
        if state.child.as_mut().is_some_and(|running| is_alive(&mut running.child)) {
            return None;
        }
        state.child = None;
        let endpoint = self.endpoint()?;
        let is_new = state.named.as_deref() != Some(&endpoint.instance_id);
        (is_new && answers(&endpoint).await).then_some(endpoint)
    }

    /// The daemon of this process, started if necessary; or the one that turns out to hold the data directory.
    async fn start(&self, state: &mut State) -> Result<Endpoint, ConnectError> {
        let running = match &mut state.child {
            Some(running) => running,
            none => none.insert(self.spawn()?),
        };
        if let Some(endpoint) = running.announced().await {
            return Ok(endpoint);
        }
        let ended = running.child.wait().await;
        state.child = None;
        if let Some(endpoint) = self.endpoint()
            && answers(&endpoint).await
        {
            return Ok(endpoint);
        }
        let code = ended
            .map_err(|error| problem("cannot wait for the daemon", error))?
            .code();
        if !state.was_found {
            self.0.refused.send_replace(Some(Refused { code }));
        }
        Err(problem("the daemon ended at its start", None))
    }

    fn spawn(&self) -> Result<Running, ConnectError> {
        let DaemonCommand { program, arguments, .. } = &self.0.command;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        // Ctrl-C must reach the agent only, which shuts the daemon down in order.
        #[cfg(unix)]
        command.process_group(0);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| problem(format!("cannot start {}", program.display()), error))?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| problem("the daemon has no output", None))?;
        Ok(Running {
            child,
            lines: BufReader::new(stdout).lines(),
            endpoint: None,
        })
    }

    fn endpoint(&self) -> Option<Endpoint> {
        let text = fs::read(self.0.command.data_dir.join(ENDPOINT_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn token(&self) -> Result<Token, ConnectError> {
        let path = self.0.command.data_dir.join(TOKEN_FILE);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| problem(format!("cannot read {}", path.display()), error))?;
        Ok(Token::new(text.trim()))
    }
}

impl Running {
    /// The endpoint that it prints; none if it ends before.
    async fn announced(&mut self) -> Option<Endpoint> {
        while self.endpoint.is_none() {
            let line = self.lines.next_line().await.ok()??;
            self.endpoint = serde_json::from_str(&line).ok();
        }
        self.endpoint.clone()
    }
}

impl Connect for Sibling {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        Box::pin(self.find())
    }

    fn dial<'a>(&'a self, found: &'a Found) -> BoxFuture<'a, io::Result<Box<dyn ByteStream>>> {
        Box::pin(async {
            let stream = egress::own_machine::connect(found.port).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}

fn is_alive(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

async fn answers(endpoint: &Endpoint) -> bool {
    egress::own_machine::connect(endpoint.port).await.is_ok()
}

/// Resolves when no process locks the data directory. The waiting thread ends with the lock's holder or with this
/// process.
async fn wait_until_free(data_dir: PathBuf) {
    let (done, free) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _nobody_waits_any_more = done.send(DataDir::wait_until_free(Path::new(&data_dir)));
    });
    if let Ok(Err(error)) = free.await {
        tracing::warn!(%error, "cannot wait for the data directory");
    }
}
