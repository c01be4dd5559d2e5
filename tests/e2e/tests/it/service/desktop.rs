//! A desktop beside its agent: notifications, keeping awake, and what follows the last download. The desktop's services are
//! those of python-dbusmock, on a session bus of the test's own.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Home, Run, Running, Service, Svc, binary, http, python, service::wait_until};
use serde_json::{Value, json};

use super::{key_store::Session, plugins::Server};

const PORTAL: &str = "org.freedesktop.portal.Desktop";
const PORTAL_PATH: &str = "/org/freedesktop/portal/desktop";
const NOTIFICATIONS: &str = "org.freedesktop.Notifications";
const NOTIFICATIONS_PATH: &str = "/org/freedesktop/Notifications";
const FILES: &str = "org.freedesktop.FileManager1";
const FILES_PATH: &str = "/org/freedesktop/FileManager1";
const MOCK: &str = "org.freedesktop.DBus.Mock";

/// A session with services, and the agent in it.
struct Desktop {
    session: Session,
    services: Vec<(&'static str, Running)>,
    home: Home,
    agent: Option<Service>,
}

impl Desktop {
    fn new() -> Self {
        Self {
            session: Session::new(),
            services: Vec::new(),
            home: Home::new(),
            agent: None,
        }
    }

    fn start_service(&mut self, name: &'static str, arguments: &[&str]) {
        let mock = Svc::of("/usr/bin/python3")
            .args(["-u", "-m", "dbusmock"])
            .args(arguments);
        let mock = mock
            .env("DBUS_SESSION_BUS_ADDRESS", &self.session.address)
            .env("DBUS_SYSTEM_BUS_ADDRESS", &self.session.address);
        self.services.push((name, mock.spawn()));
        wait_until("the service is on the bus", || self.has_name(name));
    }

    /// Whether a program has this name on the session bus.
    fn has_name(&self, name: &str) -> bool {
        let owner = [
            "-d",
            "org.freedesktop.DBus",
            "-o",
            "/",
            "-m",
            "org.freedesktop.DBus.NameHasOwner",
            name,
        ];
        self.gdbus(&owner).is_some_and(|answer| answer.contains("true"))
    }

    fn with_notifications(mut self) -> Self {
        let capabilities = r#"{"capabilities": "actions body body-markup"}"#;
        self.start_service(
            NOTIFICATIONS,
            &["--template", "notification_daemon", "-p", capabilities],
        );
        self
    }

    fn with_portal(mut self) -> Self {
        self.start_service(
            PORTAL,
            &["--session", PORTAL, PORTAL_PATH, "org.freedesktop.portal.Inhibit"],
        );
        let add = format!("{MOCK}.AddMethod");
        let path = "ret = dbus.ObjectPath('/request')";
        let inhibit = [
            PORTAL,
            PORTAL_PATH,
            &add,
            "org.freedesktop.portal.Inhibit",
            "Inhibit",
            "sua{sv}",
            "o",
            path,
        ];
        self.mock(&inhibit);
        let object = format!("{MOCK}.AddObject");
        let request = "org.freedesktop.portal.Request";
        self.mock(&[
            PORTAL,
            PORTAL_PATH,
            &object,
            "/request",
            request,
            "@a{sv} {}",
            "[('Close', '', '', '')]",
        ]);
        self
    }

    fn start(&mut self, svc: Svc) {
        let svc = self
            .session
            .svc(svc)
            .env("DBUS_SYSTEM_BUS_ADDRESS", &self.session.address);
        self.agent = Some(Service::start(svc.env("PATH", self.home.path())));
    }

    fn agent(&self) -> &Service {
        self.agent.as_ref().expect("it was started")
    }

    fn gdbus(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("/usr/bin/gdbus")
            .args(["call", "--session"])
            .args(arguments)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.session.address)
            .output()
            .expect("gdbus is there");
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Name, object and method, and the arguments of the method.
    fn mock(&self, call: &[&str]) -> String {
        let [name, path, method, arguments @ ..] = call else {
            panic!("{call:?}");
        };
        let answer = self.gdbus(&[&["-d", name, "-o", path, "-m", method], arguments].concat());
        answer.unwrap_or_else(|| panic!("{call:?} fails"))
    }

