//! What the gate decides about a request, from facts alone. Pure.

use std::net::{IpAddr, SocketAddr};

use axum::http::{Method, StatusCode};

use crate::{
    access::{area::Area, key::KeyDigest},
    problem::UNKNOWN_ENDPOINT,
    settings::{config::Host, switches::Settings},
};

const SETUP_REQUIRED: &str = "setup required: set the access key first";
const NO_CLIENT: &str = "missing X-Svc-Client header";
const EXPOSED: &str = "set an access key first: others can reach this service";
const NO_KEY: &str = "management API requires a token; set an access key first";

/// The schemes of browser extensions' origins.
const EXTENSIONS: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// What is known of a request.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) area: Area,
    pub(super) method: &'a Method,
    pub(super) host: Option<&'a str>,
    pub(super) forwarded_host: Option<&'a str>,
    /// An origin that is no text is as foreign as `null`.
    pub(super) origin: Option<&'a str>,
    /// Whether it says who hands over.
    pub(super) has_client: bool,
    /// Whether a program of the agent's own user sent it, from this machine.
    pub(super) is_own: bool,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Goes on to its route.
    Pass,
    /// Goes on: it shows the pass of the agent's own user.
    Own,
    /// Goes on if a process of the agent's own user sent it: there is no key that it could show.
    OwnUser,
    /// Goes on if it has this key.
    NeedsKey(KeyDigest),
    /// Goes on unless too many wrong keys came from there; its calls bring the key themselves.
    OwnKeys,
    /// A question of a browser, answered here.
    Preflight,
    Refused(StatusCode, &'static str),
}

/// What becomes of a request, from facts alone.
pub(super) fn judge(facts: &Facts<'_>, host: Host, is_loopback_only: bool, settings: &Settings) -> Verdict {
    if is_loopback_only && !facts.host.is_some_and(is_loopback_name) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "host not allowed");
    }
    if facts.method == Method::OPTIONS {
        return Verdict::Preflight;
    }
    if !is_offered(facts.area, host, settings) {
        return Verdict::Refused(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT);
    }
    if !passes_origin(facts, settings) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "origin not allowed");
    }
    let key = settings.key_digest();
    let is_takeover = facts.area == Area::Takeover;
    // Before its set-up a server has no owner.
    if facts.is_own && (host == Host::Desktop || key.is_some()) {
        match facts.area {
            Area::Takeover if !facts.has_client => return Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT),
            area if needs_key(area) || is_takeover || area == Area::Jsonrpc => return Verdict::Own,
            _ => {}
        }
    }
    let Some(key) = key else {
        return match facts.area {
            Area::Page | Area::Health | Area::Setup | Area::Description => Verdict::Pass,
            // It was started without a secret.
            _ if host == Host::DropIn => Verdict::Pass,
            _ if host == Host::Headless => Verdict::Refused(StatusCode::FORBIDDEN, SETUP_REQUIRED),
            area if needs_key(area) => Verdict::Refused(StatusCode::FORBIDDEN, NO_KEY),
            _ if !is_loopback_only || settings.cors => Verdict::Refused(StatusCode::FORBIDDEN, EXPOSED),
            Area::Takeover if !facts.has_client => Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT),
            Area::Takeover | Area::Jsonrpc => Verdict::OwnUser,
            _ => Verdict::Pass,
        };
    };
    if is_takeover && !facts.has_client {
        return Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT);
    }
    match facts.area {
        Area::Jsonrpc => Verdict::OwnKeys,
        area if needs_key(area) || is_takeover => Verdict::NeedsKey(key),
        _ => Verdict::Pass,
    }
}

/// Whether a host of this kind, with these settings, has it.
fn is_offered(area: Area, host: Host, settings: &Settings) -> bool {
    if host == Host::DropIn {
        return area == Area::Jsonrpc;
    }
    match area {
        Area::Page | Area::Health | Area::Rpc => true,
        Area::Setup | Area::Web => host == Host::Headless,
        Area::Description | Area::Management | Area::Metrics => settings.api,
        Area::Takeover => settings.takeover,
        Area::Jsonrpc => settings.jsonrpc,
        Area::Mcp => settings.mcp,
        Area::Nothing => false,
    }
}

/// Whether requests to it show the access key.
fn needs_key(area: Area) -> bool {
    match area {
        Area::Management | Area::Rpc | Area::Web | Area::Mcp | Area::Metrics => true,
        // A desktop that only its own user reaches takes downloads over without one.
        Area::Takeover => false,
        // aria2's calls say their key themselves.
        Area::Page | Area::Health | Area::Setup | Area::Description | Area::Jsonrpc => false,
        Area::Nothing => false,
    }
}

fn passes_origin(facts: &Facts<'_>, settings: &Settings) -> bool {
    let Some(origin) = facts.origin else { return true };
    let is_same = || {
        [facts.host, facts.forwarded_host]
            .into_iter()
            .flatten()
            .any(|host| is_same_origin(origin, host))
    };
    match facts.area {
        Area::Takeover | Area::Jsonrpc | Area::Mcp => {
            settings.cors || is_extension(origin) || facts.host.is_some_and(|host| is_same_origin(origin, host))
        }
        Area::Setup if facts.method == Method::POST => {
            is_extension(origin) || facts.host.is_some_and(|host| is_same_origin(origin, host))
        }
        Area::Rpc => is_same(),
        _ => true,
    }
}

pub(super) fn is_extension(origin: &str) -> bool {
    let extension = origin.split_once("://");
    extension.is_some_and(|(scheme, rest)| EXTENSIONS.contains(&scheme) && !rest.is_empty())
}

pub(super) fn is_same_origin(origin: &str, host: &str) -> bool {
    let (authority, default_port) = match origin.split_once("://") {
        Some(("http", authority)) => (authority, ":80"),
        Some(("https", authority)) => (authority, ":443"),
        _ => return false,
    };
    let plain = |text: &str| text.strip_suffix(default_port).unwrap_or(text).to_ascii_lowercase();
    !authority.is_empty() && plain(authority) == plain(host)
}

/// Whether a `Host` names this machine itself.
pub(super) fn is_loopback_name(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, "0"),
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port && (name == "127.0.0.1" || name == "[::1]" || name.eq_ignore_ascii_case("localhost"))
}

/// Whether a `Host` is an address, or this machine's own name: a page whose name was made to lead here has neither.
pub(super) fn is_unambiguous(host: &str) -> bool {
    let is_address = || host.parse::<SocketAddr>().is_ok() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    is_loopback_name(host) || is_address()
}

#[cfg(test)]
mod tests;
