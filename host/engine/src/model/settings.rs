//! Settings that can be changed while the engine runs, with their wire names and ranges.

mod seeding;
mod value;

use std::{path::PathBuf, sync::Arc};

use jiff::civil::Time;
use transfer::{
    OnConflict, SafeUrl, Secret,
    proxy::{self, UnusableProxy},
};

use crate::model::{
    id::QueueId,
    proxy::SystemProxy,
    queue::{Days, Schedule},
    seeding::SeedSettings,
    settings::value::{boolean, name_of, number, one_of},
    spec,
    speed::Speeds,
};

/// Run-time settings. The names in [`Settings::keys`] are what clients see.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the switches that clients know")]
pub struct Settings {
    /// `default_save_dir`: the default directory; `None` is the configured one.
    pub default_save_dir: Option<PathBuf>,
    /// `default_segments`: 0 to 64; 0 is automatic.
    pub default_segments: u16,
    /// `auto_max_connections`: 0 to 128, the most connections of a run; 0 is the transport's own ceiling.
    pub auto_max_connections: u16,
    /// `max_concurrent_tasks`: 1 to 1024.
    pub max_concurrent_tasks: u32,
    /// `speed_limit_bytes`: bytes per second received by all together; 0 is no limit.
    pub speed_limit_bytes: u64,
    /// `upload_limit_bytes`: bytes per second that all together upload to peers; 0 is no limit.
    pub upload_limit_bytes: u64,
    /// `turtle_enabled`: whether the two limits of the turtle are in force in place of the two above.
    pub is_turtle: bool,
    /// `turtle_speed_limit_bytes`: as `speed_limit_bytes`, while the turtle is on.
    pub turtle_speed_limit_bytes: u64,
    /// `turtle_upload_limit_bytes`: as `upload_limit_bytes`, while the turtle is on.
    pub turtle_upload_limit_bytes: u64,
    /// `turtle_schedule_enabled`, `turtle_schedule_start`, `turtle_schedule_stop` and `turtle_schedule_days`: when the turtle
    /// is switched on and off, in local time.
    pub turtle_schedule: Schedule,
    /// `max_auto_retries`: 0 to 20, or `None` (-1) for endless.
    pub max_auto_retries: Option<u32>,
    /// `auto_retry_delay_secs`: 0 to 86400.
    pub auto_retry_delay_secs: u32,
    /// `auto_resume_on_start`: whether unfinished tasks resume after a restart.
    pub auto_resume_on_start: bool,
    /// `use_server_time`: whether files get the server's time.
    pub use_server_time: bool,
    /// `dedup_same_url`: whether creating a task with an unfinished task's URL returns that task.
    pub dedup_same_url: bool,
    /// `file_exists_behavior`: `rename`, `overwrite` or `skip`.
    pub file_exists_behavior: OnConflict,
    /// `file_missing_action`: `keep` or `delete`.
    pub file_missing_action: FileMissingAction,
    /// `global_user_agent`: empty is the product's own.
    pub global_user_agent: String,
    /// `default_queue_id`: the queue of tasks without one of their own; `main` if it was deleted.
    pub default_queue_id: QueueId,
    /// `bt_follow_torrent_links`: whether a link that leads to a torrent file downloads the torrent instead.
    pub follows_torrents: bool,
    /// `proxy_mode`: `none`, `system` or `manual`.
    pub proxy_mode: ProxyMode,
    /// `proxy_type`: `http`, `https`, `socks4` or `socks5`.
    pub proxy_type: ProxyType,
    /// `proxy_host`.
    pub proxy_host: String,
    /// `proxy_port`: 0 is the type's usual port.
    pub proxy_port: u16,
    /// `proxy_username`.
    pub proxy_username: String,
    /// `proxy_password`.
    pub proxy_password: Secret,
    /// `proxy_no_list`: hosts to reach directly, separated by commas.
    pub proxy_no_list: String,
    /// When and how finished downloads are seeded.
    pub seeding: SeedSettings,
}

/// What to do with a completed task whose file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileMissingAction {
    /// Keep it and mark it.
    #[default]
    Keep,
    /// Delete it.
    Delete,
}

