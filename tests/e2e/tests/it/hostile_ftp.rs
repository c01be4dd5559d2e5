//! Every hostile server of FTP against the executable: the files are identical, or the failure is named and nothing that
//! looks finished is left.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{Run, Svc, setting};
use support::{Expect, FTP_LOGIN, FtpCase, FtpScene, ftp_themes};

use crate::place::Place;

/// Cases at a time: most of them wait more than they work.
const AT_A_TIME: usize = 4;

/// Whether a downloader opens another connection in time can depend on how busy the machine is; so often it may try.
const ATTEMPTS: usize = 6;

/// A case that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(1);

/// Patience in small steps, so that retries take less than a second.
const PATIENCE: [&str; 6] = ["--retry-wait", "0.02", "--timeout", "1", "--connect-timeout", "3"];

const RETRIES: [&str; 2] = ["--retries", "5"];

#[test]
fn every_case_ends_as_it_should_when_connections_are_chosen_automatically() {
    run_all(&[]);
}

#[test]
fn every_case_ends_as_it_should_over_four_connections() {
    run_all(&["--segments", "4", "--min-split", "64K"]);
}

fn run_all(options: &[&str]) {
    let filter = setting::case_filter();
    let cases: Vec<FtpCase> = ftp_themes().into_iter().flat_map(|(_, cases)| cases).collect();
    let cases: Vec<FtpCase> = cases.into_iter().filter(|case| case.name.contains(&filter)).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let started = Instant::now();
                    if let Err(fault) = judge(case, options) {
                        let taken = started.elapsed().as_secs_f32();
                        let told = format!("{} ({taken:.1} s): expected {:?}, but {fault}", case.name, case.expect);
                        failures.lock().expect("nobody panics with it").push(told);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panicked with it");
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn judge(case: &FtpCase, options: &[&str]) -> Result<(), String> {
    let mut not_met = Vec::new();
    for _ in 0..ATTEMPTS {
        not_met = run_once(case, options)?;
        if not_met.is_empty() {
            return Ok(());
        }
    }
    Err(format!("{not_met:?} was never met"))
}

/// Runs a case. Returns what of it was never met, if it needs that.
fn run_once(case: &FtpCase, options: &[&str]) -> Result<Vec<String>, String> {
    let scene = case.stage();
    let place = Place::new();
    if scene.is_second_run {
        let first = download(&scene, &place, &[options, &scene.options].concat())?;
        if first.code == Some(0) || !place.finished_names().is_empty() {
            return Err(format!("the first run did not fail: {}", told(&first, &place)));
        }
    }
    let run = download(&scene, &place, &[options, &RETRIES].concat())?;
    let escaped = place.escaped();
    if !escaped.is_empty() {
        return Err(format!("files escaped: {escaped:?}"));
    }
    if run.stderr.contains(FTP_LOGIN.1) || run.stdout.iter().any(|line| line.contains(FTP_LOGIN.1)) {
        return Err(format!("the password was shown: {}", told(&run, &place)));
    }
    match (case.expect, run.code) {
        (Expect::Identical | Expect::IdenticalOrError(_), Some(0)) => are_identical(&scene, &place, &run)?,
        (Expect::Error(kinds) | Expect::IdenticalOrError(kinds), code) if code != Some(0) => {
            is_named(kinds, &place, &run)?;
        }
        _ => return Err(told(&run, &place)),
    }
    scene.check.map_or(Ok(()), |check| check(&scene.server))?;
    if scene.needs_segments && options.is_empty() {
        return Ok(Vec::new());
    }
    Ok(scene.server.not_met())
}

fn download(scene: &FtpScene, place: &Place, options: &[&str]) -> Result<Run, String> {
    let mut svc = Svc::get(place.path()).args(PATIENCE).args(options).deadline(DEADLINE);
    if scene.trusts_authority && !scene.server.authority_pem().is_empty() {
        let path = place.aside("ca.pem");
        std::fs::write(&path, scene.server.authority_pem()).map_err(|error| error.to_string())?;
        svc = svc.arg("--ca-certificate").arg(path);
    }
    Ok(svc.arg(&scene.url).run())
}

fn are_identical(scene: &FtpScene, place: &Place, run: &Run) -> Result<(), String> {
    for (name, truths) in &scene.truths {
        let path = place.path().join(name);
        let mut difference = String::new();
        let is_one = truths.iter().any(|truth| match truth.difference(&path) {
            Ok(None) => true,
            Ok(Some(found)) => {
                difference = found;
                false
            }
            Err(error) => {
                difference = error.to_string();
                false
            }
        });
        if !is_one {
            return Err(format!("WRONG FILE {name}: {difference}; {}", told(run, place)));
        }
    }
    Ok(())
}

fn is_named(kinds: &[&str], place: &Place, run: &Run) -> Result<(), String> {
    let finished = place.finished_names();
    if !finished.is_empty() {
        return Err(format!(
            "failed and left {finished:?} as if finished; {}",
            told(run, place)
        ));
    }
    let kind = run
        .failure()
        .ok_or_else(|| format!("no failure was told; {}", told(run, place)))?;
    if kinds.contains(&kind.as_str()) {
        Ok(())
    } else {
        Err(told(run, place))
    }
}

/// How a run ended, in a line.
fn told(run: &Run, place: &Place) -> String {
    let end = match run.event("failed") {
        Some(event) => format!("failed with {}: {}", event["kind"], event["message"]),
        None => format!("ended with {:?}: {}", run.code, run.stderr.trim()),
    };
    let others: Vec<String> = run
        .events()
        .into_iter()
        .filter(|event| event["event"] == "retrying" || event["event"] == "notice")
        .map(|event| event["message"].as_str().unwrap_or("?").to_owned())
        .collect();
    format!("{end}; before {others:?}; files {:?}", place.names())
}
