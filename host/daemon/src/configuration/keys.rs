//! The configuration keys that are not the engine's. They are checked and stored here, each patch under the same
//! revision as the engine's settings.
//!
//! Only `plugin_auto_update` changes what the daemon does. The others (`bt_*`, `ed2k_*`, `webhook.*`, …) configure
//! features that this program does not have: clients with a settings page for them read and write them in one patch
//! with the rest, and one unknown key would fail the whole patch.

use std::collections::BTreeMap;

use protocol::{ErrorCode, RpcError};
use transfer::ByteCount;

use crate::refusal::invalid;

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Flag,
    /// An integer between these bounds, inclusive.
    Number(i64, i64),
    /// A number that is not negative.
    Ratio,
    /// Up to [`MAX_TEXT_BYTES`].
    Text,
    OneOf(&'static [&'static str]),
    /// `https://…` without query and fragment, or empty.
    HttpsBase,
    /// A JSON array, or empty.
    JsonArray,
    /// Set by the service, refused in a patch.
    ReadOnly,
}

struct Key {
    name: &'static str,
    kind: Kind,
    default: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: &'static str) -> Key {
    Key { name, kind, default }
}

/// Lists of trackers and servers are long, but a patch must fit in one frame.
const MAX_TEXT_BYTES: usize = 256 * 1024;

const MANY: i64 = 1_000_000_000;

const UNITS: Kind = Kind::OneOf(&["minutes", "hours", "days"]);
const PORT: Kind = Kind::Number(1, 65535);

/// Whether new versions of plugins are installed unattended.
pub(crate) const PLUGIN_AUTO_UPDATE: &str = "plugin_auto_update";

const KEYS: &[Key] = &[
    key(PLUGIN_AUTO_UPDATE, Kind::Flag, "true"),
    key("cdn_multi_enabled", Kind::Flag, "false"),
    key("cdn_max_nodes", Kind::Number(0, 8), "0"),
    key("multi_nic_enabled", Kind::Flag, "false"),
    key("idle_file_scan", Kind::Flag, "false"),
    key("domain_conn_caps", Kind::ReadOnly, ""),
    key("bt_enable_dht", Kind::Flag, "true"),
    key("bt_enable_upnp", Kind::Flag, "true"),
    key("bt_port_start", PORT, "6881"),
    key("bt_port_end", PORT, "6891"),
    key(
        "bt_mse_mode",
        Kind::OneOf(&["disabled", "enabled", "forced"]),
        "enabled",
    ),
    key("bt_custom_trackers", Kind::Text, ""),
    key("bt_tracker_sub_enabled", Kind::Flag, "true"),
    key("bt_tracker_sub_urls", Kind::Text, ""),
    key("bt_tracker_sub_cache", Kind::ReadOnly, ""),
    key("bt_tracker_sub_updated_at", Kind::ReadOnly, "0"),
    key("bt_seed_enabled", Kind::Flag, "true"),
    key("bt_auto_reseed", Kind::Flag, "true"),
    key("bt_seed_max_active", Kind::Number(0, MANY), "0"),
    key("bt_seed_ratio_limit", Kind::Ratio, "0"),
    key("bt_seed_post_ratio_limit", Kind::Ratio, "0"),
    key("bt_seed_time_limit_minutes", Kind::Number(0, MANY), "0"),
    key("bt_seed_inactive_time_limit_minutes", Kind::Number(0, MANY), "0"),
    key("bt_seed_time_limit_unit", UNITS, "minutes"),
    key("bt_seed_inactive_time_limit_unit", UNITS, "minutes"),
    key("bt_seed_limit_operator", Kind::OneOf(&["or", "and"]), "or"),
    key(
        "bt_seed_then_action",
        Kind::OneOf(&["stop", "delete", "delete_files"]),
        "stop",
    ),
    key("ed2k_enable_kad", Kind::Flag, "true"),
    key("ed2k_enable_upnp", Kind::Flag, "true"),
    key("ed2k_listen_port", Kind::Number(0, 65535), "0"),
    key("ed2k_server_list", Kind::Text, ""),
    key("ed2k_server_sub_urls", Kind::Text, ""),
    key("ed2k_nodes_dat_url", Kind::Text, ""),
    key("ed2k_server_sub_enabled", Kind::Flag, "true"),
    key("ed2k_server_sub_cache", Kind::ReadOnly, ""),
    key("ed2k_server_sub_updated_at", Kind::ReadOnly, "0"),
    key("webhook.endpoints", Kind::JsonArray, ""),
    key("component.ffmpeg.path", Kind::Text, ""),
    key("component.ytdlp.path", Kind::Text, ""),
    key("component_mirror_base", Kind::HttpsBase, ""),
    key("log_max_size_mb", Kind::Number(1, 1024), "10"),
];

