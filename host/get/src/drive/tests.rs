//! The main loop with a real engine and a fake transport.

use std::fmt::Write as _;

use clap::Parser as _;
use support::transport::{self, FakeTransport};
use transfer::{Failure, FailureKind, Job, Outcome, RunEvent};

use super::*;
use crate::{args::GetArgs, render::Recorder};

const SCHEMES: &[&str] = &["fake"];

/// A run ends as the host of its URL says.
async fn run(job: Job) -> Outcome {
    match transport::host(&job) {
        "missing" => Outcome::Failed(Failure::new(FailureKind::NotFound, "404")),
        "taken" => Outcome::Skipped {
            existing: transport::path(&job),
        },
        "stop" => {
            transport::reserve(&job, 9).await;
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::TERM).unwrap();
            transport::wait_for_stop(&job).await
        }
        _ => {
            job.reporter.event(RunEvent::Notice("hello".to_owned())).await;
            transport::finished(transport::reserve(&job, 3).await, 3)
        }
    }
}

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    get: GetArgs,
}

/// Downloads the files of an input file; returns the exit and the reported events.
fn drive_list(list: &str) -> (Exit, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.txt");
    std::fs::write(&path, list).unwrap();
    let line = Line::try_parse_from(["get", "-d", "/nowhere", "-i", path.to_str().unwrap()]).unwrap();
    let plan = Plan::new(line.get, SCHEMES).unwrap();
    let screen = Recorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let exit = runtime
        .block_on(drive(
            &plan,
            vec![Arc::new(FakeTransport::new(SCHEMES, run))],
            &Torrents::new(plan.swarm.config().unwrap()),
            Box::new(screen.clone()),
        ))
        .unwrap();
    (exit, screen.lines())
}

#[test]
fn each_file_is_reported_from_start_to_end_and_the_last_failure_is_the_exit() {
    let (exit, lines) = drive_list("fake://a/x\nfake://missing/y\nfake://taken/z\n");
    let of = |index: char| -> Vec<_> { lines.iter().filter(|line| line.starts_with(index)).cloned().collect() };
    assert_eq!(
        of('0'),
        [
            "0 started",
            "0 notice hello",
            "0 named /nowhere/x Some(3)",
            "0 finished /nowhere/x 3 3"
        ]
    );
    assert_eq!(of('1'), ["1 started", "1 failed not-found"]);
    assert_eq!(of('2'), ["2 started", "2 skipped /nowhere/z"]);
    assert_eq!(lines.last().unwrap(), "summary 1 1 1 0");
    assert_eq!(exit, Exit::NotFound);
}

#[test]
fn a_list_longer_than_what_the_engine_is_given_at_once_comes_whole() {
    let count = AHEAD * 3 + 1;
    let list = (0..count).fold(String::new(), |mut list, index| {
        writeln!(list, "fake://a/{index}").unwrap();
        list
    });
    let (exit, lines) = drive_list(&list);
    assert_eq!(exit, Exit::Success);
    assert_eq!(lines.iter().filter(|line| line.contains("finished")).count(), count);
    assert_eq!(lines.last().unwrap(), &format!("summary {count} 0 0 0"));
}

#[test]
fn a_request_to_stop_lets_runs_save_and_says_unfinished() {
    let (exit, lines) = drive_list("fake://stop/x\n");
    assert_eq!(exit, Exit::Unfinished);
    assert!(!lines.iter().any(|line| line.contains("failed")), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "summary 0 0 0 1");
}