/// Where the proxy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyMode {
    /// No proxy.
    #[default]
    None,
    /// The system's proxy.
    System,
    /// The one in these settings.
    Manual,
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyType {
    /// HTTP `CONNECT`.
    #[default]
    Http,
    /// HTTP `CONNECT` over TLS.
    Https,
    /// SOCKS 4.
    Socks4,
    /// SOCKS 5.
    Socks5,
}

/// The settings and their revision, which grows with every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedSettings {
    /// How often they were changed.
    pub revision: u64,
    /// The settings.
    pub settings: Arc<Settings>,
}

/// Why a setting cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The engine has no such setting.
    #[error("unknown setting \"{0}\"")]
    UnknownKey(String),
    /// The value is not allowed.
    #[error("{key} must be {allowed}")]
    Value {
        /// The setting.
        key: &'static str,
        /// The allowed values.
        allowed: &'static str,
    },
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_save_dir: None,
            default_segments: 0,
            auto_max_connections: 16,
            max_concurrent_tasks: 5,
            speed_limit_bytes: 0,
            upload_limit_bytes: 0,
            is_turtle: false,
            turtle_speed_limit_bytes: 1 << 20,
            turtle_upload_limit_bytes: 256 << 10,
            turtle_schedule: Schedule::default(),
            max_auto_retries: Some(3),
            auto_retry_delay_secs: 5,
            auto_resume_on_start: true,
            use_server_time: false,
            dedup_same_url: false,
            file_exists_behavior: OnConflict::Rename,
            file_missing_action: FileMissingAction::Keep,
            global_user_agent: String::new(),
            default_queue_id: QueueId::Main,
            follows_torrents: true,
            proxy_mode: ProxyMode::None,
            proxy_type: ProxyType::Http,
            proxy_host: String::new(),
            proxy_port: 0,
            proxy_username: String::new(),
            proxy_password: Secret::default(),
            proxy_no_list: String::new(),
            seeding: SeedSettings::default(),
        }
    }
}

/// The largest value of `max_auto_retries` but endless.
pub(crate) const MAX_FINITE_RETRIES: u32 = 20;

const BYTES: &str = "a number of bytes per second, 0 for no limit";

impl Settings {
    /// The keys of this record itself, in the order of the table.
    const OWN_KEYS: [&'static str; 30] = [
        "default_save_dir",
        "default_segments",
        "auto_max_connections",
        "max_concurrent_tasks",
        "speed_limit_bytes",
        "upload_limit_bytes",
        "turtle_enabled",
        "turtle_speed_limit_bytes",
        "turtle_upload_limit_bytes",
        "turtle_schedule_enabled",
        "turtle_schedule_start",
        "turtle_schedule_stop",
        "turtle_schedule_days",
        "max_auto_retries",
        "auto_retry_delay_secs",
        "auto_resume_on_start",
        "use_server_time",
        "dedup_same_url",
        "file_exists_behavior",
        "file_missing_action",
        "global_user_agent",
        "default_queue_id",
        "bt_follow_torrent_links",
        "proxy_mode",
        "proxy_type",
        "proxy_host",
        "proxy_port",
        "proxy_username",
        "proxy_password",
        "proxy_no_list",
    ];

