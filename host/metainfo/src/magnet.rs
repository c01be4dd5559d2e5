//! Magnet links (BEP 9, BEP 53).

use std::{fmt, ops::RangeInclusive, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use transfer::SafeUrl;
use url::form_urlencoded;

use crate::{
    info_hash::{InfoHash, InvalidInfoHash},
    limit::{MAX_MAGNET_BYTES, MAX_TRACKERS, MAX_WEBSEEDS},
    source,
};

/// Parameters that are read; the others are ignored.
const MAX_PARAMETERS: usize = 1_000;

/// Peers that are kept.
const MAX_PEERS: usize = 100;

/// Ranges of selected files that are kept.
const MAX_RANGES: usize = 10_000;

/// The longest name that is kept, in characters.
const MAX_NAME: usize = 1_000;

const SCHEME: &str = "magnet:?";
const V1: &str = "urn:btih:";
const V2: &str = "urn:btmh:";

/// What a value keeps as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A magnet link. [`FromStr`] reads it, [`Display`](fmt::Display) writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Magnet {
    /// The torrent.
    pub info_hash: InfoHash,
    /// What to show until the info dictionary is there (`dn`).
    pub name: Option<String>,
    /// Each a tier of its own (`tr`).
    pub trackers: Vec<SafeUrl>,
    /// Web servers that have the files (`ws`).
    pub webseeds: Vec<SafeUrl>,
    /// Peers that have them (`x.pe`).
    pub peers: Vec<PeerAddress>,
    /// The files to download, by their positions in the info dictionary (`so`); empty is all of them.
    pub selected: Vec<RangeInclusive<u32>>,
    /// In bytes (`xl`). Not proved by the hash.
    pub length: Option<u64>,
}

/// A peer of a magnet link, which may be a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PeerAddress {
    /// A name, or an address without brackets.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

/// Why a text is no usable magnet link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMagnet {
    /// Another scheme.
    #[error("a magnet link begins with {SCHEME}")]
    Scheme,
    /// Longer than [`MAX_MAGNET_BYTES`].
    #[error("the magnet link has {0} bytes; the limit is {MAX_MAGNET_BYTES}")]
    TooLong(usize),
    /// No `xt` with an info hash.
    #[error("the magnet link has no info hash (xt={V1}…)")]
    NoInfoHash,
    /// A hash of version 2 of the protocol only.
    #[error("the magnet link is for version 2 of BitTorrent only (BEP 52), which is not supported")]
    V2Only,
    /// Two info hashes that differ.
    #[error("the magnet link has more than one info hash: add each torrent by itself")]
    SeveralInfoHashes,
    /// An info hash that is none.
    #[error("the magnet link is invalid")]
    InfoHash(#[from] InvalidInfoHash),
}

impl Magnet {
    /// Whether `text` is meant to be a magnet link.
    pub fn is_magnet(text: &str) -> bool {
        let start = text.as_bytes().get(..SCHEME.len() - 1);
        start.is_some_and(|start| start.eq_ignore_ascii_case(&SCHEME.as_bytes()[..SCHEME.len() - 1]))
    }
}

impl FromStr for Magnet {
    type Err = InvalidMagnet;

    fn from_str(text: &str) -> Result<Self, InvalidMagnet> {
        let text = text.trim();
        if text.len() > MAX_MAGNET_BYTES {
            return Err(InvalidMagnet::TooLong(text.len()));
        }
        let query = text.get(SCHEME.len()..).filter(|_| Self::is_magnet(text));
        let query = query.filter(|_| text.as_bytes()[SCHEME.len() - 1] == b'?');
        let query = query.ok_or(InvalidMagnet::Scheme)?;
        let mut parts = Parts::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()).take(MAX_PARAMETERS) {
            parts.take(&key, &value)?;
        }
        parts.magnet()
    }
}

#[derive(Default)]
struct Parts {
    info_hash: Option<InfoHash>,
    has_v2: bool,
    name: Option<String>,
    trackers: Vec<SafeUrl>,
    webseeds: Vec<SafeUrl>,
    peers: Vec<PeerAddress>,
    selected: Vec<RangeInclusive<u32>>,
    length: Option<u64>,
}

