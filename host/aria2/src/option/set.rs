//! Sets of options with values, from clients, service settings, and command lines.

use std::collections::BTreeMap;

use protocol::{ConfigSnapshot, MAX_REQUEST_BYTES};
use serde_json::{Map, Value};

use super::{
    row::{Kind, OptionScope, Row, Scope},
    table::ROWS,
};
use crate::vocabulary::fault::Fault;

/// The service's limits of segments and concurrent tasks; aria2 has none.
pub(super) const MAX_SEGMENTS: u64 = 64;
const MAX_CONCURRENT: u64 = 1024;

/// Values are in aria2's normalized form; lists have one line per item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(pub(super) BTreeMap<&'static str, String>);

impl Options {
    /// Total bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.0.values().map(String::len).sum()
    }

    /// Parses options of a client. Unknown ones, and those that cannot be set at this place, are ignored, as in aria2.
    pub(crate) fn read(given: Option<&Map<String, Value>>, place: OptionScope) -> Result<Self, Fault> {
        let mut options = Self::default();
        for (name, value) in given.into_iter().flatten() {
            let Some(row) = Row::of(name).filter(|row| row.allows(place)) else {
                continue;
            };
            let value = match value {
                Value::String(text) => row.read(text)?,
                Value::Number(number) => row.read(&number.to_string())?,
                Value::Bool(is_true) => row.read(if *is_true { "true" } else { "false" })?,
                Value::Array(lines) if matches!(row.kind, Kind::Lines) => {
                    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                    lines.join("\n")
                }
                _ => continue,
            };
            options.0.insert(row.name, value);
        }
        let bytes: usize = options.0.values().map(String::len).sum();
        if bytes > MAX_REQUEST_BYTES / 2 {
            return Err(Fault::new("The options are too large."));
        }
        Ok(options)
    }

    /// The options for a file of a document, with its name and checksum.
    pub(crate) fn of_file(&self, name: &str, checksum: Option<String>) -> Self {
        let mut options = self.clone();
        options.0.insert("out", name.to_owned());
        if let Some(checksum) = checksum {
            options.0.entry("checksum").or_insert(checksum);
        }
        options
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has this option and no other.
    pub(crate) fn is_only(&self, name: &str) -> bool {
        self.0.len() == 1 && self.0.contains_key(name)
    }

    /// `self`, completed from `below`: where both have an option, `self` has precedence.
    #[must_use]
    pub fn over(mut self, below: &Self) -> Self {
        for (name, value) in &below.0 {
            self.0.entry(name).or_insert_with(|| value.clone());
        }
        self
    }

    /// aria2's defaults for downloads; with global options if `is_global`.
    pub(crate) fn usual(is_global: bool) -> Self {
        let rows = ROWS
            .iter()
            .filter(|row| row.scope == Scope::Request || is_global && row.scope == Scope::Global);
        Self(
            rows.filter_map(|row| Some((row.name, row.default?.to_owned())))
                .collect(),
        )
    }

    /// The options of the program itself (not of downloads) with which it was started or their defaults, for
    /// `getGlobalOption`. Without `rpc-secret`: aria2 does not report it either.
    #[must_use]
    pub fn of_start(&self) -> Self {
        let is_reported = |row: &&Row| row.scope == Scope::Start && row.name != "rpc-secret" && !row.is_refused();
        let rows = ROWS.iter().filter(is_reported);
        let value = |row: &Row| self.get(row.name).or(row.default).map(str::to_owned);
        Self(rows.filter_map(|row| Some((row.name, value(row)?))).collect())
    }

    /// The options that correspond to service settings.
    pub(crate) fn of_settings(config: &ConfigSnapshot, dir: &str, is_global: bool) -> Self {
        let value = |key: &str| config.values.get(key).map_or("", String::as_str);
        let ceiling = Some(value("auto_max_connections"))
            .filter(|most| *most != "0")
            .unwrap_or("16");
        let split = Some(value("default_segments"))
            .filter(|segments| *segments != "0")
            .unwrap_or(ceiling);
        let mut options = Self::default();
        let mut put = |name: &'static str, value: &str| {
            // A service without torrents has no such setting.
            if !value.is_empty() || matches!(name, "dir" | "user-agent" | "remote-time") {
                options.0.insert(name, value.to_owned());
            }
        };
        put("dir", dir);
        put("split", split);
        put("max-connection-per-server", ceiling);
        put("user-agent", value("global_user_agent"));
        put("remote-time", value("use_server_time"));
        let rule = value("file_exists_behavior");
        put("allow-overwrite", if rule == "overwrite" { "true" } else { "false" });
        put("auto-file-renaming", if rule == "skip" { "false" } else { "true" });
        put("bt-enable-lpd", value("bt_enable_lsd"));
        put("bt-max-peers", value("bt_max_connections_per_torrent"));
        put("enable-peer-exchange", value("bt_enable_pex"));
        put("follow-torrent", value("bt_follow_torrent_links"));
        put("seed-ratio", value("bt_seed_ratio_limit"));
        let minutes = value("bt_seed_time_limit_minutes");
        if value("bt_seed_enabled") == "false" {
            put("seed-time", "0");
        } else if minutes != "0" {
            put("seed-time", minutes);
        }
        if is_global {
            put("max-overall-upload-limit", value("upload_limit_bytes"));
            put("max-concurrent-downloads", value("max_concurrent_tasks"));
            put("max-overall-download-limit", value("speed_limit_bytes"));
        }
        options
    }

    /// Removes the options that correspond to service settings, and returns the settings patch.
    pub(crate) fn take_settings(&mut self) -> BTreeMap<String, String> {
        let most = |text: String, most: u64| text.parse().map_or(text, |number: u64| number.min(most).to_string());
        let mut settings = BTreeMap::new();
        for (name, key, limit) in [
            ("dir", "default_save_dir", None),
            ("split", "default_segments", Some(MAX_SEGMENTS)),
            ("max-connection-per-server", "auto_max_connections", None),
            ("user-agent", "global_user_agent", None),
            ("remote-time", "use_server_time", None),
            ("max-concurrent-downloads", "max_concurrent_tasks", Some(MAX_CONCURRENT)),
            ("max-overall-download-limit", "speed_limit_bytes", None),
            ("max-overall-upload-limit", "upload_limit_bytes", None),
            ("bt-enable-lpd", "bt_enable_lsd", None),
            ("enable-peer-exchange", "bt_enable_pex", None),
        ] {
            if let Some(value) = self.0.remove(name) {
                let value = limit.map_or_else(|| value.clone(), |limit| most(value.clone(), limit));
                settings.insert(key.to_owned(), value);
            }
        }
        settings
    }

    /// Sets a parsed value. For a list, `with` appends to its items instead of replacing them.
    pub fn put(&mut self, row: &'static Row, value: String, with: bool) {
        let before = self.0.entry(row.name).or_default();
        if with && row.is_list() && !before.is_empty() {
            before.push('\n');
            before.push_str(&value);
        } else {
            *before = value;
        }
    }

    /// The options that `keeps` accepts.
    #[must_use]
    pub fn filtered(&self, keeps: impl Fn(&Row) -> bool) -> Self {
        let kept = self.0.iter().filter(|(name, _)| Row::of(name).is_some_and(&keeps));
        Self(kept.map(|(name, value)| (*name, value.clone())).collect())
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The options without secrets: no passwords, header values, or proxy logins.
    #[must_use]
    pub(crate) fn without_secrets(mut self) -> Self {
        self.0
            .retain(|name, _| !name.ends_with("-passwd") && *name != "rpc-secret");
        for (name, value) in &mut self.0 {
            if *name == "header" {
                *value = value.lines().map(hidden).collect();
            } else if name.ends_with("-proxy")
                && let Some((scheme, rest)) = value.split_once("://")
                && let Some((_, place)) = rest.rsplit_once('@')
            {
                *value = format!("{scheme}://{place}");
            } else if name.ends_with("-proxy")
                && let Some((_, place)) = value.rsplit_once('@')
            {
                *value = place.to_owned();
            }
        }
        self
    }

    /// Restores the values of headers that a client sends back in their redacted form.
    pub(crate) fn keep_hidden(&mut self, before: &Self) {
        let Some(lines) = self.0.get_mut("header") else { return };
        let known: Vec<&str> = before.get("header").unwrap_or_default().lines().collect();
        let kept = |line: &str| {
            let known = known.iter().find(|known| hidden(known) == format!("{line}\n"));
            format!("{}\n", known.copied().unwrap_or(line))
        };
        *lines = lines.lines().map(kept).collect();
    }

    /// As a JSON object.
    pub fn into_value(self) -> Value {
        self.0
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// A redacted `header` line: any header may contain a key.
fn hidden(line: &str) -> String {
    let name = line.split_once(':').map_or(line, |(name, _)| name);
    format!("{name}: ***\n")
}
