//! The configuration keys that are not the engine's. They are checked and stored here, each patch under the same
//! revision as the engine's settings.
//!
//! A key is listed only if it changes what the service does (`tests/tidy` looks for the code that reads it). A client
//! that sets another one is refused by name; what an older version stored under such a key is ignored.

use std::collections::BTreeMap;

use protocol::RpcError;

use crate::refusal::invalid;

/// Whether new versions of plugins are installed unattended.
pub(crate) const PLUGIN_AUTO_UPDATE: &str = "plugin_auto_update";

/// Keys whose values are `true` or `false`, and their defaults.
const FLAGS: &[(&str, &str)] = &[(PLUGIN_AUTO_UPDATE, "true")];

/// All keys.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FLAGS.iter().map(|(name, _)| *name)
}

/// The default of a key; empty for one that does not exist.
pub(crate) fn default(name: &str) -> &'static str {
    let key = FLAGS.iter().find(|(known, _)| *known == name);
    key.map_or("", |(_, default)| default)
}

/// The stored value, or the default.
pub(crate) fn value<'s>(stored: &'s BTreeMap<String, String>, name: &str) -> &'s str {
    stored.get(name).map_or_else(|| default(name), String::as_str)
}

/// All keys with their defaults, replaced by what was stored.
pub(crate) fn with_defaults(stored: &BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    names().map(|name| (name.to_owned(), value(stored, name).to_owned()))
}

/// The value in the form in which it is stored; an error if the key does not allow it.
pub(crate) fn check(name: &str, value: &str) -> Result<String, RpcError> {
    match value.trim() {
        "true" | "1" => Ok("true".to_owned()),
        "false" | "0" => Ok("false".to_owned()),
        _ => Err(invalid(name, format!("{name} must be true or false"))),
    }
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
    fn no_key_has_two_owners() {
        assert!(names().all(|name| !engine::Settings::KEYS.contains(&name)));
    }
}