    /// The calls that a service got of this method, as text.
    fn calls(&self, name: &str, path: &str, method: &str) -> Vec<String> {
        let answer = self.mock(&[name, path, &format!("{MOCK}.GetMethodCalls"), method]);
        // `([(uint64 1, [<…>]), (2, […])],)`: one time and one list of arguments for each call.
        answer.split("[<").skip(1).map(ToOwned::to_owned).collect()
    }

    /// Whether a notification has this text, after some time.
    fn wait_for_notification(&self, text: &str) -> u32 {
        let mut place = None;
        wait_until("a notification is shown", || {
            let shown = self.calls(NOTIFICATIONS, NOTIFICATIONS_PATH, "Notify");
            place = shown.iter().position(|call| call.contains(text));
            place.is_some()
        });
        u32::try_from(place.expect("it was found")).expect("there are few") + 1
    }

    fn press(&self, id: u32, button: &str) {
        let signal = format!("{MOCK}.EmitSignal");
        let arguments = format!("[<uint32 {id}>, <'{button}'>]");
        self.mock(&[
            NOTIFICATIONS,
            NOTIFICATIONS_PATH,
            &signal,
            NOTIFICATIONS,
            "ActionInvoked",
            "us",
            &arguments,
        ]);
    }

    fn hand_over(&self, url: &str) {
        let body = json!({"url": url, "referrer": "http://page.test/"});
        let answer = http::ask(
            self.agent().address(),
            "POST",
            "/download",
            &[("X-Svc-Client", "test")],
            Some(&body),
        );
        assert_eq!(answer.map(|answer| answer.status), Some(200));
    }

    fn with_file_manager(mut self) -> Self {
        self.start_service(FILES, &["--session", FILES, FILES_PATH, FILES]);
        let add = format!("{MOCK}.AddMethod");
        self.mock(&[FILES, FILES_PATH, &add, FILES, "ShowItems", "ass", "", ""]);
        self
    }

    /// A program in place of one of the desktop that notes its first argument; returns where.
    fn fake(&self, program: &str) -> PathBuf {
        let (path, notes) = (self.home.path().join(program), self.home.path().join("opened"));
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$1\" >> '{}'\n", notes.display());
        fs::write(&path, script).expect("it is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        notes
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Svc::new().args(arguments).arg("--data-dir").arg(self.home.data()).run()
    }

    fn svc(&self, arguments: &[&str]) -> Vec<String> {
        let run = self.run(arguments);
        run.assert_success();
        run.stdout
    }

    /// Downloads a file completely; returns the id of its task, and its path.
    fn download(&self, url: &str) -> (String, PathBuf) {
        let added = self.json(&["add", url]);
        let id = added["taskIds"][0].as_str().expect("a task was added").to_owned();
        let mut task = Value::Null;
        wait_until("the file is complete", || {
            let tasks = self.json(&["list"]);
            let mut tasks = tasks.as_array().into_iter().flatten();
            task = tasks
                .find(|task| task["taskId"] == id.as_str())
                .cloned()
                .unwrap_or_default();
            task["status"] == 3
        });
        let name = task["fileName"].as_str().expect("it has a name").to_owned();
        (id, self.home.downloads().join(name))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.svc(&[arguments, &["--json"]].concat());
        serde_json::from_str(&printed.join("\n")).expect("--json prints JSON")
    }