    /// Every key.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        Self::OWN_KEYS.into_iter().chain(SeedSettings::KEYS)
    }

    /// Whether `key` is one of them.
    pub fn has_key(key: &str) -> bool {
        Self::keys().any(|known| known == key)
    }

    /// The value of `key` as clients see it. The proxy's password is in clear text: the caller must not show it.
    pub fn value(&self, key: &str) -> Option<String> {
        Some(match key {
            "default_save_dir" => self
                .default_save_dir
                .as_deref()
                .map(|dir| dir.display().to_string())
                .unwrap_or_default(),
            "default_segments" => self.default_segments.to_string(),
            "auto_max_connections" => self.auto_max_connections.to_string(),
            "max_concurrent_tasks" => self.max_concurrent_tasks.to_string(),
            "speed_limit_bytes" => self.speed_limit_bytes.to_string(),
            "upload_limit_bytes" => self.upload_limit_bytes.to_string(),
            "turtle_enabled" => self.is_turtle.to_string(),
            "turtle_speed_limit_bytes" => self.turtle_speed_limit_bytes.to_string(),
            "turtle_upload_limit_bytes" => self.turtle_upload_limit_bytes.to_string(),
            "turtle_schedule_enabled" => self.turtle_schedule.is_enabled.to_string(),
            "turtle_schedule_start" => Schedule::time_text(self.turtle_schedule.start),
            "turtle_schedule_stop" => Schedule::time_text(self.turtle_schedule.stop),
            "turtle_schedule_days" => self.turtle_schedule.days.bits().to_string(),
            "max_auto_retries" => self
                .max_auto_retries
                .map_or_else(|| "-1".to_owned(), |count| count.to_string()),
            "auto_retry_delay_secs" => self.auto_retry_delay_secs.to_string(),
            "auto_resume_on_start" => self.auto_resume_on_start.to_string(),
            "use_server_time" => self.use_server_time.to_string(),
            "dedup_same_url" => self.dedup_same_url.to_string(),
            "file_exists_behavior" => name_of(OnConflict::NAMES, self.file_exists_behavior),
            "file_missing_action" => name_of(MISSING, self.file_missing_action),
            "global_user_agent" => self.global_user_agent.clone(),
            "default_queue_id" => self.default_queue_id.to_string(),
            "bt_follow_torrent_links" => self.follows_torrents.to_string(),
            "proxy_mode" => name_of(MODES, self.proxy_mode),
            "proxy_type" => name_of(TYPES, self.proxy_type),
            "proxy_host" => self.proxy_host.clone(),
            "proxy_port" if self.proxy_port == 0 => String::new(),
            "proxy_port" => self.proxy_port.to_string(),
            "proxy_username" => self.proxy_username.clone(),
            "proxy_password" => self.proxy_password.expose().to_owned(),
            "proxy_no_list" => self.proxy_no_list.clone(),
            _ => return self.seeding.value(key),
        })
    }

    /// Sets `key` from a client's text, surrounding white space ignored. On an error nothing changes.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), InvalidSetting> {
        let value = value.trim();
        let known = Self::keys().find(|known| *known == key);
        let key = known.ok_or_else(|| InvalidSetting::UnknownKey(key_shown(key)))?;
        match key {
            "default_save_dir" => self.default_save_dir = save_dir(key, value)?,
            "default_segments" => self.default_segments = number(key, value, 0, 64, "a number from 0 to 64")?,
            "auto_max_connections" => {
                self.auto_max_connections = number(key, value, 0, 128, "a number from 0 to 128")?;
            }
            "max_concurrent_tasks" => {
                self.max_concurrent_tasks = number(key, value, 1, 1024, "a number from 1 to 1024")?;
            }
            "speed_limit_bytes" => self.speed_limit_bytes = number(key, value, 0, MAX_RATE, BYTES)?,
            "upload_limit_bytes" => self.upload_limit_bytes = number(key, value, 0, MAX_RATE, BYTES)?,
            "turtle_enabled" => self.is_turtle = boolean(key, value)?,
            "turtle_speed_limit_bytes" => self.turtle_speed_limit_bytes = number(key, value, 0, MAX_RATE, BYTES)?,
            "turtle_upload_limit_bytes" => self.turtle_upload_limit_bytes = number(key, value, 0, MAX_RATE, BYTES)?,
            "turtle_schedule_enabled" => self.turtle_schedule.is_enabled = boolean(key, value)?,
            "turtle_schedule_start" => self.turtle_schedule.start = time(key, value)?,
            "turtle_schedule_stop" => self.turtle_schedule.stop = time(key, value)?,
            "turtle_schedule_days" => {
                self.turtle_schedule.days = Days::from_bits(number(key, value, 0, 127, DAYS)?);
            }
            "max_auto_retries" => {
                let count: i32 = number(
                    key,
                    value,
                    -1,
                    MAX_FINITE_RETRIES.cast_signed(),
                    "a number from -1 (endless) to 20",
                )?;
                self.max_auto_retries = u32::try_from(count).ok();
            }
            "auto_retry_delay_secs" => {
                self.auto_retry_delay_secs = number(key, value, 0, 86_400, "a number from 0 to 86400")?;
            }
            "auto_resume_on_start" => self.auto_resume_on_start = boolean(key, value)?,
            "use_server_time" => self.use_server_time = boolean(key, value)?,
            "dedup_same_url" => self.dedup_same_url = boolean(key, value)?,
            "file_exists_behavior" => {
                self.file_exists_behavior = one_of(key, value, OnConflict::NAMES, "rename, overwrite or skip")?;
            }
            "file_missing_action" => self.file_missing_action = one_of(key, value, MISSING, "keep or delete")?,
            "global_user_agent" => self.global_user_agent = header_text(key, value)?,
            "default_queue_id" => self.default_queue_id = queue_id(key, value)?,
            "bt_follow_torrent_links" => self.follows_torrents = boolean(key, value)?,
            "proxy_mode" => self.proxy_mode = one_of(key, value, MODES, MODES_ALLOWED)?,
            "proxy_type" => self.proxy_type = one_of(key, value, TYPES, "http, https, socks4 or socks5")?,
            "proxy_host" => self.proxy_host = header_text(key, value)?,
            "proxy_port" if value.is_empty() => self.proxy_port = 0,
            "proxy_port" => self.proxy_port = number(key, value, 0, u16::MAX, "a port from 1 to 65535, or empty")?,
            "proxy_username" => self.proxy_username = header_text(key, value)?,
            "proxy_password" => self.proxy_password = Secret::new(header_text(key, value)?),
            "proxy_no_list" => self.proxy_no_list = header_text(key, value)?,
            _ => return self.seeding.set(key, value),
        }
        Ok(())
    }

    /// The limits of all tasks together that are in force.
    pub fn speeds(&self) -> Speeds {
        if self.is_turtle {
            return Speeds {
                download: self.turtle_speed_limit_bytes,
                upload: self.turtle_upload_limit_bytes,
            };
        }
        Speeds {
            download: self.speed_limit_bytes,
            upload: self.upload_limit_bytes,
        }
    }

    /// Checks combinations of values; [`Settings::set`] checks single ones.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let refuse = |key, allowed| Err(InvalidSetting::Value { key, allowed });
        if self
            .default_save_dir
            .as_deref()
            .is_some_and(|dir| spec::validate_dir(dir).is_err())
        {
            return refuse("default_save_dir", ABSOLUTE);
        }
        if self.default_segments > spec::MAX_SEGMENTS {
            return refuse("default_segments", "a number from 0 to 64");
        }
        if self.auto_max_connections > spec::MAX_CONNECTIONS {
            return refuse("auto_max_connections", "a number from 0 to 128");
        }
        if !(1..=1024).contains(&self.max_concurrent_tasks) {
            return refuse("max_concurrent_tasks", "a number from 1 to 1024");
        }
        let Schedule {
            is_enabled,
            start,
            stop,
            ..
        } = self.turtle_schedule;
        if is_enabled && start.is_none() && stop.is_none() {
            return refuse("turtle_schedule_start", "a time when turtle_schedule_stop is none");
        }
        if self.max_auto_retries.is_none() && self.auto_retry_delay_secs == 0 {
            return refuse("auto_retry_delay_secs", "at least 1 when retries are endless");
        }
        if self.proxy_mode == ProxyMode::Manual {
            let proxy = self.manual_proxy().as_ref().map(proxy::check);
            return match proxy {
                Some(Ok(())) => Ok(()),
                Some(Err(UnusableProxy::Login(_))) => {
                    refuse("proxy_username", "empty when proxy_type is socks4; socks5 has logins")
                }
                None | Some(Err(UnusableProxy::NoHost | UnusableProxy::Scheme(_))) => {
                    refuse("proxy_host", "the host of a proxy when proxy_mode is manual")
                }
            };
        }
        Ok(())
    }

    /// The proxy for `url`, if it needs one.
    pub(crate) fn proxy_for(&self, url: &SafeUrl, system: &SystemProxy) -> Option<SafeUrl> {
        let host = url.as_url().host_str().unwrap_or("");
        match self.proxy_mode {
            ProxyMode::None => None,
            ProxyMode::Manual if is_direct(&self.proxy_no_list, host) => None,
            ProxyMode::Manual => self.manual_proxy(),
            ProxyMode::System if is_direct(&system.no_proxy, host) => None,
            ProxyMode::System => {
                let own = match url.scheme() {
                    "http" => &system.http,
                    "https" => &system.https,
                    "ftp" | "ftpes" | "ftps" | "sftp" => &system.ftp,
                    _ => &None,
                };
                own.clone().or_else(|| system.all.clone())
            }
        }
    }

    fn manual_proxy(&self) -> Option<SafeUrl> {
        let (scheme, usual_port) = match self.proxy_type {
            ProxyType::Http => ("http", 8080),
            ProxyType::Https => ("https", 443),
            ProxyType::Socks4 => ("socks4", 1080),
            ProxyType::Socks5 => ("socks5", 1080),
        };
        let port = if self.proxy_port == 0 {
            usual_port
        } else {
            self.proxy_port
        };
        let encode =
            |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let user = match (self.proxy_username.as_str(), self.proxy_password.expose()) {
            ("", _) => String::new(),
            (user, password) => format!("{}:{}@", encode(user), encode(password)),
        };
        // These would end the host within the URL.
        if self.proxy_host.is_empty() || self.proxy_host.contains(['/', '\\', '?', '#', '@']) {
            return None;
        }
        SafeUrl::parse(&format!("{scheme}://{user}{}:{port}", self.proxy_host)).ok()
    }
}

