//! One run of a tool, from the service: starts a supervisor, reads what the tool prints within limits, serves its proxy, and
//! waits for the end of all of it.

use std::{ffi::OsString, io, os::fd::OwnedFd, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use transfer::safe_url;

use crate::{
    Isolation, Launcher, Tool, ToolError,
    order::{GRACE, Limits, Network, Order, REAP, Report},
    proxy::Gate,
    sys,
};

/// How long a supervisor that was asked to stop may take: the tool's grace, and the end of what it started.
const MAX_STOPPING: Duration = GRACE.saturating_add(REAP).saturating_add(Duration::from_secs(2));

/// How long output is read after the end: only a process that left its group where there are no namespaces still holds it.
const MAX_AFTER: Duration = Duration::from_secs(1);

/// The most that a tool may print as messages. Hostile media makes a line per packet.
const MAX_MESSAGES_BYTES: u64 = 16 * 1024 * 1024;

/// The end of the messages, which has the reason of a failure.
const KEPT_MESSAGES_BYTES: usize = 8 * 1024;

/// The longest explanation of a failure, in characters.
const MAX_EXPLANATION: usize = 500;

/// What is run.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) tool: Tool,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// What it reads, under the numbers from [`FIRST_INPUT`](crate::order::FIRST_INPUT) on.
    pub(crate) inputs: Vec<OwnedFd>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// The home directory of the tool, and where its temporary files go.
    pub(crate) home: PathBuf,
    pub(crate) limits: Limits,
    /// The most that it may print as its result.
    pub(crate) output_bytes: u64,
    /// What it may reach; nothing without.
    pub(crate) gate: Option<Arc<Gate>>,
}

/// How a tool ended that was not stopped.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) isolation: Isolation,
    code: Option<i32>,
    signal: Option<i32>,
    messages: Vec<u8>,
}

impl Ended {
    /// An error unless the tool succeeded.
    pub(crate) fn check(&self, tool: Tool) -> Result<(), ToolError> {
        let status = match (self.code, self.signal) {
            (Some(0), _) => return Ok(()),
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "killed".to_owned(),
        };
        Err(ToolError::Failed {
            tool,
            status,
            explanation: explanation(&self.messages),
        })
    }
}

/// The last line that says something, without what could control a terminal, and without the secrets of URLs.
fn explanation(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let line = last.unwrap_or("it printed no reason");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    safe_url::masked(&line).chars().take(MAX_EXPLANATION).collect()
}

/// Runs a tool; `sink` gets its output in pieces. It ends, with all that it started, when `cancel` is cancelled.
pub(crate) async fn run(
    launcher: &Launcher,
    invocation: &Invocation,
    cancel: &CancellationToken,
    sink: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Ended, ToolError> {
    let tool = invocation.tool;
    let failed = |act: &str, source| ToolError::Run {
        tool,
        act: act.to_owned(),
        source: Some(source),
    };
    let (control, input) = sys::Control::new().map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => ToolError::Unsupported { tool },
        _ => failed("no socket for its supervisor", error),
    })?;
    let order = Order {
        inputs: invocation.inputs.len(),
        limits: invocation.limits.clone(),
        network: match invocation.gate {
            Some(_) => Network::Proxy,
            None => Network::Nothing,
        },
    };
    let started = supervisor(launcher, invocation, &order, input);
    let mut child = started.map_err(|error| failed("its supervisor did not start", error))?;
    if order.has_first_message() {
        // An empty message would be the end of the socket.
        let first = invocation.gate.as_ref().map_or("no proxy", |gate| gate.password());
        let sent = control.send(first.as_bytes(), &invocation.inputs);
        sent.map_err(|error| failed("its supervisor ended at once", error))?;
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stop = cancel.child_token();
    let (has_ended, mut messages) = (CancellationToken::new(), Tail::default());
    let mut keep = |piece: &[u8]| messages.add(piece);
    let (reported, out_of_bounds, err_out_of_bounds) = tokio::join!(
        async {
            let _ended = has_ended.clone().drop_guard();
            reports(&control, invocation.gate.as_ref(), &stop).await
        },
        read(stdout, invocation.output_bytes, (&stop, &has_ended), sink),
        read(stderr, MAX_MESSAGES_BYTES, (&stop, &has_ended), &mut keep),
    );
    // A supervisor that reported its end exits; one that did not answer is killed.
    if timeout(GRACE, child.wait()).await.is_err() {
        let _has_exited = child.kill().await;
    }
    let reported = reported.map_err(|error| failed("its supervisor gave a false report", error))?;
    if let Some(limit_bytes) = out_of_bounds.or(err_out_of_bounds) {
        return Err(ToolError::TooMuchOutput { tool, limit_bytes });
    }
    judge(reported, invocation, cancel, messages.kept)
}