impl Parts {
    fn take(&mut self, key: &str, value: &str) -> Result<(), InvalidMagnet> {
        // Several parameters of one kind may be numbered: `tr.1`.
        let kind = match key.split_once('.') {
            Some((kind, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => kind,
            _ => key,
        };
        match kind {
            "xt" => self.take_topic(value)?,
            "dn" if self.name.is_none() => {
                let name: String = value.chars().take(MAX_NAME).collect();
                self.name = (!name.is_empty()).then_some(name);
            }
            "tr" => keep(&mut self.trackers, source::tracker(value), MAX_TRACKERS),
            "ws" => keep(&mut self.webseeds, source::webseed(value), MAX_WEBSEEDS),
            "x.pe" => keep(&mut self.peers, value.parse().ok(), MAX_PEERS),
            "so" => self.selected = ranges(value),
            "xl" => self.length = value.parse().ok(),
            _ => {}
        }
        Ok(())
    }

    fn take_topic(&mut self, topic: &str) -> Result<(), InvalidMagnet> {
        let after = |prefix: &str| {
            let start = topic.get(..prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then(|| &topic[prefix.len()..])
        };
        if let Some(hash) = after(V1) {
            let hash = hash.parse()?;
            if self.info_hash.is_some_and(|known| known != hash) {
                return Err(InvalidMagnet::SeveralInfoHashes);
            }
            self.info_hash = Some(hash);
        }
        self.has_v2 |= after(V2).is_some();
        Ok(())
    }

    fn magnet(self) -> Result<Magnet, InvalidMagnet> {
        let missing = if self.has_v2 {
            InvalidMagnet::V2Only
        } else {
            InvalidMagnet::NoInfoHash
        };
        Ok(Magnet {
            info_hash: self.info_hash.ok_or(missing)?,
            name: self.name,
            trackers: self.trackers,
            webseeds: self.webseeds,
            peers: self.peers,
            selected: self.selected,
            length: self.length,
        })
    }
}

fn keep<T: PartialEq>(kept: &mut Vec<T>, value: Option<T>, limit: usize) {
    if let Some(value) = value.filter(|value| kept.len() < limit && !kept.contains(value)) {
        kept.push(value);
    }
}

/// `0,2,4-9`; what is no number or range is left out.
fn ranges(text: &str) -> Vec<RangeInclusive<u32>> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some(first..=last)
    });
    ranges.take(MAX_RANGES).collect()
}

impl FromStr for PeerAddress {
    type Err = ();

    /// `host:port` or `[address]:port`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let is_v6 = host.starts_with('[') && host.ends_with(']');
        let host = if is_v6 { &host[1..host.len() - 1] } else { host };
        let is_name = !host.contains(':') && !host.is_empty() && host.len() <= 253;
        let is_usable = if is_v6 {
            host.parse::<std::net::Ipv6Addr>().is_ok()
        } else {
            is_name && !host.contains(|c: char| c.is_whitespace() || c.is_control() || "/?#@[]\\".contains(c))
        };
        let port = port.parse().ok().filter(|port| *port != 0 && is_usable);
        Ok(Self {
            host: host.to_owned(),
            port: port.ok_or(())?,
        })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

impl fmt::Display for Magnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}xt={V1}{}", self.info_hash)?;
        if let Some(name) = &self.name {
            write!(f, "&dn={}", encoded(name))?;
        }
        if let Some(length) = self.length {
            write!(f, "&xl={length}")?;
        }
        for url in &self.trackers {
            write!(f, "&tr={}", encoded(url.expose()))?;
        }
        for url in &self.webseeds {
            write!(f, "&ws={}", encoded(url.expose()))?;
        }
        for peer in &self.peers {
            write!(f, "&x.pe={}", encoded(&peer.to_string()))?;
        }
        for (at, range) in self.selected.iter().enumerate() {
            f.write_str(if at == 0 { "&so=" } else { "," })?;
            if range.start() == range.end() {
                write!(f, "{}", range.start())?;
            } else {
                write!(f, "{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
