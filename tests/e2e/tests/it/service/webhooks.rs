//! Webhooks: a receiver of the user's learns what becomes of downloads, and nothing else changes.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use data_encoding::HEXLOWER;
use e2e::{Home, Rpc, RpcError, Service, service::wait_until};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Content, End, Origin, Resource, behaviour};

const SIGN_SECRET: &str = "canary-sign-secret";
const HEADER: &str = "Bearer canary-header-value";

/// SHA-256's block, for HMAC.
const BLOCK_BYTES: usize = 64;

fn receiver() -> Origin {
    let thanks = format!("thanks for {SIGN_SECRET} and {HEADER}");
    Origin::start(vec![
        Resource::new("/file.bin", Content::seeded(1, 100_000)),
        Resource::new("/hook", Content::bytes(thanks)).method("POST"),
        Resource::new("/hang", Content::bytes(""))
            .method("POST")
            .with(behaviour::silent(End::Stall)),
    ])
}

fn save(rpc: &mut Rpc, endpoints: &Value) -> Result<Value, RpcError> {
    let config = rpc.call("daemon.config.get", &json!({}))?;
    let values = json!({"webhook.endpoints": endpoints.to_string()});
    let patch = json!({"expectedRevision": config["revision"], "values": values});
    rpc.call("daemon.config.patch", &patch)
}

fn endpoint(origin: &Origin, path: &str) -> Value {
    json!({
        "id": "own", "url": origin.url(path), "signSecret": SIGN_SECRET, "headers": {"Authorization": HEADER},
        "allowHttp": true, "allowPrivate": true,
    })
}

/// The bodies and headers of what arrived at a path.
fn arrived(origin: &Origin, path: &str) -> Vec<support::Request> {
    let posts = origin.requests().into_iter();
    posts
        .filter(|request| request.method == "POST" && request.path() == path)
        .collect()
}

/// HMAC-SHA256 as RFC 2104 describes it.
fn hmac(key: &str, message: &str) -> String {
    let mut block = [0; BLOCK_BYTES];
    block[..key.len()].copy_from_slice(key.as_bytes());
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message);
    let outer = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner.finalize());
    HEXLOWER.encode(&outer.finalize())
}

/// Asserts that no file below a directory holds this.
fn assert_in_no_file(directory: &Path, secret: &str) {
    for entry in fs::read_dir(directory).expect("the directory exists") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            assert_in_no_file(&path, secret);
            continue;
        }
        // Sockets and locks hold nothing.
        let Ok(bytes) = fs::read(&path) else { continue };
        let is_there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!is_there, "{} holds {secret}", path.display());
    }
}

#[track_caller]
fn assert_delivered(request: &support::Request, task: &str) {
    assert_eq!(request.header("x-svc-event"), Some("task.completed"));
    assert_eq!(request.header("authorization"), Some(HEADER));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = String::from_utf8(request.body.clone()).expect("the body is text");
    let signature = request.header("x-svc-signature").expect("it is signed");
    let (time, tag) = signature.split_once(",v1=").expect("it has both parts");
    let time = time.strip_prefix("t=").expect("it has a time");
    assert_eq!(tag, hmac(SIGN_SECRET, &format!("{time}.{body}")));
    let told: Value = serde_json::from_str(&body).expect("the body is JSON");
    assert_eq!(told["event"], "task.completed");
    assert_eq!(request.header("x-svc-delivery"), told["delivery"].as_str());
    assert_eq!(told["task"]["taskId"], *task);
    assert_eq!(told["task"]["fileName"], "file.bin");
    assert_eq!(told["task"]["totalBytes"], 100_000);
    assert!(!body.contains("canary"), "{body}");
}

