//! The daemon as the agent's sibling: one that runs already is adopted, else one is started beside this process.
//!
//! An endpoint file may be older than the daemon it names, and its port may be somebody else's by now. What decides is
//! the data directory's lock, and the one who can ask for it is the daemon itself: whoever is in doubt starts one, and
//! it ends at once if another one has the directory.

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

/// How a daemon is started.
#[derive(Debug)]
pub(super) struct DaemonCommand {
    /// The executable: this one.
    pub(super) program: PathBuf,
    /// What it is told, the subcommand first.
    pub(super) arguments: Vec<OsString>,
    /// The data directory that it will use.
    pub(super) data_dir: PathBuf,
}

/// Finds, starts and ends the daemon. Clones are the same sibling.
#[derive(Debug, Clone)]
pub(super) struct Sibling(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    command: DaemonCommand,
    /// Held while the daemon is found: there is one finder at a time.
    state: Mutex<State>,
    refused: watch::Sender<Option<Refused>>,
}

#[derive(Debug, Default)]
struct State {
    child: Option<Running>,
    /// The start of a daemon that was named last. If the agent comes back to ask, it was of no use.
    named: Option<String>,
    was_found: bool,
}

/// A daemon that this process started.
#[derive(Debug)]
struct Running {
    child: Child,
    /// It says where it listens once it does.
    lines: Lines<BufReader<ChildStdout>>,
    endpoint: Option<Endpoint>,
}

/// The first daemon of this process did not start, and told people why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// Its exit code; none if a signal ended it.
    pub(super) code: Option<i32>,
}

fn problem(message: impl Into<String>, source: impl Into<Option<io::Error>>) -> ConnectError {
    ConnectError {
        message: message.into(),
        source: source.into(),
    }
}

impl Sibling {
    /// A sibling that is started like this when there is none.
    pub(super) fn new(command: DaemonCommand) -> Self {
        Self(Arc::new(Shared {
            command,
            state: Mutex::default(),
            refused: watch::Sender::new(None),
        }))
    }

    /// Resolves if the first daemon of this process does not start: another try would end alike. One that starts and
    /// ends later is only started again.
    pub(super) async fn refused(&self) -> Refused {
        let mut refused = self.0.refused.subscribe();
        let refused = refused.wait_for(Option::is_some).await;
        refused
            .ok()
            .and_then(|refused| *refused)
            .unwrap_or(Refused { code: None })
    }

    /// Waits for the daemon's end, which was asked for. One that takes longer than `grace` is killed if it is ours: it
    /// loses nothing by that but time.
    pub(super) async fn ended(&self, grace: Duration) {
        let mut state = self.0.state.lock().await;
        if let Some(running) = &mut state.child {
            if tokio::time::timeout(grace, running.child.wait()).await.is_err() {
                tracing::warn!("the daemon does not end; it is killed");
                let _gone_meanwhile = running.child.kill().await;
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

    /// A daemon that answers and is not known to be of no use.
    async fn adopt(&self, state: &mut State) -> Option<Endpoint> {
        if state.child.as_mut().is_some_and(|running| is_alive(&mut running.child)) {
            return None;
        }
        state.child = None;
        let endpoint = self.endpoint()?;
        let is_new = state.named.as_deref() != Some(&endpoint.instance_id);
        (is_new && answers(&endpoint).await).then_some(endpoint)
    }

    /// The daemon that this process started, or starts now; the one that was there before if it turns out so.
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
        // Ctrl-C is for the agent, which ends its daemon in order.
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
    /// Where it listens, once it does; none if it ends before.
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

/// Resolves when no process holds the data directory. The thread that waits ends with the holder or with this process.
async fn wait_until_free(data_dir: PathBuf) {
    let (done, free) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _nobody_waits_any_more = done.send(DataDir::wait_until_free(Path::new(&data_dir)));
    });
    if let Ok(Err(error)) = free.await {
        tracing::warn!(%error, "cannot wait for the data directory");
    }
}
