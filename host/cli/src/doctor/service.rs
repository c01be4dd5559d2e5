//! Checks of a running service.

use std::{path::Path, time::SystemTime};

use agent::AccessKey;
use command::amount;
use protocol::{
    Component, ComponentDto, ComponentParams, DiagnosticsResult, ErrorCode, Method, RuntimeStats,
    agent::{GatewayStatusDto, RevealedToken},
};

use super::{
    finding::{Finding, with_causes},
    here::{self, CLOCK_TOLERANCE, SAVE_DIR, difference},
};
use crate::{
    ping::request_ping,
    service::{Client, RemoteError, Target},
};

/// Keys of this length are safe against guessing, whatever characters they have.
const STRONG_KEY_CHARS: usize = 16;

/// Checks the service at `target`; `runs_here` means that a process holds this machine's data directory.
pub(crate) async fn check(target: &Target, runs_here: bool) -> Vec<Finding> {
    const CHECK: &str = "service";
    let address = &target.address;
    let (pong, date) = match request_ping(target).await {
        Ok(answer) => answer,
        Err(error @ RemoteError::Unreachable { .. }) if !runs_here && address.is_loopback() => {
            return vec![Finding::warn(
                CHECK,
                with_causes(&error),
                "start it with \"svc serve\", or name its address with --url",
            )];
        }
        Err(error) => {
            let advice = error.advice().unwrap_or("look at what the service logs");
            return vec![Finding::fail(CHECK, with_causes(&error), advice)];
        }
    };
    let found = format!("Svc {} answers at {address}", pong.version);
    let mut findings = vec![if pong.version == env!("CARGO_PKG_VERSION") {
        Finding::ok(CHECK, found)
    } else {
        Finding::warn(
            CHECK,
            found,
            "its version is another than this executable's; update the older one",
        )
    }];
    findings.extend(date.and_then(|date| clock(&date)));
    findings.extend(inside(target).await);
    findings
}

fn clock(date: &str) -> Option<Finding> {
    const CHECK: &str = "service's clock";
    let off = difference(SystemTime::now(), httpdate::parse_http_date(date).ok()?);
    Some(if off > CLOCK_TOLERANCE {
        let found = format!("it and this machine's differ by {}", amount::duration(off));
        Finding::warn(CHECK, found, "set the wrong one, best by a time service")
    } else {
        Finding::ok(CHECK, "agrees with this machine's")
    })
}

/// Checks whether there is a key, and its strength. It is never printed.
fn strength(key: &str) -> Finding {
    const CHECK: &str = "access key";
    if key.is_empty() {
        return Finding::ok(CHECK, "there is none: programs of this machine come in without");
    }
    let advice = format!("{STRONG_KEY_CHARS} characters or more cannot be guessed: svc key new makes one");
    match AccessKey::new(key) {
        // A key of an older service is kept although it breaks the rules of today.
        Err(weak) => Finding::warn(CHECK, format!("there is one, and it is weak: {weak}"), advice),
        Ok(_) if key.len() < STRONG_KEY_CHARS => Finding::warn(CHECK, "there is one, and it is short", advice),
        Ok(_) => Finding::ok(CHECK, "there is one, and it is strong"),
    }
}

