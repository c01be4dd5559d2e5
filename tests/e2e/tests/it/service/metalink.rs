//! A Metalink document, from its URL to the files that it describes, from mirrors that are there and mirrors that are
//! not.

use std::{fs, net::TcpListener};

use data_encoding::BASE64;
use e2e::{Home, Service, Svc, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::guest;

/// The plugin of these tests.
const PLUGIN: &str = "metalink@svc";

/// SHA-256 of `abc` and of a million times `a`, as its standard has them.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const MILLION: &str = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

fn million() -> Vec<u8> {
    vec![b'a'; 1_000_000]
}

/// A mirror that does not answer.
fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    format!("http://{}", listener.local_addr().expect("it has an address"))
}

fn site(document: String) -> Origin {
    Origin::start(vec![
        Resource::new("/pub/all.meta4", Content::bytes(document.into_bytes())).media_type("application/metalink4+xml"),
    ])
}

fn mirror() -> Origin {
    Origin::start(vec![
        Resource::new("/m/abc.txt", Content::bytes(*b"abc")),
        Resource::new("/m/million.txt", Content::bytes(million())),
    ])
}

/// A document with these files.
fn document(files: &str) -> String {
    format!(r#"<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">{files}</metalink>"#)
}

fn tasks(service: &Service) -> Vec<Value> {
    let list = service.call("GET", "/api/v1/tasks", None);
    list.as_array().expect("a list of tasks").clone()
}

#[test]
fn a_document_becomes_its_files_though_a_mirror_is_dead() {
    let (mirror, dead) = (mirror(), dead());
    let site = site(document(&format!(
        r#"<file name="abc.txt"><size>3</size><hash type="sha-256">{ABC}</hash>
             <url priority="1">{dead}/m/abc.txt</url><url priority="2">{there}abc.txt</url></file>
           <file name="large/million.txt"><size>1000000</size><hash type="sha-256">{MILLION}</hash>
             <url priority="1">{dead}/m/million.txt</url><url priority="2">{there}million.txt</url></file>"#,
        there = mirror.url("/m/"),
    )));
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    service.create(&json!({"url": site.url("/pub/all.meta4")}));
    wait_until("both files are there", || {
        let tasks = tasks(&service);
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 2 && tasks.iter().all(|task| task["status"] == 3)
    });
    let folder = home.downloads().join("all");
    assert_eq!(fs::read(folder.join("abc.txt")).unwrap(), b"abc");
    assert!(fs::read(folder.join("large/million.txt")).unwrap() == million());
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_file_that_is_not_what_its_document_says_is_not_called_finished() {
    let mirror = mirror();
    let site = site(document(&format!(
        r#"<file name="abc.txt"><size>3</size><hash type="sha-256">{MILLION}</hash><url>{}</url></file>"#,
        mirror.url("/m/abc.txt"),
    )));
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    let id = service.create(&json!({"url": site.url("/pub/all.meta4")}));
    wait_until("the task fails", || service.task(&id)["status"] == 4);
    let failed = service.task(&id);
    assert_eq!(failed["errorKind"], "checksum-mismatch", "{failed}");
    assert!(!home.downloads().join("abc.txt").exists());
    assert_eq!(service.terminate().code, Some(0));
}

/// A document in a request: its files, in their directories, with all that the document says of them.
#[test]
fn a_document_in_a_request_becomes_its_files() {
    let mirror = mirror();
    let there = mirror.url("/m/");
    let text = document(&format!(
        r#"<file name="abc.txt"><size>3</size><hash type="sha-256">{ABC}</hash>
             <pieces type="sha-256" length="3"><hash>{ABC}</hash></pieces>
             <url priority="1">{dead}/m/abc.txt</url><url priority="2">{there}abc.txt</url></file>
           <file name="large/million.txt"><hash type="sha-256">{MILLION}</hash><url>{there}million.txt</url></file>"#,
        dead = dead(),
    ));
    let home = Home::new();
    let service = home.serve();
    let encoded = BASE64.encode(text.as_bytes());
    let made = service.call(
        "POST",
        "/api/v1/tasks",
        Some(&json!({"metalinkB64": encoded, "segments": 1})),
    );
    let ids: Vec<_> = made["taskIds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    assert_eq!((ids.len(), made["taskId"].as_str()), (2, Some(ids[0])), "{made}");
    wait_until("both files are there", || {
        ids.iter().all(|id| service.task(id)["status"] == 3)
    });
    assert_eq!(fs::read(home.downloads().join("abc.txt")).unwrap(), b"abc");
    assert!(fs::read(home.downloads().join("large/million.txt")).unwrap() == million());
    // The same from a file, with a directory of its own, kept by the service over a restart.
    let file = home.path().join("list.meta4");
    fs::write(&file, &text).unwrap();
    let other = home.path().join("other");
    let add = |options: &[&str]| {
        let svc = Svc::new()
            .args(["add", "--url", &service.url()])
            .args(options)
            .arg(&file);
        svc.env("SVC_TOKEN", e2e::service::KEY).run()
    };
    let refused = add(&[]);
    assert!(
        refused.stderr.contains("name the one that they are in with --dir"),
        "{}",
        refused.stderr
    );
    add(&["--paused", "--dir", other.to_str().unwrap()]).assert_success();
    assert_eq!(tasks(&service).len(), 4);
    assert_eq!(service.terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    for task in tasks(&service).iter().filter(|task| task["status"] == 2) {
        let id = task["taskId"].as_str().unwrap();
        let asked = service
            .rpc()
            .call("daemon.task.request", &json!({"taskId": id}))
            .unwrap();
        let has_pieces = asked["pieceHashes"]
            .as_str()
            .is_some_and(|text| text.starts_with("sha-256=3:"));
        assert_eq!(has_pieces, asked["expectedSizeBytes"] == 3, "{asked}");
    }
    service.call("PUT", "/api/v1/tasks/continue", None);
    wait_until("both are there again", || {
        tasks(&service).iter().all(|task| task["status"] == 3)
    });
    assert!(fs::read(other.join("large/million.txt")).unwrap() == million());
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_document_in_a_request_that_would_do_harm_is_refused_and_makes_no_task() {
    let home = Home::new();
    let service = home.serve();
    let named = |name: &str| {
        let text = document(&format!(
            r#"<file name="{name}"><url>http://127.0.0.1:9/f</url></file>"#
        ));
        json!({"metalinkB64": BASE64.encode(text.as_bytes())})
    };
    let with = |field: &str, value: Value| {
        let mut request = named("f");
        request[field] = value;
        request
    };
    for (request, words) in [
        (named("../f"), "\"../f\" leaves its directory"),
        (json!({"metalinkB64": "!"}), "not in base64"),
        (json!({"metalinkB64": BASE64.encode(b"<x/>")}), "no Metalink"),
        (
            json!({"metalinkB64": BASE64.encode(document("").as_bytes())}),
            "no file",
        ),
        (with("url", json!("http://127.0.0.1:9/x")), "exclude each other"),
        (
            with("checksum", json!("md5=900150983cd24fb0d6963f7d28e17f72")),
            "exclude each other",
        ),
        (with("cookies", json!("a=1")), "are for one site"),
        (with("httpUser", json!("me")), "are for one site"),
        (
            json!({"url": "http://127.0.0.1:9/x", "pieceHashes": "sha-1=0:AAAA"}),
            "the least is 1",
        ),
    ] {
        let answer = service.ask("POST", "/api/v1/tasks", Some(&request)).unwrap();
        assert_eq!(answer.status, 400, "{request}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(words), "{words:?} is not in {message}");
    }
    let many = json!({"requests": [named("f")]});
    assert!(service.rpc().call("daemon.task.createMany", &many).is_err());
    assert_eq!(tasks(&service).len(), 0);
    assert_eq!(service.terminate().code, Some(0));
}