    fn is_completed(&self) -> bool {
        self.json(&["list"])
            .as_array()
            .is_some_and(|tasks| tasks.iter().any(|task| task["status"] == 3))
    }
}

#[test]
fn a_notification_asks_and_its_buttons_decide() {
    let mut desktop = Desktop::new().with_notifications().with_portal();
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    let server = Server::with(&[("good.bin", b"abc")]);
    desktop.hand_over(&format!("{}good.bin", server.url));
    desktop.hand_over("http://127.0.0.1:9/%3Cb%3Ebad.iso");
    let (good, bad) = (
        desktop.wait_for_notification("good.bin"),
        desktop.wait_for_notification("bad.iso"),
    );
    desktop.press(bad, "reject");
    desktop.press(good, "accept");
    wait_until("the accepted download is complete", || desktop.is_completed());
    assert_eq!(desktop.json(&["capture"]), json!([]));
    assert_eq!(
        desktop.json(&["list"]).as_array().map(Vec::len),
        Some(1),
        "the other one was rejected"
    );
    wait_until("both notifications are withdrawn", || {
        desktop
            .calls(NOTIFICATIONS, NOTIFICATIONS_PATH, "CloseNotification")
            .len()
            >= 2
    });
    // Awake while something transfers, here from a server that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let url = format!("http://{}/slow.bin", silent.local_addr().expect("it listens"));
    desktop.svc(&["add", &url]);
    wait_until("the computer is kept awake", || {
        let began = desktop.calls(PORTAL, PORTAL_PATH, "Inhibit");
        began.iter().any(|call| call.contains("Downloads are running"))
    });
    desktop.svc(&["pause-all"]);
    wait_until("the computer may sleep again", || {
        let ended = desktop.mock(&[PORTAL, "/request", &format!("{MOCK}.GetMethodCalls"), "Close"]);
        ended.contains("uint64")
    });

    desktop.svc(&["config", "server", "set", "do_not_disturb=true"]);
    desktop.hand_over("http://127.0.0.1:9/quiet.iso");
    assert_eq!(desktop.json(&["capture"]).as_array().map(Vec::len), Some(1), "it waits");
    desktop.svc(&["config", "server", "set", "do_not_disturb=false"]);
    desktop.wait_for_notification("quiet.iso");
    let shown = desktop.calls(NOTIFICATIONS, NOTIFICATIONS_PATH, "Notify");
    assert_eq!(
        shown.iter().filter(|call| call.contains("quiet.iso")).count(),
        1,
        "{shown:?}"
    );
}

#[test]
fn a_desktop_without_notifications_serves_all_the_same() {
    let mut desktop = Desktop::new();
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    let opened = desktop.fake("xdg-open");
    desktop.hand_over("http://127.0.0.1:9/a.iso");
    desktop.hand_over("http://127.0.0.1:9/b.iso");
    // Each with a ticket of its own in place of a key.
    let page = format!("http://{}/#open=", desktop.agent().address());
    let pages = || -> BTreeSet<String> {
        let text = fs::read_to_string(&opened).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    };
    let are_opened = |count: usize| {
        let pages = pages();
        assert!(pages.iter().all(|opened| opened.starts_with(&page)), "{pages:?}");
        pages.len() == count
    };
    wait_until("the page is opened", || are_opened(1));
    desktop.svc(&["capture", "reject", "--all"]);
    // Once for all that waited, and once for what comes later.
    desktop.hand_over("http://127.0.0.1:9/c.iso");
    wait_until("the page is opened again", || are_opened(2));
}

#[test]
fn a_download_is_confirmed_in_a_small_window_of_the_browser() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let arguments = [binary::path(), directory.path()].map(|path| path.to_str().expect("its path is UTF-8"));
    println!("{}", python::run_module("clients/confirmation.mjs", &arguments));
}

