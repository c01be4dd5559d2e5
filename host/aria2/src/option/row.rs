//! An option: what values it takes, where it can be given, and what it does here.

use crate::vocabulary::{fault::Fault, gid::Gid};

/// What an option's value is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
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
pub(super) enum Scope {
    /// With a download, and as the usual for those to come.
    Request,
    /// For everything only.
    Global,
    /// With a program that is started in aria2's place.
    Start,
}

/// What an option does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
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
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Option<&'static str>,
    pub(super) scope: Scope,
    pub(super) effect: Effect,
}

/// The algorithms that a checksum may have, and their digits.
pub(super) const CHECKSUMS: [(&str, usize); 5] = [
    ("sha-1", 40),
    ("sha-256", 64),
    ("sha-512", 128),
    ("md5", 32),
    ("adler32", 8),
];

/// Options of a download that cannot be the usual for all.
pub(super) const NOT_GLOBAL: [&str; 6] = ["checksum", "gid", "index-out", "out", "pause", "select-file"];

/// Options that cannot change once there is a download.
pub(super) const NOT_CHANGEABLE: [&str; 7] = [
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
pub(crate) enum Given {
    WithDownload,
    ToDownload,
    ToAll,
}

impl Row {
    /// Its name, without the dashes.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its default; none if the service's settings decide, or if there is none.
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
    pub fn allowed_in_input_file(&self) -> bool {
        self.scope == Scope::Request
    }

    /// Whether it goes with each download that it is given to and is nothing for the others.
    pub fn per_download_only(&self) -> bool {
        NOT_GLOBAL.contains(&self.name)
    }

    pub(super) fn allows(&self, given: Given) -> bool {
        match given {
            Given::WithDownload => self.scope == Scope::Request,
            Given::ToDownload => self.scope == Scope::Request && !NOT_CHANGEABLE.contains(&self.name),
            Given::ToAll => self.scope != Scope::Start && !NOT_GLOBAL.contains(&self.name),
        }
    }

    /// The value as aria2 keeps it.
    pub(super) fn read(&self, text: &str) -> Result<String, Fault> {
        self.read_for(text, self.effect)
    }

    pub(super) fn read_for(&self, text: &str, effect: Effect) -> Result<String, Fault> {
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
