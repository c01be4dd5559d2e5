//! SFTP with servers of others: OpenSSH, and asyncssh for logins with a password.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use e2e::{
    Home, Svc,
    service::{KEY, wait_until},
};
use serde_json::json;
use support::{Content, Proxy};

use crate::place::Place;

const MIB: u64 = 1 << 20;

/// As the script of asyncssh has it.
const PASSWORD: &str = "canary-password";

/// OpenSSH's server at work, with keys of its own. Dropping it ends it.
struct OpenSsh {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for OpenSsh {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn key(path: &Path, kind: &str, passphrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", passphrase, "-C", "", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

fn public(path: &Path) -> String {
    let text = fs::read_to_string(path.with_extension("pub")).unwrap();
    text.trim().to_owned()
}

impl OpenSsh {
    /// A server with these files below `root`, and a key of `kind`.
    fn start(files: &[(&str, &Content)], kind: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, content) in files {
            let path = at("root").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.to_vec()).unwrap();
        }
        fs::create_dir_all(at("home/.ssh")).unwrap();
        key(&at("host"), kind, "");
        key(&at("client"), "ed25519", "");
        key(&at("rsa"), "rsa", "");
        key(&at("locked"), "ed25519", "open-sesame");
        let clients = ["client", "rsa", "locked"].map(|name| public(&at(name))).join("\n");
        fs::write(at("authorized"), clients).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = folder.path().display();
        let more = more.replace("{root}", &root.to_string());
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nPidFile none\nStrictModes no\n\
             AuthorizedKeysFile {root}/authorized\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             UsePAM no\nSubsystem sftp internal-sftp\nLogLevel VERBOSE\n{more}\n"
        );
        fs::write(at("config"), config).unwrap();
        // Where Debian's has its privilege separation; the package makes it when the system starts.
        let _is_there = fs::create_dir("/run/sshd");
        let child = Command::new(program("sshd"))
            .args(["-D", "-e", "-f"])
            .arg(at("config"))
            .stderr(fs::File::create(at("log")).unwrap())
            .spawn()
            .expect("the program is there");
        let mut server = Self { child, port, folder };
        wait_until("sshd listens", || {
            assert!(matches!(server.child.try_wait(), Ok(None)), "{}", server.said());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn said(&self) -> String {
        fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    fn url(&self, path: &str) -> String {
        format!(
            "sftp://{}@127.0.0.1:{}{}/{path}",
            user(),
            self.port,
            self.at("root").display()
        )
    }

    fn fingerprint(&self) -> String {
        let output = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(self.at("host.pub"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// Makes the server known to the user, as OpenSSH writes it.
    fn known(&self, host_key: &str) {
        let line = format!("[127.0.0.1]:{} {host_key}\n", self.port);
        fs::write(self.at("home/.ssh/known_hosts"), line).unwrap();
    }

    /// `svc get` of a user whose home is beside the server.
    fn get(&self, place: &Place) -> Svc {
        let svc = Svc::get(place.path()).args(["--retry-wait", "0.1", "--retries", "1"]);
        svc.env("HOME", self.at("home")).env("SSH_AUTH_SOCK", "")
    }
}

fn program(name: &str) -> PathBuf {
    let places = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(|place| Path::new(place).join(name));
    let found = places.into_iter().find(|place| place.exists());
    found.expect("these tests need openssh-server and openssh-client; tests/run installs them")
}

/// The user that runs the tests: a server that is not root lets in no other.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn openssh_sends_a_file_to_each_kind_of_key() {
    let content = Content::seeded(41, 9 * MIB + 77);
    for kind in ["ed25519", "ecdsa"] {
        let server = OpenSsh::start(&[("f.bin", &content)], kind, "");
        server.known(&public(&server.at("host")));
        for format in ["PEM", "PKCS8"] {
            // The same key in a format of older programs.
            fs::copy(server.at("rsa"), server.at(format)).unwrap();
            let converted = Command::new("ssh-keygen")
                .args(["-q", "-p", "-P", "", "-N", "", "-m", format, "-f"])
                .arg(server.at(format))
                .stdout(Stdio::null())
                .status();
            assert!(converted.unwrap().success());
            let text = fs::read_to_string(server.at(format)).unwrap();
            assert!(!text.contains("OPENSSH"), "{format}");
        }
        for key in ["client", "rsa", "PEM", "PKCS8"] {
            let place = Place::new();
            let run = server
                .get(&place)
                .arg("--ssh-key")
                .arg(server.at(key))
                .arg(server.url("f.bin"))
                .run();
            assert_eq!(run.code, Some(0), "{kind} {key}: {run:?}");
            place.assert_file("f.bin", &content);
        }
    }
}

#[test]
fn a_server_with_a_key_of_rsa_only_is_refused_by_name() {
    let content = Content::seeded(54, 1000);
    let server = OpenSsh::start(&[("f.bin", &content)], "rsa", "");
    server.known(&public(&server.at("host")));
    let place = Place::new();
    let get = server.get(&place).arg("--ssh-key").arg(server.at("client"));
    let run = get.arg(server.url("f.bin")).run();
    assert_eq!(run.failure().as_deref(), Some("tls"), "{run:?}");
    assert!(run.stdout.concat().contains("a host key of RSA only"), "{run:?}");
}

#[test]
fn keys_are_found_where_openssh_has_them_and_paths_begin_at_home() {
    let content = Content::seeded(42, 3 * MIB + 1);
    let server = OpenSsh::start(
        &[("f.bin", &content)],
        "ed25519",
        "ForceCommand internal-sftp -d {root}/root",
    );
    server.known(&public(&server.at("host")));
    fs::copy(server.at("client"), server.at("home/.ssh/id_ed25519")).unwrap();
    let place = Place::new();
    // Without a user in it, the URL is for the user of this machine.
    let url = format!("sftp://127.0.0.1:{}/~/f.bin", server.port);
    server.get(&place).env("USER", user()).arg(url).run().assert_success();
    place.assert_file("f.bin", &content);
}

#[test]
fn a_key_of_the_agent_opens_the_server_and_a_locked_file_says_what_to_do() {
    let content = Content::seeded(43, 100_000);
    let server = OpenSsh::start(&[("f.bin", &content)], "ed25519", "");
    server.known(&public(&server.at("host")));
    let place = Place::new();
    let locked = || server.get(&place).arg("--ssh-key").arg(server.at("locked"));
    let refused = locked().arg(server.url("f.bin")).run();
    assert_eq!(refused.failure().as_deref(), Some("invalid-source"), "{refused:?}");
    assert!(refused.stdout.concat().contains("ssh-add"), "{refused:?}");
    let with_passphrase = server.url("f.bin").replace('@', ":open-sesame@");
    let opened = locked().arg(with_passphrase).run();
    opened.assert_success();
    assert!(!opened.stdout.concat().contains("open-sesame") && !opened.stderr.contains("open-sesame"));
    place.assert_file("f.bin", &content);

    let socket = server.at("agent");
    let mut agent = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the agent listens", || socket.exists());
    let mut runs = Vec::new();
    for key in ["client", "rsa"] {
        for arguments in [&["-q", "-D"][..], &["-q", key]] {
            let added = Command::new("ssh-add")
                .args(arguments)
                .current_dir(server.folder.path())
                .env("SSH_AUTH_SOCK", &socket)
                .status();
            assert!(added.unwrap().success());
        }
        let other = Place::new();
        let get = server.get(&other).env("SSH_AUTH_SOCK", &socket);
        runs.push((get.arg(server.url("f.bin")).run(), other));
    }
    let _gone = agent.kill();
    let _gone = agent.wait();
    for (run, other) in runs {
        run.assert_success();
        other.assert_file("f.bin", &content);
    }
}

#[test]
fn a_key_that_the_server_does_not_know_is_refused_by_name() {
    let content = Content::seeded(44, 1000);
    let server = OpenSsh::start(&[("f.bin", &content)], "ed25519", "");
    server.known(&public(&server.at("host")));
    key(&server.at("stranger"), "ed25519", "");
    let place = Place::new();
    let run = server
        .get(&place)
        .arg("--ssh-key")
        .arg(server.at("stranger"))
        .arg(server.url("f.bin"))
        .run();
    assert_eq!(run.failure().as_deref(), Some("unauthorized"), "{run:?}");
    assert!(run.stdout.concat().contains("stranger"), "{run:?}");
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn an_unknown_server_is_refused_with_what_accepts_it_and_a_changed_one_always() {
    let content = Content::seeded(45, 70_000);
    let server = OpenSsh::start(&[("f.bin", &content)], "ed25519", "");
    let fingerprint = server.fingerprint();
    let place = Place::new();
    let get = || server.get(&place).arg("--ssh-key").arg(server.at("client"));
    let unknown = get().arg(server.url("f.bin")).run();
    assert_eq!(unknown.failure().as_deref(), Some("tls"), "{unknown:?}");
    let message = unknown.event("failed").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("--ssh-host-key {fingerprint}")), "{message}");
    // The line that it shows is one that OpenSSH accepts as well.
    let line = message.rsplit_once("known_hosts: ").unwrap().1.to_owned();
    fs::write(server.at("home/.ssh/known_hosts"), format!("{line}\n")).unwrap();
    let found = Command::new("ssh-keygen")
        .args(["-l", "-F", &format!("[127.0.0.1]:{}", server.port), "-f"])
        .arg(server.at("home/.ssh/known_hosts"))
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&found.stdout).contains(&fingerprint),
        "{found:?}"
    );
    get().arg(server.url("f.bin")).run().assert_success();
    place.assert_file("f.bin", &content);

    // Hashed, as Debian has it.
    let hashed = Command::new("ssh-keygen")
        .arg("-qHf")
        .arg(server.at("home/.ssh/known_hosts"))
        .status();
    assert!(hashed.unwrap().success());
    assert!(
        fs::read_to_string(server.at("home/.ssh/known_hosts"))
            .unwrap()
            .starts_with("|1|")
    );
    let second = Place::new();
    let run = server
        .get(&second)
        .arg("--ssh-key")
        .arg(server.at("client"))
        .arg(server.url("f.bin"))
        .run();
    run.assert_success();

    let third = Place::new();
    let get = || server.get(&third).arg("--ssh-key").arg(server.at("client"));
    key(&server.at("other"), "ed25519", "");
    server.known(&public(&server.at("other")));
    for accepted in [vec![], vec!["--ssh-host-key", &fingerprint]] {
        let changed = get().args(accepted).arg(server.url("f.bin")).run();
        assert_eq!(changed.failure().as_deref(), Some("tls"), "{changed:?}");
        assert!(changed.stdout.concat().contains("ssh-keygen -R"), "{changed:?}");
    }
    fs::write(server.at("home/.ssh/known_hosts"), "").unwrap();
    let wrong = get()
        .args(["--ssh-host-key", "md5=00112233445566778899aabbccddeeff"])
        .arg(server.url("f.bin"))
        .run();
    assert_eq!(wrong.failure().as_deref(), Some("tls"), "{wrong:?}");
    assert_eq!(third.names(), Vec::<String>::new());
    get()
        .args(["--ssh-host-key", &fingerprint])
        .arg(server.url("f.bin"))
        .run()
        .assert_success();
    third.assert_file("f.bin", &content);
    let known = fs::read_to_string(server.at("home/.ssh/known_hosts")).unwrap();
    assert_eq!(known, "", "nothing is learned silently");
}

#[test]
fn a_download_over_sftp_survives_being_killed_and_costs_little() {
    const KILLS: u64 = 3;
    let content = Content::seeded(46, 40 * MIB + 4321);
    let server = OpenSsh::start(&[("large.bin", &content)], "ed25519", "");
    server.known(&public(&server.at("host")));
    let place = Place::new();
    let download = |limit: &str| {
        let svc = server.get(&place).arg("--ssh-key").arg(server.at("client"));
        svc.args(["--limit", limit]).arg(server.url("large.bin"))
    };
    for kill in 0..KILLS {
        let mut running = download("8M").spawn();
        let least = (kill + 1) * 6 * MIB;
        let seen = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(least));
        assert!(seen.is_some(), "run {kill} does not go on: {:?}", running.finish());
        running.kill();
        assert_eq!(place.finished_names(), Vec::<String>::new(), "after kill {kill}");
    }
    // A run that reports no progress before its end counts what was there as received.
    let run = download("16M").run();
    run.assert_success();
    place.assert_file("large.bin", &content);
    let last = run.event("finished").and_then(|event| event["receivedBytes"].as_u64());
    let left = content.len() - KILLS * 6 * MIB;
    assert!(
        last < Some(left + 6 * MIB),
        "{last:?} bytes were received where {left} were missing"
    );
}

#[test]
fn a_file_that_changed_is_started_over() {
    let (old, new) = (Content::seeded(47, 8 * MIB), Content::seeded(48, 8 * MIB));
    let server = OpenSsh::start(&[("f.bin", &old)], "ed25519", "");
    server.known(&public(&server.at("host")));
    let place = Place::new();
    let get = |limit: &str| {
        let svc = server.get(&place).arg("--ssh-key").arg(server.at("client"));
        svc.args(["--limit", limit]).arg(server.url("f.bin"))
    };
    let mut running = get("4M").spawn();
    let seen = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(2 * MIB));
    assert!(seen.is_some(), "{:?}", running.finish());
    running.kill();
    // Of the same size and time: only its bytes tell.
    let path = server.at("root/f.bin");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, new.to_vec()).unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    get("0").run().assert_success();
    place.assert_file("f.bin", &new);
}