/// A browser that fails, and a desktop that has notifications.
#[test]
fn a_browser_that_opens_no_window_leaves_the_question_to_a_notification() {
    let mut desktop = Desktop::new().with_notifications();
    let browser = desktop.home.path().join("google-chrome");
    fs::write(&browser, "#!/bin/sh\nexit 1\n").expect("it is writable");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let svc = desktop.home.new_desktop().env("DISPLAY", ":99");
    desktop.start(svc);
    desktop.hand_over("http://127.0.0.1:9/a.iso");
    desktop.wait_for_notification("a.iso");
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_finished_file_is_opened_and_shown_by_its_notification_and_by_a_command() {
    let mut desktop = Desktop::new().with_notifications().with_file_manager();
    let opened = desktop.fake("xdg-open");
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    let server = Server::with(&[
        ("-rf & %41.bin", b"abc"),
        ("setup.sh", b"echo"),
        ("tool", b"#!/bin/sh\n"),
    ]);
    let (id, path) = desktop.download(&format!("{}-rf%20&%20%2541.bin", server.url));
    let uri = format!("file://{}/-rf%20%26%20%2541.bin", desktop.home.downloads().display());
    assert!(path.is_file(), "{}", path.display());
    let notification = desktop.wait_for_notification("Download complete");
    let shown = desktop.calls(NOTIFICATIONS, NOTIFICATIONS_PATH, "Notify");
    assert!(shown[0].contains("-rf &amp; %41.bin"), "{shown:?}");
    desktop.press(notification, "open-file");
    wait_until("the file is opened", || lines(&opened) == [uri.clone()]);
    desktop.press(notification, "reveal");
    let reveals = |desktop: &Desktop| desktop.calls(FILES, FILES_PATH, "ShowItems");
    wait_until("the file is shown", || reveals(&desktop).len() == 1);
    assert!(reveals(&desktop)[0].contains(&uri), "{:?}", reveals(&desktop));

    let short = &id[..8];
    assert_eq!(desktop.svc(&["open", "--task", short]), ["opened the file"]);
    assert_eq!(lines(&opened), [uri.clone(), uri]);
    let revealed = desktop.svc(&["open", "--task", short, "--reveal"]);
    assert_eq!(revealed, ["showed the file in its directory"]);
    assert_eq!(reveals(&desktop).len(), 2);

    // Programs are shown, and not started.
    for name in ["setup.sh", "tool"] {
        let (id, _) = desktop.download(&format!("{}{name}", server.url));
        desktop.wait_for_notification(&format!("<'{name}'>"));
        let refused = desktop.run(&["open", "--task", &id]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.stderr.contains("is not opened from here"), "{refused:?}");
        desktop.svc(&["open", "--task", &id, "--reveal"]);
    }
    let notification = desktop.wait_for_notification("setup.sh");
    desktop.press(notification, "open-file");
    desktop.wait_for_notification("Svc did not open the file");
    assert_eq!((lines(&opened).len(), reveals(&desktop).len()), (2, 4));

    fs::remove_file(&path).expect("it is there");
    let gone = desktop.run(&["open", "--task", &id]);
    assert!(
        gone.code != Some(0) && gone.stderr.contains("the file is gone"),
        "{gone:?}"
    );
    desktop.svc(&["config", "server", "set", "notify_finished=false"]);
    desktop.download(&format!("{}tool?again", server.url));
    let shown = desktop.calls(NOTIFICATIONS, NOTIFICATIONS_PATH, "Notify");
    assert_eq!(
        shown.iter().filter(|call| call.contains("Download complete")).count(),
        3,
        "{shown:?}"
    );
}

/// The icon of a desktop, as a program that shows icons sees it.
struct Icon<'d> {
    desktop: &'d Desktop,
    name: String,
}

impl Icon<'_> {
    fn call(&self, path: &str, method: &str, arguments: &[&str]) -> Option<String> {
        self.desktop
            .gdbus(&[&["-d", &self.name, "-o", path, "-m", method], arguments].concat())
    }

    fn properties(&self) -> String {
        let arguments = ["org.kde.StatusNotifierItem"];
        let all = self.call(
            "/StatusNotifierItem",
            "org.freedesktop.DBus.Properties.GetAll",
            &arguments,
        );
        all.expect("the item has properties")
    }

    fn menu(&self) -> String {
        let layout = self.call("/MenuBar", "com.canonical.dbusmenu.GetLayout", &["0", "--", "-1", "[]"]);
        layout.expect("the item has a menu")
    }

    /// Chooses the entry with this label, by the id that the menu has for it.
    fn choose(&self, label: &str) {
        let menu = self.menu();
        let (before, _) = menu
            .split_once(&format!("'label': <'{label}"))
            .expect("there is such an entry");
        let (_, id) = before.rsplit_once("<(").expect("each entry begins with its id");
        let id = id.trim_end_matches([',', ' ', '{']).trim_start_matches("int32 ");
        self.call(
            "/MenuBar",
            "com.canonical.dbusmenu.Event",
            &[id, "clicked", "<''>", "0"],
        )
        .expect("entries can be chosen");
    }
}