fn supervisor(launcher: &Launcher, invocation: &Invocation, order: &Order, input: Stdio) -> io::Result<Child> {
    let order = serde_json::to_string(order)?;
    Command::new(&launcher.supervisor)
        .args(&launcher.arguments)
        .arg(order)
        .arg(&invocation.program)
        .args(&invocation.arguments)
        .current_dir(&invocation.directory)
        .env_clear()
        .env("PATH", &launcher.path)
        .env("HOME", &invocation.home)
        .env("TMPDIR", &invocation.home)
        .env("LANG", "C.UTF-8")
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// What a supervisor reported until it ended.
#[derive(Debug, Default)]
struct Reported {
    started: Option<(i32, Isolation)>,
    end: Option<Report>,
}

/// Reads the reports of a supervisor, serves the proxy from the moment its listener arrives, and passes on the request to
/// stop.
async fn reports(control: &sys::Control, gate: Option<&Arc<Gate>>, stop: &CancellationToken) -> io::Result<Reported> {
    let (mut reported, mut proxies) = (Reported::default(), JoinSet::new());
    let mut until = None;
    loop {
        let message = tokio::select! {
            received = control.receive() => received?,
            () = stop.cancelled(), if until.is_none() => {
                control.finish();
                until = Some(Instant::now() + MAX_STOPPING);
                continue;
            }
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => None,
        };
        let Some((message, listener)) = message else { break };
        match serde_json::from_slice(&message)? {
            Report::Started { process, isolation } => reported.started = Some((process, isolation)),
            end => reported.end = Some(end),
        }
        if let (Some(gate), Some(listener)) = (gate, listener) {
            proxies.spawn(Arc::clone(gate).serve(listener));
        }
    }
    proxies.shutdown().await;
    if let (Some((process, _)), None) = (&reported.started, &reported.end) {
        sys::kill_group(*process);
    }
    Ok(reported)
}

fn judge(
    reported: Reported,
    invocation: &Invocation,
    cancel: &CancellationToken,
    messages: Vec<u8>,
) -> Result<Ended, ToolError> {
    let tool = invocation.tool;
    let failed = |act: String| ToolError::Run {
        tool,
        act,
        source: None,
    };
    match (reported.end, reported.started) {
        _ if cancel.is_cancelled() => Err(ToolError::Stopped { tool }),
        (Some(Report::Ended { is_late: true, .. }), _) => Err(ToolError::TimedOut {
            tool,
            limit: invocation.limits.wall,
        }),
        (Some(Report::Ended { code, signal, .. }), Some((_, isolation))) => Ok(Ended {
            isolation,
            code,
            signal,
            messages,
        }),
        (Some(Report::Refused { message }), _) => Err(failed(format!("{}: {message}", invocation.program.display()))),
        _ => Err(failed("its supervisor was killed".to_owned())),
    }
}

/// Reads until the end of `stream`. Beyond `limit` it asks to stop, and returns the limit.
async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    limit: u64,
    (stop, has_ended): (&CancellationToken, &CancellationToken),
    sink: &mut (dyn FnMut(&[u8]) + Send),
) -> Option<u64> {
    let mut stream = stream?;
    let late = async {
        has_ended.cancelled().await;
        tokio::time::sleep(MAX_AFTER).await;
    };
    tokio::pin!(late);
    let (mut buffer, mut total) = (vec![0; 16 * 1024], 0_u64);
    loop {
        let length = tokio::select! {
            read = stream.read(&mut buffer) => read.unwrap_or(0),
            () = &mut late => 0,
        };
        if length == 0 {
            return (total > limit).then_some(limit);
        }
        total += length as u64;
        if total > limit {
            // It is read on, so that the tool is not kept from ending by a full pipe.
            stop.cancel();
        } else {
            sink(&buffer[..length]);
        }
    }
}

/// The end of a text.
///
/// It has whole words only, because the rest of a URL is not known as one.
#[derive(Debug, Default)]
struct Tail {
    kept: Vec<u8>,
    /// Whether what comes next is the rest of a word that was dropped.
    is_inside: bool,
}

impl Tail {
    fn add(&mut self, piece: &[u8]) {
        let is_end = |byte: &u8| byte.is_ascii_whitespace();
        let begin = if self.is_inside {
            let Some(end) = piece.iter().position(is_end) else {
                return;
            };
            end
        } else {
            0
        };
        self.is_inside = false;
        self.kept.extend_from_slice(&piece[begin..]);
        let excess = self.kept.len().saturating_sub(KEPT_MESSAGES_BYTES);
        if excess > 0 {
            let word = self.kept[excess..].iter().position(is_end);
            self.is_inside = word.is_none();
            self.kept.drain(..word.map_or(self.kept.len(), |word| excess + word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_explained_by_the_end_of_what_was_printed() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.add(format!("line {number}\n").as_bytes());
        }
        assert!(tail.kept.len() <= KEPT_MESSAGES_BYTES);
        tail.add(b"ERROR: \x1b[31mno such page\xff\n \n");
        assert_eq!(explanation(&tail.kept), "ERROR: [31mno such page\u{fffd}");
        assert_eq!(explanation(b"\n"), "it printed no reason");
        assert_eq!(explanation("x".repeat(9000).as_bytes()).len(), MAX_EXPLANATION);
    }

    #[test]
    fn a_failure_is_explained_without_the_secrets_of_urls() {
        let printed = b"ERROR: [site] https://me:pw@\x1bv.test/watch?token=secret: gone; see http://v.test/#secret\n";
        assert_eq!(
            explanation(printed),
            "ERROR: [site] https://v.test/watch?… gone; see http://v.test/?…"
        );
        let long = format!("https://v.test/?token={} gone", "secret".repeat(KEPT_MESSAGES_BYTES));
        for size in [long.len(), KEPT_MESSAGES_BYTES + 1, 1000, 7] {
            let mut tail = Tail::default();
            long.as_bytes().chunks(size).for_each(|piece| tail.add(piece));
            assert_eq!(explanation(&tail.kept), "gone", "in pieces of {size} bytes");
        }
    }
}
