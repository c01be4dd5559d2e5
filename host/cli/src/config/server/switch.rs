//! The agent's switches under the names that its stored configuration and older services have for them. Pure.

use agent::{PREFERENCES, Preference};
use protocol::agent::{GatewayPatch, GatewayStatusDto, Preferences};

/// A setting that the agent stores.
pub(super) enum Switch {
    Gateway(&'static Gateway),
    /// A preference of user interfaces that the agent itself obeys.
    Preference(&'static Preference),
}

/// A member of the agent's status, and of the patch that changes it.
pub(super) struct Gateway {
    name: &'static str,
    /// The member of the patch.
    member: &'static str,
    pub(super) get: fn(&GatewayStatusDto) -> String,
    pub(super) set: fn(&mut GatewayPatch, &str) -> Result<(), String>,
}

macro_rules! switches {
    ($($name:literal = $field:ident ($member:literal),)+) => {
        &[$(Gateway {
            name: $name,
            member: $member,
            get: |status| status.$field.to_string(),
            set: |patch, text| {
                patch.$field = Some(boolean(text)?);
                Ok(())
            },
        },)+]
    };
}

const SWITCHES: &[Gateway] = switches! {
    "local_server_enabled" = enabled ("enabled"),
    "local_server_takeover_enabled" = takeover_enabled ("takeoverEnabled"),
    "local_server_jsonrpc_enabled" = jsonrpc_enabled ("jsonrpcEnabled"),
    "local_server_api_enabled" = api_enabled ("apiEnabled"),
    "local_server_mcp_enabled" = mcp_enabled ("mcpEnabled"),
    "local_server_cors_allow_all" = cors_enabled ("corsEnabled"),
    "local_server_lan_enabled" = lan_enabled ("lanEnabled"),
    "local_server_link_enabled" = link_enabled ("linkEnabled"),
};

const PORT: Gateway = Gateway {
    name: "local_server_port",
    member: "port",
    get: |status| status.port.to_string(),
    set: |patch, text| {
        let port = text.trim().parse().map_err(|_| "write the number of a port")?;
        patch.port = Some(port);
        Ok(())
    },
};

/// The name of the switch with this member of the patch; none for the key, which `svc key` has.
pub(super) fn name_of(member: &str) -> Option<&'static str> {
    let mut all = SWITCHES.iter().chain([&PORT]);
    all.find(|switch| switch.member == member).map(|switch| switch.name)
}

impl Switch {
    pub(super) fn named(name: &str) -> Option<Self> {
        let gateway = SWITCHES.iter().chain([&PORT]).find(|switch| switch.name == name);
        let preference = PREFERENCES.into_iter().find(|preference| preference.name == name);
        gateway.map(Self::Gateway).or(preference.map(Self::Preference))
    }
}

/// All of them with their values.
pub(super) fn values<'s>(
    status: &'s GatewayStatusDto,
    preferences: &'s Preferences,
) -> impl Iterator<Item = (String, String)> + 's {
    let switches = SWITCHES.iter().chain([&PORT]);
    let switches = switches.map(|switch| (switch.name.to_owned(), (switch.get)(status)));
    let preferences = PREFERENCES.iter().map(|preference| {
        let stored = preferences.values.get(preference.name);
        (preference.name.to_owned(), preference.in_force(stored))
    });
    switches.chain(preferences)
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_set_and_shown_under_one_name() {
        let preferences = Preferences::default();
        for (name, value) in values(&GatewayStatusDto::default(), &preferences) {
            let Some(Switch::Gateway(switch)) = Switch::named(&name) else {
                let preference = PREFERENCES.iter().find(|preference| preference.name == name).unwrap();
                assert_eq!(preference.usual, value, "{name}");
                continue;
            };
            let mut patch = GatewayPatch::default();
            (switch.set)(&mut patch, "1").unwrap();
            assert_ne!(patch, GatewayPatch::default(), "{name}");
            assert!((switch.set)(&mut patch, "maybe").is_err(), "{name}");
        }
        assert!(Switch::named("max_concurrent_tasks").is_none());
    }
}
