//! The questions of commands, on a real terminal: they appear, and are answered by yes, no, Ctrl-D and Ctrl-C.

use std::process::Command;

use e2e::binary;
use serde_json::{Value, json};

use super::Desk;

/// Runs a command on a terminal of its own, and types a text after each prompt of a list. Says what the terminal showed,
/// how the command ended, and whether the terminal echoes afterwards, as a shell expects.
const DRIVER: &str = r"
import fcntl, json, os, pty, select, signal, sys, termios, time
steps, command = json.loads(sys.argv[1]), sys.argv[2:]
master, slave = pty.openpty()
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in range(3):
        os.dup2(slave, descriptor)
    os.execv(command[0], command)
shown, seen, status, until = b'', 0, None, time.time() + 60
while status is None:
    if time.time() > until:
        os.kill(pid, signal.SIGKILL)
    if select.select([master], [], [], 0.05)[0]:
        shown += os.read(master, 65536)
        while steps and (at := shown.find(steps[0][0].encode(), seen)) >= 0:
            prompt, answer = steps.pop(0)
            seen = at + len(prompt.encode())
            os.write(master, answer.encode())
        continue
    ended, code = os.waitpid(pid, os.WNOHANG)
    status = code if ended else None
print(json.dumps({
    'shown': shown.decode(), 'unasked': steps, 'code': os.waitstatus_to_exitcode(status),
    'echoes': bool(termios.tcgetattr(slave)[3] & termios.ECHO)}))
";

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// The end by a signal, as Python tells it.
const INTERRUPTED: i64 = -2;

impl Desk {
    /// Runs `svc` on a terminal. Every prompt must appear.
    #[track_caller]
    pub(super) fn on_terminal(&self, arguments: &[&str], steps: &[(&str, &str)]) -> Value {
        let output = Command::new("python3")
            .args(["-c", DRIVER, &json!(steps).to_string()])
            .arg(binary::path())
            .args(arguments)
            .env("HOME", self.home.path())
            .env("SVC_DATA_DIR", self.home.data())
            .env("SVC_URL", self.service.url())
            .env("TERM", "xterm")
            .output()
            .expect("Python is part of the system");
        let told = String::from_utf8_lossy(&output.stderr);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        assert_eq!(told["unasked"], json!([]), "{told}");
        assert_eq!(told["echoes"], true, "{told}");
        told
    }
}

fn shown(told: &Value) -> &str {
    told["shown"].as_str().expect("a text")
}

#[test]
fn a_plugin_is_installed_after_yes_only() {
    let desk = Desk::new();
    let install = ["market", "install", "open-directory"];
    let ask = |answer| desk.on_terminal(&install, &[("Install it? [y/N] ", answer)]);
    let is_installed = || desk.json(&["plugin", "list"]) != json!([]);
    for no in ["n\n", "\n", CTRL_D, "maybe\n"] {
        let told = ask(no);
        assert_eq!(told["code"], 0, "{told}");
        // What is said next begins a line, and what would be allowed was shown before the question.
        assert!(shown(&told).contains("\nleft open-directory@svc as it is"), "{told}");
        assert!(shown(&told).starts_with("open-directory@svc "), "{told}");
        assert!(!is_installed());
    }
    let told = ask(CTRL_C);
    assert_eq!(told["code"], INTERRUPTED, "{told}");
    assert!(!is_installed());
    let told = ask("y\n");
    assert!(shown(&told).contains("installed open-directory@svc"), "{told}");
    assert!(is_installed());
}

#[test]
fn a_password_is_asked_for_twice_and_not_shown() {
    let desk = Desk::new();
    let set = ["site", "set", "https://a.test", "--user", "me"];
    let ask = |steps: &[(&str, &str)]| desk.on_terminal(&set, steps);
    let is_stored = || desk.json(&["site"]) != json!([]);
    let told = ask(&[("Password: ", "hidden\n"), ("Once more: ", "other\n")]);
    assert_eq!(told["code"], 32, "{told}");
    assert!(shown(&told).contains("the two are not the same"), "{told}");
    let told = ask(&[("Password: ", CTRL_D)]);
    assert_ne!(told["code"], 0, "{told}");
    // The terminal shows again what is typed: `on_terminal` asserts it.
    let told = ask(&[("Password: ", CTRL_C)]);
    assert_eq!(told["code"], INTERRUPTED, "{told}");
    assert!(!is_stored());
    let told = ask(&[("Password: ", "hidden\n"), ("Once more: ", "hiddem\u{7f}n\n")]);
    assert_eq!(told["code"], 0, "{told}");
    assert!(is_stored() && !shown(&told).contains("hidden"), "{told}");
}
