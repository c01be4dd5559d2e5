//! The transport against real servers, for what the command line cannot ask of it: a task whose URL is replaced between
//! two runs, and limits that change while bytes flow. How it meets hostile servers is tested through the executable.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod joined;
mod pieces;

use std::{path::PathBuf, time::Duration};

use support::{Content, Origin, Resource, Version, behaviour};
use tokio_util::sync::CancellationToken;
use transfer::{
    ConnectionPlan, Failure, FailureKind, Job, OnConflict, Outcome, RateLimiter, RateLimits, Receipt, Recorded, Report,
    Reporter, Reports, RetryPolicy, RunEvent, SafeUrl, Source, Target, Transport as _,
};
use transfer_http::{Config, HttpTransport};

const SIZE: u64 = 8 * 1024 * 1024 + 321;
const PATH: &str = "/file.bin";

/// A run of the task under test, as a service starts it.
struct Attempt {
    url: String,
    directory: PathBuf,
    reserved: Option<PathBuf>,
    limit: RateLimiter,
}

impl Attempt {
    fn start(self) -> (tokio::task::JoinHandle<Outcome>, Reports, CancellationToken) {
        let (reporter, reports) = Reporter::new();
        let stop = CancellationToken::new();
        let job = Job {
            source: Source::new(SafeUrl::parse(&self.url).unwrap()),
            target: Target {
                directory: self.directory,
                name: None,
                on_conflict: OnConflict::Rename,
                reserved: self.reserved,
                adopt: false,
                check_integrity: false,
                use_server_time: false,
            },
            connections: ConnectionPlan {
                segments: 4,
                min_split_bytes: 64 * 1024,
                ..ConnectionPlan::default()
            },
            limits: RateLimits::new([self.limit]),
            upload_limits: RateLimits::unlimited(),
            purpose: transfer::Purpose::Download,
            uploaded_bytes: 0,
            retry: RetryPolicy {
                base: Duration::from_millis(10),
                ..RetryPolicy::default()
            },
            reporter,
            stop: stop.clone(),
        };
        let run = HttpTransport::new(Config::default()).unwrap().run(job);
        #[expect(clippy::disallowed_methods, reason = "the test awaits the handle")]
        (tokio::spawn(run), reports, stop)
    }
}

/// Fetches about half of the file at `origin`, stops, and says where it was going to be.
async fn fetch_half(origin: &Origin, directory: &tempfile::TempDir) -> PathBuf {
    let attempt = Attempt {
        url: origin.url(PATH),
        directory: directory.path().to_owned(),
        reserved: None,
        limit: RateLimiter::new(0),
    };
    let (run, mut reports, stop) = attempt.start();
    let report = reports.events.recv().await.unwrap();
    let RunEvent::Reserved { path, .. } = report.event else {
        panic!("no path was reserved: {report:?}")
    };
    drop(report.receipt);
    reports
        .progress
        .wait_for(|progress| progress.done_bytes > SIZE / 2)
        .await
        .unwrap();
    stop.cancel();
    assert_eq!(run.await.unwrap(), Outcome::Stopped);
    path
}

/// Goes on at `url` with what an earlier run left; returns the notices.
async fn finish(url: String, directory: &tempfile::TempDir, reserved: PathBuf) -> (Outcome, Vec<String>) {
    let directory = directory.path().to_owned();
    let (run, mut reports, _) = Attempt {
        url,
        directory,
        reserved: Some(reserved),
        limit: RateLimiter::new(0),
    }
    .start();
    let mut notices = Vec::new();
    while let Some(report) = reports.events.recv().await {
        if let RunEvent::Notice(notice) = report.event {
            notices.push(notice);
        }
    }
    (run.await.unwrap(), notices)
}

fn slow(content: Content, version: impl Fn(Content) -> Version + Send + Sync + 'static) -> Origin {
    let resource = Resource::changing(PATH, move |_| version(content.clone()));
    Origin::start(vec![resource.with(behaviour::paced(4 * 1024 * 1024))])
}

#[tokio::test]
async fn a_replaced_url_keeps_the_bytes_when_validators_agree() {
    let content = Content::seeded(1, SIZE);
    let directory = tempfile::tempdir().unwrap();
    let old = slow(content.clone(), |content| Version::numbered(content, 7));
    let reserved = fetch_half(&old, &directory).await;
    drop(old);
    let new = slow(content.clone(), |content| Version::numbered(content, 7));
    let (outcome, _) = finish(new.url(PATH), &directory, reserved.clone()).await;
    assert!(
        matches!(&outcome, Outcome::Finished(finished) if finished.path == reserved),
        "{outcome:?}"
    );
    assert_eq!(content.difference(&reserved).unwrap(), None);
    assert!(
        new.bytes_sent() < SIZE * 3 / 4,
        "{} of {SIZE} bytes were sent again",
        new.bytes_sent()
    );
}

