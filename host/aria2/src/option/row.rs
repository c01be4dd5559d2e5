//! An option: its values, where it can be set, and its effect here.

use std::ops::RangeInclusive;

use crate::vocabulary::{fault::Fault, gid::Gid};

/// The type of an option's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Flag,
    /// An integer within bounds.
    Number(u64, u64),
    /// Like a number, with an optional `K` or `M` (1024 and 1024²).
    Size(u64, u64),
    /// A non-negative number.
    Float,
    OneOf(&'static [&'static str]),
    Text,
    /// Text; a repeatable option.
    Lines,
    /// `algorithm=hex`.
    Checksum,
    Gid,
    /// `head` and `tail`, each with an optional size.
    Edges,
    /// A port, or a range of ports.
    Ports,
}

/// Where an option can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// For a download, and as a default for new ones.
    Request,
    /// Globally only.
    Global,
    /// At the start of the program only.
    Start,
}

/// An option's effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The same as in aria2.
    Acts,
    /// Accepted without effect, for this reason: it concerns what does not exist here, or how aria2 works internally.
    /// The file is the same.
    Harmless(&'static str),
    /// Any value but the default is refused, for this reason: ignoring it would do something else than requested.
    Refused(&'static str),
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

/// Algorithms of `checksum`, and their number of hexadecimal digits.
pub(super) const CHECKSUMS: [(&str, usize); 5] = [
    ("sha-1", 40),
    ("sha-256", 64),
    ("sha-512", 128),
    ("md5", 32),
    ("adler32", 8),
];

/// Options of a download that cannot be defaults for all.
pub(super) const NOT_GLOBAL: [&str; 6] = ["checksum", "gid", "index-out", "out", "pause", "select-file"];

/// Options that cannot change after a download was created.
pub(super) const NOT_CHANGEABLE: [&str; 7] = [
    "dry-run",
    "gid",
    "metalink-base-uri",
    "parameterized-uri",
    "pause",
    "piece-length",
    "rpc-save-upload-metadata",
];

/// Where a client sets options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionScope {
    WithDownload,
    ToDownload,
    ToAll,
}

impl Row {
    /// The name without dashes.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The default; none if a service setting determines it, or there is none.
    pub fn default(&self) -> Option<&'static str> {
        self.default
    }

    /// Whether the value may be omitted, which means `true`.
    pub fn stands_alone(&self) -> bool {
        matches!(self.kind, Kind::Flag) || self.name == "optimize-concurrent-downloads"
    }

    /// Whether it may be repeated, and all values count.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Lines)
    }

    /// Whether an input file may set it for a download.
    pub fn allowed_in_input_file(&self) -> bool {
        self.scope == Scope::Request
    }

    /// Whether it applies only to the download that it is given for.
    pub fn per_download_only(&self) -> bool {
        NOT_GLOBAL.contains(&self.name)
    }

    pub(super) fn allows(&self, given: OptionScope) -> bool {
        match given {
            OptionScope::WithDownload => self.scope == Scope::Request,
            OptionScope::ToDownload => self.scope == Scope::Request && !NOT_CHANGEABLE.contains(&self.name),
            OptionScope::ToAll => self.scope != Scope::Start && !NOT_GLOBAL.contains(&self.name),
        }
    }

    /// Parses a value into aria2's normalized form.
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
            Kind::Edges => edges(text).map(|_| text.to_owned()).ok_or_else(bad)?,
            Kind::Ports => ports(text).map(|_| text.to_owned()).ok_or_else(bad)?,
        };
        if let Effect::Refused(reason) = effect
            && value != self.default.unwrap_or("")
        {
            let name = self.name;
            return Err(Fault::new(format!(
                "The option '--{name}' is not supported by Svc: {reason}."
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

/// Reads `head`, `head=SIZE`, `tail` and `tail=SIZE`: how many bytes at the beginning and at the end of each file come first;
/// without a size, aria2's mebibyte.
pub(super) fn edges(text: &str) -> Option<(u64, u64)> {
    let (mut head, mut tail) = (0, 0);
    for edge in text.split(',').filter(|_| !text.is_empty()) {
        let (edge, length) = edge.split_once('=').unwrap_or((edge, "1M"));
        match edge {
            "head" => head = size(length)?,
            "tail" => tail = size(length)?,
            _ => return None,
        }
    }
    Some((head, tail))
}

/// A size as short as it is read.
pub(super) fn written_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 2] = [(1024 * 1024, "M"), (1024, "K")];
    let unit = UNITS
        .into_iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(
        || bytes.to_string(),
        |(unit, letter)| format!("{}{letter}", bytes / unit),
    )
}

/// Reads a port, or a range of ports.
pub fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (1 <= first && first <= last).then_some(first..=last)
}

fn checksum(text: &str) -> Option<String> {
    let (name, digest) = text.split_once('=')?;
    let name = name.to_ascii_lowercase();
    let (_, digits) = CHECKSUMS.iter().find(|(known, _)| *known == name)?;
    let is_hex = digest.len() == *digits && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| format!("{name}={}", digest.to_ascii_lowercase()))
}
