//! Counters of requests and of calls to the daemon, for Prometheus. Updated without a lock, formatted when scraped.
//! Label values are closed sets: no URL, no name, no id.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use link::plane::Unauthorized;
use protocol::Method;

use crate::access::area::Area;

/// Upper bounds: from an in-memory read to a plugin that queries a slow site.
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

const DEVICE_REASONS: [Unauthorized; 3] = [
    Unauthorized::NotPaired,
    Unauthorized::ClockSkew,
    Unauthorized::Unauthorized,
];

/// Status classes, 1xx to 5xx.
const CLASSES: usize = 5;

#[derive(Debug, Default)]
struct Histogram {
    /// Observations above the last bound are only in the total.
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

#[derive(Debug, Default)]
struct Calls {
    failed: AtomicU64,
    times: Histogram,
}

#[derive(Debug, Default)]
struct Requests {
    by_class: [AtomicU64; CLASSES],
    times: Histogram,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    calls: Vec<Calls>,
    requests: Vec<Requests>,
    /// By reason.
    refused_devices: [AtomicU64; DEVICE_REASONS.len()],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: Method::ALL.iter().map(|_| Calls::default()).collect(),
            requests: Area::ALL.iter().map(|_| Requests::default()).collect(),
            refused_devices: Default::default(),
        }
    }
}

impl Metrics {
    /// Records an answered call to the daemon.
    pub(crate) fn called(&self, method: Method, took: Duration, is_ok: bool) {
        let calls = &self.calls[method as usize];
        calls.times.record(took);
        if !is_ok {
            calls.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records an answered request.
    pub(crate) fn answered(&self, area: Area, took: Duration, status: u16) {
        let requests = &self.requests[area as usize];
        requests.times.record(took);
        if let Some(class) = requests.by_class.get(usize::from(status / 100).wrapping_sub(1)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a request of another device that was refused. These do not count as wrong keys.
    pub(crate) fn refused_device(&self, reason: Unauthorized) {
        let mut counted = DEVICE_REASONS.iter().zip(&self.refused_devices);
        if let Some((_, count)) = counted.find(|(known, _)| **known == reason) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn write(&self, text: &mut String) {
        head(
            text,
            "svc_http_requests_total",
            "counter",
            "Requests, by surface and class of status.",
        );
        for (area, requests) in Area::ALL.iter().zip(&self.requests) {
            for (class, count) in requests.by_class.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let (name, class) = (area.name(), class + 1);
                    let labels = format_args!("{{surface=\"{name}\",status=\"{class}xx\"}}");
                    line(text, format_args!("svc_http_requests_total{labels} {count}"));
                }
            }
        }
        head(
            text,
            "svc_link_refused_total",
            "counter",
            "Requests of other devices that were not authenticated, by reason.",
        );
        for (reason, count) in DEVICE_REASONS.iter().zip(&self.refused_devices) {
            let (reason, count) = (reason.name(), count.load(Ordering::Relaxed));
            line(
                text,
                format_args!("svc_link_refused_total{{reason=\"{reason}\"}} {count}"),
            );
        }
        let areas = Area::ALL.iter().zip(&self.requests);
        let times = areas.map(|(area, requests)| (format!("surface=\"{}\"", area.name()), &requests.times));
        let name = "svc_http_request_duration_seconds";
        histograms(text, name, "How long requests took until their answer began.", times);
        head(
            text,
            "svc_daemon_call_failures_total",
            "counter",
            "Calls to the daemon that were refused or got no answer.",
        );
        for (method, calls) in Method::ALL.iter().zip(&self.calls) {
            let failed = calls.failed.load(Ordering::Relaxed);
            if failed > 0 {
                let label = format_args!("{{method=\"{}\"}}", method.name());
                line(text, format_args!("svc_daemon_call_failures_total{label} {failed}"));
            }
        }
        let methods = Method::ALL.iter().zip(&self.calls);
        let times = methods.map(|(method, calls)| (format!("method=\"{}\"", method.name()), &calls.times));
        let name = "svc_daemon_call_duration_seconds";
        histograms(text, name, "How long calls to the daemon took.", times);
    }
}

/// One metric, with a histogram for each label that was counted.
fn histograms<'a>(text: &mut String, name: &str, help: &str, labelled: impl Iterator<Item = (String, &'a Histogram)>) {
    head(text, name, "histogram", help);
    for (label, times) in labelled {
        if times.count.load(Ordering::Relaxed) > 0 {
            times.write(text, name, &label);
        }
    }
}

/// The `HELP` and `TYPE` lines of a metric.
pub(crate) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
}

pub(crate) fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, "gauge", help);
    line(text, format_args!("{name} {value}"));
}

pub(crate) fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
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
        metrics.answered(Area::Health, Duration::from_millis(2), 200);
        metrics.answered(Area::Health, Duration::from_millis(2), 999);
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
