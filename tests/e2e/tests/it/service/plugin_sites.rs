//! Plugins of the running service and what is around them: code that is not compiled yet, secrets, proxies, cookies, hosts,
//! versions, and what is written down. The plugins are scripts, and their sites live behind a proxy that knows their
//! names.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{
    Home, Run, Service, Svc,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Proxy, Resource, behaviour};

use super::guest;

/// The plugin of these tests.
pub(super) const PLUGIN: &str = "site@test";

/// A plugin that lists the text behind its URL, which it asks `ask` for.
fn script(ask: &str) -> String {
    format!(
        "export async function resolve(call, out) {{
            const answer = await {ask};
            out.title(answer.text());
            out.add('file', 'file.bin').link(new URL('/file.bin', call.url));
        }}
        export const preview = resolve;"
    )
}

/// A manifest with these permissions.
fn manifest(version: &str, permissions: &Value) -> Value {
    json!({
        "manifestVersion": 1, "identity": PLUGIN, "name": "Site", "version": version,
        "runtime": "js", "entry": "plugin.js",
        "capabilities": { "resolver": { "match": ["*://*/page*"], "multi": true }, "preview": true },
        "permissions": permissions,
        "settings": [{ "key": "token", "type": "string", "secret": true }],
    })
}

/// A plugin as its author has it, in a folder.
fn folder(home: &Home, manifest: &Value, script: &str) -> PathBuf {
    let folder = home.path().join("plugin");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("plugin.js"), script).unwrap();
    folder
}

fn archive(home: &Home, manifest: &Value, script: &str) -> PathBuf {
    let folder = folder(home, manifest, script);
    let archive = home.path().join("plugin.zip");
    let _first_time = fs::remove_file(&archive);
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"]).arg(&archive);
    let made = zip.args(["plugin.json", "plugin.js"]).current_dir(folder).status();
    assert!(made.unwrap().success());
    archive
}

/// A service with the plugin, agreed to.
pub(crate) fn with_plugin(home: &Home, permissions: &Value, script: &str) -> Service {
    let service = home.serve();
    service.wait_until_ready();
    let archive = archive(home, &manifest("1.0.0", permissions), script);
    agree(&service, &guest::install_archive(&service, PLUGIN, &archive));
    service
}

/// Gives a service the plugin, agreed to, that may use its secret.
pub(super) fn install(home: &Home, service: &Service) {
    let permissions =
        json!({"inputHost": true, "secrets": {"token": ["http://api.test"]}, "hosts": ["http://api.test"]});
    let archive = archive(
        home,
        &manifest("1.0.0", &permissions),
        &script("http.get(call.url).send()"),
    );
    agree(service, &guest::install_archive(service, PLUGIN, &archive));
}

fn agree(service: &Service, consent: &str) {
    let agreed = guest::switch(service, PLUGIN, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
}

fn plugin(service: &Service) -> Value {
    service.call("GET", "/api/v1/plugins", None)[0].clone()
}

fn preview(service: &Service, url: &str) -> Value {
    service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})))
}

/// `svc` as the user of the service.
pub(crate) fn svc(service: &Service, arguments: &[&str]) -> Svc {
    Svc::new()
        .args(arguments)
        .args(["--url", &service.url()])
        .env("SVC_TOKEN", KEY)
}

#[track_caller]
pub(super) fn run(service: &Service, arguments: &[&str]) -> Run {
    let run = svc(service, arguments).run();
    run.assert_success();
    run
}

/// Everything goes through this proxy from now on, but for `except`.
pub(crate) fn go_through(service: &Service, proxy: &Proxy, except: &str) {
    let port = format!("proxy_port={}", proxy.port());
    let except = format!("proxy_no_list={except}");
    let settings = [
        "proxy_mode=manual",
        "proxy_type=http",
        "proxy_host=127.0.0.1",
        &port,
        &except,
    ];
    run(service, &[&["config", "server", "set"], &settings[..]].concat());
}

fn text(path: &str, text: &str) -> Resource {
    Resource::new(path, Content::bytes(text))
}

/// All that is written in a folder, but for compiled code.
fn written(folder: &Path, into: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, into);
        } else if path.extension().is_none_or(|extension| extension != "cwasm") {
            into.extend(fs::read(path).unwrap_or_default());
        }
    }
}

/// Asserts that none of these stands in a text.
#[track_caller]
pub(super) fn assert_without(text: &[u8], secrets: &[&str]) {
    for secret in secrets {
        let found = text
            .windows(secret.len())
            .position(|window| window == secret.as_bytes());
        assert!(
            found.is_none(),
            "{secret}: {}",
            String::from_utf8_lossy(&text[found.unwrap().saturating_sub(200)..][..200])
        );
    }
}

