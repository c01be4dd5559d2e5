//! Checks for invalid environment variables. No value is printed: it may be a secret.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use agent::AccessKey;
use command::{
    environment::{self, variable},
    log::Format,
};
use tracing_subscriber::EnvFilter;

use super::finding::Finding;
use crate::service::Address;

const CHECK: &str = "environment";

/// A variable, and a function that returns the problem with its value.
type Rule = (&'static str, fn(&str) -> Option<String>);

const RULES: &[Rule] = &[
    (environment::URL, |text| Address::parse(text).err()),
    (environment::TOKEN, |text| {
        AccessKey::new(text).err().map(|weak| weak.to_string())
    }),
    (environment::TOKEN_FORCE, |text| {
        let known = ["1", "true", "yes", "on", "0", "false", "no", "off"];
        let is_known = known.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
        (!is_known).then(|| "write 1 or 0".to_owned())
    }),
    (environment::BIND, |text| {
        let is_address = text.trim().parse::<SocketAddr>().is_ok();
        (!is_address).then(|| "write an address and a port, such as 0.0.0.0:17800".to_owned())
    }),
    (environment::TRUSTED_PROXIES, |text| {
        let is_list = text.split(',').all(|address| address.trim().parse::<IpAddr>().is_ok());
        (!is_list).then(|| "write addresses with commas between them".to_owned())
    }),
    (environment::LOG_LEVEL, |text| {
        let parsed = EnvFilter::builder().parse(text);
        parsed
            .err()
            .map(|_| "write off, error, warn, info, debug or trace".to_owned())
    }),
    (environment::LOG_FORMAT, |text| {
        Format::parse(text).err().map(ToOwned::to_owned)
    }),
];

pub(crate) fn check() -> Vec<Finding> {
    judge(variable)
}

fn judge(read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let problems = RULES
        .iter()
        .filter_map(|(name, check)| Some((name, check(&read(name)?)?)));
    let mut findings: Vec<_> = problems
        .map(|(name, problem)| Finding::fail(CHECK, format!("{name} cannot be used"), problem))
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "every variable that is set can be used"));
        if read(environment::LOG_FORMAT).as_deref() == Some("json") {
            findings.push(Finding::ok(CHECK, "SVC_LOG_FORMAT: logs are lines of JSON"));
        }
    }
    findings
}

/// The download directory of the environment.
pub(crate) fn save_dir() -> Option<PathBuf> {
    variable(environment::SAVE_DIR).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn what_cannot_be_used_is_named_without_its_value() {
        for (name, good, bad) in [
            (environment::URL, "http://nas:1", "nas hunter2"),
            (environment::TOKEN, "the-access-key-1", "hunter2"),
            (environment::TOKEN_FORCE, "On", "hunter2"),
            (environment::BIND, "[::]:17800", "hunter2"),
            (environment::TRUSTED_PROXIES, "10.0.0.1, ::1", "10.0.0.1,hunter2"),
            (environment::LOG_LEVEL, "agent=debug,info", "hunter2=hunter2"),
            (environment::LOG_FORMAT, "text", "hunter2"),
        ] {
            let judged = |text: &str| judge(|asked| (asked == name).then(|| text.to_owned()));
            let found = judged(good);
            assert!(
                matches!(&found[..], [finding] if finding.level == Level::Ok),
                "{name}: {found:?}"
            );
            let found = judged(bad);
            assert!(matches!(&found[..], [finding] if finding.level == Level::Fail && finding.found.contains(name)));
            assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        }
    }
}
