//! What each member of `agent.gateway.patch` is. Pure.

use protocol::{ConfigSchema, SettingDto, SettingKind};

use super::{
    config::Edition,
    switches::{PORTS, fresh_switches},
};

/// Key, whether it acts after the next start only, and meaning.
const SWITCHES: &[(&str, bool, &str)] = &[
    (
        "enabled",
        true,
        "Other programs are served; off: only the commands of the service's own user.",
    ),
    (
        "takeoverEnabled",
        false,
        "Browsers and scripts may hand over downloads.",
    ),
    ("jsonrpcEnabled", false, "Programs that are made for aria2 are served."),
    ("apiEnabled", false, "The management API (REST) is served."),
    ("mcpEnabled", false, "AI assistants are served (MCP)."),
    (
        "corsEnabled",
        false,
        "Any web page may call; it needs the key all the same.",
    ),
    (
        "linkEnabled",
        false,
        "Paired devices may call, and new ones may be paired.",
    ),
    ("lanEnabled", true, "Other devices may connect."),
];

/// The settings of an agent of this edition.
pub(crate) fn schema(edition: Edition) -> ConfigSchema {
    let usual = serde_json::to_value(fresh_switches(edition)).unwrap_or_default();
    let setting = |key: &str, kind, meaning: &str| SettingDto {
        key: key.to_owned(),
        group: "access".to_owned(),
        kind,
        default: usual.get(key).map(ToString::to_string).unwrap_or_default(),
        min: None,
        max: None,
        choices: Vec::new(),
        unit: String::new(),
        restart: false,
        secret: false,
        meaning: meaning.to_owned(),
    };
    let switches = SWITCHES.iter().map(|(key, restart, meaning)| SettingDto {
        restart: *restart,
        ..setting(key, SettingKind::Switch, meaning)
    });
    let port = SettingDto {
        min: Some((*PORTS.start()).into()),
        max: Some((*PORTS.end()).into()),
        restart: true,
        ..setting("port", SettingKind::Number, "The port on which the service listens.")
    };
    let key = SettingDto {
        secret: true,
        ..setting(
            "userToken",
            SettingKind::Text,
            "The access key: 8 to 128 visible characters, with a letter and a digit.",
        )
    };
    ConfigSchema {
        settings: switches.chain([port, key]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use protocol::agent::{GatewayPatch, GatewayStatusDto};

    use super::*;

    #[test]
    fn every_member_of_a_patch_that_can_be_seen_is_described() {
        let patch = GatewayPatch {
            enabled: Some(true),
            takeover_enabled: Some(true),
            jsonrpc_enabled: Some(true),
            api_enabled: Some(true),
            mcp_enabled: Some(true),
            cors_enabled: Some(true),
            lan_enabled: Some(true),
            link_enabled: Some(true),
            port: Some(1),
            user_token: Some(String::new()),
            // An act, and no setting.
            regenerate_user_token: None,
        };
        let members = serde_json::to_value(patch).unwrap();
        let members: BTreeSet<_> = members.as_object().unwrap().keys().cloned().collect();
        let settings = schema(Edition::Desktop).settings;
        assert_eq!(
            settings
                .iter()
                .map(|setting| setting.key.clone())
                .collect::<BTreeSet<_>>(),
            members
        );
        let shown = serde_json::to_value(GatewayStatusDto::default()).unwrap();
        for setting in settings.iter().filter(|setting| !setting.secret) {
            assert!(
                shown.get(&setting.key).is_some() && !setting.default.is_empty(),
                "{}",
                setting.key
            );
        }
    }
}
