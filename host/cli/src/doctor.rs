//! `svc doctor`: diagnoses problems of the service on this machine or another. Changes nothing.

mod finding;
mod here;
mod service;
mod variables;

use std::path::PathBuf;

use command::{Exit, directories, environment::Environment, installation::Installation, print_json, print_lines};
use serde_json::json;

use self::finding::{Finding, Level};
use crate::service::ServiceArgs;

pub(crate) const HELP: &str =
    "Every line is ok, warn (works, but look at it) or FAIL (does not work). The exit code is 1 if anything failed.";

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(args: &DoctorArgs, environment: &Environment) -> anyhow::Result<Exit> {
    print_result(args, &findings(&args.service, environment).await)
}

/// The results of all checks.
pub(crate) async fn findings(service: &ServiceArgs, environment: &Environment) -> Vec<Finding> {
    let executable = format!("svc {}, {}", env!("CARGO_PKG_VERSION"), Installation::here().sentence());
    let mut findings = vec![Finding::ok("executable", executable)];
    findings.extend(variables::check());
    let data_dir: Option<PathBuf> = service.data_dir.clone().or_else(directories::data);
    let report = data_dir.as_deref().map(here::check);
    let runs_here = report.as_ref().is_some_and(|report| report.is_in_use);
    findings.extend(report.map_or_else(no_home, |report| report.findings));
    match service.target(environment) {
        Ok(target) => findings.extend(service::check(&target, runs_here).await),
        Err(error) => findings.push(Finding::fail(
            "address",
            format!("{error:#}"),
            "correct the option, the variable or the configuration file",
        )),
    }
    if !findings.iter().any(|finding| finding.check == here::SAVE_DIR) {
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

fn print_result(args: &DoctorArgs, findings: &[Finding]) -> anyhow::Result<Exit> {
    let has_failed = findings.iter().any(|finding| finding.level == Level::Fail);
    if args.service.json {
        print_json(&json!({ "ok": !has_failed, "findings": findings }))?;
    } else {
        print_lines(findings.iter().flat_map(lines))?;
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
