//! Plugins in the running service: installed as anybody installs one, agreed to, and asked what is behind a URL.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use e2e::{Home, Service, http, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};
use tempfile::TempDir;

use super::{
    guest,
    plugin_sites::{assert_without, run},
};

/// The plugin of these tests.
const PLUGIN: &str = "open-directory@svc";

/// The files of the directory, by their paths.
const FILES: [(&str, &[u8]); 3] = [
    ("top.txt", b"top"),
    ("a/\u{e4} & b.zip", b"zip"),
    ("a/b c/deep.bin", &[7; 100_000]),
];

/// Python's file server on a directory with files, ended with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&FILES)
    }

    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.split(['(', ')']).find(|part| part.starts_with("http://")).unwrap();
        Self {
            child,
            url: url.to_owned(),
            _folder: folder,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn switch(service: &Service, body: &Value) -> http::Answer {
    guest::switch(service, PLUGIN, body)
}

fn plugin(service: &Service) -> Value {
    service.call("GET", "/api/v1/plugins", None)[0].clone()
}

/// A service with the plugin, agreed to.
fn with_plugin(home: &Home) -> Service {
    guest::with_plugin(home, PLUGIN)
}

fn tasks(service: &Service) -> Vec<Value> {
    let list = service.call("GET", "/api/v1/tasks", None);
    list.as_array().expect("a list of tasks").clone()
}

#[test]
fn a_plugin_does_nothing_until_its_user_agrees_to_what_it_asks_for() {
    let (home, server) = (Home::new(), Server::start());
    let service = home.serve();
    service.wait_until_ready();
    let consent = guest::install(&service, PLUGIN);
    let waiting = plugin(&service);
    assert_eq!(
        (&waiting["loadStatus"], &waiting["enabled"]),
        (&json!("PendingConsent"), &json!(false))
    );
    let preview = || service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": server.url})));
    let (nothing, told) = (preview()["items"].take(), preview()["error"].take());
    assert_eq!(nothing, json!([]));
    let agree = format!("svc plugin consent {PLUGIN}");
    assert!(told.as_str().unwrap().contains(&agree), "{told}");
    let added = run(&service, &["add", "--paused", &server.url]);
    assert!(added.stdout[0].starts_with("added "), "{:?}", added.stdout);
    assert!(added.stderr.contains(&agree), "{}", added.stderr);
    let task = json!({"url": server.url, "startPaused": true});
    let created = service.call("POST", "/api/v1/tasks", Some(&task));
    assert_eq!(created["message"], told, "the same by HTTP");
    let asked = run(&service, &["plugin", "consent", PLUGIN]).stdout.join("\n");
    assert!(asked.contains("may contact the host of the link you paste"), "{asked}");
    let other = switch(
        &service,
        &json!({"enabled": true, "consent": "0".repeat(consent.len())}),
    );
    assert_ne!(other.status, 200, "{}", other.body);
    assert_eq!(preview()["items"], json!([]));
    let agreed = switch(&service, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
    let preview = preview();
    assert_eq!(preview["error"], "", "{preview}");
    // What is shown is what would be downloaded, folders included.
    let items = preview["items"].as_array().unwrap().iter();
    let path = |item: &Value| format!("{}/{}", item["path"].as_str().unwrap(), item["name"].as_str().unwrap());
    let mut files: Vec<_> = items
        .map(|item| path(item).trim_start_matches('/').to_owned())
        .collect();
    files.sort_unstable();
    let mut expect = FILES.map(|(path, _)| path);
    expect.sort_unstable();
    assert_eq!(files, expect);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_preview_tells_a_url_of_nobody_from_one_of_a_plugin() {
    let (home, server) = (Home::new(), Server::start());
    let service = with_plugin(&home);
    let preview = |url: &str| service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})));
    let listed = preview(&server.url);
    assert_eq!((&listed["plugin"], &listed["message"]), (&json!(PLUGIN), &json!(null)));
    let plain = preview("http://127.0.0.1:9/file.iso");
    assert_eq!((&plain["plugin"], &plain["error"]), (&json!(""), &json!("")));
    assert_eq!(
        plain["message"],
        "no plugin claims this URL; it is downloaded as a plain file"
    );
    let told = run(&service, &["plugin", "preview", "http://127.0.0.1:9/file.iso"])
        .stdout
        .join("\n");
    assert_eq!(told, plain["message"]);
    let told = run(&service, &["plugin", "preview", &server.url]).stdout.join("\n");
    assert!(told.contains("top.txt"), "{told}");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_login_in_a_url_opens_its_site_and_is_neither_shown_nor_given_to_others() {
    const PASSWORD: &str = "open-sesame";
    let gate = || behaviour::basic_auth("me", PASSWORD);
    let other = Origin::start(vec![Resource::new("/b.bin", Content::bytes("b"))]);
    let page = "<title>Directory listing for /dir/</title><ul><li><a href=\"a.bin\">a.bin</a></li>
        <li><a href=\"b.bin\">b.bin</a></li></ul>";
    let origin = Origin::start(vec![
        Resource::new("/dir/", Content::bytes(page))
            .media_type("text/html")
            .with(gate()),
        Resource::new("/dir/a.bin", Content::bytes("a")).with(gate()),
        Resource::new("/dir/b.bin", Content::bytes(""))
            .with(behaviour::redirect(302, &other.url("/b.bin")))
            .with(gate()),
    ]);
    let home = Home::new();
    let service = with_plugin(&home);
    let url = origin
        .url("/dir/")
        .replace("http://", &format!("http://me:{PASSWORD}@"));
    service.create(&json!({"url": url}));
    wait_until("both files are there", || {
        let tasks = tasks(&service);
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 2 && tasks.iter().all(|task| task["status"] == 3)
    });
    for request in other.requests() {
        assert_eq!(request.header("authorization"), None);
    }
    let journal = format!("/api/v1/plugins/{PLUGIN}/journal");
    for path in ["/api/v1/tasks", "/api/v1/groups", journal.as_str()] {
        let shown = service.call("GET", path, None).to_string();
        assert_without(shown.as_bytes(), &[PASSWORD]);
    }
    for command in [["list", "--json"], ["plugin", "list"]] {
        assert_without(run(&service, &command).stdout.join("\n").as_bytes(), &[PASSWORD]);
    }
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_url_of_a_directory_becomes_a_group_of_its_files_also_after_a_restart() {
    let (home, server) = (Home::new(), Server::start());
    assert_eq!(with_plugin(&home).terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    service.create(&json!({"url": server.url}));
    wait_until("all files are there", || {
        let tasks = tasks(&service);
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == FILES.len() && tasks.iter().all(|task| task["status"] == 3)
    });
    let groups = service.call("GET", "/api/v1/groups", None);
    assert_eq!(groups.as_array().map(Vec::len), Some(1), "{groups}");
    for task in tasks(&service) {
        let path = Path::new(task["saveDir"].as_str().unwrap()).join(task["fileName"].as_str().unwrap());
        assert!(path.starts_with(home.downloads()), "{}", path.display());
        let (_, bytes) = FILES
            .iter()
            .find(|(name, _)| path.ends_with(name))
            .expect("it is one of the files");
        assert!(fs::read(&path).unwrap() == *bytes, "{}", path.display());
    }
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn without_its_plugin_a_url_is_not_downloaded_as_something_else_unless_its_user_says_so() {
    let (home, server) = (Home::new(), Server::start());
    let service = with_plugin(&home);
    let task = json!({"url": server.url, "fileName": "index.html", "startPaused": true});
    let id = service.create(&task);
    assert_eq!(switch(&service, &json!({"enabled": false})).status, 200);
    service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
    wait_until("the task fails", || service.task(&id)["status"] == 4);
    let failed = service.task(&id);
    assert_eq!(failed["errorKind"], "plugin-unavailable", "{failed}");
    assert!(fs::read_dir(home.downloads()).unwrap().next().is_none());
    service.call("POST", &format!("/api/v1/tasks/{id}/ignore-plugin-retry"), None);
    wait_until("the page is there", || service.task(&id)["status"] == 3);
    let page = fs::read_to_string(home.downloads().join("index.html")).unwrap();
    assert!(page.contains("top.txt"), "{page}");
    assert_eq!(service.terminate().code, Some(0));
}
