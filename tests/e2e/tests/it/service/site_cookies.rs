//! Cookies of a browser's export: files behind a login download with them, and nothing tells them.

use e2e::{Home, Service, Svc, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};

use crate::remote::shell;

/// Nothing but a cookie has this in it.
const SECRET: &str = "marked-cookie-12";

/// A file that only those get who bring the cookie.
fn protected(content: &Content) -> Origin {
    let is_stranger = |exchange: &support::Exchange| !behaviour::has_cookie(exchange, &format!("sid={SECRET}"));
    Origin::start(vec![
        Resource::new("/f.bin", content.clone()).with(behaviour::when(is_stranger, behaviour::status(403))),
    ])
}

/// What an extension writes for the loopback's address, and more that a request to `/f.bin` does not get.
fn export() -> String {
    format!(
        "# Netscape HTTP Cookie File\n\
         #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t4000000000\tsid\t{SECRET}\n\
         127.0.0.1\tFALSE\t/\tTRUE\t0\ttls\tonly-{SECRET}\n\
         127.0.0.1\tFALSE\t/other\tFALSE\t0\tpath\tother-{SECRET}\n\
         127.0.0.1\tFALSE\t/\tFALSE\t1000\told\texpired-{SECRET}\n\
         other.test\tFALSE\t/\tFALSE\t0\tsid\tother-{SECRET}\n"
    )
}

fn end(service: &Service, id: &str) -> u64 {
    wait_until("the task has ended", || {
        matches!(service.task(id)["status"].as_u64(), Some(3 | 4))
    });
    service.task(id)["status"].as_u64().expect("a number")
}

fn download(service: &Service, origin: &Origin) -> u64 {
    let id = service.create(&json!({"url": origin.url("/f.bin"), "maxTries": 1, "onConflict": "overwrite"}));
    end(service, &id)
}

#[test]
fn a_protected_file_downloads_after_the_import_and_not_after_the_removal() {
    let content = Content::seeded(71, 100_000);
    let origin = protected(&content);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(download(&service, &origin), 4, "a stranger gets it");

    let request = json!({"cookies": export(), "site": "127.0.0.1"});
    let entry = json!({"site": "127.0.0.1", "count": 3});
    let stored = service.call("PUT", "/api/v1/site-cookies", Some(&request));
    assert_eq!(stored, json!([entry]), "one has expired, and one is of another site");
    assert_eq!(download(&service, &origin), 3);
    let sent = origin.requests();
    let sent = sent.last().and_then(|request| request.header("cookie"));
    assert_eq!(sent, Some(format!("sid={SECRET}").as_str()));
    assert_eq!(
        content
            .difference(&home.downloads().join("f.bin"))
            .expect("it is there"),
        None
    );

    // The download's own cookie of that name is newer.
    let id = service.create(&json!({"url": origin.url("/f.bin"), "maxTries": 1, "cookies": "a=b; sid=own"}));
    assert_eq!(end(&service, &id), 4);
    let sent = origin.requests();
    let sent = sent.last().and_then(|request| request.header("cookie"));
    assert_eq!(sent, Some("a=b; sid=own"));

    // They survive a new key and a restart, sealed.
    let rotated = service
        .rpc()
        .call("daemon.vault.rotate", &json!({}))
        .expect("it answers");
    assert!(rotated["values"].as_u64() > Some(0), "{rotated}");
    assert_eq!(download(&service, &origin), 3);
    assert_eq!(service.terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(download(&service, &origin), 3);
    let reads = [
        service.call("GET", "/api/v1/site-cookies", None),
        service.call("GET", "/api/v1/site-cookies/127.0.0.1", None),
        service
            .rpc()
            .call("daemon.siteCookies.list", &json!({}))
            .expect("it answers"),
        service.rpc().call("system.snapshot", &json!({})).expect("it answers"),
    ];
    assert_eq!((&reads[0], &reads[1]), (&json!([entry]), &entry));
    for read in reads {
        assert!(
            !read.to_string().contains(SECRET) && !read.to_string().contains("tls"),
            "{read}"
        );
    }
    for file in ["svc.db", "svc.db-wal"] {
        let bytes = std::fs::read(home.data().join(file)).unwrap_or_default();
        assert!(
            !bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()),
            "{file}"
        );
    }

    service.call("DELETE", "/api/v1/site-cookies/127.0.0.1", None);
    assert_eq!(service.call("GET", "/api/v1/site-cookies", None), json!([]));
    assert_eq!(download(&service, &origin), 4, "they are still sent");
    let again = service.ask("DELETE", "/api/v1/site-cookies/127.0.0.1", None);
    assert_eq!(again.expect("it answers").status, 404);
}

#[test]
fn the_command_takes_what_browsers_extensions_write() {
    let content = Content::seeded(72, 1000);
    let origin = protected(&content);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let svc = |arguments: &[&str]| {
        let svc: Svc = shell(&home).env("SVC_URL", service.url());
        svc.args(["cookies"]).args(arguments)
    };
    let json = json!([
        {"domain": "127.0.0.1", "hostOnly": true, "name": "sid", "value": SECRET, "path": "/", "session": true},
        {"domain": ".other.test", "hostOnly": false, "name": "b", "value": "c", "path": "/",
         "expirationDate": 4_000_000_000.5},
    ]);
    let stored = svc(&["import", "-", "--json"]).input(json.to_string()).run();
    stored.assert_success();
    let stored: Value = serde_json::from_str(&stored.stdout.concat()).expect("it prints JSON");
    let expected = json!([
        {"site": "127.0.0.1", "count": 1},
        {"site": "other.test", "count": 1, "expiresAt": 4_000_000_000_u64},
    ]);
    assert_eq!(stored, expected);
    assert_eq!(download(&service, &origin), 3);
    let list = svc(&["list"]).run();
    assert!(
        list.stdout
            .iter()
            .any(|line| line.contains("other.test") && line.contains("2096-10-02")),
        "{list:?}"
    );
    let refused = svc(&["import", "-"])
        .input(format!("{{\"secret\": \"{SECRET}\"}}"))
        .run();
    assert_ne!(refused.code, Some(0));
    assert!(!format!("{refused:?}").contains(SECRET), "{refused:?}");
    svc(&["remove", "127.0.0.1"]).run().assert_success();
    svc(&["clear"]).run().assert_success();
    assert_eq!(service.call("GET", "/api/v1/site-cookies", None), json!([]));
}
