//! The key of stored secrets in the desktop's key store: GNOME's keyring, on a session bus of the test's own.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use e2e::{Home, Running, Service, Svc, service::wait_until};
use serde_json::json;
use tempfile::TempDir;

const PASSWORD: &str = "canary-of-the-keyring";

/// A session bus with a directory of its own for keyrings.
pub(super) struct Session {
    root: TempDir,
    _bus: Running,
    pub(super) address: String,
    keyring: Option<Child>,
}

impl Session {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().expect("there is room for temporary files");
        // Unlike that of a desktop, it starts no keyring by itself.
        let config = root.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:dir={}</listen><auth>EXTERNAL</auth><policy context='default'>\
             <allow send_destination='*' eavesdrop='true'/><allow eavesdrop='true'/><allow own='*'/></policy></busconfig>",
            root.path().display()
        );
        fs::write(&config, text).expect("a temporary directory is writable");
        let mut bus = Svc::of("/usr/bin/dbus-daemon")
            .args(["--nofork", "--print-address=1", "--config-file"])
            .arg(&config)
            .env("XDG_RUNTIME_DIR", root.path())
            .spawn();
        let address = bus
            .wait_for_line(|line| line.starts_with("unix:"))
            .expect("it says where it is");
        Self {
            root,
            _bus: bus,
            address,
            keyring: None,
        }
    }

    /// Starts the keyring, unlocked with this password; without one, it stays locked.
    fn start_keyring(&mut self, password: Option<&str>) {
        let mut command = Command::new("/usr/bin/gnome-keyring-daemon");
        command
            .args(["--foreground", "--components=secrets", "--control-directory"])
            .arg(self.root.path().join("control"))
            .env_clear()
            .env("HOME", self.root.path())
            .env("XDG_DATA_HOME", self.root.path())
            .env("XDG_RUNTIME_DIR", self.root.path())
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if password.is_some() {
            command.arg("--unlock");
        }
        let mut keyring = command.spawn().expect("gnome-keyring-daemon is there");
        let mut input = keyring.stdin.take().expect("it is piped");
        std::io::Write::write_all(&mut input, password.unwrap_or_default().as_bytes()).expect("it reads its password");
        drop(input);
        self.keyring = Some(keyring);
        wait_until("the keyring is on the bus", || self.has_keyring());
    }

    fn has_keyring(&self) -> bool {
        let asked = Command::new("/usr/bin/dbus-send")
            .args([
                "--session",
                "--print-reply",
                "--dest=org.freedesktop.DBus",
                "/",
                "org.freedesktop.DBus.NameHasOwner",
            ])
            .arg("string:org.freedesktop.secrets")
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .output();
        String::from_utf8_lossy(&asked.expect("dbus-send is there").stdout).contains("boolean true")
    }

    fn kill_keyring(&mut self) {
        if let Some(mut keyring) = self.keyring.take() {
            keyring.kill().expect("a child can be killed");
            keyring.wait().expect("a child can be waited for");
        }
    }

    pub(super) fn svc(&self, svc: Svc) -> Svc {
        svc.env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("HOME", self.root.path())
    }

    fn agent(&self, home: &Home) -> Service {
        Service::start(self.svc(home.new_open_desktop()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill_keyring();
    }
}

fn key_file(home: &Home) -> PathBuf {
    home.data().join("vault.key")
}

fn is_in_store(home: &Home) -> bool {
    fs::read(key_file(home)).is_ok_and(|bytes| bytes.starts_with(b"org.freedesktop.secrets "))
}

/// Stores a login, which is sealed with the key.
fn save_login(service: &Service) {
    let login = json!({"site": "https://a.test", "user": "me", "pass": PASSWORD});
    wait_until("the login is saved", || {
        service.rpc().call("daemon.siteAuth.save", &login).is_ok()
    });
}

fn has_login(service: &Service) -> bool {
    let mut list = json!(null);
    wait_until("the service answers", || {
        let answer = service.rpc().call("daemon.siteAuth.list", &json!({}));
        answer.map(|found| list = found).is_ok()
    });
    list[0]["user"] == "me"
}

/// Runs the daemon, which must refuse to start, and gives what it says.
fn refusal(session: &Session, home: &Home, options: &[&str]) -> String {
    let run = session.svc(home.svc("daemon").args(options)).run();
    assert_ne!(run.code, Some(0));
    run.stderr
}

#[test]
fn a_desktop_keeps_its_key_in_the_keyring_and_gives_it_back() {
    let (mut session, home) = (Session::new(), Home::new());
    session.start_keyring(Some("login password"));
    let service = session.agent(&home);
    save_login(&service);
    // Answered once the device link has its key, which is sealed, too.
    let outbox = service.rpc().call("agent.link.outbox", &json!({}));
    assert_eq!(outbox.expect("nothing waits"), json!([]));
    assert!(is_in_store(&home), "{:?}", fs::read(key_file(&home)));
    assert_eq!(service.terminate().code, Some(0));
    // The same after a restart of both.
    session.kill_keyring();
    session.start_keyring(Some("login password"));
    let service = session.agent(&home);
    assert!(has_login(&service));
    let rotated = service
        .rpc()
        .call("daemon.vault.rotate", &json!({}))
        .expect("the key is replaced");
    assert_eq!(
        rotated["values"], 2,
        "the login and the key of the device link: {rotated}"
    );
    assert!(is_in_store(&home));
    assert_eq!(service.terminate().code, Some(0));
    // To a server: once with the file, then anywhere.
    let service = Service::start(session.svc(home.new_open_desktop().args(["--keys", "file"])));
    assert!(has_login(&service));
    assert_eq!(fs::read(key_file(&home)).expect("it is there").len(), 32);
    assert_eq!(service.terminate().code, Some(0));
    session.kill_keyring();
    let service = home.serve();
    assert!(has_login(&service));
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_keyring_that_is_locked_gone_or_empty_is_named_and_nothing_is_overwritten() {
    let (mut session, home) = (Session::new(), Home::new());
    session.start_keyring(Some("login password"));
    let service = session.agent(&home);
    save_login(&service);
    assert_eq!(service.terminate().code, Some(0));
    let note = fs::read(key_file(&home)).expect("it is there");
    session.kill_keyring();
    for options in [&[][..], &["--keys", "desktop"], &["--keys", "file"]] {
        let gone = refusal(&session, &home, options);
        assert!(
            gone.contains("vault.key") && gone.contains("no key store answers"),
            "{gone}"
        );
        assert!(gone.contains("--keys file"), "it does not say what to do: {gone}");
    }
    session.start_keyring(None);
    let locked = refusal(&session, &home, &[]);
    assert!(locked.contains("is locked"), "{locked}");
    session.kill_keyring();
    // Another keyring, which does not have the key.
    let keyrings = session.root.path().join("keyrings");
    let aside = session.root.path().join("aside");
    fs::rename(&keyrings, &aside).expect("the keyring has its files here");
    session.start_keyring(Some("login password"));
    let empty = refusal(&session, &home, &["--keys", "desktop"]);
    assert!(empty.contains("does not have it"), "{empty}");
    session.kill_keyring();
    assert_eq!(fs::read(key_file(&home)).expect("it is there"), note);
    fs::remove_dir_all(&keyrings).expect("it is the test's");
    fs::rename(&aside, &keyrings).expect("it is the test's");
    session.start_keyring(Some("login password"));
    let service = session.agent(&home);
    assert!(has_login(&service), "everything is as before");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn without_a_usable_keyring_and_on_servers_the_key_stays_in_its_file() {
    let (mut session, home) = (Session::new(), Home::new());
    let stays = |service: Service| {
        save_login(&service);
        assert_eq!(fs::read(key_file(&home)).expect("it is there").len(), 32);
        assert_eq!(service.terminate().code, Some(0));
    };
    stays(session.agent(&home));
    session.start_keyring(None);
    stays(session.agent(&home));
    session.kill_keyring();
    session.start_keyring(Some("login password"));
    stays(Service::start(
        session.svc(home.new_server().env("SVC_TOKEN", e2e::service::KEY)),
    ));
    let service = session.agent(&home);
    assert!(has_login(&service));
    assert!(is_in_store(&home));
    assert_eq!(service.terminate().code, Some(0));
}

/// The daemon is killed at moments of the start, in which the key moves.
#[test]
fn a_kill_while_the_key_moves_loses_no_login() {
    let (mut session, home) = (Session::new(), Home::new());
    session.start_keyring(Some("login password"));
    let service = home.serve();
    save_login(&service);
    assert_eq!(service.terminate().code, Some(0));
    let (mut before, mut after) = (0, 0);
    for round in 0..24_u64 {
        let place = if round % 2 == 0 { "desktop" } else { "file" };
        let was_in_store = is_in_store(&home);
        let daemon = session.svc(home.svc("daemon").args(["--keys", place])).spawn();
        // Spread over the time that a start takes here, so that kills come on both sides of the move.
        #[expect(clippy::disallowed_methods, reason = "the moment of the kill is what is tried out")]
        thread::sleep(Duration::from_millis(15 * (round / 2)));
        daemon.kill();
        if is_in_store(&home) == was_in_store {
            before += 1;
        } else {
            after += 1;
        }
    }
    assert!(
        before > 0 && after > 0,
        "{before} before and {after} after: the kills miss the move"
    );
    let service = session.agent(&home);
    assert!(has_login(&service));
    assert_eq!(service.terminate().code, Some(0));
}
