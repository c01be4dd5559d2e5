//! JSON lines for scripts. Names of events and fields are a public interface: they may be extended, not changed.

use std::{
    collections::HashMap,
    io::{self, BufWriter, Write},
    path::Path,
    time::Duration,
};

use serde::Serialize;

use super::{Event, FileView, Screen, Totals};

/// Progress twice a second per file: frequent enough to display, rare enough to log.
const INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Line<'a> {
    Started {
        index: usize,
        url: &'a str,
    },
    Named {
        index: usize,
        url: &'a str,
        path: String,
        total: Option<u64>,
    },
    Progress {
        index: usize,
        url: &'a str,
        done: u64,
        total: Option<u64>,
        bytes_per_second: u64,
        connections: u16,
    },
    Notice {
        index: usize,
        url: &'a str,
        message: &'a str,
    },
    Retrying {
        index: usize,
        url: &'a str,
        kind: &'static str,
        message: &'a str,
        wait_ms: u128,
    },
    Finished {
        index: usize,
        url: &'a str,
        path: String,
        size_bytes: u64,
        received_bytes: u64,
    },
    Skipped {
        index: usize,
        url: &'a str,
        existing: String,
    },
    Failed {
        index: usize,
        url: &'a str,
        kind: &'static str,
        message: &'a str,
    },
    Summary {
        finished: usize,
        failed: usize,
        skipped: usize,
        unfinished: usize,
        bytes: u64,
        seconds: f64,
    },
}

impl<'a> Line<'a> {
    fn of(file: &'a FileView, event: &Event<'a>) -> Self {
        let (index, url) = (file.index, file.url.as_str());
        match *event {
            Event::Started => Self::Started { index, url },
            Event::Named { path, total_bytes } => Self::Named {
                index,
                url,
                path: text(path),
                total: total_bytes,
            },
            Event::Notice(message) => Self::Notice { index, url, message },
            Event::Retrying { failure, wait } => Self::Retrying {
                index,
                url,
                kind: failure.kind.code(),
                message: &failure.message,
                wait_ms: wait.as_millis(),
            },
            Event::Finished {
                path,
                size_bytes,
                received_bytes,
                ..
            } => Self::Finished {
                index,
                url,
                path: text(path),
                size_bytes,
                received_bytes,
            },
            Event::Skipped { existing } => Self::Skipped {
                index,
                url,
                existing: text(existing),
            },
            Event::Failed(failure) => Self::Failed {
                index,
                url,
                kind: failure.kind.code(),
                message: &failure.message,
            },
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[derive(Debug)]
pub(super) struct JsonLines<W: Write> {
    out: BufWriter<W>,
    /// The first write error; afterwards nothing is written.
    failure: Option<io::Error>,
    /// The last reported bytes of each active file; a file without progress is not reported again.
    reported_bytes: HashMap<usize, u64>,
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out: BufWriter::new(out),
            failure: None,
            reported_bytes: HashMap::new(),
        }
    }

    fn write(&mut self, line: &Line<'_>) {
        if self.failure.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, line).map_err(io::Error::from);
        self.failure = written.and_then(|()| self.out.write_all(b"\n")).err();
    }
}

impl<W: Write> Screen for JsonLines<W> {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn report(&mut self, file: &FileView, event: &Event<'_>) {
        if matches!(event, Event::Finished { .. } | Event::Skipped { .. } | Event::Failed(_)) {
            self.reported_bytes.remove(&file.index);
        }
        self.write(&Line::of(file, event));
    }

    fn progress(&mut self, active: &[&FileView], _totals: &Totals) {
        for file in active {
            if self.reported_bytes.insert(file.index, file.done_bytes) == Some(file.done_bytes) {
                continue;
            }
            self.write(&Line::Progress {
                index: file.index,
                url: &file.url,
                done: file.done_bytes,
                total: file.total_bytes,
                bytes_per_second: file.bytes_per_second,
                connections: file.connections,
            });
        }
    }

    fn summary(&mut self, totals: &Totals) {
        let millis = u64::try_from(totals.elapsed.as_millis()).unwrap_or(u64::MAX);
        self.write(&Line::Summary {
            finished: totals.finished,
            failed: totals.failed,
            skipped: totals.skipped,
            unfinished: totals.unfinished(),
            bytes: totals.received_bytes,
            // Whole milliseconds, which avoids artefacts of binary fractions.
            seconds: Duration::from_millis(millis).as_secs_f64(),
        });
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            self.failure = self.out.flush().err();
        }
        self.failure.take().map_or(Ok(()), |failure| {
            let kind = failure.kind();
            self.failure = Some(kind.into());
            Err(failure)
        })
    }
}
