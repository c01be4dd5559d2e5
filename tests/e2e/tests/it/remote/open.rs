//! `svc integrate` and `svc open`: a desktop's links and files find the service, with the programs that desktops use for it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Home, Run, Svc, service::wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::assert_ended;

/// Types that `svc integrate` registers.
const TYPES: [&str; 5] = [
    "x-scheme-handler/svc",
    "x-scheme-handler/magnet",
    "application/x-bittorrent",
    "application/metalink4+xml",
    "application/metalink+xml",
];

/// A user of a desktop, with directories of their own and a port that is free.
struct Desktop {
    // Dropped first: it ends the processes that use the directory.
    home: Home,
    root: TempDir,
}

impl Desktop {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("there is room for a directory");
        let data = root.path().join(".local/share/svc");
        fs::create_dir_all(&data).expect("it is writable");
        let home = Home::on(&data);
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it listens").port();
        drop(listener);
        let settings = json!({
            "version": 1, "key": null, "takeover": true, "jsonrpc": true, "api": false, "mcp": false, "cors": false,
            "lan": false, "port": port, "preferences": {"revision": 0, "values": {}},
        });
        let agent = home.data().join("agent");
        fs::create_dir_all(&agent).expect("a temporary directory is writable");
        fs::write(agent.join("settings.json"), settings.to_string()).expect("it is writable");
        Self { home, root }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.root.path().to_owned()),
            ("SVC_DATA_DIR", self.home.data()),
            ("SVC_SAVE_DIR", self.home.downloads()),
            ("PATH", PathBuf::from("/usr/bin:/bin")),
            // Without one, xdg-open looks for browsers of terminals only. Nothing connects to it.
            ("DISPLAY", PathBuf::from(":99")),
        ]
    }

    fn svc(&self, arguments: &[&str]) -> Run {
        let environment = self.environment().into_iter();
        let svc = environment.fold(Svc::new(), |svc, (name, value)| svc.env(name, value));
        svc.args(arguments).run()
    }

    /// A program of the desktop, with the same environment. Returns what it prints.
    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .env_clear()
            .envs(self.environment())
            .args(arguments)
            .output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        printed
    }

    fn handlers(&self) -> Vec<String> {
        let handlers = TYPES
            .iter()
            .map(|kind| self.ask("/usr/bin/xdg-mime", &["query", "default", kind]));
        handlers.collect()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.svc(arguments);
        run.assert_success();
        serde_json::from_str(&run.stdout.join("\n")).expect("--json prints JSON")
    }

    fn waiting(&self) -> Vec<String> {
        let waiting = self.json(&["capture", "list", "--json"]);
        let urls = waiting.as_array().expect("it is a list").iter();
        urls.map(|capture| capture["url"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let places = [
            ".local/share/applications/svc.desktop",
            ".local/share/icons/hicolor/scalable/apps/svc.svg",
            ".config/autostart/svc.desktop",
        ];
        places
            .map(|place| self.path(place))
            .into_iter()
            .filter(|path| path.exists())
            .collect()
    }
}

/// A torrent of one file of one piece.
fn write_torrent(path: &Path) {
    let head = b"d4:infod6:lengthi5e4:name8:file.bin12:piece lengthi16384e6:pieces20:";
    let torrent = [&head[..], &[7; 20], b"ee"].concat();
    fs::write(path, torrent).expect("it is writable");
}

#[test]
fn handlers_are_installed_found_by_the_desktop_and_removed() {
    let desktop = Desktop::new();
    fs::create_dir_all(desktop.path(".config")).expect("it is writable");
    fs::create_dir_all(desktop.path(".local/share/applications")).expect("it is writable");
    let other = "[Desktop Entry]\nType=Application\nName=Other\nExec=/bin/true %u\nMimeType=x-scheme-handler/magnet;\n";
    fs::write(desktop.path(".local/share/applications/other.desktop"), other).expect("it is writable");
    let list = desktop.path(".config/mimeapps.list");
    fs::write(&list, "[Default Applications]\nx-scheme-handler/magnet=other.desktop\n").expect("it is writable");

    let would = desktop.svc(&["integrate", "--dry-run"]);
    assert_ended(&would, 0, "would create");
    assert_eq!(desktop.files(), Vec::<PathBuf>::new());
    assert_ended(&desktop.svc(&["integrate"]), 0, "created");
    assert_eq!(desktop.files().len(), 3);
    for entry in [
        desktop.path(".local/share/applications/svc.desktop"),
        desktop.path(".config/autostart/svc.desktop"),
    ] {
        desktop.ask(
            "/usr/bin/desktop-file-validate",
            &[entry.to_str().expect("its path is UTF-8")],
        );
    }
    assert_eq!(desktop.handlers(), ["svc.desktop"; 5]);
    let again = desktop.svc(&["integrate"]);
    assert!(
        again.stdout.iter().all(|line| line.starts_with("unchanged ")),
        "{again:?}"
    );

    // What xdg-open starts is the entry's command, and so the service.
    desktop.ask(
        "/usr/bin/xdg-open",
        &["svc://download?url=http%3A%2F%2F127.0.0.1%3A9%2Fa.iso&filename=b.iso"],
    );
    wait_until("the link waits for confirmation", || {
        desktop.waiting() == ["http://127.0.0.1:9/a.iso"]
    });
    let torrent = desktop.path("some film.torrent");
    write_torrent(&torrent);
    desktop.ask("/usr/bin/xdg-open", &[torrent.to_str().expect("its path is UTF-8")]);
    wait_until("the torrent is a task", || {
        desktop.json(&["list", "--json"])[0]["fileName"] == "file.bin"
    });

    assert_ended(&desktop.svc(&["integrate", "--remove"]), 0, "removed");
    assert_eq!(desktop.files(), Vec::<PathBuf>::new());
    assert_eq!(
        desktop.ask("/usr/bin/xdg-mime", &["query", "default", TYPES[1]]),
        "other.desktop"
    );
    let list = fs::read_to_string(list).expect("it is there");
    assert!(!list.contains("svc.desktop"), "{list}");
}

#[test]
fn a_file_of_somebody_else_stays_and_is_named() {
    let desktop = Desktop::new();
    let entry = desktop.path(".config/autostart/svc.desktop");
    fs::create_dir_all(entry.parent().expect("it has a directory")).expect("it is writable");
    fs::write(&entry, "mine").expect("it is writable");
    let run = desktop.svc(&["integrate"]);
    assert_eq!(run.code, Some(13), "{run:?}");
    assert!(
        run.stdout
            .iter()
            .any(|line| line.starts_with("kept ") && line.contains("autostart")),
        "{run:?}"
    );
    let run = desktop.svc(&["integrate", "--remove"]);
    assert_eq!(
        (run.code, fs::read_to_string(&entry).ok().as_deref()),
        (Some(13), Some("mine")),
        "{run:?}"
    );
}

#[test]
fn a_second_start_hands_over_to_the_first() {
    let desktop = Desktop::new();
    // The link names no download, so no service is started.
    let run = desktop.svc(&["open", "svc://download?url=&filename=a"]);
    assert_eq!((run.code, run.stdout.len(), run.stderr.as_str()), (Some(0), 0, ""));
    assert!(desktop.home.processes().is_empty());

    let first = desktop.svc(&[
        "open",
        "svc://download?url=http%3A%2F%2F127.0.0.1%3A9%2Fone.iso&filename=named.iso",
    ]);
    assert_ended(&first, 0, "waits for your confirmation");
    assert!(first.stderr.contains("starting svc agent"), "{first:?}");
    let second = desktop.svc(&[
        "open",
        "magnet:?xt=urn:btih:0000000000000000000000000000000000000001",
        "https://a.test/b",
    ]);
    assert_ended(&second, 0, "waits for your confirmation");
    assert!(!second.stderr.contains("starting"), "{second:?}");
    assert_eq!(desktop.waiting().len(), 3);
    let names = desktop.json(&["capture", "list", "--json"]);
    assert_eq!(names[0]["fileName"], "named.iso");
    assert_eq!(desktop.home.processes().len(), 2, "one agent and its daemon");
    assert_ended(
        &desktop.svc(&["open", "svc://download?url=file%3A%2F%2F%2Fetc%2Fpasswd"]),
        32,
        "schemes",
    );

    assert_ended(
        &desktop.svc(&["config", "server", "set", "silent_download_enabled=true"]),
        0,
        "",
    );
    let silent = desktop.svc(&["open", "svc://download?url=http%3A%2F%2F192.0.2.1%2Ffour.iso"]);
    assert_ended(&silent, 0, "added ");
    assert_ended(
        &desktop.svc(&["config", "server", "set", "local_server_takeover_enabled=false"]),
        0,
        "",
    );
    assert_ended(
        &desktop.svc(&["open", "http://192.0.2.1/five.iso"]),
        1,
        "takeover is switched off",
    );

    // An agent that is started by hand says who has the directory.
    let other = desktop.svc(&["agent"]);
    assert_ne!(other.code, Some(0), "{other:?}");
    assert!(other.stderr.contains("another agent"), "{other:?}");
}
