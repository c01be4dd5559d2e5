//! Every hostile origin against the executable: the file is identical, or the failure is named and nothing that looks
//! finished is left.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{Run, Svc, setting};
use support::{Case, Expect, Scene, cases};

use crate::place::Place;

/// Cases at a time: most of them wait more than they work.
const AT_A_TIME: usize = 4;

/// Whether a downloader meets what a case is about can depend on which of two answers is faster, and on whether it opens a
/// second connection in time, which a busy machine delays; so often it may try.
const ATTEMPTS: usize = 12;

/// A case that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(1);

/// Patience in small steps, so that five retries take less than a second.
const PATIENCE: [&str; 8] = [
    "--retries",
    "5",
    "--retry-wait",
    "0.02",
    "--timeout",
    "1",
    "--connect-timeout",
    "3",
];

#[test]
fn every_case_ends_as_it_should_when_segments_are_chosen_automatically() {
    run_all(&[]);
}

#[test]
fn every_case_ends_as_it_should_in_four_segments() {
    run_all(&["--segments", "4", "--min-split", "64K"]);
}

fn run_all(options: &[&str]) {
    let filter = setting::case_filter();
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(&filter)).collect();
    assert!(!cases.is_empty(), "no case is called {filter}");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let started = Instant::now();
                    let verdict = std::panic::catch_unwind(|| judge(case, options)).unwrap_or_else(|panic| {
                        Err(panic
                            .downcast_ref::<String>()
                            .cloned()
                            .unwrap_or_else(|| "panicked".to_owned()))
                    });
                    if let Err(fault) = verdict {
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

fn judge(case: &Case, options: &[&str]) -> Result<(), String> {
    let mut not_met = None;
    for _ in 0..ATTEMPTS {
        not_met = run_once(case, options)?;
        if not_met.is_none() {
            return Ok(());
        }
    }
    not_met.map_or(Ok(()), Err)
}

/// Runs a case. What of it was never met, if it needs that.
fn run_once(case: &Case, options: &[&str]) -> Result<Option<String>, String> {
    let scene = case.stage();
    let place = Place::new();
    let mut svc = Svc::get(place.path())
        .args(PATIENCE)
        .args(options)
        .args(&scene.options)
        .deadline(DEADLINE);
    if let Some(pem) = scene
        .origins
        .first()
        .and_then(|origin| origin.authority_pem())
        .filter(|_| scene.trusts_authority)
    {
        let path = place.aside("ca.pem");
        std::fs::write(&path, pem).map_err(|error| error.to_string())?;
        svc = svc.arg("--ca-certificate").arg(path);
    }
    let run = svc.arg(&scene.url).run();
    let escaped = place.escaped();
    if !escaped.is_empty() {
        return Err(format!("files escaped: {escaped:?}"));
    }
    match (case.expect, run.code) {
        (Expect::Identical | Expect::IdenticalOrError(_), Some(0)) => is_identical(&scene, &place, &run)?,
        (Expect::Error(kinds) | Expect::IdenticalOrError(kinds), code) if code != Some(0) => {
            is_named(kinds, &place, &run)?;
        }
        _ => return Err(told(&run, &place)),
    }
    scene.check.map_or(Ok(()), |check| check(&scene.origins))?;
    Ok(scene.not_met(!options.is_empty()))
}

fn is_identical(scene: &Scene, place: &Place, run: &Run) -> Result<(), String> {
    let names = place.names();
    let [name] = names.as_slice() else {
        return Err(format!("left {names:?}"));
    };
    if *name != scene.file_name {
        return Err(format!("the file is called {name:?}, not {:?}", scene.file_name));
    }
    let path = place.path().join(name);
    let mut difference = String::new();
    for truth in &scene.truths {
        match truth.difference(&path).map_err(|error| error.to_string())? {
            None => return Ok(()),
            Some(found) => difference = found,
        }
    }
    Err(format!("WRONG FILE as finished: {difference}; {}", told(run, place)))
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
    let retries: Vec<String> = run
        .events()
        .into_iter()
        .filter(|event| event["event"] == "retrying")
        .map(|event| event["kind"].as_str().unwrap_or("?").to_owned())
        .collect();
    format!("{end}; retried {retries:?}; files {:?}", place.names())
}