#[test]
fn a_completed_download_is_told_signed_and_secrets_stay_secret() {
    let origin = receiver();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let mut rpc = service.rpc();
    let saved = save(&mut rpc, &json!([endpoint(&origin, "/hook")])).expect("the endpoint is accepted");
    assert!(!saved.to_string().contains("canary"), "{saved}");
    let task = service.create(&json!({"url": origin.url("/file.bin?token=canary-query")}));
    wait_until("the webhook was called", || !arrived(&origin, "/hook").is_empty());
    assert_delivered(&arrived(&origin, "/hook")[0], &task);
    let mut log = Value::Null;
    wait_until("the delivery is in the log", || {
        log = rpc.call("daemon.webhook.get", &json!({})).expect("it answers");
        log["deliveries"][0]["status"] == "delivered"
    });
    assert_eq!(log["deliveries"][0]["taskId"], *task);
    assert_eq!(log["deliveries"][0]["responseBody"], "thanks for *** and ***");
    let snapshot = rpc.call("system.snapshot", &json!({})).expect("it answers").to_string();
    assert!(snapshot.contains("thanks for *** and ***"), "the snapshot has the log");
    for secret in [SIGN_SECRET, "canary-header-value"] {
        assert!(!snapshot.contains(secret) && !log.to_string().contains(secret));
        assert_in_no_file(&home.data(), secret);
    }
    // What was sealed is used after a restart, and what is sent back masked stays.
    service.terminate();
    let service = home.serve();
    service.wait_until_ready();
    let mut rpc = service.rpc();
    let config = rpc.call("daemon.config.get", &json!({})).expect("it answers");
    let shown = config["values"]["webhook.endpoints"]
        .as_str()
        .expect("it is a text")
        .to_owned();
    let masked: Value = serde_json::from_str(&shown).expect("it is JSON");
    save(&mut rpc, &masked).expect("masked values are accepted");
    let simulated = rpc.call("daemon.webhook.simulate", &json!({})).expect("it answers");
    assert_eq!(simulated, json!({"count": 1}));
    wait_until("the webhook was called again", || arrived(&origin, "/hook").len() == 2);
    let request = arrived(&origin, "/hook").remove(1);
    assert_eq!(request.header("authorization"), Some(HEADER));
    assert!(request.header("x-svc-signature").is_some());
    // It is written once the receiver has answered, which is after it arrived.
    wait_until("the delivery is in the log", || {
        log = rpc.call("daemon.webhook.get", &json!({})).expect("it answers");
        log["deliveries"][0]["status"] == "delivered"
    });
    rpc.call("daemon.webhook.clearDeliveries", &json!({}))
        .expect("it answers");
    let log = rpc.call("daemon.webhook.get", &json!({})).expect("it answers");
    assert_eq!(log["deliveries"], json!([]));
}

#[test]
fn receivers_that_hang_delay_no_download_and_no_shutdown() {
    let origin = receiver();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let mut rpc = service.rpc();
    let events = json!(["task.created", "task.started", "task.metaProbed", "task.completed"]);
    let mut endpoints: Vec<_> = (0..6).map(|_| endpoint(&origin, "/hang")).collect();
    for (number, endpoint) in endpoints.iter_mut().enumerate() {
        endpoint["id"] = json!(format!("hangs-{number}"));
        endpoint["events"] = events.clone();
    }
    save(&mut rpc, &json!(endpoints)).expect("the endpoints are accepted");
    rpc.call("daemon.webhook.simulate", &json!({})).expect("it answers");
    wait_until("all places are taken", || arrived(&origin, "/hang").len() == 4);
    // Each of these is more events than wait, and every place stays taken for ten seconds.
    let begun = Instant::now();
    let tasks: Vec<_> = (0..30)
        .map(|number| service.create(&json!({"url": origin.url(&format!("/file.bin?{number}"))})))
        .collect();
    for task in &tasks {
        wait_until("the file is complete", || service.task(task)["status"] == 3);
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    let log = rpc.call("daemon.webhook.get", &json!({})).expect("it answers");
    assert!(log["dropped"].as_u64() > Some(0), "{}", log["dropped"]);
    let begun = Instant::now();
    service.terminate();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn a_private_target_is_refused_unless_the_webhook_allows_it() {
    let origin = receiver();
    let home = Home::new();
    let service: Service = home.serve();
    service.wait_until_ready();
    let mut rpc = service.rpc();
    let mut private = endpoint(&origin, "/hook");
    private["allowPrivate"] = json!(false);
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        private["url"] = json!(format!("http://{host}:{}/hook", origin.port()));
        let draft = json!({"endpoint": private});
        for refused in [
            save(&mut rpc, &json!([private])),
            rpc.call("daemon.webhook.test", &draft),
        ] {
            let Err(RpcError::Refused(error)) = refused else {
                panic!("{host}: {refused:?}")
            };
            assert_eq!(error["data"]["code"], "invalidArgument", "{error}");
            assert!(
                error["message"].as_str().expect("a text").contains("allowPrivate"),
                "{error}"
            );
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
    assert_eq!(origin.requests().len(), 0);
    let allowed = json!({"endpoint": endpoint(&origin, "/hook")});
    let delivery = rpc.call("daemon.webhook.test", &allowed).expect("it answers");
    assert_eq!(
        (&delivery["status"], &delivery["httpStatus"]),
        (&json!("delivered"), &json!(200))
    );
    assert_eq!(arrived(&origin, "/hook").len(), 1);
}
