//! A Metalink document, from its URL to the files that it describes, from mirrors that are there and mirrors that are
//! not.

use std::{fs, net::TcpListener};

use e2e::{Home, Service, service::wait_until};
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
