//! `svc doctor`: looks for what keeps the service of this machine, or another, from working. Changes nothing.

mod here;
mod service;
mod variables;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::{
    Exit,
    remote::{self, ServiceArgs},
};
use crate::{directories, environment::Environment};

pub(super) const HELP: &str =
    "Every line is ok, warn (works, but look at it) or FAIL (does not work). The exit code is 1 if anything failed.";

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    level: Level,
    /// What was looked at.
    check: &'static str,
    /// How it is.
    found: String,
    /// What to do about it.
    advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            check,
            found: found.into(),
            advice: None,
        }
    }

    fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            check,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(check, found, advice)
        }
    }
}

/// Carries out the command.
pub(super) fn run(args: &DoctorArgs, environment: &Environment) -> anyhow::Result<Exit> {
    tell(args, &findings(&args.service, environment))
}

/// Everything that was looked at.
pub(super) fn findings(service: &ServiceArgs, environment: &Environment) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("executable", concat!("svc ", env!("CARGO_PKG_VERSION")))];
    findings.extend(variables::look());
    let data_dir: Option<PathBuf> = service.data_dir.clone().or_else(directories::data);
    let place = data_dir.as_deref().map(here::look);
    let runs_here = place.as_ref().is_some_and(|place| place.is_in_use);
    findings.extend(place.map_or_else(no_home, |place| place.findings));
    let target = service
        .target(environment)
        .and_then(|target| Ok((target, remote::runtime()?)));
    match target {
        Ok((target, runtime)) => findings.extend(runtime.block_on(service::look(&target, runs_here))),
        Err(error) => findings.push(Finding::fail(
            "address",
            format!("{error:#}"),
            "correct the option, the variable or the configuration file",
        )),
    }
    if !findings.iter().any(|finding| finding.check == service::SAVE_DIR) {
        let save_dir = variables::save_dir().unwrap_or_else(directories::downloads);
        findings.push(here::save_dir(&save_dir, here::free_bytes(&save_dir)));
    }
    findings
}

fn no_home() -> Vec<Finding> {
    vec![Finding::fail(
        "data directory",
        "there is no home directory to have one in",
        "name one with --data-dir or SVC_DATA_DIR",
    )]
}

fn tell(args: &DoctorArgs, findings: &[Finding]) -> anyhow::Result<Exit> {
    let has_failed = findings.iter().any(|finding| finding.level == Level::Fail);
    if args.service.json {
        remote::print_json(&json!({ "ok": !has_failed, "findings": findings }))?;
    } else {
        remote::print_lines(findings.iter().flat_map(lines))?;
    }
    Ok(if has_failed { Exit::Internal } else { Exit::Success })
}

fn lines(finding: &Finding) -> Vec<String> {
    let mark = match finding.level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "FAIL",
    };
    let mut lines = vec![format!("{mark:<5} {:<16} {}", finding.check, finding.found)];
    lines.extend(
        finding
            .advice
            .as_ref()
            .map(|advice| format!("{:<5} {:<16} → {advice}", "", "")),
    );
    lines
}

/// A path as people read it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// An error with its cause.
fn whole(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
