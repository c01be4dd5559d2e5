//! `svc plugin lint`: finds problems of a working plugin for its users and reviewers.

use std::path::Path;

use command::{Exit, print_json, print_lines};
use plugin_host::{
    HostPattern, UrlPattern,
    author::Candidate,
    fixture::{Fixture, FixtureCall},
    manifest::{self, Manifest},
};
use serde::Serialize;
use serde_json::Value;
use transfer::SafeUrl;

use crate::{
    build::unused_permissions,
    loader::{FolderArgs, PluginLoader, Sandbox, read},
};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin lint
  svc plugin lint my-site --json

Errors keep a plugin from being packed, and end the command with 34; warnings do not.";

#[derive(Debug, clap::Args)]
pub struct LintArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// Print a JSON array of findings
    #[arg(long)]
    json: bool,
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The id of the check.
    check: &'static str,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Level {
    Error,
    Warning,
}

impl Finding {
    fn error(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            check,
            message: message.into(),
        }
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            ..Self::error(check, message)
        }
    }

    /// As a line of text.
    pub(super) fn line(&self) -> String {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        format!("{level}: {} [{}]", self.message, self.check)
    }
}

pub(super) async fn run(args: LintArgs, sandbox: Sandbox<'_>) -> anyhow::Result<Exit> {
    let candidate = PluginLoader::open(sandbox)?.folder(&args.folder.folder).await?;
    let findings = findings(&candidate, &args.folder.folder)?;
    let is_fit = findings.iter().all(|finding| finding.level == Level::Warning);
    if args.json {
        print_json(&findings)?;
    } else if findings.is_empty() {
        print_lines(["nothing to complain about"])?;
    } else {
        print_lines(findings.iter().map(Finding::line))?;
    }
    Ok(if is_fit { Exit::Success } else { Exit::Unfit })
}

/// All problems of the plugin in `folder`.
pub(super) fn findings(candidate: &Candidate, folder: &Path) -> anyhow::Result<Vec<Finding>> {
    let manifest = candidate.manifest();
    let text: Value = serde_json::from_slice(&read(&folder.join(manifest::FILE))?)?;
    let mut found = Vec::new();
    let unused = unused_permissions(manifest, candidate.interface());
    found.extend(unused.into_iter().map(|text| Finding::error("unused-permission", text)));
    let stores = candidate
        .interface()
        .imports
        .iter()
        .any(|import| import.starts_with("storage."));
    if text.pointer("/permissions/storageKb").is_some() && !stores {
        let text = "/permissions/storageKb: the code stores nothing";
        found.push(Finding::error("unused-permission", text));
    }
    for (path, fixture) in candidate.fixtures() {
        match fixture {
            Err(error) => found.push(Finding::error("unreadable-fixture", format!("{path}: {error}"))),
            Ok(fixture) => {
                let unsendable = candidate.unsendable(fixture).into_iter();
                found.extend(unsendable.map(|it| Finding::error("unsendable-request", format!("{path}: {it}"))));
            }
        }
    }
    let fixtures = candidate.fixtures().iter();
    let fixtures: Vec<_> = fixtures.filter_map(|(_, fixture)| fixture.as_ref().ok()).collect();
    found.extend(of_fixtures(manifest, &fixtures));
    found.extend(of_files(manifest, folder));
    Ok(found)
}

/// Permissions of the manifest that no fixture exercises.
fn of_fixtures(manifest: &Manifest, fixtures: &[&Fixture]) -> Vec<Finding> {
    if fixtures.is_empty() {
        let text =
            "there are no fixtures: nothing shows whether the plugin works; svc plugin test --record URL makes one";
        return vec![Finding::warning("no-fixtures", text)];
    }
    let url = |text: &str| SafeUrl::parse(text).ok().map(|url| url.as_url().clone());
    let asked: Vec<_> = fixtures
        .iter()
        .flat_map(|fixture| &fixture.exchanges)
        .filter_map(|exchange| url(&exchange.request.url))
        .collect();
    let mut found = Vec::new();
    let (resolver, feed) = (&manifest.capabilities.resolver, &manifest.capabilities.feed);
    let resolved: &[UrlPattern] = resolver.as_ref().map_or(&[], |resolver| &resolver.matches);
    let read: &[UrlPattern] = feed.as_ref().map_or(&[], |feed| &feed.matches);
    // The sites of a setting are the user's.
    let is_open = resolver
        .as_ref()
        .is_some_and(|resolver| resolver.match_setting.is_some());
    for (capability, patterns, is_open) in [("resolver", resolved, is_open), ("feed", read, false)] {
        let is_about = |fixture: &&&Fixture| capability_of(fixture.call) == capability;
        let inputs = fixtures.iter().filter(is_about);
        let inputs: Vec<_> = inputs.filter_map(|fixture| url(&fixture.input.url)).collect();
        for pattern in patterns {
            if !inputs.iter().any(|url| pattern.claims(url)) {
                let text = format!("/capabilities/{capability}/match: no fixture is about a URL of {pattern}");
                found.push(Finding::warning("unproved-pattern", text));
            }
        }
        for url in &inputs {
            if !is_open && !patterns.iter().any(|pattern| pattern.claims(url)) {
                let text =
                    format!("no pattern of /capabilities/{capability}/match claims {url}, which a fixture is about");
                found.push(Finding::error("unclaimed-fixture", text));
            }
        }
    }
    let permissions = &manifest.permissions;
    for host in permissions.hosts.iter().chain(&permissions.optional_hosts.named) {
        let used: Vec<_> = asked.iter().filter(|url| host.covers(url)).collect();
        let names: std::collections::BTreeSet<_> = used.iter().filter_map(|url| url.host_str()).collect();
        if used.is_empty() {
            let text = format!("/permissions: no fixture sends a request to {host}");
            found.push(Finding::warning("unproved-host", text));
        } else if is_wide(host) && names.len() == 1 {
            let text = format!(
                "/permissions: of {host} fixtures only need {}",
                names.first().expect("one")
            );
            found.push(Finding::warning("wide-host", text));
        }
    }
    found
}

