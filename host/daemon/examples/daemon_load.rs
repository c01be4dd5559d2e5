//! How much memory and time a daemon needs for many tasks: `cargo run --release -p daemon --example daemon_load -- 100000`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::cast_precision_loss,
    reason = "a program for people who measure"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use daemon::{Config, Daemon};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use support::transport::FakeTransport;
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};

/// Tasks of one call; its frame stays below the limit.
const BATCH: usize = 5000;

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("");
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let count: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000);
    let root = tempfile::tempdir().unwrap();
    let start = || {
        Daemon::start(
            Config::new(root.path().join("data"), root.path().join("files")),
            vec![Arc::new(FakeTransport::idle(&["fake"]))],
        )
    };
    let daemon = start().await.unwrap();
    println!("empty: {} MiB", resident_mib());
    let mut request = "ws://daemon/rpc".into_client_request().unwrap();
    let key = format!("Bearer {}", daemon.token().expose());
    request.headers_mut().insert("Authorization", key.parse().unwrap());
    let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
    let (mut socket, _) = client_async_with_config(request, daemon.connect(), Some(config))
        .await
        .unwrap();
    let call = |method: &str, params: serde_json::Value| {
        Message::Text(
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                .to_string()
                .into(),
        )
    };
    let hello = json!({"clientName": "load", "clientVersion": "0", "minProtocolVersion": 1, "maxProtocolVersion": 1,
        "requestedRole": "daemon"});
    socket.send(call("system.hello", hello)).await.unwrap();
    socket.next().await.unwrap().unwrap();
    let began = Instant::now();
    for batch in 0..count / BATCH {
        let requests: Vec<_> = (0..BATCH)
            .map(|index| json!({"url": format!("fake://host.test/a/path/file-{batch}-{index}.bin"), "startPaused": true}))
            .collect();
        socket
            .send(call("daemon.task.createMany", json!({"requests": requests})))
            .await
            .unwrap();
        socket.next().await.unwrap().unwrap();
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    println!("{count} tasks in batches: {rate:.0}/s, {} MiB", resident_mib());
    let began = Instant::now();
    for index in 0..2000 {
        let one = json!({"request": {"url": format!("fake://host.test/{index}"), "startPaused": true}});
        socket.send(call("daemon.task.create", one)).await.unwrap();
        socket.next().await.unwrap().unwrap();
    }
    println!("one at a time: {:.0}/s", 2000.0 / began.elapsed().as_secs_f64());
    let began = Instant::now();
    for index in 0..20_000 {
        let one = json!({"request": {"url": format!("fake://host.test/{index}"), "startPaused": true}});
        socket.feed(call("daemon.task.create", one)).await.unwrap();
        if index % 200 == 199 {
            socket.flush().await.unwrap();
            for _ in 0..200 {
                socket.next().await.unwrap().unwrap();
            }
        }
    }
    println!(
        "two hundred in flight: {:.0}/s",
        20_000.0 / began.elapsed().as_secs_f64()
    );
    for _ in 0..3 {
        let began = Instant::now();
        socket.send(call("daemon.task.list", json!({}))).await.unwrap();
        let bytes = socket.next().await.unwrap().unwrap().len();
        println!(
            "list: {} MiB in {:?}, {} MiB resident",
            bytes >> 20,
            began.elapsed(),
            resident_mib()
        );
    }
    drop(socket);
    daemon.shutdown(Duration::from_secs(5)).await;
    let began = Instant::now();
    let daemon = start().await.unwrap();
    println!("started again in {:?}, {} MiB", began.elapsed(), resident_mib());
    daemon.shutdown(Duration::from_secs(5)).await;
}
