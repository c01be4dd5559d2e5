//! The settings of the session of all torrents: their names, values and defaults, each in one place.

use std::collections::BTreeMap;

use metainfo::MAX_TRACKERS;
use transfer::SafeUrl;
use transfer_torrent::{Encryption, Settings};

/// The most lists of trackers. Each is read once a day.
const MAX_LISTS: usize = 16;

/// The most connections of all torrents, which are descriptors of the process.
const MAX_CONNECTIONS: u16 = 2_000;

/// The values of `bt_mse_mode`.
const MODES: [(&str, Encryption); 3] = [
    ("disabled", Encryption::Disabled),
    ("enabled", Encryption::Enabled),
    ("forced", Encryption::Forced),
];

/// All keys.
pub(crate) const KEYS: [&str; 12] = [
    "bt_enable_dht",
    "bt_enable_upnp",
    "bt_enable_lsd",
    "bt_enable_pex",
    "bt_port_start",
    "bt_port_end",
    "bt_mse_mode",
    "bt_custom_trackers",
    "bt_tracker_sub_enabled",
    "bt_tracker_sub_urls",
    "bt_max_connections",
    "bt_max_connections_per_torrent",
];

/// The values of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TorrentSettings {
    /// `bt_port_start`, `bt_port_end`: the ports of which the first free one accepts peers. From the next start on.
    ports: (u16, u16),
    /// `bt_tracker_sub_enabled`: whether the lists are read.
    reads_lists: bool,
    /// `bt_tracker_sub_urls`: URLs of lists of trackers.
    lists: Vec<SafeUrl>,
    /// The others: `bt_enable_dht`, `bt_enable_upnp` (also NAT-PMP), `bt_enable_lsd`, `bt_enable_pex`,
    /// `bt_mse_mode` (whether connections to peers look like random bytes), `bt_custom_trackers`, `bt_max_connections`,
    /// `bt_max_connections_per_torrent`.
    session: Settings,
}

/// Why a value is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidValue {
    /// For one key.
    #[error("{key} must be {allowed}")]
    Value { key: &'static str, allowed: String },
    /// There is no such key.
    #[error("unknown setting")]
    Key,
}

impl Default for TorrentSettings {
    fn default() -> Self {
        let session = Settings::default();
        Self {
            ports: (*session.ports.start(), *session.ports.end()),
            reads_lists: true,
            lists: Vec::new(),
            session,
        }
    }
}

impl TorrentSettings {
    /// Those that were stored. A value that another version stored, and this one does not allow, is left out.
    pub(crate) fn stored(values: &BTreeMap<String, String>) -> Self {
        let mut settings = Self::default();
        for key in KEYS {
            let Some(value) = values.get(key) else { continue };
            if let Err(error) = settings.set(key, value) {
                tracing::warn!(%error, "a stored setting of torrents is not used");
            }
        }
        settings
    }

    /// The value of `key` as clients see it.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        Some(match key {
            "bt_enable_dht" => self.session.is_dht_on.to_string(),
            "bt_enable_upnp" => self.session.is_port_mapping_on.to_string(),
            "bt_enable_lsd" => self.session.is_lsd_on.to_string(),
            "bt_enable_pex" => self.session.is_exchange_on.to_string(),
            "bt_port_start" => self.ports.0.to_string(),
            "bt_port_end" => self.ports.1.to_string(),
            "bt_mse_mode" => {
                let mode = MODES.iter().find(|(_, mode)| *mode == self.session.encryption);
                mode.map_or("", |(name, _)| name).to_owned()
            }
            "bt_custom_trackers" => lines(&self.session.trackers),
            "bt_tracker_sub_enabled" => self.reads_lists.to_string(),
            "bt_tracker_sub_urls" => lines(&self.lists),
            "bt_max_connections" => self.session.max_connections.to_string(),
            "bt_max_connections_per_torrent" => self.session.max_connections_per_torrent.to_string(),
            _ => return None,
        })
    }

    /// Sets `key` from a client's text. On an error nothing changes.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), InvalidValue> {
        let key = KEYS.into_iter().find(|known| *known == key).ok_or(InvalidValue::Key)?;
        let (value, session) = (value.trim(), &mut self.session);
        match key {
            "bt_enable_dht" => session.is_dht_on = boolean(key, value)?,
            "bt_enable_upnp" => session.is_port_mapping_on = boolean(key, value)?,
            "bt_enable_lsd" => session.is_lsd_on = boolean(key, value)?,
            "bt_enable_pex" => session.is_exchange_on = boolean(key, value)?,
            "bt_port_start" => self.ports.0 = number(key, value, u16::MAX, "a port")?,
            "bt_port_end" => self.ports.1 = number(key, value, u16::MAX, "a port")?,
            "bt_mse_mode" => session.encryption = mode(key, value)?,
            "bt_custom_trackers" => {
                let kind = "URLs of trackers (http, https or udp)";
                session.trackers = urls(key, value, (kind, MAX_TRACKERS), metainfo::tracker)?;
            }
            "bt_tracker_sub_enabled" => self.reads_lists = boolean(key, value)?,
            "bt_tracker_sub_urls" => {
                let kind = "URLs of lists of trackers (http or https)";
                self.lists = urls(key, value, (kind, MAX_LISTS), metainfo::webseed)?;
            }
            "bt_max_connections" => session.max_connections = number(key, value, MAX_CONNECTIONS, "a number")?,
            _ => session.max_connections_per_torrent = number(key, value, MAX_CONNECTIONS, "a number")?,
        }
        Ok(())
    }

    /// Checks values against each other.
    pub(crate) fn validate(&self) -> Result<(), InvalidValue> {
        if self.ports.0 > self.ports.1 {
            return Err(InvalidValue::Value {
                key: "bt_port_end",
                allowed: format!("at least bt_port_start, which is {}", self.ports.0),
            });
        }
        Ok(())
    }

    /// Whether a list of trackers is to be read.
    pub(crate) fn reads_a_list(&self) -> bool {
        self.reads_lists && !self.lists.is_empty()
    }

    /// What the session is run with, beside the proxy of the engine's settings.
    pub(crate) fn session(&self, proxy: Option<SafeUrl>) -> Settings {
        Settings {
            ports: self.ports.0..=self.ports.1.max(self.ports.0),
            tracker_lists: if self.reads_lists {
                self.lists.clone()
            } else {
                Vec::new()
            },
            proxy,
            ..self.session.clone()
        }
    }
}

