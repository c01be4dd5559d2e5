//! A site whose secrets can be told from everything else hands out tokens, cookies and values of forms. They are looked for
//! wherever they must not be: in answers, logs, the database, core dumps, arguments of processes, fixtures, and in the memory
//! of the plugin that has logged in.

use std::fs;

use data_encoding::{BASE64, HEXLOWER};
use e2e::{Service, service::wait_until};
use rustix::process::Signal;
use serde_json::json;
use support::{Attacker, SiteOptions};

use super::scripts;
use crate::service::{
    guest,
    logins::{CLOUD, MARKER, MEMBER_GALLERY, QR_CLOUD, Scene, browser_cookie, password},
    secrets,
};

const NOSY: &str = "nosy@test";
const DEV: &str = "dev@test";

/// The marker as it is, and as encodings write it that hide it from a search; those depend on what stands before it.
fn needles() -> Vec<String> {
    let inner = |shift: usize| {
        let encoded = BASE64.encode(&[&b"xxx"[..shift], MARKER.as_bytes()].concat());
        encoded[4..encoded.len() - 4].to_owned()
    };
    let mut needles = vec![MARKER.to_owned(), HEXLOWER.encode(MARKER.as_bytes())];
    needles.extend((0..3).map(inner));
    needles
}

#[track_caller]
fn assert_without_canary(what: &str, text: &[u8]) {
    let needles = needles();
    secrets::assert_without(what, text, &needles.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A plugin in its author's folder, whose call fails after it has used the account.
const FAILING: &str = "
export const login = {
  start(call, screen) { screen.field('user', 'Name').secretField('password', 'Password'); },
  async answer(call, values, screen) {
    await http.post('http://cloud.test/api/login').account('main').json({user: values.user})
      .secretJson('/password', '{password}').captureJson('/access_token', 'access').send();
    screen.done(values.user);
  },
  check() { return true; },
};
export async function resolve(call, out) {
  const echo = await http.post('http://cloud.test/echo').account('main').secretHeader('x-key', '{access}')
    .secretQuery('q', '{access}').secretForm('f', '{access}').send();
  throw new PluginError('parse', 'it says ' + echo.text());
}
export const preview = resolve;";

/// Logs in with a plugin of a folder, lets a call of it fail, and gives what was written for its author.
fn captured_fixtures(scene: &Scene) -> Vec<u8> {
    let manifest = scripts::manifest(
        DEV,
        "dev",
        json!({
            "capabilities": {
                "resolver": { "match": ["*://cloud.test/dev*"], "multi": true }, "preview": true,
                "login": { "slots": [{ "id": "main", "title": "Account", "modes": ["password"] }] },
            },
            "permissions": { "hosts": [CLOUD], "secrets": { "access": [CLOUD], "password": [CLOUD] } },
        }),
    );
    let folder = scripts::folder(&scene.home, "dev", &manifest, FAILING);
    let waits = scripts::develop(scene.service(), &folder);
    if let Some(consent) = waits["pendingConsent"].as_str() {
        scene.agree(DEV, consent);
    }
    scene.log_in(DEV, "password", &["user=ann", &format!("password={}", password("ann"))]);
    let failed = scripts::preview(scene.service(), &format!("{CLOUD}/dev"));
    assert!(
        failed["error"].as_str().is_some_and(|error| !error.is_empty()),
        "{failed}"
    );
    let captured = folder.join("fixtures/_captured");
    wait_until("the failure is written down", || {
        let mut entries = fs::read_dir(&captured).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|ending| ending == "json"))
    });
    let mut files = Vec::new();
    secrets::files(&captured, &captured, &mut files);
    assert!(!files.is_empty());
    files.into_iter().flat_map(|(_, text)| text).collect()
}

/// Everything that the service tells about itself.
fn answers(service: &Service) -> String {
    let mut told = Vec::new();
    for path in [
        "tasks",
        "queues",
        "groups",
        "site-auth",
        "site-cookies",
        "plugins",
        "info",
    ] {
        told.push(service.call("GET", &format!("/api/v1/{path}"), None).to_string());
    }
    for plugin in [QR_CLOUD, MEMBER_GALLERY, NOSY, DEV] {
        told.push(
            service
                .call("GET", &format!("/api/v1/plugins/{plugin}/journal"), None)
                .to_string(),
        );
        let status = json!({"action": "status"});
        let path = format!("/api/v1/plugins/{plugin}/auth");
        told.push(service.call("POST", &path, Some(&status)).to_string());
        for command in [
            &["plugin", "log", plugin][..],
            &["plugin", "settings", plugin],
            &["plugin", "accounts", plugin],
        ] {
            let run = crate::service::plugin_sites::svc(service, command).run();
            told.push(format!("{run:?}"));
        }
    }
    for method in [
        "system.snapshot",
        "daemon.config.get",
        "daemon.task.list",
        "daemon.diagnostics.describe",
    ] {
        told.push(service.rpc().call(method, &json!({})).expect("it answers").to_string());
    }
    told.concat()
}

