//! aria2's options: which there are, what values they take, and what becomes of them here, whether clients give them or a
//! program in aria2's place is started with them. Pure.

mod request;
mod table;

use std::collections::BTreeMap;

use protocol::{ConfigSnapshot, MAX_REQUEST_BYTES};
use serde_json::{Map, Value};

pub(super) use request::{apply, change, shown};
pub use request::{created, proxy, saved};
pub use table::LETTERS;
use table::{AT_START, ROWS};

pub use super::fault::Refusal;
use super::{fault::Fault, gid::Gid};

/// What an option's value is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Flag,
    /// A whole number within bounds.
    Number(u64, u64),
    /// The same with `K` or `M` behind it, for 1024 and its square.
    Size(u64, u64),
    /// A number that is not negative.
    Float,
    OneOf(&'static [&'static str]),
    Text,
    /// A text, or several in a list.
    Lines,
    /// `algorithm=hex`.
    Checksum,
    Gid,
}

/// Where an option can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// With a download, and as the usual for those to come.
    Request,
    /// For everything only.
    Global,
    /// With a program that is started in aria2's place.
    Start,
}

/// What an option does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// What it does in aria2.
    Acts,
    /// Nothing: it is about what does not exist here (torrents, FTP), or about how aria2 does what is done otherwise here.
    /// The file is the same.
    Inert,
    /// Any value but the default is refused: without the option, something else would happen than was asked for.
    Refused,
}

/// An option.
#[derive(Debug)]
pub struct Row {
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    scope: Scope,
    effect: Effect,
}

/// The algorithms that a checksum may have, and their digits.
const CHECKSUMS: [(&str, usize); 5] = [
    ("sha-1", 40),
    ("sha-256", 64),
    ("sha-512", 128),
    ("md5", 32),
    ("adler32", 8),
];

/// Options of a download that cannot be the usual for all.
const NOT_GLOBAL: [&str; 6] = ["checksum", "gid", "index-out", "out", "pause", "select-file"];

/// Options that cannot change once there is a download.
const NOT_CHANGEABLE: [&str; 7] = [
    "dry-run",
    "gid",
    "metalink-base-uri",
    "parameterized-uri",
    "pause",
    "piece-length",
    "rpc-save-upload-metadata",
];

/// Where options are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    WithDownload,
    ToDownload,
    ToAll,
}