#[test]
fn a_directory_becomes_a_group_without_links_and_devices() {
    let (one, other) = (Content::seeded(49, 3000), Content::seeded(50, 50_000));
    let server = OpenSsh::start(
        &[("pub/one.bin", &one), ("pub/below/other file.bin", &other)],
        "ed25519",
        "",
    );
    symlink("/etc/passwd", server.at("root/pub/link")).unwrap();
    let fifo = Command::new("mkfifo").arg(server.at("root/pub/pipe")).status();
    assert!(fifo.unwrap().success());
    server.known(&public(&server.at("host")));
    fs::copy(server.at("client"), server.at("home/.ssh/id_ed25519")).unwrap();
    let home = Home::new();
    let service = e2e::Service::start(
        home.new_server()
            .env("SVC_TOKEN", KEY)
            .env("HOME", server.at("home"))
            .env("SSH_AUTH_SOCK", ""),
    );
    service.wait_until_ready();
    service.create(&json!({"url": server.url("pub/")}));
    wait_until("every file is complete", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().expect("it is a list").clone();
        tasks.len() == 2
            && tasks
                .iter()
                .all(|task| task["status"] == "completed" || task["status"] == 3)
    });
    let folder = home.downloads().join("pub");
    for (name, content) in [("one.bin", &one), ("below/other file.bin", &other)] {
        assert_eq!(content.difference(&folder.join(name)).unwrap(), None, "{name}");
    }
    assert!(!folder.join("link").exists() && !folder.join("pipe").exists());
    service.terminate();
}

