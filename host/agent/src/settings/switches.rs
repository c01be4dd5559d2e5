//! The settings that the user can change at run time: access key, switches, and preferences of user interfaces. Pure: a
//! patch either yields new settings or is rejected as a whole.

use std::net::{Ipv4Addr, SocketAddr};

use protocol::agent::{GatewayPatch, GatewayStatusDto, Preferences, PreferencesPatch};
use serde::{Deserialize, Serialize};

use crate::{
    access::key::{AccessKey, KeyDigest, NoRandom, WeakKey},
    settings::{
        config::{DEFAULT_PORT, Edition, PresetKey},
        preference::{Preference, SILENT},
    },
};

pub(crate) const STORED_VERSION: u32 = 1;

/// Preferences are small; larger data does not belong there.
const MAX_PREFERENCES_BYTES: usize = 256 * 1024;

/// Lists and objects inside each other in one preference.
const MAX_PREFERENCE_DEPTH: usize = 32;

/// Unprivileged ports.
pub(super) const PORTS: std::ops::RangeInclusive<u32> = 1024..=65535;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Listening {
    pub(crate) edition: Edition,
    pub(crate) address: SocketAddr,
}

impl Listening {
    /// Whether only this machine can connect, so that any foreign `Host` is forged.
    pub(crate) fn is_loopback_only(self) -> bool {
        self.edition != Edition::Headless && self.address.ip().is_loopback()
    }
}

