//! One run of the executable, under a deadline, with its JSON lines as they come.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::binary;

/// No run of a test takes this long; one that does hangs.
const DEADLINE: Duration = Duration::from_secs(90);

/// Whether this process may have mounts of its own, as tests need that give names other addresses.
pub fn may_mount() -> bool {
    let tried = Command::new("/usr/bin/unshare")
        .args(["--mount", "/bin/sh", "-c", "mount --bind /etc/hosts /etc/hosts"])
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// A command line in the making.
#[derive(Debug)]
pub struct Svc {
    command: Command,
    input: Option<Vec<u8>>,
    deadline: Duration,
}

/// A process at work. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    threads: Vec<JoinHandle<()>>,
    stderr: Option<JoinHandle<String>>,
    until: Instant,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Run {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The lines of standard output.
    pub stdout: Vec<String>,
    /// Standard error.
    pub stderr: String,
}

impl Svc {
    /// `svc get` with JSON lines, into `directory`.
    pub fn get(directory: &Path) -> Self {
        Self::new().args(["get", "--json", "--dir"]).arg(directory)
    }

    /// `svc` and nothing else.
    pub fn new() -> Self {
        Self::of(binary::path())
    }

    /// Another program, run in the same way.
    pub fn of(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        // A test's outcome must not depend on the machine's proxies or locale.
        command
            .env_clear()
            .env("HOME", "/nonexistent")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            input: None,
            deadline: DEADLINE,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// One variable of the environment, which is empty but for those that are set so.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same, where the file of host names (`/etc/hosts`) is this one. Needs the right to mount.
    #[must_use]
    pub fn with_hosts(self, hosts: &Path) -> Self {
        let mut command = Command::new("/usr/bin/unshare");
        let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
        command.args(["--mount", "/bin/sh", "-c", script, "sh"]).arg(hosts);
        self.started_by(command)
    }

    /// Starts it as a user whom permissions bind: as `nobody` if this test runs as root, else as whoever runs the test.
    /// `room` is a directory that such a user may look into; the executable is put there.
    #[must_use]
    pub fn as_ordinary_user(self, room: &Path) -> Self {
        if !rustix::process::geteuid().is_root() {
            return self;
        }
        let program = room.join("svc");
        std::fs::copy(self.command.get_program(), &program).expect("there is room for the executable");
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-c"]);
        command.args(["shift && exec \"$0\" \"$@\""]).arg(program);
        self.started_by(command)
    }

    /// Starts a copy of the executable, which is put at this path.
    #[must_use]
    pub fn installed_at(self, program: &Path) -> Self {
        std::fs::copy(self.command.get_program(), program).expect("there is room for the executable");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "shift && exec \"$0\" \"$@\""]).arg(program);
        self.started_by(command)
    }

    /// Starts it with these limits of descriptors, a soft and a hard one.
    #[must_use]
    pub fn descriptors(self, soft: u64, hard: u64) -> Self {
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$@\"");
        command.args(["-c", &script, "sh"]);
        self.started_by(command)
    }

    /// Starts it in this directory, with core dumps allowed.
    #[must_use]
    pub fn with_core_dumps(self, directory: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        let script = "ulimit -c unlimited && cd \"$0\" && exec \"$@\"";
        command.args(["-c", script]).arg(directory);
        self.started_by(command)
    }

    /// The same, started by `command`, to which the executable and its arguments are appended.
    fn started_by(self, mut command: Command) -> Self {
        command
            .arg(self.command.get_program())
            .args(self.command.get_args())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { command, ..self }
    }

    /// What the process reads on standard input.
    #[must_use]
    pub fn input(self, input: impl Into<Vec<u8>>) -> Self {
        Self {
            input: Some(input.into()),
            ..self
        }
    }

    /// The longest that the process may take.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Starts it.
    pub fn spawn(mut self) -> Running {
        self.command.stdin(if self.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let mut child = self.command.spawn().expect("svc can be executed");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut threads = vec![std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _nobody_listens_any_more = sender.send(line);
            }
        })];
        let mut stderr = child.stderr.take().expect("standard error is piped");
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ends_with_the_process = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        if let (Some(input), Some(mut stdin)) = (self.input, child.stdin.take()) {
            threads.push(std::thread::spawn(move || {
                let _may_not_be_wanted = stdin.write_all(&input);
            }));
        }
        let until = Instant::now() + self.deadline;
        Running {
            child,
            lines,
            seen: Vec::new(),
            threads,
            stderr: Some(stderr),
            until,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Run {
        self.spawn().finish()
    }
}

