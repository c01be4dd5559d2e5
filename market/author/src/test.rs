//! `svc plugin test`: replays recorded calls in the sandbox, records one, or compares recordings with live sites.

mod drift;
mod record;

use std::path::PathBuf;

use command::{Exit, print_lines};
use plugin_host::{Line, LogLevel, author::Candidate, fixture::Replayed};
use transfer::ByteCount;

use crate::loader::{FolderArgs, PluginLoader, Sandbox, file_name, lines_of};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin test                                  play fixtures/*.json of the plugin in this folder
  svc plugin test my-site --budget                 and show what each call takes
  svc plugin test --record https://example.org/s/1 ask the real site once and keep that as a fixture
  svc plugin test --record https://example.org/s/1 --call linkFor --entry a.zip --name link
  svc plugin test --set token=- --record URL       with a secret setting, read from standard input
  svc plugin test --live                           has the site changed since the fixtures were recorded?

A fixture holds no secret that Svc knows; look at a new one before you publish it. With one that
fails the exit code is 34.";

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the command line")]
pub struct TestArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// Only fixtures whose file or name contains this
    #[arg(long, value_name = "TEXT", conflicts_with = "record")]
    only: Option<String>,
    /// Show computing time, memory and requests of every call
    #[arg(long)]
    budget: bool,
    /// Show what the plugin logs
    #[arg(long)]
    log: bool,
    /// Send the recorded requests to the sites of today and compare the shape of the answers
    #[arg(long, conflicts_with = "record")]
    live: bool,
    #[command(flatten)]
    record: record::RecordArgs,
}

pub(super) async fn run(args: TestArgs, sandbox: Sandbox<'_>) -> anyhow::Result<Exit> {
    let loader = PluginLoader::open(sandbox)?;
    let candidate = loader.folder(&args.folder.folder).await?;
    if let Some(url) = &args.record.url {
        return record::run(&candidate, &args.folder.folder, url, &args.record).await;
    }
    if args.live {
        return drift::run(&candidate, args.only.as_deref()).await;
    }
    let outcome = play(&candidate, &args).await;
    print_lines(&outcome.lines)?;
    Ok(if outcome.failed == 0 {
        Exit::Success
    } else {
        Exit::Unfit
    })
}

/// The result of replaying all fixtures.
pub(super) struct Outcome {
    pub(super) lines: Vec<String>,
    pub(super) failed: usize,
}

/// Replays every fixture, as strictly as an installation does.
pub(super) async fn check(candidate: &Candidate) -> Outcome {
    let args = TestArgs {
        folder: FolderArgs { folder: PathBuf::new() },
        only: None,
        budget: false,
        log: false,
        live: false,
        record: record::RecordArgs::default(),
    };
    play(candidate, &args).await
}

async fn play(candidate: &Candidate, args: &TestArgs) -> Outcome {
    let mut lines = Vec::new();
    let (mut played, mut failed) = (0, 0);
    for (path, fixture) in candidate.fixtures() {
        let name = fixture.as_ref().map_or("", |fixture| fixture.name.as_str());
        let is_wanted = |text: &String| path.contains(text.as_str()) || name.contains(text.as_str());
        if !args.only.as_ref().is_none_or(is_wanted) {
            continue;
        }
        played += 1;
        let problems = match fixture {
            Err(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                vec![format!("{error}: {}", cause.unwrap_or_default())]
            }
            Ok(fixture) => {
                let replayed = candidate.replay(fixture).await;
                lines.push(summary(path, name, &replayed, args.budget));
                // The call's output contains the reason of a crash or exception.
                let is_shown =
                    |line: &&Line| args.log || (line.level == LogLevel::Error && !replayed.problems.is_empty());
                let said = replayed.lines.iter().filter(is_shown);
                let said = said.flat_map(|line| lines_of(&line.text));
                lines.extend(said.map(|text| format!("      {text}")));
                replayed.problems
            }
        };
        if fixture.is_err() {
            lines.push(format!("FAIL  {}", file_name(path)));
        }
        failed += usize::from(!problems.is_empty());
        lines.extend(problems.iter().map(|problem| format!("      {problem}")));
    }
    lines.push(match (played, failed) {
        (0, _) => "no fixtures; svc plugin test --record URL makes one".to_owned(),
        (_, 0) => format!("{played} played, all as recorded"),
        _ => format!("{played} played, {failed} failed"),
    });
    Outcome { lines, failed }
}

fn summary(path: &str, name: &str, replayed: &Replayed, with_budget: bool) -> String {
    let verdict = if replayed.problems.is_empty() { "ok  " } else { "FAIL" };
    let report = &replayed.report;
    let budget = if with_budget {
        format!(
            "  [{} ms of computing, {} ms in all, {} of memory, {} requests, {}]",
            report.cpu.as_millis(),
            report.wall.as_millis(),
            ByteCount(report.peak_memory_bytes as u64),
            report.requests,
            ByteCount(report.received_bytes)
        )
    } else {
        String::new()
    };
    format!("{verdict}  {}: {name}{budget}", file_name(path))
}
