//! The supervisor's own process, without a service: limits, isolation and the end of everything.

use std::{
    fs,
    io::Read as _,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt as _, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::rig::{PATIENCE, RUNNER, gone, install, is_running, write_script, written};

/// A script of a tool that leaves children behind, one of them in a session of its own, and does not want to end. The
/// numbers are those outside of namespaces, because `/proc` is that of the system.
const CLINGING: &str = r"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def number(): return os.readlink('/proc/self')
out = open('numbers', 'w')
print(number(), file=out, flush=True)
for leaves in (False, True):
    if os.fork() == 0:
        if leaves: os.setsid()
        if os.fork() == 0:
            print(number(), file=out, flush=True)
            time.sleep(1000)
        os._exit(0)
    os.wait()
while len(open('numbers').readlines()) < 3: time.sleep(0.01)
print('end', file=out, flush=True)
";

struct Supervised {
    folder: TempDir,
    child: Child,
    /// Dropped by a service that dies.
    socket: Option<UnixStream>,
}

fn limits() -> Value {
    json!({
        "wall": {"secs": 60, "nanos": 0}, "cpu_seconds": 30, "address_space_bytes": null,
        "data_bytes": 1 << 30, "file_bytes": 1 << 20,
    })
}

fn start(script: &str, limits: &Value) -> Supervised {
    start_as(&[], script, limits)
}

/// Like [`start`], by a program that changes the user, for one.
fn start_as(before: &[&str], script: &str, limits: &Value) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("tool");
    write_script(&program, script);
    let (socket, theirs) = UnixStream::pair().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let order = json!({"inputs": 0, "limits": limits, "network": "Nothing"}).to_string();
    // Another user may not be able to read what the tests were built in.
    let runner = folder.path().join("run-tool");
    if !before.is_empty() {
        install(Path::new(RUNNER), &runner);
    }
    let mut line: Vec<_> = before.iter().map(PathBuf::from).collect();
    line.push(if before.is_empty() { RUNNER.into() } else { runner });
    let child = Command::new(&line[0])
        .args(&line[1..])
        .arg(order)
        .arg(&program)
        .args(["--one", "$(two)"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Supervised {
        folder,
        child,
        socket: Some(socket),
    }
}

impl Supervised {
    /// All reports, once the supervisor has ended.
    fn end(&mut self) -> Vec<Value> {
        let mut reports = Vec::new();
        self.socket.as_ref().unwrap().read_to_end(&mut reports).unwrap();
        self.child.wait().unwrap();
        let reports = serde_json::Deserializer::from_slice(&reports).into_iter();
        reports.map(Result::unwrap).collect()
    }

    fn last(&mut self) -> Value {
        let reports = self.end();
        reports
            .last()
            .unwrap_or_else(|| panic!("no report: {}", self.printed()))["Ended"]
            .clone()
    }

    fn printed(&mut self) -> String {
        let mut text = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    async fn numbers(&self) -> Vec<String> {
        let text = written(&self.folder.path().join("numbers")).await;
        let numbers: Vec<_> = text.lines().filter(|line| *line != "end").map(str::to_owned).collect();
        assert_eq!(numbers.len(), 3);
        assert!(numbers.iter().all(|number| is_running(number)), "{numbers:?}");
        numbers
    }
}

/// Whether this system separates tools; an unprivileged container may not permit it, and then only limits are tested.
fn is_isolated(reports: &[Value]) -> bool {
    reports[0]["Started"]["isolation"] == "Namespaces"
}

#[tokio::test]
async fn a_tool_gets_its_arguments_and_nothing_else() {
    let mut run = start(
        "print(sys.argv[1:], sorted(os.environ), sorted(os.listdir('/proc/self/fd')), os.getpgid(0) == os.getpid(), sys.stdin.read())",
        &limits(),
    );
    let ended = run.last();
    assert_eq!(ended, json!({"code": 0, "signal": null, "is_late": false}));
    // Every program inherits what this test was started with; the last descriptor is that of the listing itself.
    let usual = "import os; print(sorted(os.listdir('/proc/self/fd')), end='')";
    let usual = Command::new("python3").args(["-c", usual]).output().unwrap().stdout;
    let usual = String::from_utf8(usual).unwrap();
    // Python sets the variable.
    let printed = run.printed().replace("'LC_CTYPE', ", "");
    assert_eq!(printed, format!("['--one', '$(two)'] ['PATH'] {usual} True \n"));
}

#[tokio::test]
async fn everything_ends_when_it_takes_too_long() {
    let mut order = limits();
    order["wall"] = json!({"secs": 4, "nanos": 0});
    let mut run = start(&format!("{CLINGING}time.sleep(1000)"), &order);
    let numbers = run.numbers().await;
    let ended = run.last();
    assert_eq!(ended, json!({"code": null, "signal": 9, "is_late": true}));
    gone(&numbers).await;
}

#[tokio::test]
async fn everything_ends_when_the_service_dies() {
    let mut run = start(&format!("{CLINGING}time.sleep(1000)"), &limits());
    let numbers = run.numbers().await;
    run.socket = None;
    run.child.wait().unwrap();
    gone(&numbers).await;
}

#[tokio::test]
async fn what_a_tool_leaves_behind_ends_with_it() {
    let mut run = start(&format!("{CLINGING}sys.exit(7)"), &limits());
    let text = written(&run.folder.path().join("numbers")).await;
    let ended = run.last();
    assert_eq!(ended, json!({"code": 7, "signal": null, "is_late": false}));
    let numbers: Vec<_> = text.lines().map(str::to_owned).collect();
    gone(&numbers[..3]).await;
    // Nothing holds the output any more.
    assert_eq!(run.printed(), "");
}

#[tokio::test]
async fn a_tool_that_ends_when_asked_is_not_waited_for() {
    let script =
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\nopen('numbers', 'w').write('end\\n')\nsignal.pause()";
    let mut run = start(script, &limits());
    written(&run.folder.path().join("numbers")).await;
    let asked = Instant::now();
    run.socket
        .as_ref()
        .unwrap()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(run.last()["code"], 3);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn files_and_memory_have_a_limit() {
    let mut run = start("f = open('big', 'wb')\nwhile True: f.write(b'x' * 65536)", &limits());
    assert_ne!(run.last()["code"], 0);
    assert!(run.folder.path().join("big").metadata().unwrap().len() <= 1 << 20);

    let mut run = start("print(len(bytearray(2 << 30)))", &limits());
    assert_eq!(run.last()["code"], 1);
    assert!(run.printed().contains("MemoryError"));

    let mut order = limits();
    order["address_space_bytes"] = json!(1 << 29);
    let mut run = start("import mmap\nmmap.mmap(-1, 1 << 30, prot=mmap.PROT_READ)", &order);
    assert_eq!(run.last()["code"], 1);
}

#[tokio::test]
async fn processor_time_has_a_limit() {
    let mut order = limits();
    order["cpu_seconds"] = json!(1);
    let mut run = start("while True: pass", &order);
    assert_eq!(run.last()["signal"], 9);
}

/// Tries the loopback of the machine, an address of the Internet, and a socket with an abstract name.
fn networking(port: u16) -> String {
    format!(
        r"
def attempt(family, address):
    try:
        socket.socket(family, socket.SOCK_STREAM).connect(address)
        print('connected', address)
    except OSError as error: print('no', type(error).__name__)
socket.setdefaulttimeout(2)
attempt(socket.AF_INET, ('127.0.0.1', {port}))
attempt(socket.AF_INET, ('192.0.2.1', 80))
attempt(socket.AF_UNIX, '\0tools-test-{port}')
"
    )
}

#[tokio::test]
async fn a_tool_has_no_network() {
    use std::os::linux::net::SocketAddrExt as _;

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = std::os::unix::net::SocketAddr::from_abstract_name(format!("tools-test-{port}")).unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&name).unwrap();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let as_nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let users: [&[&str]; 2] = [&[], &as_nobody];
    for user in &users[..if is_root { 2 } else { 1 }] {
        let mut run = start_as(user, &networking(port), &limits());
        let reports = run.end();
        let printed = run.printed();
        if is_isolated(&reports) {
            assert_eq!(printed.matches("no ").count(), 3, "{user:?} {printed}");
        } else {
            assert!(printed.contains("connected"), "{user:?} {reports:?} {printed}");
        }
    }
}

#[tokio::test]
async fn a_tool_of_another_user_writes_its_files_and_starts_a_limited_number_of_processes() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return;
    }
    let script = r"
open('mine', 'w').write(str(os.getuid()))
started = 0
try:
    while started < 3000:
        if os.fork() == 0: time.sleep(1000)
        started += 1
except BlockingIOError: pass
print(started)
";
    let as_nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut run = start_as(&as_nobody, script, &limits());
    let reports = run.end();
    let printed = run.printed();
    assert_eq!(fs::read_to_string(run.folder.path().join("mine")).unwrap(), "65534");
    if is_isolated(&reports) {
        let started: u32 = printed.trim().parse().unwrap();
        assert!(started < 1024, "{started}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_start_is_reported() {
    let (mut socket, theirs) = UnixStream::pair().unwrap();
    let order = json!({"inputs": 0, "limits": limits(), "network": "Nothing"}).to_string();
    let mut child = Command::new(RUNNER)
        .args([order.as_str(), "/nowhere/tool"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let mut reports = String::new();
    socket.read_to_string(&mut reports).unwrap();
    child.wait().unwrap();
    assert!(
        reports.contains("Refused") && reports.contains("No such file"),
        "{reports}"
    );
}