impl Default for Svc {
    fn default() -> Self {
        Self::new()
    }
}

impl Running {
    /// Waits for an event like this and gives it; `None` if the process ends without one.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        while let Some(line) = self.next_line() {
            if let Some(event) = serde_json::from_str(&line).ok().filter(&wanted) {
                return Some(event);
            }
        }
        None
    }

    /// Waits for a line like this and gives it; `None` if the process ends without one.
    pub fn wait_for_line(&mut self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        while let Some(line) = self.next_line() {
            if wanted(&line) {
                return Some(line);
            }
        }
        None
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are positive")
    }

    /// Ends it as a power cut would: `SIGKILL`, at once.
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Sends a signal of those that a defect causes until it ends, and gives whether it left a core dump. Does not wait for
    /// processes that it started.
    pub fn crash(mut self, signal: Signal) -> bool {
        let pid = self.pid();
        let mut ended = None;
        // The first SIGSEGV is the standard library's, which looks for the end of a stack and sees none.
        crate::service::wait_until("it crashes", || {
            crate::service::signal(pid, signal);
            ended = self.child.try_wait().expect("a child can be waited for");
            ended.is_some()
        });
        let ended = ended.expect("it has ended");
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{ended}");
        ended.core_dumped()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        crate::service::signal(self.pid(), Signal::INT);
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Run {
        while self.next_line().is_some() {}
        let status = self.child.wait().expect("a child can be waited for");
        let stderr = self
            .stderr
            .take()
            .expect("it is taken only here")
            .join()
            .expect("the reader does not panic");
        Run {
            code: status.code(),
            stdout: std::mem::take(&mut self.seen),
            stderr,
        }
    }

    fn next_line(&mut self) -> Option<String> {
        match self
            .lines
            .recv_timeout(self.until.saturating_duration_since(Instant::now()))
        {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let tail: Vec<_> = self.seen.iter().rev().take(5).collect();
                panic!("svc hangs; its last lines, newest first: {tail:#?}")
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_been_waited_for = self.child.wait();
        for thread in self.threads.drain(..) {
            let _ends_with_the_process = thread.join();
        }
    }
}

impl Run {
    /// All events, in order.
    pub fn events(&self) -> Vec<Value> {
        self.stdout
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The last event of this kind.
    pub fn event(&self, kind: &str) -> Option<Value> {
        self.events().into_iter().rfind(|event| event["event"] == kind)
    }

    /// The code of the last failure.
    pub fn failure(&self) -> Option<String> {
        self.event("failed")
            .and_then(|event| event["kind"].as_str().map(str::to_owned))
    }

    /// Asserts that it succeeded.
    #[track_caller]
    pub fn assert_success(&self) {
        assert_eq!(self.code, Some(0), "{:#?}\n{}", self.failures(), self.stderr);
    }

    /// Asserts that it ended with this exit code and failure.
    #[track_caller]
    pub fn assert_failure(&self, code: i32, kind: &str) {
        let found = (self.code, self.failure());
        assert_eq!(
            found,
            (Some(code), Some(kind.to_owned())),
            "{:#?}\n{}",
            self.failures(),
            self.stderr
        );
    }

    fn failures(&self) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["event"] == "failed" || event["event"] == "retrying")
            .collect()
    }
}