impl Row {
    /// Every option.
    pub fn all() -> &'static [Self] {
        ROWS
    }

    /// The option of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// The option of this letter.
    pub fn of_letter(letter: char) -> Option<&'static Self> {
        let (_, name) = LETTERS.iter().find(|(known, _)| *known == letter)?;
        Self::of(name)
    }

    /// Its name, without the dashes.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its value if nobody says anything; none is a setting, or nothing.
    pub fn default(&self) -> Option<&'static str> {
        self.default
    }

    /// Whether it may stand without a value, which is then `true`.
    pub fn stands_alone(&self) -> bool {
        matches!(self.kind, Kind::Flag) || self.name == "optimize-concurrent-downloads"
    }

    /// Whether it may stand several times, and every time counts.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Lines)
    }

    /// Whether a line of an input file may give it to its download.
    pub fn is_of_download(&self) -> bool {
        self.scope == Scope::Request
    }

    /// Whether it goes with each download that it is given to and is nothing for the others.
    pub fn is_own(&self) -> bool {
        NOT_GLOBAL.contains(&self.name)
    }

    /// Whether it is taken and changes nothing.
    pub fn is_inert(&self) -> bool {
        self.effect_at_start() == Effect::Inert
    }

    /// Whether clients of aria2's dialect can give it.
    pub fn is_of_clients(&self) -> bool {
        self.scope != Scope::Start && self.effect != Effect::Refused
    }

    /// Whether a program that is started with it does not start.
    pub fn is_refused(&self) -> bool {
        self.effect_at_start() == Effect::Refused
    }

    fn effect_at_start(&self) -> Effect {
        let other = AT_START.iter().find(|(name, _)| *name == self.name);
        other.map_or(self.effect, |(_, effect)| *effect)
    }

    /// The value as it is kept, for a program that is started with it. What it would not do is refused by name.
    pub fn read_at_start(&self, text: &str) -> Result<String, Refusal> {
        Ok(self.read_for(text, self.effect_at_start())?)
    }

    fn allows(&self, given: Given) -> bool {
        match given {
            Given::WithDownload => self.scope == Scope::Request,
            Given::ToDownload => self.scope == Scope::Request && !NOT_CHANGEABLE.contains(&self.name),
            Given::ToAll => self.scope != Scope::Start && !NOT_GLOBAL.contains(&self.name),
        }
    }

    /// The value as aria2 keeps it.
    fn read(&self, text: &str) -> Result<String, Fault> {
        self.read_for(text, self.effect)
    }

    fn read_for(&self, text: &str, effect: Effect) -> Result<String, Fault> {
        let bad = || Fault::bad_option(self.name);
        let within = |number: u64, least, most| {
            if (least..=most).contains(&number) {
                Ok(number.to_string())
            } else {
                Err(bad())
            }
        };
        let value = match self.kind {
            Kind::Flag if matches!(text, "true" | "false") => text.to_owned(),
            Kind::Flag => return Err(bad()),
            Kind::Number(least, most) => within(text.parse().map_err(|_| bad())?, least, most)?,
            Kind::Size(least, most) => within(size(text).ok_or_else(bad)?, least, most)?,
            Kind::Float if text.parse::<f64>().is_ok_and(|number| number >= 0.0) => text.to_owned(),
            Kind::Float => return Err(bad()),
            Kind::OneOf(allowed) if allowed.contains(&text) => text.to_owned(),
            Kind::OneOf(_) => return Err(bad()),
            Kind::Text | Kind::Lines => text.to_owned(),
            Kind::Checksum => checksum(text).ok_or_else(bad)?,
            Kind::Gid => Gid::chosen(text).ok_or_else(bad)?.to_string(),
        };
        if effect == Effect::Refused && value != self.default.unwrap_or("") {
            return Err(Fault::new(format!(
                "The option '--{}' is not supported by Svc.",
                self.name
            )));
        }
        Ok(value)
    }
}

fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1024),
        b'M' | b'm' => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn checksum(text: &str) -> Option<String> {
    let (name, digest) = text.split_once('=')?;
    let name = name.to_ascii_lowercase();
    let (_, digits) = CHECKSUMS.iter().find(|(known, _)| *known == name)?;
    let is_hex = digest.len() == *digits && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| format!("{name}={}", digest.to_ascii_lowercase()))
}

/// Options and their values, each as aria2 keeps it; lists with a line for each item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<&'static str, String>);