#[test]
fn a_service_whose_plugins_are_to_be_compiled_again_answers_at_once_and_its_tasks_wait_for_them() {
    let origin = Origin::start(vec![text("/page", "a page"), text("/file.bin", "a file")]);
    let home = Home::new();
    let service = with_plugin(&home, &json!({"inputHost": true}), &script("http.get(call.url).send()"));
    assert_eq!(service.terminate().code, Some(0));
    fs::remove_dir_all(home.data().join("plugins/cache")).unwrap();
    let service = home.serve();
    service.wait_until_ready();
    let starting = plugin(&service);
    assert_eq!(starting["loadStatus"], "Loading", "{starting}");
    let id = service.create(&json!({"url": origin.url("/page")}));
    wait_until("the task ends", || {
        [3, 4].contains(&service.task(&id)["status"].as_i64().unwrap())
    });
    let task = service.task(&id);
    assert_eq!(
        (&task["status"], &task["fileName"]),
        (&json!(3), &json!("file.bin")),
        "{task}"
    );
    assert_eq!(fs::read(home.downloads().join("file.bin")).unwrap(), b"a file");
    assert_eq!(plugin(&service)["loadStatus"], "Loaded");
    assert_eq!(service.terminate().code, Some(0));

    fs::remove_dir_all(home.data().join("plugins/cache")).unwrap();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(plugin(&service)["loadStatus"], "Loading");
    assert_eq!(service.terminate().code, Some(0), "what is being loaded keeps nobody");
}

#[test]
fn a_secret_goes_to_its_hosts_and_is_shown_nowhere() {
    const SECRET: &str = "open-sesame-of-the-site";
    let bound = Origin::start(vec![
        text("/list", "a list"),
        text("/away", "").with(behaviour::redirect(302, "http://other.test/list")),
        text("/echo", &format!("it was {SECRET}")),
    ]);
    let other = Origin::start(vec![text("/list", "another list")]);
    let proxy = Proxy::http(&[("api.test", bound.port()), ("other.test", other.port())], None);
    let home = Home::new();
    let permissions = json!({
        "hosts": ["http://api.test", "http://other.test"], "secrets": {"token": ["http://api.test"]},
    });
    let ask = "http.get('http://api.test' + call.url.searchParams.get('path'))
        .secretHeader('authorization', 'Bearer {token}').send();
        log.info('it says', answer.text())";
    let service = with_plugin(&home, &permissions, &script(ask));
    go_through(&service, &proxy, "");
    let given = format!("token={SECRET}");
    run(&service, &["plugin", "settings", PLUGIN, &given]);
    let ask = |path: &str| preview(&service, &format!("http://site.test/page?path={path}"));
    assert_eq!(ask("/list")["name"], "a list");
    assert_eq!(ask("/away")["name"], "another list");
    let echoed = ask("/echo");
    assert_eq!(echoed["name"], "it was ‹secret:token›");
    let sent = |origin: &Origin| -> Vec<_> {
        let requests = origin.requests().into_iter();
        requests
            .map(|request| request.header("authorization").map(str::to_owned))
            .collect()
    };
    let bearer = Some(format!("Bearer {SECRET}"));
    assert_eq!(sent(&bound), [bearer.clone(), bearer.clone(), bearer]);
    assert_eq!(sent(&other), [None]);

    let log = run(&service, &["plugin", "log", PLUGIN]).stdout.join("\n");
    assert!(log.contains("http://api.test/echo") && log.contains("it says"), "{log}");
    let journal = run(&service, &["plugin", "journal", "--json", PLUGIN])
        .stdout
        .join("\n");
    let shown = [
        plugin(&service),
        service.call("GET", &format!("/api/v1/plugins/{PLUGIN}/journal"), None),
        echoed,
        json!([log, journal]),
        json!(run(&service, &["plugin", "settings", PLUGIN]).stdout),
    ];
    assert_without(json!(shown).to_string().as_bytes(), &[SECRET]);
    let ended = service.terminate();
    assert_eq!(ended.code, Some(0));
    assert_without(format!("{ended:?}").as_bytes(), &[SECRET]);
    let mut files = Vec::new();
    written(&home.data(), &mut files);
    assert!(!files.is_empty());
    assert_without(&files, &[SECRET]);
}

