//! What the service does, in numbers, for Prometheus. Counted where it happens, without a lock; written when somebody
//! asks. Labels are closed sets: no URL, no name, no id.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};
use protocol::{DiagnosticsResult, Method, RuntimeStats, TaskStatus};

use crate::{
    gate::Surface,
    problem::{Gated, Problem, ResultMessage},
    projection::Projection,
    rest::App,
};

/// The version of the format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper ends of the buckets: from a read of memory to a plugin that asks a slow site.
const BUCKETS: [(&str, Duration); 9] = [
    ("0.001", Duration::from_millis(1)),
    ("0.005", Duration::from_millis(5)),
    ("0.025", Duration::from_millis(25)),
    ("0.1", Duration::from_millis(100)),
    ("0.5", Duration::from_millis(500)),
    ("1", Duration::from_secs(1)),
    ("5", Duration::from_secs(5)),
    ("30", Duration::from_secs(30)),
    ("120", Duration::from_mins(2)),
];

/// How long the daemon is waited for: who collects metrics asks again soon.
const DAEMON_TIME: Duration = Duration::from_secs(2);

/// The first digits of statuses.
const CLASSES: usize = 5;

/// How many and how long.
#[derive(Debug, Default)]
struct Histogram {
    /// By bucket; those that took longer than the last have none.
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    fn record(&self, took: Duration) {
        if let Some(bucket) = BUCKETS.iter().position(|(_, end)| took <= *end) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, label: &str) {
        let mut below = 0;
        for (bucket, (end, _)) in self.buckets.iter().zip(BUCKETS) {
            below += bucket.load(Ordering::Relaxed);
            line(text, format_args!("{name}_bucket{{{label},le=\"{end}\"}} {below}"));
        }
        let count = self.count.load(Ordering::Relaxed);
        let seconds = Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
        line(text, format_args!("{name}_bucket{{{label},le=\"+Inf\"}} {count}"));
        line(text, format_args!("{name}_sum{{{label}}} {seconds}"));
        line(text, format_args!("{name}_count{{{label}}} {count}"));
    }
}

/// Calls of one method.
#[derive(Debug, Default)]
struct Calls {
    failed: AtomicU64,
    times: Histogram,
}

/// Requests to one surface.
#[derive(Debug, Default)]
struct Requests {
    by_class: [AtomicU64; CLASSES],
    times: Histogram,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    calls: Vec<Calls>,
    requests: Vec<Requests>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: Method::ALL.iter().map(|_| Calls::default()).collect(),
            requests: Surface::ALL.iter().map(|_| Requests::default()).collect(),
        }
    }
}

impl Metrics {
    /// A call to the daemon was answered.
    pub(crate) fn called(&self, method: Method, took: Duration, is_ok: bool) {
        let calls = &self.calls[method as usize];
        calls.times.record(took);
        if !is_ok {
            calls.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request was answered.
    pub(crate) fn answered(&self, surface: Surface, took: Duration, status: u16) {
        let requests = &self.requests[surface as usize];
        requests.times.record(took);
        if let Some(class) = requests.by_class.get(usize::from(status / 100).wrapping_sub(1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn write(&self, text: &mut String) {
        head(
            text,
            "svc_http_requests_total",
            "counter",
            "Requests, by surface and class of status.",
        );
        for (surface, requests) in Surface::ALL.iter().zip(&self.requests) {
            for (class, count) in requests.by_class.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let (name, class) = (surface.name(), class + 1);
                    let labels = format_args!("{{surface=\"{name}\",status=\"{class}xx\"}}");
                    line(text, format_args!("svc_http_requests_total{labels} {count}"));
                }
            }
        }
        let name = "svc_http_request_duration_seconds";
        head(
            text,
            name,
            "histogram",
            "How long requests took until their answer began.",
        );
        for (surface, requests) in Surface::ALL.iter().zip(&self.requests) {
            if requests.times.count.load(Ordering::Relaxed) > 0 {
                requests
                    .times
                    .write(text, name, &format!("surface=\"{}\"", surface.name()));
            }
        }
        head(
            text,
            "svc_daemon_call_failures_total",
            "counter",
            "Calls to the daemon that were refused or got no answer.",
        );
        for (method, calls) in Method::ALL.iter().zip(&self.calls) {
            let failed = calls.failed.load(Ordering::Relaxed);
            if failed > 0 {
                line(
                    text,
                    format_args!(
                        "svc_daemon_call_failures_total{{method=\"{}\"}} {failed}",
                        method.name()
                    ),
                );
            }
        }
        let name = "svc_daemon_call_duration_seconds";
        head(text, name, "histogram", "How long calls to the daemon took.");
        for (method, calls) in Method::ALL.iter().zip(&self.calls) {
            if calls.times.count.load(Ordering::Relaxed) > 0 {
                calls.times.write(text, name, &format!("method=\"{}\"", method.name()));
            }
        }
    }
}

/// Show metrics for Prometheus.
///
/// In its text format: what runs, what was received, what failed.
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "Metrics", body = String, content_type = "text/plain"), Gated,
    (status = 503, body = ResultMessage)))]
