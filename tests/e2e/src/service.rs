//! The service as a user has it: directories of its own, processes that can be killed, and the address it prints.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::{self, Answer},
    rpc::Rpc,
    svc::{Run, Running, Svc},
};

/// The access key of every service of a test.
pub const KEY: &str = "open-sesame-1";

/// Nothing that a test waits for takes this long, on the slowest machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A test of a service may be long; single steps have [`PATIENCE`].
const DEADLINE: Duration = Duration::from_hours(2);

/// How long is waited between two looks at what cannot be awaited: another process.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The directories of a service. They outlive its processes; dropping this ends the daemon that is left in them.
#[derive(Debug)]
pub struct Home {
    root: PathBuf,
    _made: Option<TempDir>,
}

/// A running `svc serve`, or another command that prints such a greeting. Dropping it kills the agent.
#[derive(Debug)]
pub struct Service {
    running: Running,
    address: String,
}

/// Which daemon runs, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// The process.
    pub pid: i32,
    /// The port on 127.0.0.1.
    pub port: u16,
}

impl Home {
    /// Empty directories.
    #[expect(clippy::new_without_default, reason = "making directories is more than a default")]
    pub fn new() -> Self {
        let made = tempfile::tempdir().expect("there is room for temporary files");
        Self::make(made.path().to_owned(), Some(made))
    }

    /// Empty directories in `root`, which outlives them.
    pub fn on(root: &Path) -> Self {
        Self::make(root.to_owned(), None)
    }

    fn make(root: PathBuf, made: Option<TempDir>) -> Self {
        fs::create_dir(root.join("downloads")).expect("the directory is writable");
        Self { root, _made: made }
    }

    /// A directory for whatever else a test keeps.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The data directory; made by the first start.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// Where files go.
    pub fn downloads(&self) -> PathBuf {
        self.root.join("downloads")
    }

    /// `svc` with this command and with these directories, nothing else.
    pub fn svc(&self, command: &str) -> Svc {
        let svc = Svc::new()
            .deadline(DEADLINE)
            .arg(command)
            .arg("--data-dir")
            .arg(self.data());
        svc.arg("--save-dir").arg(self.downloads())
    }

    /// A server on a free port without an access key.
    pub fn new_server(&self) -> Svc {
        self.svc("serve").args(["--bind", "127.0.0.1:0"])
    }

    /// A desktop as it is installed, but for its port, which is a free one.
    pub fn new_desktop(&self) -> Svc {
        self.desktop(false)
    }

    /// A desktop that its user opened to the network, with the access key [`KEY`].
    pub fn new_open_desktop(&self) -> Svc {
        self.desktop(true).env("SVC_TOKEN", KEY)
    }

    fn desktop(&self, is_open: bool) -> Svc {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it listens").port();
        let settings = json!({
            "version": 1, "key": null, "takeover": true, "jsonrpc": true, "api": false, "mcp": false, "cors": false,
            "lan": is_open, "port": port, "preferences": {"revision": 0, "values": {}},
        });
        let agent = self.data().join("agent");
        fs::create_dir_all(&agent).expect("a temporary directory is writable");
        fs::write(agent.join("settings.json"), settings.to_string()).expect("it is writable");
        self.svc("agent")
    }

    /// Starts a server whose access key is [`KEY`] and waits until it is up.
    pub fn serve(&self) -> Service {
        Service::start(self.new_server().env("SVC_TOKEN", KEY))
    }

    /// The daemon that runs or ran last, if it did not end cleanly.
    pub fn daemon(&self) -> Option<Daemon> {
        let text = fs::read(self.data().join("daemon.json")).ok()?;
        let endpoint: Value = serde_json::from_slice(&text).ok()?;
        Some(Daemon {
            pid: endpoint["pid"].as_i64()?.try_into().ok()?,
            port: endpoint["port"].as_u64()?.try_into().ok()?,
        })
    }

    /// The processes of this home that are alive.
    pub fn processes(&self) -> Vec<i32> {
        let data = self.data().display().to_string();
        let entries = fs::read_dir("/proc").expect("this system has /proc");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|argument| argument == data.as_bytes())
        };
        pids.filter(is_ours).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.processes() {
            signal(pid, Signal::KILL);
        }
    }
}

impl Service {
    /// Starts a command and waits until it has told its address.
    #[track_caller]
    pub fn start(svc: Svc) -> Self {
        let mut running = svc.spawn();
        let line = running.wait_for_line(|line| line.trim_start().starts_with("Address"));
        let Some(line) = line else {
            panic!("the service does not start: {:?}", running.finish())
        };
        let address = line
            .split("http://")
            .nth(1)
            .expect("the address is a URL")
            .trim()
            .to_owned();
        Self { running, address }
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The agent's process.
    pub fn pid(&self) -> i32 {
        self.running.pid()
    }

    /// The next line that it prints with this in it.
    pub fn line_with(&mut self, part: &str) -> Option<String> {
        self.running.wait_for_line(|line| line.contains(part))
    }

    /// Sends a request with the access key. `None` if it was not answered.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        ask(&self.address, method, path, body)
    }

    /// Asserts that a request is answered with 200 and gives the answer's body.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.ask(method, path, body).expect("the service answers");
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
        answer.body
    }

    /// Creates a task of these fields and gives its id.
    #[track_caller]
    pub fn create(&self, task: &Value) -> String {
        let created = self.call("POST", "/api/v1/tasks", Some(task));
        created["taskId"].as_str().expect("a created task has an id").to_owned()
    }

    /// The task, as it is now.
    #[track_caller]
    pub fn task(&self, id: &str) -> Value {
        self.call("GET", &format!("/api/v1/tasks/{id}"), None)
    }

    /// A connection to `/rpc` that has said hello.
    #[track_caller]
    pub fn rpc(&self) -> Rpc {
        Rpc::connect(&self.address, KEY).expect("the service takes connections")
    }

    /// Waits until the daemon answers.
    #[track_caller]
    pub fn wait_until_ready(&self) {
        wait_until("the service answers reads", || {
            let answer = self.ask("GET", "/api/v1/queues", None);
            answer.is_some_and(|answer| answer.status == 200)
        });
    }

    /// Sends the agent a signal.
    pub fn signal(&self, kind: Signal) {
        signal(self.pid(), kind);
    }

    /// Ends it as a service manager does and waits for its end.
    pub fn terminate(self) -> Run {
        self.signal(Signal::TERM);
        self.running.finish()
    }

    /// Waits for its end.
    pub fn finish(self) -> Run {
        self.running.finish()
    }

    /// Crashes the agent as a defect does, and gives whether it left a core dump.
    pub fn crash(self, signal: Signal) -> bool {
        self.running.crash(signal)
    }

    /// Kills the agent and nothing else.
    pub fn kill(self) {
        self.running.kill();
    }
}

impl Daemon {
    /// Kills it.
    pub fn kill(&self) {
        signal(self.pid, Signal::KILL);
    }
}

/// Sends a request with the access key to the service at this address. `None` if it was not answered.
pub fn ask(address: &str, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
    let key = format!("Bearer {KEY}");
    http::ask(address, method, path, &[("Authorization", &key)], body)
}

/// Sends a signal to a process of a test; one that is gone does not mind.
pub fn signal(pid: i32, kind: Signal) {
    let pid = Pid::from_raw(pid).expect("process ids are positive");
    let _may_be_gone = kill_process(pid, kind);
}

/// Waits until what cannot be awaited is so.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "another process is watched from outside, on a thread that may block"
)]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
