//! The configuration keys that are not the engine's. They are checked and stored here, each patch under the same
//! revision as the engine's settings.
//!
//! A key is listed only if it changes what the service does (`tests/tidy` looks for the code that reads it). A client
//! that sets another one is refused by name; what an older version stored under such a key is ignored.

use std::{borrow::Cow, collections::BTreeMap};

use protocol::RpcError;
use tools::Choice;

use crate::{
    configuration::torrents::{self, InvalidValue, TorrentSettings},
    refusal::invalid,
};

/// Whether new versions of plugins are installed unattended.
pub(crate) const PLUGIN_AUTO_UPDATE: &str = "plugin_auto_update";

/// Which `ffmpeg` may be used. The names are those that the errors of `tools` state.
pub(crate) const TOOL_FFMPEG: &str = "tool_ffmpeg";

/// Which `yt-dlp` may be used.
pub(crate) const TOOL_YT_DLP: &str = "tool_yt_dlp";

/// Whether this device announces itself to others and searches for them; the agent reads it.
const LINK_MDNS: &str = "link_mdns";

/// The interfaces for that; the agent reads it.
const LINK_INTERFACES: &str = "link_interfaces";

/// Where paired devices may have files stored, beside the save directory; the agent reads it.
const LINK_SAVE_ROOTS: &str = "link_save_roots";

/// Keys whose values are `true` or `false`, and their defaults.
const FLAGS: &[(&str, &str)] = &[(PLUGIN_AUTO_UPDATE, "true"), (LINK_MDNS, "true")];

/// Keys whose values are those of [`Choice`], and their defaults.
const TOOLS: &[(&str, &str)] = &[(TOOL_FFMPEG, OFF), (TOOL_YT_DLP, OFF)];

/// A tool that must not be used.
const OFF: &str = "off";

/// What follows finished downloads in queues without a chain of their own: a JSON array of steps.
pub(crate) const POST_CHAIN: &str = "post_chain";

/// Keys whose values are other texts, and their defaults.
const TEXTS: &[(&str, &str)] = &[(POST_CHAIN, ""), (LINK_INTERFACES, ""), (LINK_SAVE_ROOTS, "")];

/// The endpoints of webhooks, as a JSON array. `hooks` checks them, and they are sealed, because they hold secrets.
pub(crate) const WEBHOOK_ENDPOINTS: &str = "webhook.endpoints";

/// All keys.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let of_texts = plain().map(|(name, _)| name).chain([WEBHOOK_ENDPOINTS]);
    of_texts.chain(torrents::KEYS)
}

/// Those with values of one kind, with their defaults.
fn plain() -> impl Iterator<Item = (&'static str, &'static str)> {
    FLAGS.iter().chain(TOOLS).chain(TEXTS).copied()
}

/// The default of a key; empty for one that does not exist.
pub(crate) fn default(name: &str) -> Cow<'static, str> {
    match TorrentSettings::default().value(name) {
        Some(of_torrents) => of_torrents.into(),
        None => usual(name).into(),
    }
}

fn usual(name: &str) -> &'static str {
    plain()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, default)| default)
}

/// The stored value of a key with values of one kind, or the default.
pub(crate) fn value<'s>(stored: &'s BTreeMap<String, String>, name: &str) -> &'s str {
    stored.get(name).map_or_else(|| usual(name), String::as_str)
}

/// All keys that are stored as they are with their defaults, replaced by what was stored.
pub(crate) fn with_defaults(stored: &BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    let of_torrents = TorrentSettings::stored(stored);
    let of_torrents = torrents::KEYS
        .into_iter()
        .filter_map(move |key| Some((key.to_owned(), of_torrents.value(key)?)));
    plain()
        .map(|(name, _)| (name.to_owned(), value(stored, name).to_owned()))
        .chain(of_torrents)
}