fn lines(urls: &[SafeUrl]) -> String {
    let urls: Vec<_> = urls.iter().map(SafeUrl::expose).collect();
    urls.join("\n")
}

/// URLs between white space or commas.
fn urls(
    key: &'static str,
    text: &str,
    (kind, most): (&str, usize),
    read: fn(&str) -> Option<SafeUrl>,
) -> Result<Vec<SafeUrl>, InvalidValue> {
    let parts = text.split([',', ' ', '\t', '\r', '\n']).filter(|part| !part.is_empty());
    let urls: Option<Vec<_>> = parts.take(most + 1).map(read).collect();
    let allowed = || format!("at most {most} {kind}, between spaces, commas or line ends");
    let urls = urls.filter(|urls| urls.len() <= most);
    urls.ok_or_else(|| InvalidValue::Value {
        key,
        allowed: allowed(),
    })
}

fn number(key: &'static str, value: &str, most: u16, kind: &str) -> Result<u16, InvalidValue> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| InvalidValue::Value {
        key,
        allowed: format!("{kind} from 1 to {most}"),
    })
}

fn mode(key: &'static str, value: &str) -> Result<Encryption, InvalidValue> {
    let mode = MODES.iter().find(|(name, _)| *name == value);
    mode.map(|(_, mode)| *mode).ok_or_else(|| InvalidValue::Value {
        key,
        allowed: "disabled, enabled or forced".to_owned(),
    })
}

fn boolean(key: &'static str, value: &str) -> Result<bool, InvalidValue> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(InvalidValue::Value {
            key,
            allowed: "true or false".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_reads_back_what_it_shows() {
        let usual = TorrentSettings::default();
        for key in KEYS {
            let mut settings = usual.clone();
            settings.set(key, &usual.value(key).unwrap()).unwrap();
            assert_eq!(settings, usual, "{key}");
        }
        assert_eq!(usual.value("bt_seed_enabled"), None, "that one is the engine's");
    }

    #[test]
    fn values_outside_their_range_are_refused_and_change_nothing() {
        let mut settings = TorrentSettings::default();
        for (key, value) in [
            ("bt_enable_dht", "yes"),
            ("bt_mse_mode", "on"),
            ("bt_port_start", "0"),
            ("bt_port_end", "65536"),
            ("bt_custom_trackers", "udp://a.test:1 wss://b.test/"),
            ("bt_tracker_sub_urls", "udp://a.test:1"),
            ("bt_max_connections", "0"),
            ("bt_max_connections_per_torrent", "2001"),
        ] {
            let message = settings.set(key, value).unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
        }
        assert_eq!(settings, TorrentSettings::default());
        settings.set("bt_port_start", "7000").unwrap();
        assert!(settings.validate().unwrap_err().to_string().starts_with("bt_port_end"));
        settings.set("bt_port_end", "7000").unwrap();
        settings.validate().unwrap();
        assert_eq!(settings.session(None).ports, 7000..=7000);
    }

    #[test]
    fn lists_are_read_while_that_is_on() {
        let mut settings = TorrentSettings::default();
        settings
            .set("bt_tracker_sub_urls", "https://a.test/l,\nhttp://b.test/l")
            .unwrap();
        assert_eq!(settings.session(None).tracker_lists.len(), 2);
        assert_eq!(
            settings.value("bt_tracker_sub_urls").unwrap(),
            "https://a.test/l\nhttp://b.test/l"
        );
        settings.set("bt_tracker_sub_enabled", "false").unwrap();
        assert!(settings.session(None).tracker_lists.is_empty());
        let stored = BTreeMap::from([("bt_enable_dht".to_owned(), "false".to_owned())]);
        assert!(!TorrentSettings::stored(&stored).session(None).is_dht_on);
    }
}
