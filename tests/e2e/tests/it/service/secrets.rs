//! Secrets in every form in which a service is given them, and everything that it writes, logs and answers meanwhile, at
//! the loudest level.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{
    Home, Service, Svc, http,
    service::{KEY, PATIENCE, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::plugin_sites;

/// Nothing else looks like these.
const USER_INFO: &str = "marked-userinfo-1";
const QUERY: &str = "marked-query-2";
const COOKIE: &str = "marked-cookie-3";
const HEADER: &str = "marked-header-4";
const PROXY: &str = "marked-proxy-5";
const TASK_PROXY: &str = "marked-task-proxy-6";
const SITE: &str = "marked-site-7";
const PLUGIN: &str = "marked-plugin-8";
const BODY: &str = "marked-body-9";
const ARIA2: &str = "marked-aria2-10";
const WRONG_KEY: &str = "marked-wrong-key-11";
const STORED: &str = "marked-stored-cookie-12";

/// What nothing may tell at all, wherever.
const SECRETS: [&str; 12] = [
    KEY, USER_INFO, COOKIE, HEADER, PROXY, TASK_PROXY, SITE, PLUGIN, BODY, ARIA2, WRONG_KEY, STORED,
];

/// What a page may call a secret and its user needs to see: it is answered, and never logged.
const SHOWN_TO_THE_USER: [&str; 1] = [QUERY];

/// Files that keep secrets for their owner alone.
const KEPT_SECRET: [&str; 2] = ["agent/settings.json", "agent/agent.lock"];

struct Told {
    home: Home,
    service: Service,
    /// Everything that was answered.
    answers: Vec<String>,
}

impl Told {
    fn keep(&mut self, what: &str, answer: &impl ToString) {
        self.answers.push(format!("{what}: {}", answer.to_string()));
    }

    /// Sends a request; its answer is kept, whatever it is.
    fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Value {
        let answer = http::ask(self.service.address(), method, path, headers, body).expect("it answers");
        let text = answer.text();
        self.keep(
            &format!("{method} {} {}", path.split('?').next().expect("a path"), answer.status),
            &format!("{:?} {text}", answer.raw.head),
        );
        answer.body
    }

    fn manage(&mut self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let key = format!("Bearer {KEY}");
        self.ask(method, path, &[("Authorization", &key)], body)
    }

    fn call(&mut self, method: &str, params: &Value) {
        let answer = self.service.rpc().call(method, params);
        self.keep(method, &format!("{answer:?}"));
    }
}

fn hand_over_everything(told: &mut Told, origin: &Origin) {
    let port = origin.port();
    let file = |user: &str| format!("http://{user}127.0.0.1:{port}/file?signature={QUERY}");
    let with_password = file(&format!("user:{USER_INFO}@"));
    told.manage(
        "PUT",
        "/api/v1/site-auth",
        Some(&json!({
            "site": format!("http://127.0.0.1:{port}"), "username": "me", "password": SITE,
        })),
    );
    for cookies in [
        format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tstored\t{STORED}\n"),
        // Refused, and told why.
        format!("127.0.0.1\tFALSE\t/\tFALSE\t{STORED}\tstored\t{STORED}\n"),
        format!("[{{\"name\": {{\"{STORED}\": \"{STORED}\"}}}}]"),
    ] {
        told.manage("PUT", "/api/v1/site-cookies", Some(&json!({"cookies": cookies})));
    }
    for task in [
        json!({"url": with_password}),
        json!({"url": file(""), "cookies": format!("sid={COOKIE}"), "headers": {"X-Api-Key": HEADER}}),
        json!({"url": file(""), "headers": {"Authorization": format!("Bearer {HEADER}")}}),
        json!({"url": file(""), "proxyUrl": format!("http://me:{TASK_PROXY}@127.0.0.1:1")}),
        json!({"url": file(""), "httpUser": "me", "httpPassword": SITE, "saveSiteAuth": true}),
        json!({"url": file(""), "method": "POST", "body": {"kind": "urlencoded", "raw": format!("a={BODY}")}}),
        // Refused, and told why.
        json!({"url": format!("gopher://u:{USER_INFO}@127.0.0.1/"), "cookies": COOKIE}),
        json!({"url": [with_password], "headers": HEADER}),
    ] {
        told.manage("POST", "/api/v1/tasks", Some(&task));
    }
    let client = [("X-Svc-Client", "test"), ("X-Svc-Token", KEY)];
    told.ask(
        "POST",
        "/download",
        &client,
        Some(&json!({
            "url": with_password, "cookies": format!("sid={COOKIE}"), "headers": {"Authorization": HEADER},
            "method": "POST", "body": {"kind": "urlencoded", "raw": BODY},
        })),
    );
    let token = format!("token:{KEY}");
    for (id, call) in [
        json!(["aria2.addUri", [token, [with_password], {
            "header": [format!("Cookie: sid={COOKIE}")], "http-user": "me", "http-passwd": ARIA2,
            "all-proxy": "http://127.0.0.1:1", "all-proxy-user": "me", "all-proxy-passwd": ARIA2,
        }]]),
        json!(["aria2.addUri", [format!("token:{WRONG_KEY}"), [with_password]]]),
        json!(["aria2.addUri", [token, [with_password], {"header": [7, HEADER]}]]),
        json!(["aria2.tellActive", [token]]),
        json!(["aria2.tellWaiting", [token, 0, 100]]),
        json!(["aria2.tellStopped", [token, 0, 100]]),
        json!(["aria2.getGlobalOption", [token]]),
    ]
    .iter()
    .enumerate()
    {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": call[0], "params": call[1]});
        told.ask("POST", "/jsonrpc", &[], Some(&call));
    }
    for (tool, arguments) in [
        ("download_add", json!({"url": with_password})),
        ("download_list", json!({})),
    ] {
        told.manage(
            "POST",
            "/mcp",
            Some(&json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
            })),
        );
    }
}