/// asyncssh at work, in front of a folder. Dropping it ends it.
pub(crate) struct Asyncssh {
    child: Child,
    port: u16,
    pub(crate) fingerprint: String,
    /// The same as aria2 takes it.
    sha1: String,
    /// The public key as a line of `known_hosts` has it.
    key: String,
    pub(crate) folder: tempfile::TempDir,
    lines: Receiver<String>,
}

impl Drop for Asyncssh {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Asyncssh {
    /// See the script for its options.
    pub(crate) fn start(files: &[(&str, &Content)], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.to_vec()).unwrap();
        }
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients");
        let mut child = Command::new(tests.join("python"))
            .arg(tests.join("sftp_server.py"))
            .arg(root)
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the launcher is a script of ours");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        // It ends with the server's output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _over = sender.send(line);
            }
        });
        let first = lines.recv_timeout(Duration::from_mins(2)).expect("it prints its port");
        let [port, fingerprint, sha1, kind, key] = first.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{first}");
        };
        Self {
            child,
            port: port.parse().unwrap(),
            fingerprint: fingerprint.to_owned(),
            sha1: format!("sha-1={sha1}"),
            key: format!("{kind} {key}\n"),
            folder,
            lines,
        }
    }

    pub(crate) fn url(&self, login: &str, path: &str) -> String {
        format!("sftp://{login}@127.0.0.1:{}/{path}", self.port)
    }

    /// How many passwords came since the last call.
    pub(crate) fn logins(&self) -> usize {
        self.lines.try_iter().filter(|line| line == "login").count()
    }
}