/// The settings, in their stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a list of switches")]
pub(crate) struct Settings {
    pub(crate) version: u32,
    pub(crate) key: Option<AccessKey>,
    /// Whether a desktop serves anybody but the commands of its own user.
    #[serde(default = "is_usual")]
    pub(crate) enabled: bool,
    pub(crate) takeover: bool,
    pub(crate) jsonrpc: bool,
    pub(crate) api: bool,
    pub(crate) mcp: bool,
    pub(crate) cors: bool,
    pub(crate) lan: bool,
    /// Whether paired devices may call. Older files do not have it: as for a fresh installation.
    #[serde(default)]
    pub(crate) link: Option<bool>,
    pub(crate) port: u16,
    pub(crate) preferences: Preferences,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    #[error(transparent)]
    WeakKey(#[from] WeakKey),
    #[error("port must be a number from {} to {}", PORTS.start(), PORTS.end())]
    Port,
    #[error("{0} can not be changed on a headless server")]
    Headless(&'static str),
    #[error("a headless server keeps its access key; set another one instead")]
    KeyNeeded,
    #[error("userToken and regenerateUserToken exclude each other")]
    TwoKeys,
    #[error("preferences must be at most {} KiB together", MAX_PREFERENCES_BYTES >> 10)]
    PreferencesSize,
    #[error("preferences must have at most {MAX_PREFERENCE_DEPTH} lists and objects inside each other")]
    PreferencesDepth,
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

/// Whether a value has at most `depth` lists and objects inside each other. The file of the settings adds some, and is read
/// with a limit.
fn is_shallow(value: &serde_json::Value, depth: usize) -> bool {
    let fits = |value: &serde_json::Value| depth > 0 && is_shallow(value, depth - 1);
    match value {
        serde_json::Value::Array(list) => list.iter().all(fits),
        serde_json::Value::Object(fields) => fields.values().all(fits),
        _ => true,
    }
}

impl PatchError {
    /// The member of the patch that caused the error.
    pub(crate) fn field(&self) -> Option<&'static str> {
        match self {
            Self::WeakKey(_) | Self::KeyNeeded | Self::TwoKeys => Some("userToken"),
            Self::Port => Some("port"),
            Self::Headless(field) => Some(field),
            Self::PreferencesSize | Self::PreferencesDepth => Some("values"),
            Self::NoRandom(_) => None,
        }
    }
}

impl Settings {
    /// The settings of a fresh installation.
    pub(crate) fn fresh(edition: Edition) -> Self {
        let is_headless = edition == Edition::Headless;
        Self {
            version: STORED_VERSION,
            key: None,
            enabled: true,
            takeover: true,
            jsonrpc: true,
            api: is_headless,
            mcp: is_headless,
            cors: false,
            lan: false,
            link: None,
            port: DEFAULT_PORT,
            preferences: Preferences::default(),
        }
    }

    /// The settings at start: a configured key is applied, and an exposed desktop gets one.
    pub(crate) fn started(mut self, edition: Edition, preset: Option<PresetKey>) -> Result<Self, NoRandom> {
        // The file is its owner's to edit; an empty key would be one that everybody has.
        self.key = self.key.filter(|key| !key.expose().is_empty());
        match preset {
            Some(PresetKey::Forced(key)) => self.key = Some(key),
            Some(PresetKey::Initial(key)) if self.key.is_none() => self.key = Some(key),
            Some(PresetKey::Initial(_)) | None => {}
        }
        self.protected(edition)
    }

    /// An exposed desktop that accepts downloads must have a key, generated if necessary. A headless server never
    /// generates one.
    fn protected(mut self, edition: Edition) -> Result<Self, NoRandom> {
        let is_exposed = (self.lan || self.cors) && (self.takeover || self.jsonrpc);
        if edition == Edition::Desktop && is_exposed && self.key.is_none() {
            self.key = Some(AccessKey::random()?);
        }
        Ok(self)
    }

    /// Applies a patch, all or nothing.
    pub(crate) fn patched(&self, listening: Listening, patch: &GatewayPatch) -> Result<Self, PatchError> {
        let Listening { edition, address } = listening;
        let mut next = self.clone();
        if edition == Edition::Headless {
            if patch.port.is_some_and(|port| port != u32::from(address.port())) {
                return Err(PatchError::Headless("port"));
            }
            if patch.lan_enabled.is_some_and(|lan| lan != self.lan) {
                return Err(PatchError::Headless("lanEnabled"));
            }
            if patch.enabled == Some(false) {
                return Err(PatchError::Headless("enabled"));
            }
        }
        for (asked, switch) in [
            (patch.enabled, &mut next.enabled),
            (patch.takeover_enabled, &mut next.takeover),
            (patch.jsonrpc_enabled, &mut next.jsonrpc),
            (patch.api_enabled, &mut next.api),
            (patch.mcp_enabled, &mut next.mcp),
            (patch.cors_enabled, &mut next.cors),
            (patch.lan_enabled, &mut next.lan),
        ] {
            *switch = asked.unwrap_or(*switch);
        }
        next.link = patch.link_enabled.or(next.link);
        if let Some(port) = patch.port.filter(|_| edition == Edition::Desktop) {
            let allowed = PORTS.contains(&port).then(|| u16::try_from(port).ok()).flatten();
            next.port = allowed.ok_or(PatchError::Port)?;
        }
        next.patch_key(edition, patch)?;
        Ok(next.protected(edition)?)
    }

    fn patch_key(&mut self, edition: Edition, patch: &GatewayPatch) -> Result<(), PatchError> {
        let turns_on = patch.api_enabled == Some(true) || patch.mcp_enabled == Some(true);
        match (patch.user_token.as_deref(), patch.regenerate_user_token == Some(true)) {
            (Some(_), true) => return Err(PatchError::TwoKeys),
            (Some(""), false) if edition == Edition::Headless && self.key.is_some() => {
                return Err(PatchError::KeyNeeded);
            }
            (Some(""), false) => {
                self.key = None;
                if !turns_on && edition == Edition::Desktop {
                    self.api = false;
                    self.mcp = false;
                }
            }
            (Some(text), false) => self.key = Some(AccessKey::new(text)?),
            (None, true) => self.key = Some(AccessKey::random()?),
            (None, false) => {}
        }
        if turns_on && edition == Edition::Desktop && self.key.is_none() {
            self.key = Some(AccessKey::random()?);
        }
        Ok(())
    }

    /// Applies a patch of preferences; `null` removes one.
    pub(crate) fn preferring(&self, patch: PreferencesPatch) -> Result<Self, PatchError> {
        let mut next = self.clone();
        for (name, value) in patch.values {
            if !is_shallow(&value, MAX_PREFERENCE_DEPTH) {
                return Err(PatchError::PreferencesDepth);
            }
            if value.is_null() {
                next.preferences.values.remove(&name);
            } else {
                next.preferences.values.insert(name, value);
            }
        }
        let size = serde_json::to_vec(&next.preferences.values).map_or(usize::MAX, |text| text.len());
        if size > MAX_PREFERENCES_BYTES {
            return Err(PatchError::PreferencesSize);
        }
        next.preferences.revision += 1;
        Ok(next)
    }

    /// The public view of the switches.
    pub(crate) fn status(&self, listening: Listening) -> GatewayStatusDto {
        let Listening { edition, address } = listening;
        let is_desktop = edition == Edition::Desktop;
        let listens_as_set = if self.enabled {
            self.port == address.port() && self.lan != address.ip().is_loopback()
        } else {
            self.port != address.port() && address.ip().is_loopback()
        };
        GatewayStatusDto {
            enabled: self.enabled,
            takeover_enabled: self.takeover,
            jsonrpc_enabled: self.jsonrpc,
            api_enabled: self.api,
            mcp_enabled: self.mcp,
            cors_enabled: self.cors,
            link_enabled: self.offers_link(edition),
            user_token_configured: self.key.is_some(),
            port: if is_desktop { self.port } else { address.port() },
            port_editable: is_desktop,
            lan_enabled: self.lan,
            restart_required: is_desktop && !listens_as_set,
        }
    }

    /// Whether a preference is on.
    pub(crate) fn prefers(&self, preference: &Preference) -> bool {
        preference.is_on(self.preferences.values.get(preference.name))
    }

    /// The choice of a preference.
    pub(crate) fn choice(&self, preference: &Preference) -> String {
        preference.in_force(self.preferences.values.get(preference.name))
    }

    /// Whether a desktop creates tasks that others hand over without asking its user.
    pub(crate) fn is_silent(&self) -> bool {
        self.prefers(&SILENT)
    }

    /// Whether paired devices may call, and new ones may be paired.
    pub(crate) fn offers_link(&self, edition: Edition) -> bool {
        self.link.unwrap_or(edition == Edition::Headless)
    }

    pub(crate) fn key_digest(&self) -> Option<KeyDigest> {
        self.key.as_ref().map(AccessKey::digest)
    }
}

/// What `enabled` is in files of versions that did not have it.
const fn is_usual() -> bool {
    true
}

/// The switches of a fresh installation.
pub fn fresh_switches(edition: Edition) -> GatewayStatusDto {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), DEFAULT_PORT);
    Settings::fresh(edition).status(Listening { edition, address })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const DESKTOP: Listening = Listening {
        edition: Edition::Desktop,
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
    };
    const HEADLESS: Listening = Listening {
        edition: Edition::Headless,
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9000),
    };

    fn patch(change: impl FnOnce(&mut GatewayPatch)) -> GatewayPatch {
        let mut patch = GatewayPatch::default();
        change(&mut patch);
        patch
    }

    fn key(text: &str) -> AccessKey {
        AccessKey::new(text).unwrap()
    }

    #[test]
    fn a_fresh_server_offers_everything_and_a_fresh_desktop_little() {
        let (desktop, headless) = (Settings::fresh(Edition::Desktop), Settings::fresh(Edition::Headless));
        assert!(desktop.takeover && desktop.jsonrpc && !desktop.api && !desktop.mcp);
        assert!(headless.takeover && headless.jsonrpc && headless.api && headless.mcp);
        assert!(desktop.key.is_none() && headless.key.is_none());
    }

    #[test]
    fn an_exposed_desktop_always_has_a_key_and_an_existing_one_stays() {
        let desktop = Settings::fresh(Edition::Desktop);
        let exposed = desktop
            .patched(DESKTOP, &patch(|patch| patch.lan_enabled = Some(true)))
            .unwrap();
        let made = exposed.key.clone().expect("a key was made up");
        let cleared = exposed
            .patched(DESKTOP, &patch(|patch| patch.user_token = Some(String::new())))
            .unwrap();
        assert!(cleared.key.is_some_and(|key| key != made));
        let mut own = desktop.clone();
        own.key = Some(key("my-own-key-1"));
        let exposed = own
            .patched(DESKTOP, &patch(|patch| patch.cors_enabled = Some(true)))
            .unwrap();
        assert_eq!(exposed.key, own.key);
        let mut stored = desktop;
        stored.lan = true;
        assert!(stored.clone().started(Edition::Desktop, None).unwrap().key.is_some());
        stored.takeover = false;
        stored.jsonrpc = false;
        assert!(stored.started(Edition::Desktop, None).unwrap().key.is_none());
    }

    #[test]
    fn a_headless_server_never_makes_up_a_key_and_never_loses_one() {
        let mut headless = Settings::fresh(Edition::Headless);
        let exposed = headless.patched(HEADLESS, &patch(|patch| patch.cors_enabled = Some(true)));
        assert!(exposed.unwrap().key.is_none());
        headless.key = Some(key("my-own-key-1"));
        let clear = patch(|patch| patch.user_token = Some(String::new()));
        assert_eq!(headless.patched(HEADLESS, &clear), Err(PatchError::KeyNeeded));
    }

    #[test]
    fn management_needs_a_key_and_goes_with_it() {
        let desktop = Settings::fresh(Edition::Desktop);
        let on = desktop
            .patched(DESKTOP, &patch(|patch| patch.api_enabled = Some(true)))
            .unwrap();
        assert!(on.api && on.key.is_some());
        let cleared = on
            .patched(DESKTOP, &patch(|patch| patch.user_token = Some(String::new())))
            .unwrap();
        assert!(!cleared.api && !cleared.mcp && cleared.key.is_none());
    }

    #[test]
    fn a_patch_is_all_or_nothing() {
        let desktop = Settings::fresh(Edition::Desktop);
        let check = |patch: GatewayPatch, expect: PatchError| {
            assert_eq!(desktop.patched(DESKTOP, &patch), Err(expect));
        };
        check(patch(|patch| patch.port = Some(80)), PatchError::Port);
        check(patch(|patch| patch.port = Some(65536)), PatchError::Port);
        check(
            patch(|patch| patch.user_token = Some("short".into())),
            PatchError::WeakKey(WeakKey::Short),
        );
        let both = patch(|patch| {
            patch.user_token = Some("long-enough-1".into());
            patch.regenerate_user_token = Some(true);
        });
        check(both, PatchError::TwoKeys);
        let port = patch(|patch| patch.port = Some(2000));
        let headless = Settings::fresh(Edition::Headless).patched(HEADLESS, &port);
        assert_eq!(headless, Err(PatchError::Headless("port")));
    }

    #[test]
    fn port_and_network_are_stored_and_the_status_says_that_they_wait_for_the_next_start() {
        let fresh = Settings::fresh(Edition::Desktop);
        assert!(!fresh.status(DESKTOP).restart_required);
        for change in [
            patch(|patch| patch.port = Some(18_000)),
            patch(|patch| patch.lan_enabled = Some(true)),
        ] {
            let changed = fresh.patched(DESKTOP, &change).unwrap();
            let status = changed.status(DESKTOP);
            assert!(status.restart_required && status.port_editable);
            assert_eq!((status.port, status.lan_enabled), (changed.port, changed.lan));
            let mut everywhere = DESKTOP;
            everywhere.address.set_port(changed.port);
            if changed.lan {
                everywhere.address.set_ip(Ipv4Addr::UNSPECIFIED.into());
            }
            assert!(!changed.status(everywhere).restart_required, "after the restart");
        }
    }

    #[test]
    fn a_server_listens_on_its_configured_address() {
        let fresh = Settings::fresh(Edition::Headless);
        let status = fresh.status(HEADLESS);
        assert_eq!(
            (status.port, status.port_editable, status.restart_required),
            (9000, false, false)
        );
        // A status can be sent back as a patch.
        let same = fresh.patched(HEADLESS, &patch(|patch| patch.port = Some(9000)));
        assert_eq!(same, Ok(fresh.clone()));
        let other = fresh.patched(HEADLESS, &patch(|patch| patch.port = Some(9001)));
        assert_eq!(other, Err(PatchError::Headless("port")));
        let lan = fresh.patched(HEADLESS, &patch(|patch| patch.lan_enabled = Some(true)));
        assert_eq!(lan, Err(PatchError::Headless("lanEnabled")));
    }

    #[test]
    fn a_preset_key_is_taken_once_and_a_forced_one_always() {
        let start = |stored: Option<&str>, preset: PresetKey| {
            let mut settings = Settings::fresh(Edition::Headless);
            settings.key = stored.map(key);
            settings.started(Edition::Headless, Some(preset)).unwrap().key.unwrap()
        };
        let preset = || key("preset-key-1");
        assert_eq!(start(None, PresetKey::Initial(preset())), preset());
        assert_eq!(
            start(Some("stored-key-1"), PresetKey::Initial(preset())),
            key("stored-key-1")
        );
        assert_eq!(start(Some("stored-key-1"), PresetKey::Forced(preset())), preset());
    }

    #[test]
    fn preferences_are_bounded_and_null_removes_one() {
        let set = |settings: &Settings, value: serde_json::Value| {
            let values = [("theme".to_owned(), value)].into();
            settings.preferring(PreferencesPatch { values, sync: true })
        };
        let settings = set(&Settings::fresh(Edition::Desktop), "dark".into()).unwrap();
        assert_eq!(settings.preferences.revision, 1);
        let settings = set(&settings, serde_json::Value::Null).unwrap();
        assert!(settings.preferences.values.is_empty() && settings.preferences.revision == 2);
        let large = "x".repeat(MAX_PREFERENCES_BYTES).into();
        assert_eq!(set(&settings, large), Err(PatchError::PreferencesSize));
        let nested = |depth| (0..depth).fold(serde_json::Value::Bool(true), |inner, _| vec![inner].into());
        let most = set(&settings, nested(MAX_PREFERENCE_DEPTH)).unwrap();
        let stored = serde_json::to_vec(&most).unwrap();
        assert_eq!(
            serde_json::from_slice::<Settings>(&stored).unwrap(),
            most,
            "it is read again"
        );
        let deeper = set(&settings, nested(MAX_PREFERENCE_DEPTH + 1));
        assert_eq!(deeper, Err(PatchError::PreferencesDepth));
    }

    #[test]
    fn the_stored_form_is_read_again() {
        let stored = r#"{"version":1,"key":"stored-key-1","takeover":true,"jsonrpc":true,"api":true,"mcp":true,
            "cors":false,"lan":false,"port":17800,"preferences":{"revision":0,"values":{}}}"#;
        let mut expect = Settings::fresh(Edition::Headless);
        expect.key = Some(key("stored-key-1"));
        assert_eq!(serde_json::from_str::<Settings>(stored).unwrap(), expect);
    }
}