#[test]
fn plugins_go_through_the_service_s_proxy_as_it_is_now() {
    let origin = Origin::start(vec![text("/page", "the page")]);
    let proxies = [
        Proxy::http(&[("site.test", origin.port())], None),
        Proxy::http(&[("site.test", origin.port())], None),
    ];
    let home = Home::new();
    let service = with_plugin(&home, &json!({"inputHost": true}), &script("http.get(call.url).send()"));
    // The file that the page leads to is asked for its size, too.
    let pages = |proxy: &Proxy| {
        proxy
            .requests()
            .iter()
            .filter(|asked| asked.target.ends_with("/page"))
            .count()
    };
    let seen = || proxies.each_ref().map(pages);
    for (proxy, expected) in [(0, [1, 0]), (1, [1, 1]), (0, [2, 1])] {
        go_through(&service, &proxies[proxy], "");
        let shown = preview(&service, "http://site.test/page");
        assert_eq!((&shown["name"], seen()), (&json!("the page"), expected), "{shown}");
    }
    let port = proxies[1].port().to_string();
    let mut rpc = service.rpc();
    let now = rpc.call("daemon.config.get", &json!({})).unwrap();
    let patch = json!({"expectedRevision": now["revision"], "values": {"proxy_port": port}});
    rpc.call("daemon.config.patch", &patch).unwrap();
    assert_eq!(preview(&service, "http://site.test/page")["name"], "the page");
    assert_eq!(seen(), [2, 2]);
    // Hosts of the list are reached directly.
    go_through(&service, &proxies[0], "127.0.0.1");
    assert_eq!(preview(&service, &origin.url("/page"))["name"], "the page");
    run(&service, &["config", "server", "set", "proxy_mode=none"]);
    assert_eq!(preview(&service, &origin.url("/page"))["name"], "the page");
    assert_eq!(seen(), [2, 2]);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_cookies_of_a_task_go_to_its_site_alone() {
    let page = text("/page", "the page").with(behaviour::header("Set-Cookie", b"jar=crumb; Path=/"));
    let site = Origin::start(vec![page, text("/file.bin", "a file")]);
    let other = Origin::start(vec![text("/list", "a list")]);
    let proxy = Proxy::http(&[("site.test", site.port()), ("other.test", other.port())], None);
    let home = Home::new();
    let ask = "http.get(call.url).taskCookies().send();
        await http.get('http://other.test/list').taskCookies().send()";
    let permissions = json!({"inputHost": true, "hosts": ["http://other.test"]});
    let service = with_plugin(&home, &permissions, &script(ask));
    go_through(&service, &proxy, "");
    let id = service.create(&json!({"url": "http://site.test/page", "cookies": "sid=own-cookie"}));
    wait_until("the task is done", || service.task(&id)["status"] == 3);
    let asked = site.requests();
    let asked = asked.iter().find(|request| request.path() == "/page").unwrap();
    assert_eq!(asked.header("cookie"), Some("sid=own-cookie"));
    assert_eq!(other.requests()[0].header("cookie"), None);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_host_that_a_plugin_can_do_without_is_reached_when_its_user_allows_it() {
    let mirror = Origin::start(vec![text("/list", "from the mirror")]);
    let proxy = Proxy::http(&[("mirror.test", mirror.port())], None);
    let home = Home::new();
    let permissions = json!({"inputHost": true, "optionalHosts": ["http://mirror.test"]});
    let service = with_plugin(
        &home,
        &permissions,
        &script("http.get('http://mirror.test/list').send()"),
    );
    go_through(&service, &proxy, "");
    let ask = || preview(&service, "http://site.test/page");
    let refused = ask();
    assert_eq!(refused["grantable"], true, "{refused}");
    assert_eq!(refused["grantableHosts"], json!(["http://mirror.test"]));
    run(&service, &["plugin", "allow", "--once", PLUGIN, "http://mirror.test"]);
    assert_eq!(ask()["name"], "from the mirror");
    assert_eq!(ask()["grantable"], true);
    run(&service, &["plugin", "allow", "--never", PLUGIN, "http://mirror.test"]);
    let never = ask();
    assert!(
        never["grantable"].is_null() && !never["error"].as_str().unwrap().is_empty(),
        "{never}"
    );
    run(&service, &["plugin", "allow", PLUGIN, "http://mirror.test"]);
    assert_eq!(ask()["name"], "from the mirror");
    assert_eq!(plugin(&service)["optionalHosts"][0]["choice"], "always");
    assert_eq!(mirror.requests().len(), 2);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_version_before_comes_back_over_rest() {
    let origin = Origin::start(vec![text("/page", "page")]);
    let home = Home::new();
    let version = |version: &str| script(&format!("http.get(call.url).send(); out.description('{version}')"));
    let permissions = json!({"inputHost": true});
    let service = with_plugin(&home, &permissions, &version("1.0.0"));
    let archive = archive(&home, &manifest("2.0.0", &permissions), &version("2.0.0"));
    run(&service, &["plugin", "install", archive.to_str().unwrap()]);
    assert_eq!(plugin(&service)["version"], "2.0.0");
    let roll_back = || service.call("POST", &format!("/api/v1/plugins/{PLUGIN}/rollback"), None);
    for expected in ["1.0.0", "2.0.0", "1.0.0"] {
        roll_back();
        assert_eq!(plugin(&service)["version"], expected);
        assert_eq!(preview(&service, &origin.url("/page"))["name"], "page");
    }
    assert_eq!(service.terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(plugin(&service)["version"], "1.0.0");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_desktop_that_offers_no_management_takes_a_plugin_from_its_own_user() {
    let home = Home::new();
    let service = Service::start(home.new_desktop().env("SVC_TOKEN", KEY));
    let refused = service.ask("GET", "/api/v1/plugins", None).unwrap();
    assert_eq!(refused.status, 404, "{}", refused.body);
    let archive = archive(
        &home,
        &manifest("1.0.0", &json!({"inputHost": true})),
        &script("http.get(call.url).send()"),
    );
    let shell = |arguments: &[&str]| {
        let svc = Svc::new().env("HOME", home.path()).env("SVC_DATA_DIR", home.data());
        let run = svc.env("SVC_URL", service.url()).args(arguments).run();
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stdout.join("\n")
    };
    let told = shell(&["plugin", "install", archive.to_str().unwrap()]);
    assert!(told.contains("installed site@test 1.0.0"), "{told}");
    let consent = told.lines().last().unwrap().rsplit(' ').next().unwrap().to_owned();
    shell(&["plugin", "consent", PLUGIN, &consent]);
    assert!(shell(&["plugin", "list"]).contains("enabled"));
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn what_is_kept_of_a_call_has_no_secret_in_it() {
    const SECRETS: [&str; 7] = [
        "setting-value",
        "captured-value",
        "jar-value",
        "own-cookie",
        "own-field",
        "own-password",
        // "me:own-password" in base64.
        "bWU6b3duLXBhc3N3b3Jk",
    ];
    let body = json!({"captured": "captured-value", "all": SECRETS}).to_string();
    let page = text("/page", &body)
        .with(behaviour::header("Set-Cookie", b"session=jar-value; Path=/"))
        .with(behaviour::header(
            "X-Echo",
            b"own-cookie own-field setting-value captured-value jar-value",
        ));
    let latin = [b"\xe9 ".as_slice(), body.as_bytes()].concat();
    let latin = Resource::new("/latin", Content::bytes(latin));
    let origin = Origin::start(vec![page, latin]);
    let proxy = Proxy::http(&[("site.test", origin.port())], None);
    let home = Home::new();
    let permissions = json!({
        "inputHost": true, "hosts": ["http://site.test"], "secrets": {"token": ["http://site.test"]},
    });
    let script = "export async function resolve(call, out) {
            const ask = path => http.get(new URL(path, call.url)).taskCookies();
            const page = await ask('/page').captureJson('/captured', 'access').secretQuery('key', '{token}').send();
            await ask('/latin').secretHeader('x-access', '{access}').send();
            if (call.url.searchParams.has('fails')) throw new PluginError('parse', page.text());
            out.title(page.text());
            out.add('file', 'file.bin').link(new URL('/file.bin?' + page.header('x-echo'), call.url));
        }
        export const preview = resolve;";
    let folder = folder(&home, &manifest("1.0.0", &permissions), script);
    let service = home.serve();
    service.wait_until_ready();
    go_through(&service, &proxy, "");
    let developed = json!({"dirPath": folder});
    service.call("POST", "/api/v1/plugins/install-dev", Some(&developed));
    run(&service, &["plugin", "settings", PLUGIN, "token=setting-value"]);
    let task = json!({
        "url": "http://me:own-password@site.test/page?fails", "cookies": "sid=own-cookie",
        "headers": {"X-Own": "own-field"},
    });
    let id = service.create(&task);
    wait_until("the task fails", || service.task(&id)["status"] == 4);
    let kept = folder.join("fixtures/_captured");
    wait_until("the call is kept", || {
        fs::read_dir(&kept).is_ok_and(|mut files| files.next().is_some())
    });
    assert_eq!(service.terminate().code, Some(0));
    let mut fixtures = Vec::new();
    written(&kept, &mut fixtures);
    let asked = origin.requests();
    assert_eq!(asked.len(), 2, "{}", String::from_utf8_lossy(&fixtures));
    let (page, latin) = (&asked[0], &asked[1]);
    assert!(page.header("cookie").unwrap().contains("own-cookie"), "{page:?}");
    assert_eq!(page.header("authorization"), Some("Basic bWU6b3duLXBhc3N3b3Jk"));
    assert_eq!(latin.header("x-access"), Some("captured-value"));
    assert!(latin.header("cookie").unwrap().contains("jar-value"), "{latin:?}");
    assert_without(&fixtures, &SECRETS);
    let kept: Value = serde_json::from_slice(&fixtures).unwrap();
    assert_eq!(
        (&kept["expect"]["error"], &kept["exchanges"][1]["response"]["status"]),
        (&json!("parse"), &json!(200))
    );
}