/// The capability that a call is of, by its key in the manifest.
fn capability_of(call: FixtureCall) -> &'static str {
    match call {
        FixtureCall::Resolve | FixtureCall::More | FixtureCall::LinkFor | FixtureCall::Preview => "resolver",
        FixtureCall::Feed => "feed",
        FixtureCall::Login | FixtureCall::CheckLogin | FixtureCall::RefreshLogin | FixtureCall::Logout => "login",
        FixtureCall::Hook => "hook",
        FixtureCall::Post => "post",
    }
}

fn is_wide(host: &HostPattern) -> bool {
    host.to_string().contains("*.")
}

/// Missing files and missing fields of the manifest.
fn of_files(manifest: &Manifest, folder: &Path) -> Vec<Finding> {
    let has = |names: &[&str]| names.iter().any(|name| folder.join(name).is_file());
    let plain = |url: &HostPattern| url.to_string().starts_with("http://");
    let mut hosts = manifest
        .permissions
        .hosts
        .iter()
        .chain(&manifest.permissions.optional_hosts.named);
    let checks = [
        (
            manifest.license.is_none(),
            "no-license",
            "/license: users do not know what they may do with it",
        ),
        (
            !has(&["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENSE-MIT"]),
            "no-license",
            "there is no LICENSE",
        ),
        (!has(&["README.md"]), "no-readme", "there is no README.md"),
        (
            manifest.description.is_empty(),
            "no-description",
            "/description: users do not know what it is for",
        ),
        (
            hosts.any(plain),
            "unsafe-host",
            "/permissions: http:// hosts can be read and changed by anyone on the network path",
        ),
    ];
    let failed = checks.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    failed.map(|(_, check, text)| Finding::warning(check, text)).collect()
}

#[cfg(test)]
mod tests {
    use plugin_host::manifest::Reading;
    use serde_json::json;

    use super::*;

    fn manifest(permissions: &Value) -> Manifest {
        let text = json!({
            "manifestVersion": 1, "identity": "a@b", "name": "A", "version": "1.0.0", "entry": "a.wasm",
            "capabilities": {"resolver": {"match": ["https://a.test/s/*", "https://b.test/*"]}},
            "permissions": permissions,
        });
        Manifest::parse(text.to_string().as_bytes(), Reading::Strict).unwrap().0
    }

    fn fixture(input: &str, asked: &str) -> Fixture {
        let text = json!({
            "name": "n", "call": "resolve", "input": {"url": input}, "expect": {},
            "exchanges": [{"request": {"url": asked}, "response": {"status": 200}}],
        });
        serde_json::from_value(text).unwrap()
    }

    fn check(permissions: &Value, fixtures: &[Fixture], expected: &[&str]) {
        let fixtures: Vec<_> = fixtures.iter().collect();
        let found = of_fixtures(&manifest(permissions), &fixtures);
        let checks: Vec<_> = found.iter().map(|finding| finding.check).collect();
        assert_eq!(checks, expected, "{found:?}");
    }

    #[test]
    fn what_fixtures_do_not_prove_is_reported() {
        let host = json!({"hosts": ["https://api.a.test"]});
        check(&host, &[], &["no-fixtures"]);
        let one = fixture("https://a.test/s/1", "https://api.a.test/1");
        let other = fixture("https://b.test/", "https://api.a.test/1");
        check(&host, &[one.clone(), other.clone()], &[]);
        check(&host, std::slice::from_ref(&one), &["unproved-pattern"]);
        let stray = fixture("https://c.test/", "https://api.a.test/1");
        check(&host, &[one.clone(), other.clone(), stray], &["unclaimed-fixture"]);
        let unused = json!({"hosts": ["https://api.a.test", "https://cdn.a.test"]});
        check(&unused, &[one, other], &["unproved-host"]);
    }

    #[test]
    fn a_fixture_of_a_login_is_about_no_url_that_is_resolved() {
        let resolved = ["https://a.test/s/1", "https://b.test/"].map(|url| fixture(url, "https://api.a.test/1"));
        let mut login = fixture("https://login.test/", "https://api.a.test/login");
        login.call = FixtureCall::Login;
        let fixtures = resolved.into_iter().chain([login]).collect::<Vec<_>>();
        check(&json!({"hosts": ["https://api.a.test"]}), &fixtures, &[]);
    }

    #[test]
    fn a_host_that_is_wider_than_its_use_is_reported() {
        let wide = json!({"hosts": ["https://*.example.org"]});
        let one = fixture("https://a.test/s/1", "https://x.example.org/1");
        let other = fixture("https://b.test/", "https://y.example.org/1");
        check(
            &wide,
            &[one.clone(), fixture("https://b.test/", "https://x.example.org/1")],
            &["wide-host"],
        );
        check(&wide, &[one, other], &[]);
    }
}