fn knock_wrongly(told: &mut Told) {
    let bearer = format!("Bearer {WRONG_KEY}");
    told.ask("GET", "/api/v1/tasks", &[("Authorization", &bearer)], None);
    told.ask(
        "POST",
        "/download",
        &[("X-Svc-Client", "test"), ("X-Svc-Token", WRONG_KEY)],
        Some(&json!({})),
    );
    told.ask("GET", &format!("/api/web/exports/none?token={WRONG_KEY}"), &[], None);
    told.ask("GET", &format!("/api/web/exports/none?token={KEY}"), &[], None);
}

fn look_at_everything(told: &mut Told) {
    for path in [
        "tasks",
        "queues",
        "groups",
        "site-auth",
        "site-cookies",
        "plugins",
        "info",
        "openapi.json",
    ] {
        told.manage("GET", &format!("/api/v1/{path}"), None);
    }
    told.manage("GET", "/metrics", None);
    told.manage(
        "GET",
        &format!("/api/v1/plugins/{}/journal", plugin_sites::PLUGIN),
        None,
    );
    for method in [
        "system.snapshot",
        "daemon.config.get",
        "daemon.task.list",
        "daemon.runtime.stats",
        "daemon.diagnostics.describe",
        "agent.gateway.get",
        "agent.capture.list",
    ] {
        told.call(method, &json!({}));
    }
}

/// The archive that is handed to people who look for a cause, and what was printed meanwhile.
pub(crate) fn exported(home: &Home) -> Vec<(String, Vec<u8>)> {
    let archive = home.path().join("logs.zip");
    let svc = || {
        let svc = Svc::new().env("HOME", home.path()).env("SVC_DATA_DIR", home.data());
        svc.env("SVC_LOG_LEVEL", "trace")
    };
    let export = svc().args(["logs", "export", "-o"]).arg(&archive).run();
    export.assert_success();
    let doctor = svc().arg("doctor").run();
    let list = svc().args(["list", "--json"]).run();
    let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n\
        print(*z.namelist())\nfor name in z.namelist(): sys.stdout.buffer.write(z.read(name))";
    let unpacked = Command::new("python3").args(["-c", script]).arg(&archive).output();
    let unpacked = unpacked.expect("Python is part of the system").stdout;
    let names = String::from_utf8_lossy(&unpacked);
    for name in [
        "about.json",
        "doctor.json",
        "service.json",
        "logs/agent.log",
        "logs/daemon.log",
    ] {
        assert!(names.contains(name), "{name} is not in the archive");
    }
    vec![
        ("the archive".into(), unpacked),
        (
            "what commands print".into(),
            format!("{export:?} {doctor:?} {list:?}").into_bytes(),
        ),
    ]
}