/// Faster than any network, and small enough that the arithmetic of limits cannot overflow.
const MAX_RATE: u64 = 1 << 50;

const DAYS: &str = "a number from 0 to 127: bit 0 is Monday, bit 6 Sunday; 0 is every day";

const ABSOLUTE: &str = "an absolute directory, or empty";

const MISSING: &[(&str, FileMissingAction)] =
    &[("keep", FileMissingAction::Keep), ("delete", FileMissingAction::Delete)];
const MODES: &[(&str, ProxyMode)] = &[
    ("none", ProxyMode::None),
    ("system", ProxyMode::System),
    ("manual", ProxyMode::Manual),
];
const MODES_ALLOWED: &str = "none, system (the proxy of the service's environment) or manual (proxy_host and the other \
                             proxy_ settings); auto, a choice by itself, does not exist";
const TYPES: &[(&str, ProxyType)] = &[
    ("http", ProxyType::Http),
    ("https", ProxyType::Https),
    ("socks4", ProxyType::Socks4),
    ("socks5", ProxyType::Socks5),
];

fn header_text(key: &'static str, value: &str) -> Result<String, InvalidSetting> {
    if value.len() > spec::MAX_HEADER_BYTES || value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(InvalidSetting::Value {
            key,
            allowed: "a text without control characters",
        });
    }
    Ok(value.to_owned())
}