#[test]
fn the_tray_shows_downloads_and_its_menu_pauses_resumes_opens_and_quits() {
    let mut desktop = Desktop::new();
    let opened = desktop.fake("xdg-open");
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    // The program that shows icons comes, goes, and comes again; each time the icon is registered.
    let name = format!("org.kde.StatusNotifierItem-{}-1", desktop.agent().pid());
    for _ in 0..2 {
        let mut watcher = python::system_client("clients/tray_watcher.py")
            .env("DBUS_SESSION_BUS_ADDRESS", &desktop.session.address)
            .spawn();
        let registered = watcher.wait_for_line(|line| line.starts_with("org.kde.StatusNotifierItem"));
        assert_eq!(registered.as_ref(), Some(&name));
        watcher.kill();
    }
    let icon = Icon {
        desktop: &desktop,
        name,
    };
    for expected in ["'Id': <'svc'>", "'Menu': <objectpath '/MenuBar'>", "'No downloads'"] {
        assert!(icon.properties().contains(expected), "{}", icon.properties());
    }
    assert!(icon.call("/MenuBar", "com.canonical.dbusmenu.Nothing", &[]).is_none());
    assert!(
        icon.call("/elsewhere", "com.canonical.dbusmenu.AboutToShow", &["0"])
            .is_none()
    );

    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let url = format!("http://{}/slow.bin", silent.local_addr().expect("it listens"));
    desktop.svc(&["add", &url]);
    wait_until("the menu says that one is active", || {
        icon.menu().contains("<'1 active")
    });
    icon.choose("1 active");
    icon.choose("Pause all");
    wait_until("it is paused", || icon.menu().contains("<'No downloads'>"));
    assert_eq!(desktop.json(&["list"])[0]["status"], 2);
    icon.choose("Resume all");
    wait_until("it is active again", || icon.menu().contains("<'1 active"));
    icon.choose("Open Svc");
    wait_until("the page is opened", || lines(&opened).len() == 1);
    icon.call(
        "/StatusNotifierItem",
        "org.kde.StatusNotifierItem.Activate",
        &["0", "0"],
    );
    wait_until("a click opens it, too", || lines(&opened).len() == 2);

    desktop.svc(&["config", "server", "set", "tray=false"]);
    wait_until("the icon is gone", || !desktop.has_name(&icon.name));
    desktop.svc(&["config", "server", "set", "tray=true"]);
    wait_until("the icon is back", || desktop.has_name(&icon.name));
    icon.choose("Quit");
    let agent = desktop.agent.take().expect("it was started");
    assert_eq!(agent.finish().code, Some(0));
}

#[test]
fn without_a_file_manager_on_the_bus_the_directory_is_opened() {
    let mut desktop = Desktop::new();
    let opened = desktop.fake("xdg-open");
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    let server = Server::with(&[("a.bin", b"abc")]);
    let (id, _) = desktop.download(&format!("{}a.bin", server.url));
    desktop.svc(&["open", "--task", &id, "--reveal"]);
    assert_eq!(
        lines(&opened),
        [format!("file://{}", desktop.home.downloads().display())]
    );
    fs::write(desktop.home.path().join("xdg-open"), "#!/bin/sh\nexit 3\n").expect("it is writable");
    let failed = desktop.run(&["open", "--task", &id]);
    assert!(failed.stderr.contains("no program for this type"), "{failed:?}");
}

#[test]
fn a_server_opens_no_files() {
    let home = Home::new();
    let service = home.serve();
    let id = service.create(&json!({"url": "http://127.0.0.1:9/a.bin", "startPaused": true}));
    let run = Svc::new()
        .args(["open", "--task", &id, "--data-dir"])
        .arg(home.data())
        .run();
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("not complete"), "{run:?}");
}

#[test]
fn what_follows_the_last_download_is_announced_and_can_be_cancelled() {
    let mut desktop = Desktop::new().with_notifications();
    desktop.start_service("org.freedesktop.login1", &["--system", "--template", "logind"]);
    let svc = desktop.home.new_desktop();
    desktop.start(svc);
    desktop.svc(&["config", "server", "set", "after_finish=suspend"]);
    let server = Server::with(&[("one.bin", b"abc"), ("two.bin", b"abc")]);
    desktop.svc(&["add", &format!("{}one.bin", server.url), "--wait"]);
    let id = desktop.wait_for_notification("The computer is suspended in 60 seconds");
    desktop.press(id, "cancel");
    wait_until("the preference is used up", || {
        desktop
            .json(&["config", "server", "get", "after_finish"])
            .to_string()
            .contains("nothing")
    });
    let suspended = desktop.calls("org.freedesktop.login1", "/org/freedesktop/login1", "Suspend");
    assert!(suspended.is_empty(), "{suspended:?}");
}