#[test]
fn a_canary_in_tokens_cookies_and_forms_is_found_nowhere() {
    let attacker = Attacker::start();
    let dumps = tempfile::tempdir().expect("there is room");
    let mut scene = Scene::prepared(
        SiteOptions::new(MARKER),
        &[("other.test", attacker.port())],
        |svc, _| svc.env("SVC_LOG_LEVEL", "trace").with_core_dumps(dumps.path()),
    );
    // A token by password, cookies of a browser, an address of one; each as a user of another client does it.
    scene.install(QR_CLOUD);
    scene.install(MEMBER_GALLERY);
    scene.log_in_ann();
    let cookie = browser_cookie(&scene);
    let cookies = format!("cookies=cloud.test\tFALSE\t/\tFALSE\t0\tsession\t{cookie}");
    let by_cookie = scene.log_in(MEMBER_GALLERY, "cookie", &[&cookies]);
    let begun = scene
        .auth(
            QR_CLOUD,
            &json!({"action": "begin", "slot": "second", "mode": "browser"}),
        )
        .body;
    let page = begun["screen"]["openUrl"]["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{begun}"));
    let address = scene.site.authorize(page, "bob");
    let request = json!({"action": "answer", "sessionId": begun["sessionId"], "input": address});
    let by_browser = scene.auth(QR_CLOUD, &request);
    assert_eq!(by_browser.body["status"], "success", "{}", by_browser.body);
    scene.site.expire_sessions();
    let file = scene.download("3");
    scene.assert_file(&file, &scene.site.content("3"));
    assert!(scene.site.refreshes() > 0, "a refresh token was used");
    scene.install_archive(NOSY, &guest::of(NOSY));
    let by_password = scene.log_in(
        NOSY,
        "password",
        &["user=ann", &format!("password={}", password("ann"))],
    );
    scripts::preview(scene.service(), &format!("{CLOUD}/nosy"));
    let fixtures = captured_fixtures(&scene);

    let secrets_of_site = scene.site.secrets();
    for kind in ["password", "session", "csrf", "access", "refresh", "grant"] {
        let is_it = |secret: &String| secret.contains(MARKER) && secret.contains(kind);
        assert!(secrets_of_site.iter().any(is_it), "the site has handed out no {kind}");
    }
    let told = format!("{:?} {:?} {by_browser:?}", by_cookie.stdout, by_password.stdout);
    assert_without_canary("answers to logins", told.as_bytes());
    assert_without_canary("answers", answers(scene.service()).as_bytes());
    assert_without_canary("fixtures", &fixtures);
    assert_without_canary("arguments of processes", &secrets::arguments(&scene.home));
    for (name, text) in secrets::exported(&scene.home) {
        assert_without_canary(&name, &text);
    }
    let mut files = Vec::new();
    secrets::files(&scene.home.data(), &scene.home.data(), &mut files);

    // Both processes crash while they know the secrets.
    let daemon = scene.home.daemon().expect("a daemon runs");
    e2e::service::signal(daemon.pid, Signal::ABORT);
    wait_until("the daemon is gone", || {
        !std::path::Path::new(&format!("/proc/{}", daemon.pid)).exists()
    });
    assert!(!scene.take_service().crash(Signal::ABORT), "the agent left a core dump");
    let left: Vec<_> = fs::read_dir(dumps.path()).expect("it can be listed").collect();
    assert!(left.is_empty(), "{left:?}");
    secrets::files(&scene.home.data(), &scene.home.data(), &mut files);
    let log = files.iter().filter(|(name, _)| name.starts_with("logs/"));
    let log: Vec<u8> = log.flat_map(|(_, text)| text.clone()).collect();
    let log = String::from_utf8_lossy(&log);
    assert!(
        log.contains("TRACE") || log.contains("DEBUG"),
        "{} {}",
        log.len(),
        &log[..log.len().min(2000)]
    );
    assert!(files.iter().any(|(name, _)| name == "svc.db"));
    for (name, text) in &files {
        assert_without_canary(name, text);
    }
    assert_guest_knows_names_only(&attacker);
}

/// The guest has sent all that it could read, and all of its memory.
fn assert_guest_knows_names_only(attacker: &Attacker) {
    let seen = attacker.seen();
    let bodies = |path: &str| -> Vec<u8> {
        let of_path = seen.iter().filter(|one| one.request.path() == path);
        of_path.flat_map(|one| one.request.body.clone()).collect()
    };
    let memory = bodies("/dump");
    assert!(memory.len() > 1 << 20, "{} bytes of memory", memory.len());
    let told = String::from_utf8_lossy(&memory).into_owned();
    for known in ["‹secret:access›", "‹secret:session›", "http://other.test"] {
        assert!(told.contains(known), "the memory does not have {known}");
    }
    for path in [
        "/form",
        "/login",
        "/access",
        "/refresh",
        "/session",
        "/password",
        "/csrf",
        "/resolve",
    ] {
        let read = String::from_utf8_lossy(&bodies(path)).into_owned();
        assert!(read.contains("‹secret:"), "{path}: {read}");
    }
    for one in &seen {
        let line = json!([one.request.target, one.request.headers]).to_string();
        assert_without_canary(&one.request.target, line.as_bytes());
        assert_without_canary(&one.request.target, &one.request.body);
    }
}
