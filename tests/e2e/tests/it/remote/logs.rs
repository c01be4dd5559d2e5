//! `svc logs export`, of a service on another machine.

use std::{path::Path, process::Command};

use e2e::{Home, service::KEY, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::{Desk, shell};

/// The files of an archive, unpacked by another program.
fn unpacked(archive: &Path) -> Value {
    let script = "import sys, json, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n\
        print(json.dumps({name: z.read(name).decode() for name in z.namelist()}))";
    let python = Command::new("python3").args(["-c", script]).arg(archive).output();
    serde_json::from_slice(&python.expect("Python is part of the system").stdout).expect("a ZIP archive")
}

#[test]
fn logs_and_failures_of_a_server_elsewhere_come_over_http() {
    let origin = Origin::start(vec![Resource::new("/there", Content::bytes("x"))]);
    let desk = Desk::new();
    let failing = desk.service.create(&json!({"url": origin.url("/gone?key=hunter2")}));
    wait_until("it failed", || desk.service.task(&failing)["status"] == 4);

    let (elsewhere, archive) = (Home::new(), desk.home.path().join("logs.zip"));
    let svc = || {
        shell(&elsewhere)
            .env("SVC_URL", desk.service.url())
            .env("SVC_TOKEN", KEY)
    };
    let run = svc().args(["logs", "export", "-o"]).arg(&archive).run();
    run.assert_success();
    let files = unpacked(&archive);
    let text = |name: &str| {
        files[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name} is missing: {files}"))
            .to_owned()
    };
    assert!(text("logs/agent.log").contains("the agent listens"), "{files}");
    // The daemon had nothing to say.
    text("logs/daemon.log");
    let service: Value = serde_json::from_str(&text("service.json")).expect("JSON");
    assert_eq!(service["failures"][0]["taskId"], json!(failing), "{service}");
    let all = files.to_string();
    assert!(!all.contains("hunter2") && !all.contains(KEY), "{all}");

    // Without the key there is nothing, and the archive says so.
    let run = svc()
        .env("SVC_TOKEN", "another-key-1")
        .args(["logs", "export", "-o"])
        .arg(&archive)
        .run();
    run.assert_success();
    assert!(run.stderr.contains("the archive has no logs"), "{run:?}");
    assert!(!unpacked(&archive).to_string().contains("the agent listens"));
}

#[test]
fn an_export_is_made_by_a_call_and_fetched_once_with_the_key() {
    let desk = Desk::new();
    let made = desk
        .service
        .rpc()
        .call("daemon.diagnostics.prepareLogExport", &json!({}))
        .expect("an export");
    let path = format!("/api/web/exports/{}", made["exportId"].as_str().expect("an id"));
    let export = desk.service.call("GET", &path, None);
    let names: Vec<_> = export["logs"]
        .as_array()
        .expect("logs")
        .iter()
        .map(|log| &log["name"])
        .collect();
    assert_eq!(names, ["agent.log", "daemon.log"]);
    assert_eq!(
        desk.service.ask("GET", &path, None).map(|answer| answer.status),
        Some(404)
    );
}