/// All keys with their defaults, replaced by what was stored.
pub(crate) fn with_defaults(stored: &BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    KEYS.iter().map(|key| {
        let value = stored.get(key.name).map_or(key.default, String::as_str);
        (key.name.to_owned(), value.to_owned())
    })
}

/// The stored value, or the default.
pub(crate) fn value<'s>(stored: &'s BTreeMap<String, String>, name: &str) -> &'s str {
    let key = KEYS.iter().find(|key| key.name == name);
    stored
        .get(name)
        .map_or(key.map_or("", |key| key.default), String::as_str)
}

/// The default of a key that a patch may set.
pub(crate) fn default(name: &str) -> Result<String, RpcError> {
    let key = KEYS.iter().find(|key| key.name == name);
    check(name, key.map_or("", |key| key.default))
}

/// The value in the form in which it is stored; an error if the key does not allow it.
pub(crate) fn check(name: &str, value: &str) -> Result<String, RpcError> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        return Err(invalid(name, format!("unknown setting \"{name}\"")));
    };
    let value = value.trim();
    let must = |allowed: &str| invalid(name, format!("{name} must be {allowed}"));
    match key.kind {
        Kind::ReadOnly => Err(RpcError::application(
            ErrorCode::InvalidArgument,
            format!("{name} is read-only: the service itself writes it"),
        )
        .with_field(name)),
        Kind::Flag => match value {
            "true" | "1" => Ok("true".to_owned()),
            "false" | "0" => Ok("false".to_owned()),
            _ => Err(must("true or false")),
        },
        Kind::Number(least, most) => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
            _ => Err(must(&format!("a number from {least} to {most}"))),
        },
        Kind::Ratio => match value.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(value.to_owned()),
            _ => Err(must("a number that is not negative")),
        },
        Kind::OneOf(allowed) if allowed.contains(&value) => Ok(value.to_owned()),
        Kind::OneOf(allowed) => Err(must(&format!("one of {}", allowed.join(", ")))),
        Kind::Text if value.len() > MAX_TEXT_BYTES || value.contains('\0') => Err(must(&format!(
            "a text of at most {} without NUL",
            ByteCount(MAX_TEXT_BYTES as u64)
        ))),
        Kind::Text => Ok(value.to_owned()),
        Kind::HttpsBase => https_base(value).ok_or_else(|| must("an https:// address without query, or empty")),
        Kind::JsonArray if value.is_empty() => Ok(String::new()),
        Kind::JsonArray => match serde_json::from_str::<Vec<serde_json::Value>>(value) {
            Ok(_) if value.len() <= MAX_TEXT_BYTES => Ok(value.to_owned()),
            _ => Err(must(&format!(
                "a JSON array of at most {}, or empty",
                ByteCount(MAX_TEXT_BYTES as u64)
            ))),
        },
    }
}

fn https_base(value: &str) -> Option<String> {
    if value.is_empty() {
        return Some(String::new());
    }
    if value.contains(['?', '#', ' ']) || !value.starts_with("https://") {
        return None;
    }
    transfer::SafeUrl::parse(value).ok()?;
    Some(value.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_to_the_limits_of_their_key() {
        let good = [
            ("bt_enable_dht", " 1 ", "true"),
            ("bt_port_start", "6881", "6881"),
            ("bt_seed_ratio_limit", "1.5", "1.5"),
            ("bt_mse_mode", "forced", "forced"),
            ("component_mirror_base", "https://m.test/x/", "https://m.test/x"),
            ("webhook.endpoints", "[]", "[]"),
        ];
        for (name, value, expect) in good {
            assert_eq!(check(name, value).unwrap(), expect, "{name}");
        }
        let bad = [
            ("bt_enable_dht", "yes"),
            ("bt_port_start", "0"),
            ("bt_seed_ratio_limit", "-1"),
            ("bt_seed_ratio_limit", "NaN"),
            ("bt_mse_mode", "maybe"),
            ("component_mirror_base", "http://m.test"),
            ("component_mirror_base", "https://m.test/?a"),
            ("webhook.endpoints", "{}"),
            ("domain_conn_caps", "x"),
            ("no_such_key", "x"),
        ];
        for (name, value) in bad {
            let error = check(name, value).unwrap_err();
            assert!(error.message.contains(name), "{}", error.message);
            assert_eq!(error.data.unwrap().field.as_deref(), Some(name));
        }
    }

    #[test]
    fn defaults_are_allowed_values() {
        for (name, value) in with_defaults(&BTreeMap::new()) {
            let checked = check(&name, &value);
            let is_read_only = checked.as_ref().is_err_and(|error| error.message.contains("read-only"));
            assert!(is_read_only || checked.as_ref() == Ok(&value), "{name}");
            assert_eq!(default(&name), checked);
        }
    }

    #[test]
    fn no_key_has_two_owners() {
        for key in engine::Settings::KEYS {
            assert!(KEYS.iter().all(|other| other.name != key), "{key}");
        }
    }
}