/// The value of a key in the form in which it is stored; an error if the key does not allow it.
pub(crate) fn check(name: &str, value: &str) -> Result<String, RpcError> {
    if TOOLS.iter().any(|(known, _)| *known == name) {
        return match value.parse() {
            Ok(Choice::Off) => Ok(OFF.to_owned()),
            Ok(_) => Ok(value.trim().to_owned()),
            Err(error) => Err(invalid(name, format!("{name} {error}"))),
        };
    }
    if name == POST_CHAIN {
        return match chains::chain_of(value) {
            Ok(_) => Ok(value.trim().to_owned()),
            Err(error) => Err(invalid(name, format!("{name} is no chain of steps: {error}"))),
        };
    }
    if name == LINK_INTERFACES {
        let names: Vec<&str> = value
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let is_name = |name: &&str| !name.chars().any(char::is_control);
        return if names.iter().all(is_name) {
            Ok(names.join(","))
        } else {
            let message = format!("{name} must be names of network interfaces, separated by commas");
            Err(invalid(name, message))
        };
    }
    if name == LINK_SAVE_ROOTS {
        let is_full = |root: std::path::PathBuf| root.as_os_str().is_empty() || root.is_absolute();
        return if std::env::split_paths(value.trim()).all(is_full) {
            Ok(value.trim().to_owned())
        } else {
            let message = format!("{name} must be absolute directories, separated like those of PATH");
            Err(invalid(name, message))
        };
    }
    if torrents::KEYS.contains(&name) {
        let mut settings = TorrentSettings::default();
        let set = settings.set(name, value);
        return set
            .map(|()| settings.value(name).unwrap_or_default())
            .map_err(|error| torrents_refused(name, &error));
    }
    match value.trim() {
        "true" | "1" => Ok("true".to_owned()),
        "false" | "0" => Ok("false".to_owned()),
        _ => Err(invalid(name, format!("{name} must be true or false"))),
    }
}

/// Why a value of the keys of torrents is not allowed.
pub(crate) fn torrents_refused(key: &str, error: &InvalidValue) -> RpcError {
    let key = match error {
        InvalidValue::Value { key, .. } => key,
        InvalidValue::Key => key,
    };
    invalid(key, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_allowed_values() {
        for (name, value) in with_defaults(&BTreeMap::new()) {
            assert_eq!(check(&name, &value).as_ref(), Ok(&value), "{name}");
        }
    }

    #[test]
    fn values_are_kept_to_what_their_key_allows() {
        assert_eq!(check(PLUGIN_AUTO_UPDATE, " 1 ").unwrap(), "true");
        let error = check(PLUGIN_AUTO_UPDATE, "yes").unwrap_err();
        assert_eq!(error.message, "plugin_auto_update must be true or false");
        assert_eq!(error.data.unwrap().field.as_deref(), Some(PLUGIN_AUTO_UPDATE));
    }

    #[test]
    fn tools_are_off_until_they_are_chosen() {
        assert_eq!(default(TOOL_FFMPEG).parse(), Ok(Choice::Off));
        assert_eq!(default(TOOL_YT_DLP).parse(), Ok(Choice::Off));
        assert_eq!(check(TOOL_FFMPEG, " auto ").unwrap(), "auto");
        assert_eq!(check(TOOL_YT_DLP, "/opt/yt-dlp").unwrap(), "/opt/yt-dlp");
        assert_eq!(check(TOOL_FFMPEG, "").unwrap(), OFF);
        let error = check(TOOL_FFMPEG, "ffmpeg -i x").unwrap_err();
        assert!(
            error.message.starts_with("tool_ffmpeg must be off, auto"),
            "{}",
            error.message
        );
        assert!(
            tools::Tool::ALL
                .iter()
                .all(|tool| names().any(|name| name == tool.key()))
        );
    }

    #[test]
    fn chains_are_checked() {
        let chain = r#"[{"kind":"unpack","deleteArchive":true}]"#;
        assert_eq!(check(POST_CHAIN, chain).unwrap(), chain);
        assert_eq!(check(POST_CHAIN, " ").unwrap(), "");
        let error = check(POST_CHAIN, r#"[{"kind":"rename","template":"../x"}]"#).unwrap_err();
        assert!(
            error.message.starts_with("post_chain is no chain of steps: "),
            "{}",
            error.message
        );
    }

    #[test]
    fn no_key_has_two_owners() {
        assert!(names().all(|name| !engine::Settings::has_key(name)));
    }
}