impl Options {
    /// What their values have together.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().map(String::len).sum()
    }

    /// Reads what a client gave. What aria2 does not know, or does not take here, does not count, as it does there.
    pub(super) fn read(given: Option<&Map<String, Value>>, place: Given) -> Result<Self, Fault> {
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

    /// These for a file of a document, which names it and may say what it hashes to.
    pub(super) fn of_file(&self, name: &str, checksum: Option<String>) -> Self {
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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has this option and no other.
    pub(super) fn is_only(&self, name: &str) -> bool {
        self.0.len() == 1 && self.0.contains_key(name)
    }

    /// These, and those below that are not among them.
    #[must_use]
    pub fn over(mut self, below: &Self) -> Self {
        for (name, value) in &below.0 {
            self.0.entry(name).or_insert_with(|| value.clone());
        }
        self
    }

    /// The usual options of downloads, or all of them with those of the service itself.
    pub(super) fn usual(is_global: bool) -> Self {
        let rows = ROWS
            .iter()
            .filter(|row| row.scope == Scope::Request || is_global && row.scope == Scope::Global);
        Self(
            rows.filter_map(|row| Some((row.name, row.default?.to_owned())))
                .collect(),
        )
    }

    /// What a program that was started with these tells of its own options: all that it takes, but for its secret.
    #[must_use]
    pub fn of_start(&self) -> Self {
        let is_told = |row: &&Row| row.scope == Scope::Start && row.name != "rpc-secret" && !row.is_refused();
        let rows = ROWS.iter().filter(is_told);
        let value = |row: &Row| self.get(row.name).or(row.default).map(str::to_owned);
        Self(rows.filter_map(|row| Some((row.name, value(row)?))).collect())
    }

    /// The options that are settings of the service, as the settings have them.
    pub(super) fn of_settings(config: &ConfigSnapshot, dir: &str, is_global: bool) -> Self {
        let value = |key: &str| config.values.get(key).map_or("", String::as_str);
        let ceiling = Some(value("auto_max_connections"))
            .filter(|most| *most != "0")
            .unwrap_or("16");
        let split = Some(value("default_segments"))
            .filter(|segments| *segments != "0")
            .unwrap_or(ceiling);
        let mut options = Self::default();
        let mut put = |name: &'static str, value: &str| drop(options.0.insert(name, value.to_owned()));
        put("dir", dir);
        put("split", split);
        put("max-connection-per-server", ceiling);
        put("user-agent", value("global_user_agent"));
        put("remote-time", value("use_server_time"));
        let rule = value("file_exists_behavior");
        put("allow-overwrite", if rule == "overwrite" { "true" } else { "false" });
        put("auto-file-renaming", if rule == "skip" { "false" } else { "true" });
        if is_global {
            put("max-concurrent-downloads", value("max_concurrent_tasks"));
            put("max-overall-download-limit", value("speed_limit_bytes"));
            put("max-overall-upload-limit", value("upload_limit_bytes"));
        }
        options
    }

    /// Takes out the options that are settings of the service, and says which settings become what.
    pub(super) fn take_settings(&mut self) -> BTreeMap<String, String> {
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
        ] {
            if let Some(value) = self.0.remove(name) {
                let value = limit.map_or_else(|| value.clone(), |limit| most(value.clone(), limit));
                settings.insert(key.to_owned(), value);
            }
        }
        settings
    }

    /// Gives an option a value that was read; a list gets one more line, `with` its others or in their place.
    pub fn put(&mut self, row: &'static Row, value: String, with: bool) {
        let before = self.0.entry(row.name).or_default();
        if with && row.is_list() && !before.is_empty() {
            before.push('\n');
            before.push_str(&value);
        } else {
            *before = value;
        }
    }

    /// Those of them that `keeps` names.
    #[must_use]
    pub fn filtered(&self, keeps: impl Fn(&Row) -> bool) -> Self {
        let kept = self.0.iter().filter(|(name, _)| Row::of(name).is_some_and(&keeps));
        Self(kept.map(|(name, value)| (*name, value.clone())).collect())
    }

    /// The options and their values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The options that a client may read: no password, no value of a header, and no login of a proxy.
    #[must_use]
    pub(super) fn without_secrets(mut self) -> Self {
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

    /// Gives headers that come back as they were shown the values that they have `before`.
    pub(super) fn keep_hidden(&mut self, before: &Self) {
        let Some(lines) = self.0.get_mut("header") else { return };
        let known: Vec<&str> = before.get("header").unwrap_or_default().lines().collect();
        let kept = |line: &str| {
            let known = known.iter().find(|known| hidden(known) == format!("{line}\n"));
            format!("{}\n", known.copied().unwrap_or(line))
        };
        *lines = lines.lines().map(kept).collect();
    }

    /// The options as an object.
    pub fn into_value(self) -> Value {
        self.0
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// A line of `header` without its value: any header may carry a key.
fn hidden(line: &str) -> String {
    let name = line.split_once(':').map_or(line, |(name, _)| name);
    format!("{name}: ***\n")
}

/// The most segments and tasks at once that the service has; aria2 has no such limit.
const MAX_SEGMENTS: u64 = 64;
const MAX_CONCURRENT: u64 = 1024;

#[cfg(test)]
mod tests;