#[tokio::test]
async fn a_replaced_url_without_validators_keeps_the_bytes_only_if_they_are_equal() {
    for is_same in [true, false] {
        let content = Content::seeded(1, SIZE);
        let directory = tempfile::tempdir().unwrap();
        let old = slow(content.clone(), Version::unnamed);
        let reserved = fetch_half(&old, &directory).await;
        drop(old);
        let later = if is_same { content } else { Content::seeded(2, SIZE) };
        let new = slow(later.clone(), Version::unnamed);
        let (outcome, notices) = finish(new.url(PATH), &directory, reserved.clone()).await;
        assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
        assert_eq!(later.difference(&reserved).unwrap(), None);
        assert_eq!(notices.is_empty(), is_same, "{notices:?}");
        assert_eq!(
            new.bytes_sent() < SIZE * 3 / 4,
            is_same,
            "{} bytes were sent again",
            new.bytes_sent()
        );
    }
}

#[tokio::test]
async fn a_limit_that_is_lifted_takes_effect_at_once() {
    let content = Content::seeded(1, SIZE);
    let directory = tempfile::tempdir().unwrap();
    let origin = Origin::start(vec![Resource::new(PATH, content.clone())]);
    // At this rate the file would take more than two hours.
    let limit = RateLimiter::new(1024);
    let attempt = Attempt {
        url: origin.url(PATH),
        directory: directory.path().to_owned(),
        reserved: None,
        limit: limit.clone(),
    };
    let (run, Reports { mut progress, .. }, _stop) = attempt.start();
    progress.wait_for(|progress| progress.done_bytes > 0).await.unwrap();
    limit.set(0);
    let outcome = tokio::time::timeout(Duration::from_secs(30), run)
        .await
        .expect("the limit still holds")
        .unwrap();
    let Outcome::Finished(finished) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(content.difference(&finished.path).unwrap(), None);
}

/// A run for an origin with one file, in a new directory.
struct Recorder {
    content: Content,
    directory: tempfile::TempDir,
    run: tokio::task::JoinHandle<Outcome>,
    reports: Reports,
    stop: CancellationToken,
    _origin: Origin,
}

impl Recorder {
    fn start() -> Self {
        let content = Content::seeded(1, 1000);
        let directory = tempfile::tempdir().unwrap();
        let origin = Origin::start(vec![Resource::new(PATH, content.clone())]);
        let attempt = Attempt {
            url: origin.url(PATH),
            directory: directory.path().to_owned(),
            reserved: None,
            limit: RateLimiter::new(0),
        };
        let (run, reports, stop) = attempt.start();
        Self {
            content,
            directory,
            run,
            reports,
            stop,
            _origin: origin,
        }
    }

    /// The next thing that the run wants recorded.
    async fn next(&mut self) -> (RunEvent, Receipt) {
        let Report { event, receipt } = *self.reports.events.recv().await.unwrap();
        (event, receipt.expect("it is to be recorded"))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn every_name_is_on_record_before_it_is_taken() {
    let mut it = Recorder::start();
    let (event, receipt) = it.next().await;
    let directory = it.directory.path().to_owned();
    let path = |name: &str| directory.join(name);
    let first = RunEvent::Reserved {
        path: path("file.bin"),
        total_bytes: Some(1000),
    };
    assert_eq!((event, it.names()), (first, vec![]));
    receipt.give(Ok(Recorded::Taken));
    let (event, receipt) = it.next().await;
    assert!(matches!(event, RunEvent::Reserved { path: reserved, .. } if reserved == path("file (1).bin")));
    assert_eq!(it.names(), Vec::<String>::new());
    receipt.give(Ok(Recorded::Done));
    let (event, receipt) = it.next().await;
    let RunEvent::Landing(landing) = event else {
        panic!("{event:?}")
    };
    assert_eq!(landing.path, path("file (1).bin"));
    assert!(!landing.has_happened() && !it.names().contains(&"file (1).bin".to_owned()));
    receipt.give(Ok(Recorded::Done));
    assert!(matches!(it.run.await.unwrap(), Outcome::Finished(_)));
    assert!(landing.has_happened());
    assert_eq!(it.content.difference(&landing.path).unwrap(), None);
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_waits_for_a_record_leaves_nothing() {
    let mut it = Recorder::start();
    let (_, _receipt) = it.next().await;
    it.stop.cancel();
    assert_eq!((&mut it.run).await.unwrap(), Outcome::Stopped);
    assert_eq!(it.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_listener_that_is_gone_holds_nothing_up() {
    let mut it = Recorder::start();
    let (_, receipt) = it.next().await;
    drop((receipt, it.reports));
    let Outcome::Finished(finished) = it.run.await.unwrap() else {
        panic!("it did not end well")
    };
    assert_eq!(finished.path, it.directory.path().join("file.bin"));
}

#[tokio::test]
async fn without_a_record_nothing_is_made() {
    let mut it = Recorder::start();
    let (_, receipt) = it.next().await;
    let failure = Failure::new(FailureKind::DiskIo, "no room for records");
    receipt.give(Err(failure.clone()));
    assert_eq!((&mut it.run).await.unwrap(), Outcome::Failed(failure));
    assert_eq!(it.names(), Vec::<String>::new());
}
