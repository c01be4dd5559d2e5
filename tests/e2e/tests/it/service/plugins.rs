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
use tempfile::TempDir;

use super::guest;

/// The plugin of these tests.
const PLUGIN: &str = "open-directory@svc";

/// The files of the directory, by their paths.
const FILES: [(&str, &[u8]); 3] = [
    ("top.txt", b"top"),
    ("a/\u{e4} & b.zip", b"zip"),
    ("a/b c/deep.bin", &[7; 100_000]),
];

/// Python's file server on a directory with files, ended with the test.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
    _folder: TempDir,
}

impl Server {
    pub(super) fn start() -> Self {
        Self::with(&FILES)
    }

    pub(super) fn with(files: &[(&str, &[u8])]) -> Self {
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
    assert!(told.as_str().unwrap().contains("waits for consent"), "{told}");
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
    // A preview is quick: it does not look into folders.
    let names: Vec<_> = preview["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["name"])
        .collect();
    assert_eq!(names, ["top.txt"]);
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
