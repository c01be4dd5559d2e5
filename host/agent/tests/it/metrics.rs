//! Prometheus metrics, and request ids.

use std::collections::BTreeSet;

use serde_json::json;

use crate::world::{KEY, World};

#[tokio::test]
async fn metrics_have_counts_but_no_names() {
    let world = World::new().await;
    let task = json!({"url": "http://127.0.0.1:9/secret-name", "startPaused": true});
    world.ask("POST /api/v1/tasks", task.to_string()).await;
    let answer = world.get("/metrics").await;
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    let text = String::from_utf8(answer.body).unwrap();
    for expect in [
        "svc_daemon_up 1",
        "svc_tasks{status=\"paused\"} 1",
        "svc_tasks{status=\"completed\"} 0",
        "svc_connections 0",
        "svc_plugin_calls_total 0",
        "svc_plugin_faults_total 0",
        "svc_plugin_call_seconds_total 0",
        "svc_http_requests_total{surface=\"management\",status=\"2xx\"} 1",
        "svc_daemon_call_duration_seconds_count{method=\"daemon.task.create\"} 1",
    ] {
        assert!(text.lines().any(|line| line == expect), "{expect} in\n{text}");
    }
    for name in [
        "process_resident_memory_bytes ",
        "svc_daemon_resident_memory_bytes ",
        "svc_build_info{version=",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
    }
    assert!(!text.contains("secret-name") && !text.contains("127.0.0.1"));
    // Every sample belongs to the metric declared before it.
    let mut announced = "";
    for line in text.lines().filter(|line| !line.starts_with("# HELP")) {
        match line.strip_prefix("# TYPE ") {
            Some(kind) => announced = kind.split(' ').next().unwrap(),
            None => assert!(line.starts_with(announced), "{line} after {announced}"),
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_request_has_the_name_that_its_sender_gave_it_or_one_of_ours() {
    let world = World::new().await;
    let key = format!("Bearer {KEY}");
    for (path, status) in [("/api/v1/info", 200), ("/api/v1/nothing", 404)] {
        let headers = [("Authorization", key.as_str()), ("X-Request-Id", "my-request.1")];
        let named = world.send(&format!("GET {path}"), &headers, "").await;
        assert_eq!(
            (named.status, named.header("x-request-id")),
            (status, Some("my-request.1"))
        );
    }
    let refused = world
        .send("GET /api/v1/info", &[("X-Request-Id", "my-request.2")], "")
        .await;
    assert_eq!(
        (refused.status, refused.header("x-request-id")),
        (401, Some("my-request.2"))
    );
    let too_long = "x".repeat(65);
    let mut made = BTreeSet::new();
    for odd in ["", "a b", "a\"b", too_long.as_str()] {
        let named = world.send("GET /ping", &[("X-Request-Id", odd)], "").await;
        let id = named.header("x-request-id").unwrap();
        assert!(id.len() == 32 && id != odd, "{id}");
        assert!(made.insert(id.to_owned()), "{id} is of two requests");
    }
    world.end().await;
}
