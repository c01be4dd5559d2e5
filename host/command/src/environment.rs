//! All environment variables that Svc reads, and the only module that reads them (clap reads those that correspond to
//! an option, by the names defined here).

use std::path::PathBuf;

use engine::SystemProxy;
use transfer::{SafeUrl, Secret};

/// The password of `--http-user`. As an argument it would be visible to other users of the machine.
pub const HTTP_PASSWORD: &str = "SVC_HTTP_PASSWORD";

/// The log filter of standard error: `off`, `error`, `warn`, `info`, `debug`, `trace`, or `target=level,…`.
pub const LOG_LEVEL: &str = "SVC_LOG_LEVEL";

/// The form of log lines: `text`, or `json` for one JSON object per line with time, level, target, message and fields.
pub const LOG_FORMAT: &str = "SVC_LOG_FORMAT";

/// The data directory of the daemon; the agent uses `agent/` in it.
pub const DATA_DIR: &str = "SVC_DATA_DIR";

/// The default directory for downloads.
pub const SAVE_DIR: &str = "SVC_SAVE_DIR";

/// The listening address and port of the headless host.
pub const BIND: &str = "SVC_BIND";

/// The access key: for a host the initial one, for a client the one to send.
pub const TOKEN: &str = "SVC_TOKEN";

/// The address of the service that a client talks to.
pub const URL: &str = "SVC_URL";

/// Whether [`TOKEN`] replaces a host's stored key at every start.
pub const TOKEN_FORCE: &str = "SVC_TOKEN_FORCE";

/// The proxies whose `X-Forwarded-For` is trusted: addresses, separated by commas.
pub const TRUSTED_PROXIES: &str = "SVC_TRUSTED_PROXIES";

/// The passphrase of the keys that sign plugins and sources.
pub const KEY_PASSPHRASE: &str = "SVC_KEY_PASSPHRASE";

/// A file with the passphrase ([`KEY_PASSPHRASE`]) in its first line.
pub const KEY_PASSPHRASE_FILE: &str = "SVC_KEY_PASSPHRASE_FILE";

/// Any value but the empty one lets debuggers attach and crashes leave core dumps; see [`crate::dumpable`].
pub const DEBUGGABLE: &str = "SVC_DEBUGGABLE";

/// Where a host keeps the key of stored secrets: `file` or `desktop`.
pub const KEYS: &str = "SVC_KEYS";

/// A private key to log in to SSH servers with.
pub const SSH_KEY: &str = "SVC_SSH_KEY";

/// The socket of the agent that has the user's SSH keys, set by the agent or the desktop.
const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// The name of the user, set by the system.
const USER: &str = "USER";

/// [`USER`] where only this is set.
const LOGIN_NAME: &str = "LOGNAME";

/// The address of the user's session bus, set by the desktop.
const SESSION_BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// The address of the system's bus, where it is not the usual one.
const SYSTEM_BUS: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// The user's screen under X11, set by the desktop.
const X11_DISPLAY: &str = "DISPLAY";

/// The user's screen under Wayland, set by the desktop.
const WAYLAND_DISPLAY: &str = "WAYLAND_DISPLAY";

/// The directory of the user's session, set by the system.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// What this device calls itself to other devices.
pub const LINK_NAME: &str = "SVC_LINK_NAME";

/// Whether this device announces itself to others and searches for them: `0`, `false`, `off` and `no` switch it off.
pub const MDNS: &str = "SVC_MDNS";

/// The initial language of user interfaces: `en`, `zh`, …; a country suffix is ignored.
pub const LANGUAGE: &str = "SVC_LANG";

/// Any value but the empty one switches colour off (<https://no-color.org>).
pub const NO_COLOR: &str = "NO_COLOR";

/// The kind of terminal; `dumb` cannot move its cursor, so it gets lines instead of bars.
pub const TERM: &str = "TERM";