pub(crate) async fn metrics_view(State(app): State<App>) -> Result<Response, Problem> {
    let mut text = String::new();
    write_build(&mut text, &app.version);
    let is_connected = app.daemon.known().is_ok();
    gauge(
        &mut text,
        "svc_daemon_up",
        "Whether the daemon answers.",
        u64::from(is_connected),
    );
    if is_connected {
        app.daemon.hub.look(|projection| write_tasks(&mut text, projection));
        // One that has no time for this is measured by the rest.
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
        "Downloads that wait for their user's word.",
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
    let counter = |text: &mut String, name: &str, help: &str, value: std::fmt::Arguments<'_>| {
        head(text, name, "counter", help);
        line(text, format_args!("{name} {value}"));
    };
    let (calls, faults) = (daemon.plugin_calls, daemon.plugin_faults);
    counter(
        text,
        "svc_plugin_calls_total",
        "Calls of plugins.",
        format_args!("{calls}"),
    );
    counter(
        text,
        "svc_plugin_faults_total",
        "Calls of plugins that gave nothing.",
        format_args!("{faults}"),
    );
    let seconds = Duration::from_millis(daemon.plugin_call_ms).as_secs_f64();
    counter(
        text,
        "svc_plugin_call_seconds_total",
        "How long calls of plugins took together.",
        format_args!("{seconds}"),
    );
}

fn write_tasks(text: &mut String, projection: &Projection) {
    head(text, "svc_tasks", "gauge", "Tasks, by status.");
    for (status, count) in TaskStatus::ALL.iter().zip(projection.by_status()) {
        line(text, format_args!("svc_tasks{{status=\"{}\"}} {count}", status.name()));
    }
    let runs = projection.runs();
    let (connections, done) = runs.iter().fold((0, 0), |(connections, done), run| {
        (
            connections + u64::from(run.active_transfers.unwrap_or(0)),
            done + run.downloaded_bytes,
        )
    });
    let stats: RuntimeStats = serde_json::from_str(projection.stats()).unwrap_or_default();
    for (name, help, value) in [
        ("svc_connections", "Connections of running tasks.", connections),
        (
            "svc_running_downloaded_bytes",
            "Bytes that running tasks have on the disk.",
            done,
        ),
        (
            "svc_download_bytes_per_second",
            "Receiving rate.",
            stats.total_download_bps,
        ),
        ("svc_upload_bytes_per_second", "Sending rate.", stats.total_upload_bps),
    ] {
        gauge(text, name, help, value);
    }
    if let Some(free) = stats.disk_free_bytes {
        gauge(text, "svc_disk_free_bytes", "Free bytes where new files go.", free);
    }
}

/// The agent's memory. Where the system does not say it in this way it is not told.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, "gauge", help);
    line(text, format_args!("{name} {value}"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a text takes every line");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        for millis in [0, 1, 3, 90, 200_000] {
            metrics.called(Method::TaskCreate, Duration::from_millis(millis), millis != 3);
        }
        metrics.answered(Surface::Health, Duration::from_millis(2), 200);
        metrics.answered(Surface::Health, Duration::from_millis(2), 999);
        let mut text = String::new();
        metrics.write(&mut text);
        for expect in [
            "svc_daemon_call_duration_seconds_bucket{method=\"daemon.task.create\",le=\"0.001\"} 2",
            "svc_daemon_call_duration_seconds_bucket{method=\"daemon.task.create\",le=\"0.005\"} 3",
            "svc_daemon_call_duration_seconds_bucket{method=\"daemon.task.create\",le=\"120\"} 4",
            "svc_daemon_call_duration_seconds_bucket{method=\"daemon.task.create\",le=\"+Inf\"} 5",
            "svc_daemon_call_duration_seconds_count{method=\"daemon.task.create\"} 5",
            "svc_daemon_call_failures_total{method=\"daemon.task.create\"} 1",
            "svc_http_requests_total{surface=\"health\",status=\"2xx\"} 1",
        ] {
            assert!(text.lines().any(|line| line == expect), "{expect} in\n{text}");
        }
    }
}