#[test]
fn no_login_is_begun_at_a_server_whose_key_is_not_accepted() {
    let content = Content::seeded(55, 1000);
    let server = Asyncssh::start(&[("f.bin", &content)], &[]);
    let place = Place::new();
    let ssh = place.aside("home/.ssh");
    fs::create_dir_all(&ssh).unwrap();
    key(&ssh.join("other"), "ed25519", "");
    let changed = format!("[127.0.0.1]:{} {}\n", server.port, public(&ssh.join("other")));
    let revoked = format!("@revoked * {}", server.key);
    let wrong = ["--ssh-host-key", "md5=00112233445566778899aabbccddeeff"];
    let right = ["--ssh-host-key", &server.fingerprint];
    let cases: [(&str, &[&str]); 5] = [
        ("", &[]),
        ("", &wrong),
        (&changed, &[]),
        (&changed, &right),
        (&revoked, &right),
    ];
    for (known, arguments) in cases {
        fs::write(ssh.join("known_hosts"), known).unwrap();
        let run = Svc::get(place.path())
            .args(["--retries", "0"])
            .args(arguments)
            .env("HOME", place.aside("home"))
            .env("SSH_AUTH_SOCK", "")
            .arg(server.url(&format!("me:{PASSWORD}"), "f.bin"))
            .run();
        assert_eq!(run.failure().as_deref(), Some("tls"), "{known} {arguments:?}: {run:?}");
        let said: Vec<String> = server.lines.try_iter().collect();
        assert_eq!(said, Vec::<String>::new(), "{known} {arguments:?}");
    }
    assert_eq!(place.names(), Vec::<String>::new());
    fs::write(ssh.join("known_hosts"), "").unwrap();
    let run = Svc::get(place.path())
        .args(right)
        .env("HOME", place.aside("home"))
        .env("SSH_AUTH_SOCK", "")
        .arg(server.url(&format!("me:{PASSWORD}"), "f.bin"))
        .run();
    run.assert_success();
    assert!(server.logins() > 0, "the server tells of logins");
}