/// Reports which interfaces are on and reachable.
fn gates(status: &GatewayStatusDto) -> Finding {
    const CHECK: &str = "gates";
    // A server does not have this switch.
    if !status.enabled && status.port_editable {
        let found = "closed to everybody but the commands of its own user (local_server_enabled is false)";
        return Finding::ok(CHECK, found);
    }
    let switches = [
        ("browsers", status.takeover_enabled),
        ("aria2", status.jsonrpc_enabled),
        ("management", status.api_enabled),
        ("MCP", status.mcp_enabled),
        ("other machines", status.lan_enabled || !status.port_editable),
        ("any web page", status.cors_enabled),
    ];
    let named = |is_on: bool| {
        let names = switches.iter().filter(|(_, is)| *is == is_on).map(|(name, _)| *name);
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    let found = format!("open to {}; closed to {}", named(true), named(false));
    if status.restart_required {
        Finding::warn(
            CHECK,
            found,
            "port and network change when the service is started again",
        )
    } else if status.cors_enabled {
        Finding::warn(
            CHECK,
            found,
            "pages of any origin may send requests with the key; switch that off if you can",
        )
    } else {
        Finding::ok(CHECK, found)
    }
}

/// Checks that need authorization.
async fn inside(target: &Target) -> Vec<Finding> {
    const ACCESS: &str = "access";
    const DAEMON: &str = "daemon";
    let mut client = match Client::connect(target).await {
        Ok(client) => client,
        Err(error) => {
            let advice = error.advice().unwrap_or("look at what the service logs");
            return vec![Finding::fail(ACCESS, with_causes(&error), advice)];
        }
    };
    let mut findings = vec![Finding::ok(ACCESS, "the service lets you in")];
    if let Ok(RevealedToken { user_token }) = client.ask(Method::GatewayRevealToken).await {
        findings.push(strength(&user_token));
    }
    if let Ok(status) = client.ask(Method::GatewayGet).await {
        findings.push(gates(&status));
    }
    let about: DiagnosticsResult = match client.ask(Method::DiagnosticsDescribe).await {
        Ok(about) => about,
        Err(error) => {
            let is_down =
                matches!(&error, RemoteError::Call(error) if error.application_code() == Some(ErrorCode::Unavailable));
            let found = if is_down {
                "it is not up".to_owned()
            } else {
                error.to_string()
            };
            findings.push(Finding::fail(
                DAEMON,
                found,
                "look at what the service logs; it starts its daemon again by itself",
            ));
            return findings;
        }
    };
    let up = amount::duration(std::time::Duration::from_secs(about.uptime_secs));
    findings.push(Finding::ok(
        DAEMON,
        format!("{} up for {up}, {} tasks", about.version, about.tasks),
    ));
    if let Ok(stats) = client.ask::<RuntimeStats>(Method::RuntimeStats).await {
        findings.push(if target.address.is_loopback() {
            here::save_dir(Path::new(&stats.save_dir), stats.disk_free_bytes)
        } else {
            let free = stats
                .disk_free_bytes
                .map_or_else(|| "unknown".to_owned(), amount::bytes);
            Finding::ok(SAVE_DIR, format!("{} there, {free} free", stats.save_dir))
        });
    }
    for (component, check) in [(Component::Ffmpeg, "ffmpeg"), (Component::YtDlp, "yt-dlp")] {
        // A service of an older version, or one that starts no programs, has nothing to say.
        if let Ok(found) = client.call(Method::ComponentGet, &ComponentParams { component }).await {
            findings.push(program(check, &found));
        }
    }
    findings
}

/// Reports on a program that the service may use.
fn program(check: &'static str, found: &ComponentDto) -> Finding {
    const CHOOSE: &str = "svc config server set";
    let key = match found.component {
        Component::Ffmpeg => "tool_ffmpeg",
        Component::YtDlp => "tool_yt_dlp",
    };
    if let Some(problem) = &found.problem {
        let advice = format!("correct that, or do without it: {CHOOSE} {key}=off");
        return Finding::fail(check, problem, advice);
    }
    let Some(path) = &found.path else {
        return Finding::ok(check, "not installed, and not needed: it is not allowed");
    };
    let version = found.version.as_deref().unwrap_or("of an unknown version");
    if !found.enabled {
        let found = format!("{version} at {path}, not allowed ({CHOOSE} {key}=auto allows it)");
        return Finding::ok(check, found);
    }
    match (found.isolated, &found.isolation_problem) {
        (Some(false), reason) => Finding::warn(
            check,
            format!(
                "{version} at {path}, without a network and a table of processes of its own ({})",
                reason.as_deref().unwrap_or("not permitted")
            ),
            "let the user of the service make namespaces (user.max_user_namespaces, or the profile of its container)",
        ),
        _ => Finding::ok(check, format!("{version} at {path}, isolated")),
    }
}

#[cfg(test)]
mod tests {
    use protocol::ComponentSource;

    use super::{super::finding::Level, *};

    #[test]
    fn a_program_fails_only_if_it_is_allowed() {
        let installed = ComponentDto {
            component: Component::YtDlp,
            enabled: true,
            available: true,
            version: Some("2026.10.26".to_owned()),
            source: ComponentSource::System,
            path: Some("/usr/bin/yt-dlp".to_owned()),
            problem: None,
            isolated: Some(true),
            isolation_problem: None,
        };
        let finding = program("yt-dlp", &installed);
        assert_eq!(finding.level, Level::Ok);
        assert_eq!(finding.found, "2026.10.26 at /usr/bin/yt-dlp, isolated");

        let exposed = ComponentDto {
            isolated: Some(false),
            isolation_problem: Some("Operation not permitted".to_owned()),
            ..installed.clone()
        };
        let finding = program("yt-dlp", &exposed);
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.found.contains("Operation not permitted"), "{finding:?}");

        let old = ComponentDto {
            available: false,
            problem: Some("yt-dlp 2023.03.04 is too old".to_owned()),
            ..installed.clone()
        };
        let finding = program("yt-dlp", &old);
        assert_eq!(finding.level, Level::Fail);
        assert!(finding.advice.unwrap().ends_with("tool_yt_dlp=off"));

        let off = ComponentDto {
            enabled: false,
            available: false,
            ..installed
        };
        let finding = program("yt-dlp", &off);
        assert_eq!(finding.level, Level::Ok);
        assert!(finding.found.contains("tool_yt_dlp=auto"), "{finding:?}");
        let missing = ComponentDto {
            path: None,
            version: None,
            source: ComponentSource::None,
            ..off
        };
        assert_eq!(program("yt-dlp", &missing).level, Level::Ok);
    }
}