/// The environment, read once at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a variable of its own that is set or not"
)]
pub struct Environment {
    /// [`LOG_LEVEL`], if set and not empty.
    pub log_level: Option<String>,
    /// [`LOG_FORMAT`], if set and not empty.
    pub log_format: Option<String>,
    /// [`TOKEN`], if set and not empty.
    pub token: Option<Secret>,
    /// Whether [`TOKEN_FORCE`] is set to `1`, `true`, `yes` or `on`.
    pub is_token_forced: bool,
    /// [`LINK_NAME`], if set and not empty.
    pub link_name: Option<String>,
    /// Whether [`MDNS`] is set to `0`, `false`, `no` or `off`.
    pub is_mdns_off: bool,
    /// The first part of [`LANGUAGE`], in lower case.
    pub language: Option<String>,
    /// [`KEY_PASSPHRASE`], if set and not empty.
    pub key_passphrase: Option<Secret>,
    /// [`KEY_PASSPHRASE_FILE`], if set and not empty.
    pub key_passphrase_file: Option<PathBuf>,
    /// [`SSH_KEY`], if set and not empty.
    pub ssh_key: Option<PathBuf>,
    /// `SSH_AUTH_SOCK`, if set and not empty.
    pub ssh_agent: Option<PathBuf>,
    /// `USER`, else `LOGNAME`.
    pub user: Option<String>,
    /// `DBUS_SESSION_BUS_ADDRESS`, if set and not empty.
    pub session_bus: Option<String>,
    /// `DBUS_SYSTEM_BUS_ADDRESS`, if set and not empty.
    pub system_bus: Option<String>,
    /// Whether `DISPLAY` or `WAYLAND_DISPLAY` is set, so that programs can open windows.
    pub has_display: bool,
    /// `XDG_RUNTIME_DIR`, if set and not empty.
    pub runtime_dir: Option<PathBuf>,
    /// From `http_proxy`, `https_proxy`, `ftp_proxy`, `all_proxy` and `no_proxy`, in lower or upper case.
    pub system_proxy: SystemProxy,
    /// Whether [`NO_COLOR`] is set.
    pub is_colorless: bool,
    /// Whether [`TERM`] is `dumb`.
    pub is_dumb_terminal: bool,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn read() -> Self {
        Self {
            log_level: variable(LOG_LEVEL),
            log_format: variable(LOG_FORMAT),
            token: variable(TOKEN).map(Secret::new),
            is_token_forced: variable(TOKEN_FORCE).is_some_and(|text| is_true(&text)),
            link_name: variable(LINK_NAME),
            is_mdns_off: variable(MDNS).is_some_and(|text| is_off(&text)),
            language: variable(LANGUAGE).and_then(|text| language(&text)),
            key_passphrase: variable(KEY_PASSPHRASE).map(Secret::new),
            key_passphrase_file: variable(KEY_PASSPHRASE_FILE).map(PathBuf::from),
            ssh_key: variable(SSH_KEY).map(PathBuf::from),
            ssh_agent: variable(SSH_AGENT).map(PathBuf::from),
            user: variable(USER).or_else(|| variable(LOGIN_NAME)),
            session_bus: variable(SESSION_BUS),
            system_bus: variable(SYSTEM_BUS),
            has_display: variable(X11_DISPLAY).or_else(|| variable(WAYLAND_DISPLAY)).is_some(),
            runtime_dir: variable(RUNTIME_DIR).map(PathBuf::from),
            system_proxy: SystemProxy {
                http: proxy("http_proxy"),
                https: proxy("https_proxy"),
                ftp: proxy("ftp_proxy"),
                all: proxy("all_proxy"),
                no_proxy: either_case("no_proxy").unwrap_or_default(),
            },
            is_colorless: variable(NO_COLOR).is_some(),
            is_dumb_terminal: variable(TERM).is_some_and(|term| term == "dumb"),
        }
    }
}

fn is_off(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'']).trim();
    ["0", "false", "no", "off"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// Quotes that a service file left around the value are ignored.
fn is_true(text: &str) -> bool {
    let text = text.trim().trim_matches(['"', '\'']);
    ["1", "true", "yes", "on"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}

/// The language of `en_GB.UTF-8` is `en`.
fn language(text: &str) -> Option<String> {
    let primary = text.split(['-', '_', '.']).next().unwrap_or_default().trim();
    let is_language = (2..=3).contains(&primary.len()) && primary.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_language.then(|| primary.to_ascii_lowercase())
}

/// A proxy's URL; an invalid one is ignored, as by other programs that read these variables.
fn proxy(name: &str) -> Option<SafeUrl> {
    let proxy = SafeUrl::parse(&either_case(name)?).ok()?;
    transfer::proxy::check(&proxy).ok().map(|()| proxy)
}

fn either_case(name: &str) -> Option<String> {
    variable(name).or_else(|| variable(&name.to_ascii_uppercase()))
}

/// The value of a variable, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_is_said_in_many_ways() {
        for text in ["1", "true", "YES", " on ", "\"true\"", "'1'"] {
            assert!(is_true(text), "{text}");
        }
        for text in ["", "0", "false", "off", "maybe"] {
            assert!(!is_true(text), "{text}");
        }
    }

    #[test]
    fn a_language_is_its_first_part() {
        for (text, expected) in [
            ("en", Some("en")),
            ("zh-CN", Some("zh")),
            ("DE_de.UTF-8", Some("de")),
            ("C", None),
        ] {
            assert_eq!(language(text).as_deref(), expected, "{text}");
        }
    }
}
