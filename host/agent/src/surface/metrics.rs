//! `GET /metrics`: counters and current state in Prometheus' text format.

use std::time::Duration;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};
use protocol::{DiagnosticsResult, Method, TaskStatus};
use rest::{Gated, Problem, ResultMessage};

use crate::{
    metrics::{gauge, head, line},
    projection::tasks::Projection,
    surface::state::App,
};

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long to wait for the daemon; Prometheus scrapes again soon.
const DAEMON_TIME: Duration = Duration::from_secs(2);

/// Show metrics for Prometheus.
///
/// In its text format: what runs, what was received, what failed.
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "Metrics", body = String, content_type = "text/plain"), Gated,
    (status = 503, body = ResultMessage)))]
pub(crate) async fn metrics_view(State(app): State<App>) -> Result<Response, Problem> {
    let mut text = String::new();
    write_build(&mut text, &app.version);
    let is_connected = app.daemon.current().is_ok();
    gauge(
        &mut text,
        "svc_daemon_up",
        "Whether the daemon answers.",
        u64::from(is_connected),
    );
    if is_connected {
        app.daemon.hub.with_tasks(|tasks| write_tasks(&mut text, tasks));
        // If the daemon does not answer in time, the rest is still reported.
        let nothing = serde_json::Map::new();
        let asked = app.daemon.call(Method::DiagnosticsDescribe, &nothing);
        if let Ok(Ok(daemon)) = tokio::time::timeout(DAEMON_TIME, asked).await {
            write_daemon(&mut text, &daemon);
        }
    }
    app.gate.metrics.write(&mut text);
    let waiting = u64::try_from(app.pending.list().len()).unwrap_or(u64::MAX);
    gauge(
        &mut text,
        "svc_pending_captures",
        "Downloads that wait for their user's decision.",
        waiting,
    );
    if let Some(bytes) = resident_bytes() {
        gauge(
            &mut text,
            "process_resident_memory_bytes",
            "Memory of the agent's process.",
            bytes,
        );
    }
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}

fn write_build(text: &mut String, version: &str) {
    let name = "svc_build_info";
    head(text, name, "gauge", "Which program this is; its value is always 1.");
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let labels = format_args!("{{version=\"{version}\",os=\"{system}\",arch=\"{machine}\"}}");
    line(text, format_args!("{name}{labels} 1"));
}

fn write_daemon(text: &mut String, daemon: &DiagnosticsResult) {
    if let Some(bytes) = daemon.resident_bytes {
        let help = "Memory of the daemon's process.";
        gauge(text, "svc_daemon_resident_memory_bytes", help, bytes);
    }
    gauge(
        text,
        "svc_daemon_uptime_seconds",
        "How long the daemon is up.",
        daemon.uptime_secs,
    );
    let seconds = Duration::from_millis(daemon.plugin_call_ms).as_secs_f64();
    for (name, help, value) in [
        (
            "svc_plugin_calls_total",
            "Calls of plugins.",
            daemon.plugin_calls.to_string(),
        ),
        (
            "svc_plugin_faults_total",
            "Calls of plugins that gave nothing.",
            daemon.plugin_faults.to_string(),
        ),
        (
            "svc_plugin_call_seconds_total",
            "How long calls of plugins took together.",
            seconds.to_string(),
        ),
    ] {
        head(text, name, "counter", help);
        line(text, format_args!("{name} {value}"));
    }
}

fn write_tasks(text: &mut String, projection: &Projection) {
    head(text, "svc_tasks", "gauge", "Tasks, by status.");
    for (status, count) in TaskStatus::ALL.iter().zip(projection.by_status()) {
        line(text, format_args!("svc_tasks{{status=\"{}\"}} {count}", status.name()));
    }
    let (connections, done) = projection.runs().fold((0, 0), |(connections, done), run| {
        (
            connections + u64::from(run.active_transfers.unwrap_or(0)),
            done + run.downloaded_bytes,
        )
    });
    let stats = projection.stats();
    let (received, sent) = (stats.total_download_bps, stats.total_upload_bps);
    gauge(text, "svc_connections", "Connections of running tasks.", connections);
    gauge(
        text,
        "svc_running_downloaded_bytes",
        "Bytes that running tasks have on the disk.",
        done,
    );
    gauge(text, "svc_download_bytes_per_second", "Receiving rate.", received);
    gauge(text, "svc_upload_bytes_per_second", "Sending rate.", sent);
    if let Some(free) = stats.disk_free_bytes {
        gauge(text, "svc_disk_free_bytes", "Free bytes where new files go.", free);
    }
}

/// The agent's resident memory; none on systems without `/proc`.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