/// A server that is none of SSH: it sends `bytes` again and again, or nothing.
fn answers_with(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut sent = 0_usize;
                while !bytes.is_empty() && sent < 256 << 20 && stream.write_all(bytes).is_ok() {
                    sent += bytes.len();
                }
                // Silent from here on, until the client is gone.
                let _gone = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    port
}

#[test]
fn a_server_that_never_logs_in_ends_in_time() {
    let silent_login = Asyncssh::start(&[], &["silent=yes"]);
    let cases: [(&str, u16, &[&str]); 5] = [
        ("silent", answers_with(b""), &["timeout"]),
        (
            "lines without end",
            answers_with(b"Welcome\r\n"),
            &["malformed-response", "network", "timeout"],
        ),
        (
            "a line without end",
            answers_with(b"Welcome "),
            &["malformed-response", "network", "timeout"],
        ),
        (
            "packets without end",
            answers_with(b"SSH-2.0-x\r\n\0\x04\0\0\x04aaaaaaaaaaaaaaa"),
            &["malformed-response", "network", "timeout"],
        ),
        ("silent login", silent_login.port, &["timeout"]),
    ];
    for (name, port, kinds) in cases {
        let place = Place::new();
        let before = Instant::now();
        let run = Svc::get(place.path())
            .args(["--retries", "0", "--timeout", "2", "--connect-timeout", "3"])
            .args(["--ssh-host-key", &silent_login.fingerprint])
            .env("HOME", place.aside("home"))
            .env("SSH_AUTH_SOCK", "")
            .deadline(Duration::from_secs(30))
            .arg(format!("sftp://me:{PASSWORD}@127.0.0.1:{port}/f.bin"))
            .run();
        let kind = run.failure().unwrap_or_default();
        assert!(kinds.contains(&kind.as_str()), "{name}: {run:?}");
        assert!(
            before.elapsed() < Duration::from_secs(20),
            "{name}: {:?}",
            before.elapsed()
        );
        assert!(!run.stdout.concat().contains(PASSWORD) && !run.stderr.contains(PASSWORD));
    }
}

