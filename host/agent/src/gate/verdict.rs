//! The gate's decision about a request, from facts alone. Pure.

use std::net::{IpAddr, SocketAddr};

use axum::http::{Method, StatusCode};
use rest::UNKNOWN_ENDPOINT;

use crate::{
    access::{area::Area, key::KeyDigest},
    settings::{config::Edition, switches::Settings},
};

const SETUP_REQUIRED: &str = "setup required: set the access key first";
const NO_CLIENT: &str = "missing X-Svc-Client header";
const EXPOSED: &str = "set an access key first: others can reach this service";
const NO_KEY: &str = "management API requires a token; set an access key first";

/// Origin schemes of browser extensions.
const EXTENSIONS: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// The facts that the decision depends on.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) area: Area,
    pub(super) method: &'a Method,
    pub(super) host: Option<&'a str>,
    pub(super) forwarded_host: Option<&'a str>,
    /// An origin that is not text counts as `null`, which is foreign.
    pub(super) origin: Option<&'a str>,
    /// Whether `X-Svc-Client` is present.
    pub(super) has_client: bool,
    /// Whether it carries the pass from this machine.
    pub(super) is_own: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// Authorized by the pass of the agent's own user.
    Own,
    /// No key is configured: authorized if a process of the agent's own user sent it.
    OwnUser,
    /// Authorized by this key.
    NeedsKey(KeyDigest),
    /// Authorized unless the source is locked out; calls of the area carry the key themselves.
    OwnKeys,
    /// A CORS preflight, answered by the gate.
    Preflight,
    Refused(StatusCode, &'static str),
}

pub(super) fn judge(facts: &Facts<'_>, edition: Edition, is_loopback_only: bool, settings: &Settings) -> Verdict {
    if is_loopback_only && !facts.host.is_some_and(is_loopback_name) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "host not allowed");
    }
    // The ping tells nothing but the version; the commands that look for their service send it without the pass.
    let is_ping = facts.area == Area::Health && facts.origin.is_none() && facts.host.is_some_and(is_loopback_name);
    if edition == Edition::Desktop && !settings.enabled && !facts.is_own && !is_ping {
        return Verdict::Refused(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT);
    }
    if facts.method == Method::OPTIONS {
        return Verdict::Preflight;
    }
    if !is_offered(facts.area, edition, settings) {
        return Verdict::Refused(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT);
    }
    if !passes_origin(facts, settings) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "origin not allowed");
    }
    let key = settings.key_digest();
    let is_takeover = facts.area == Area::Takeover;
    // A server has no owner before its set-up.
    if facts.is_own && (edition == Edition::Desktop || key.is_some()) {
        match facts.area {
            Area::Takeover if !facts.has_client => return Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT),
            area if needs_key(area) || is_takeover || area == Area::Jsonrpc => return Verdict::Own,
            _ => {}
        }
    }
    let Some(key) = key else {
        return match facts.area {
            Area::Page | Area::Health | Area::Setup | Area::Login | Area::Description => Verdict::Pass,
            // A drop-in without a secret is open, as aria2 is.
            _ if edition == Edition::DropIn => Verdict::Pass,
            _ if edition == Edition::Headless => Verdict::Refused(StatusCode::FORBIDDEN, SETUP_REQUIRED),
            // Devices are authenticated by their pairing, on a desktop without a key, too.
            Area::Link => Verdict::Pass,
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

/// Whether this edition, with these settings, serves the area.
fn is_offered(area: Area, edition: Edition, settings: &Settings) -> bool {
    if edition == Edition::DropIn {
        return area == Area::Jsonrpc;
    }
    match area {
        Area::Page | Area::Health | Area::Login | Area::Rpc => true,
        Area::Setup | Area::Web => edition == Edition::Headless,
        Area::Description | Area::Management | Area::Metrics => settings.api,
        Area::Takeover => settings.takeover,
        Area::Link => settings.offers_link(edition),
        Area::Jsonrpc => settings.jsonrpc,
        Area::Mcp => settings.mcp,
        Area::Nothing => false,
    }
}

/// Whether the area requires the access key.
fn needs_key(area: Area) -> bool {
    match area {
        Area::Management | Area::Rpc | Area::Web | Area::Mcp | Area::Metrics => true,
        // A desktop on the loopback accepts downloads from its own user's browsers without a key.
        Area::Takeover => false,
        // aria2's calls carry the key themselves.
        Area::Page | Area::Health | Area::Setup | Area::Login | Area::Description | Area::Jsonrpc => false,
        // Codes, digits and link keys.
        Area::Link => false,
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
        Area::Login => facts.host.is_some_and(|host| is_same_origin(origin, host)),
        Area::Rpc => is_same(),
        // Only devices call it. Wrong codes lock a source out, and a page could spend those of its visitor.
        Area::Link => false,
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

/// Whether a `Host` header names this machine itself.
pub(super) fn is_loopback_name(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, "0"),
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port && (name == "127.0.0.1" || name == "[::1]" || name.eq_ignore_ascii_case("localhost"))
}

/// Whether a `Host` header is an IP address or this machine's own name. DNS rebinding needs a name that an attacker
/// controls, so it produces neither.
pub(super) fn is_unambiguous(host: &str) -> bool {
    let is_address = || host.parse::<SocketAddr>().is_ok() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    is_loopback_name(host) || is_address()
}

#[cfg(test)]
mod tests;