/// What other users see of the processes.
pub(crate) fn arguments(home: &Home) -> Vec<u8> {
    let lines = home.processes().into_iter();
    lines
        .flat_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        .collect()
}

/// Every file below the folder, by its path in it.
pub(crate) fn files(folder: &Path, root: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    let entries = fs::read_dir(folder).expect("it can be listed");
    let paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    for path in paths {
        if path.is_dir() {
            files(&path, root, into);
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            into.push((name, fs::read(&path).unwrap_or_default()));
        }
    }
}

#[track_caller]
pub(crate) fn assert_without(what: &str, text: &[u8], secrets: &[&str]) {
    for secret in secrets {
        let found = text
            .windows(secret.len())
            .position(|window| window == secret.as_bytes());
        if let Some(at) = found {
            let around = &text[at.saturating_sub(300)..(at + 100).min(text.len())];
            panic!("{secret} in {what}: {}", String::from_utf8_lossy(around));
        }
    }
}

#[test]
fn no_secret_is_logged_answered_or_left_in_the_open_on_the_disk() {
    let content = Content::seeded(1, 10_000);
    let origin = Origin::start(vec![Resource::new("/file", content)]);
    let home = Home::new();
    let service = Service::start(home.new_server().env("SVC_TOKEN", KEY).env("SVC_LOG_LEVEL", "trace"));
    service.wait_until_ready();
    let mut told = Told {
        home,
        service,
        answers: Vec::new(),
    };
    plugin_sites::install(&told.home, &told.service);
    let settings = format!("/api/v1/plugins/{}/settings", plugin_sites::PLUGIN);
    told.manage("PUT", &settings, Some(&json!({ "token": PLUGIN })));
    hand_over_everything(&mut told, &origin);
    knock_wrongly(&mut told);
    // Those that knock at a proxy in vain do so for long.
    let is_over = |task: &Value| task["proxyUrl"] != "" || [json!(3), json!(4)].contains(&task["status"]);
    wait_until("every other task has ended", || {
        let tasks = told.service.call("GET", "/api/v1/tasks", None);
        println!("{tasks}");
        tasks
            .as_array()
            .is_some_and(|tasks| tasks.len() >= 8 && tasks.iter().all(is_over))
    });
    let config = told
        .service
        .rpc()
        .call("daemon.config.get", &json!({}))
        .expect("it is answered");
    told.call(
        "daemon.config.patch",
        &json!({
            "expectedRevision": config["revision"],
            "values": {"proxy_mode": "manual", "proxy_host": "127.0.0.1", "proxy_port": "1", "proxy_username": "me",
                "proxy_password": PROXY},
        }),
    );
    look_at_everything(&mut told);
    let exported = exported(&told.home);
    let arguments = arguments(&told.home);
    let mut open = Vec::new();
    files(&told.home.data(), &told.home.data(), &mut open);
    let ended = told.service.terminate();
    assert_eq!(ended.code, Some(0), "{PATIENCE:?}");
    files(&told.home.data(), &told.home.data(), &mut open);

    let logged = format!("{} {}", ended.stderr, ended.stdout.join("\n"));
    assert!(
        logged.contains("TRACE") || logged.contains("DEBUG"),
        "it was to be loud"
    );
    assert_without(
        "the log",
        logged.as_bytes(),
        &[&SECRETS[..], &SHOWN_TO_THE_USER].concat(),
    );
    assert_without("arguments", &arguments, &[&SECRETS[..], &SHOWN_TO_THE_USER].concat());
    for (name, text) in exported {
        assert_without(&name, &text, &SECRETS);
    }
    for answer in &told.answers {
        assert_without("an answer", answer.as_bytes(), &SECRETS);
    }
    for (name, text) in &open {
        if !KEPT_SECRET.contains(&name.as_str()) {
            assert_without(name, text, &SECRETS);
        }
        if name.starts_with("logs/") {
            assert_without(name, text, &SHOWN_TO_THE_USER);
        }
    }
}