#[test]
fn a_password_opens_the_server_in_both_ways_and_is_never_shown() {
    let content = Content::seeded(51, 3 * MIB + 3);
    for options in [vec![], vec!["questions=yes"]] {
        let server = Asyncssh::start(&[("f.bin", &content)], &options);
        let place = Place::new();
        let get = |login: &str| {
            let svc = Svc::get(place.path()).args(["--retries", "0", "--ssh-host-key", &server.fingerprint]);
            svc.env("HOME", place.aside("home"))
                .env("SSH_AUTH_SOCK", "")
                .arg("-vvv")
                .arg(server.url(login, "f.bin"))
        };
        let wrong = get("me:wrong-canary").run();
        assert_eq!(wrong.failure().as_deref(), Some("unauthorized"), "{wrong:?}");
        assert!(!wrong.stdout.concat().contains("wrong-canary") && !wrong.stderr.contains("wrong-canary"));
        let run = get(&format!("me:{PASSWORD}")).run();
        run.assert_success();
        place.assert_file("f.bin", &content);
        assert!(!run.stdout.concat().contains(PASSWORD) && !run.stderr.contains(PASSWORD));
        assert!(server.logins() >= 2);
    }
}

#[test]
fn stored_logins_netrc_and_proxies_are_used() {
    let content = Content::seeded(52, 70_000);
    let server = Asyncssh::start(&[("f.bin", &content)], &[]);
    let place = Place::new();
    let netrc = place.aside("netrc");
    fs::write(&netrc, format!("machine 127.0.0.1 login me password {PASSWORD}\n")).unwrap();
    fs::set_permissions(&netrc, fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = Proxy::socks5(&[], None);
    let run = Svc::get(place.path())
        .args(["--ssh-host-key", &server.fingerprint, "--proxy"])
        .arg(format!("socks5://127.0.0.1:{}", proxy.port()))
        .arg("--netrc-file")
        .arg(&netrc)
        .env("HOME", place.aside("home"))
        .arg(server.url("me", "f.bin"))
        .run();
    run.assert_success();
    place.assert_file("f.bin", &content);

    let home = Home::new();
    let service = e2e::Service::start(
        home.new_server()
            .env("SVC_TOKEN", KEY)
            .env("HOME", place.aside("home"))
            .env("SSH_AUTH_SOCK", ""),
    );
    service.wait_until_ready();
    let url = server.url(&format!("me:{PASSWORD}"), "f.bin");
    let id = service.create(&json!({"url": url, "sshHostKey": server.fingerprint}));
    wait_until("the file is complete", || {
        let status = service.task(&id)["status"].clone();
        status == "completed" || status == 3
    });
    let refused = service.ask(
        "POST",
        "/api/v1/tasks",
        Some(&json!({"url": url, "sshHostKey": "SHA256:no"})),
    );
    let refused = refused.expect("it answers");
    assert!(
        refused.status == 400 && refused.text().contains("sshHostKey"),
        "{}",
        refused.text()
    );
    let answer = service.task(&id).to_string();
    let run = service.terminate();
    assert!(!answer.contains(PASSWORD) && !run.stderr.contains(PASSWORD));
}

#[test]
fn the_drop_in_for_aria2c_checks_the_host_key_that_it_is_told() {
    let content = Content::seeded(53, 70_000);
    let server = Asyncssh::start(&[("f.bin", &content)], &[]);
    let place = Place::new();
    let aria2c = |key: &str| {
        let svc = Svc::new().args(["aria2c", "--no-conf", "--ssh-host-key-md", key, "--ftp-user=me", "-d"]);
        let svc = svc.arg(place.path()).arg(format!("--ftp-passwd={PASSWORD}"));
        let url = server.url("", "f.bin").replace("//@", "//");
        svc.env("HOME", place.aside("home"))
            .env("SSH_AUTH_SOCK", "")
            .arg(url)
            .run()
    };
    let wrong = aria2c("md5=00112233445566778899aabbccddeeff");
    assert_ne!(wrong.code, Some(0), "{wrong:?}");
    assert_eq!(place.finished_names(), Vec::<String>::new());
    let right = aria2c(&server.sha1);
    assert_eq!(right.code, Some(0), "{right:?}");
    place.assert_file("f.bin", &content);
}