fn time(key: &'static str, value: &str) -> Result<Option<Time>, InvalidSetting> {
    let allowed = "a time as HH:MM, or empty";
    Schedule::parse_time(value).ok_or(InvalidSetting::Value { key, allowed })
}

fn save_dir(key: &'static str, value: &str) -> Result<Option<PathBuf>, InvalidSetting> {
    if value.is_empty() {
        return Ok(None);
    }
    let dir = PathBuf::from(value);
    spec::validate_dir(&dir).map_err(|_| InvalidSetting::Value { key, allowed: ABSOLUTE })?;
    Ok(Some(dir))
}

fn queue_id(key: &'static str, value: &str) -> Result<QueueId, InvalidSetting> {
    if value.is_empty() {
        return Ok(QueueId::Main);
    }
    value.parse().map_err(|_| InvalidSetting::Value {
        key,
        allowed: "the id of a queue",
    })
}

fn key_shown(key: &str) -> String {
    key.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Whether `list` (`host`, `.suffix`, `*.suffix`, `*`, separated by commas) says to reach `host` directly.
fn is_direct(list: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    list.split([',', ';', ' '])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            let entry = entry.to_ascii_lowercase();
            let suffix = entry.trim_start_matches('*').trim_start_matches('.');
            entry == "*" || host == suffix || (!suffix.is_empty() && host.ends_with(&format!(".{suffix}")))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_reads_back_what_it_shows() {
        let defaults = Settings::default();
        for key in Settings::keys() {
            let mut settings = defaults.clone();
            settings.set(key, &defaults.value(key).unwrap()).unwrap();
            assert_eq!(settings, defaults, "{key}");
        }
    }

    #[test]
    fn the_turtles_limits_are_in_force_while_it_is_on() {
        let mut settings = Settings::default();
        settings.set("speed_limit_bytes", "900").unwrap();
        settings.set("turtle_speed_limit_bytes", "7").unwrap();
        settings.set("turtle_upload_limit_bytes", "0").unwrap();
        let speeds = |download, upload| Speeds { download, upload };
        assert_eq!(settings.speeds(), speeds(900, 0));
        settings.set("turtle_enabled", "true").unwrap();
        assert_eq!(settings.speeds(), speeds(7, 0));
        settings.set("turtle_enabled", "false").unwrap();
        assert_eq!(settings.speeds(), speeds(900, 0));
    }

    #[test]
    fn ratios_are_kept_in_thousandths() {
        let mut settings = Settings::default();
        for (text, milli, shown) in [
            ("1.5", 1500, "1.5"),
            ("0.0004", 0, "0"),
            ("2", 2000, "2"),
            (".125", 125, "0.125"),
        ] {
            settings.set("bt_seed_ratio_limit", text).unwrap();
            assert_eq!(settings.seeding.ratio_milli, milli);
            assert_eq!(settings.value("bt_seed_ratio_limit").unwrap(), shown);
        }
    }

    #[test]
    fn values_outside_their_range_are_refused_and_change_nothing() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("default_segments", "65"),
            ("default_segments", "-1"),
            ("max_concurrent_tasks", "0"),
            ("max_concurrent_tasks", "1025"),
            ("max_auto_retries", "-2"),
            ("max_auto_retries", "21"),
            ("auto_max_connections", "129"),
            ("auto_retry_delay_secs", "86401"),
            ("use_server_time", "yes"),
            ("file_exists_behavior", "ask"),
            ("global_user_agent", "a\u{7}b"),
            ("default_save_dir", "relative/dir"),
            ("proxy_port", "65536"),
            ("default_queue_id", "nowhere"),
            ("bt_seed_ratio_limit", "-1"),
            ("bt_seed_ratio_limit", "NaN"),
            ("bt_seed_time_limit_minutes", "1.5"),
            ("bt_seed_limit_operator", "xor"),
            ("bt_seed_then_action", "forget"),
        ] {
            let message = settings.set(key, value).unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
        }
        assert_eq!(settings, Settings::default());
        assert!(matches!(
            settings.set("no_such_key", "1"),
            Err(InvalidSetting::UnknownKey(_))
        ));
    }

    #[test]
    fn the_manual_proxy_carries_its_credentials_and_spares_its_exceptions() {
        let mut settings = Settings {
            proxy_mode: ProxyMode::Manual,
            ..Settings::default()
        };
        assert!(settings.validate().is_err());
        for (key, value) in [
            ("proxy_host", "p.test"),
            ("proxy_type", "socks5"),
            ("proxy_username", "me"),
            ("proxy_password", "p@ss"),
            ("proxy_no_list", "*.lan, exact.test"),
        ] {
            settings.set(key, value).unwrap();
        }
        settings.validate().unwrap();
        let proxy = |url: &str| {
            let url = SafeUrl::parse(url).unwrap();
            settings
                .proxy_for(&url, &SystemProxy::default())
                .map(|proxy| proxy.expose().to_owned())
        };
        assert_eq!(
            proxy("http://a.test/").as_deref(),
            Some("socks5://me:p%40ss@p.test:1080")
        );
        let mut four = settings.clone();
        four.set("proxy_type", "socks4").unwrap();
        let error = four.validate().unwrap_err().to_string();
        assert!(error.starts_with("proxy_username must be empty"), "{error}");
        four.set("proxy_username", "").unwrap();
        four.validate().unwrap();
        let error = four.set("proxy_mode", "auto").unwrap_err().to_string();
        assert!(error.contains("none, system") && error.contains("auto"), "{error}");
        assert_eq!(proxy("http://nas.lan/"), None);
        assert_eq!(proxy("http://exact.test/"), None);
        assert!(proxy("http://inexact.test/").is_some());
    }
}
