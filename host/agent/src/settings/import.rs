//! Import of the settings of the previous product, under its own names: read once and stored in the current format at
//! the same start.

use serde_json::{Map, Value};

use super::{
    preference::is_on,
    switches::{PORTS, Settings},
};
use crate::{access::key::AccessKey, settings::config::Edition};

/// The prefix of the previous product's names.
const OLD: &str = "local_server_";

impl Settings {
    /// The converted settings; none if `old` contains none.
    pub(crate) fn imported(edition: Edition, old: &Map<String, Value>) -> Option<Self> {
        if !old.keys().any(|name| name.starts_with(OLD)) {
            return None;
        }
        let of = |name: &str| old.get(&format!("{OLD}{name}"));
        let mut settings = Self::fresh(edition);
        for (name, switch) in [
            ("enabled", &mut settings.enabled),
            ("takeover_enabled", &mut settings.takeover),
            ("jsonrpc_enabled", &mut settings.jsonrpc),
            ("api_enabled", &mut settings.api),
            ("mcp_enabled", &mut settings.mcp),
            ("cors_allow_all", &mut settings.cors),
            ("lan_enabled", &mut settings.lan),
        ] {
            *switch = of(name).and_then(is_on).unwrap_or(*switch);
        }
        let port = of("port").and_then(|port| port.as_u64().or_else(|| port.as_str()?.parse().ok()));
        let port = port.and_then(|port| u16::try_from(port).ok());
        settings.port = port
            .filter(|port| PORTS.contains(&u32::from(*port)))
            .unwrap_or(settings.port);
        // The previous product had no rules for keys. Its clients know this one, so it stays; `svc doctor` says if it is
        // weak.
        settings.key = of("token").and_then(Value::as_str).map(AccessKey::agreed);
        Some(settings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn imported(old: &Value) -> Option<Settings> {
        Settings::imported(Edition::Desktop, old.as_object().unwrap())
    }

    #[test]
    fn settings_of_the_previous_product_are_imported() {
        let old = json!({
            "local_server_token": "old-token-1", "local_server_port": "18000", "local_server_takeover_enabled": false,
            "local_server_enabled": "0",
            "local_server_api_enabled": "true", "local_server_mcp_enabled": "maybe", "moon": true,
        });
        let expect = Settings {
            key: Some(AccessKey::new("old-token-1").unwrap()),
            port: 18000,
            enabled: false,
            takeover: false,
            api: true,
            ..Settings::fresh(Edition::Desktop)
        };
        assert_eq!(imported(&old), Some(expect));
    }

    #[test]
    fn a_key_that_is_too_weak_today_is_kept_as_it_is() {
        let old = json!({ "local_server_token": "short", "local_server_cors_allow_all": true });
        let settings = imported(&old).unwrap().started(Edition::Desktop, None).unwrap();
        assert_eq!(settings.key.as_ref().map(AccessKey::expose), Some("short"));
        let stored: Settings = serde_json::from_value(serde_json::to_value(&settings).unwrap()).unwrap();
        assert_eq!(stored, settings, "it is there at the next start, too");
    }

    #[test]
    fn an_empty_key_is_none_and_a_desktop_that_is_open_then_gets_a_new_one() {
        let old = json!({ "local_server_token": "", "local_server_cors_allow_all": true });
        let key = imported(&old).unwrap().started(Edition::Desktop, None).unwrap().key;
        assert!(!key.unwrap().expose().is_empty());
    }

    #[test]
    fn what_is_no_older_configuration_is_not_taken_for_one() {
        assert_eq!(imported(&json!({ "version": 1, "key": null })), None);
    }
}
