//! The file `.torrent`: an info dictionary, and where its peers are found.

use transfer::SafeUrl;

use crate::{
    bencode::{self, Limits, Value, Writer},
    error::MetainfoError,
    info::{self, Info},
    limit::{MAX_INFO_BYTES, MAX_METAINFO_BYTES, MAX_TRACKERS, MAX_WEBSEEDS},
    magnet::Magnet,
    source::{tracker, webseed},
};

/// Nodes of the DHT that are kept.
const MAX_NODES: usize = 100;

/// The longest name of a host (RFC 1035).
const MAX_HOST_BYTES: usize = 253;

/// A torrent, as files describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metainfo {
    /// What it consists of.
    pub info: Info,
    /// Tiers of trackers (BEP 12), none of them empty.
    pub trackers: Vec<Vec<SafeUrl>>,
    /// Web servers that have the files (BEP 19).
    pub webseeds: Vec<SafeUrl>,
    /// Nodes of the DHT: host and port (BEP 5).
    pub nodes: Vec<(String, u16)>,
    /// For people.
    pub comment: Option<Box<str>>,
    /// The program that made it.
    pub created_by: Option<Box<str>>,
    /// In seconds since 1970.
    pub created_at: Option<i64>,
}

impl Metainfo {
    /// Checks a file. What follows the torrent is ignored, as by libtorrent: some programs append to it.
    pub fn parse(bytes: &[u8]) -> Result<Self, MetainfoError> {
        if bytes.len() > MAX_METAINFO_BYTES {
            return Err(MetainfoError::TooLarge {
                bytes: bytes.len(),
                limit: MAX_METAINFO_BYTES,
            });
        }
        let (value, _) = bencode::parse_within(bytes, Limits::METAINFO)?;
        let info = value.get(b"info").ok_or(MetainfoError::NoInfo)?;
        if info.raw().len() > MAX_INFO_BYTES {
            return Err(MetainfoError::TooLarge {
                bytes: info.raw().len(),
                limit: MAX_INFO_BYTES,
            });
        }
        let words = |utf_8: &[u8], plain: &[u8]| value.get(utf_8).or_else(|| value.get(plain)).and_then(info::text);
        Ok(Self {
            info: Info::of(info)?,
            trackers: trackers(value),
            webseeds: webseeds(value.get(b"url-list")),
            nodes: nodes(value.get(b"nodes")),
            comment: words(b"comment.utf-8", b"comment"),
            created_by: words(b"created by.utf-8", b"created by"),
            created_at: value.get(b"creation date").and_then(Value::as_integer),
        })
    }

    /// A torrent of which only the info dictionary is known.
    pub fn of_info(info: Info) -> Self {
        Self {
            info,
            trackers: Vec::new(),
            webseeds: Vec::new(),
            nodes: Vec::new(),
            comment: None,
            created_by: None,
            created_at: None,
        }
    }

    /// The file. Its info dictionary has the bytes that were parsed, so that the info hash stays.
    pub fn encode(&self) -> Vec<u8> {
        Writer::dict(|file| {
            if let Some(first) = self.trackers.iter().flatten().next() {
                file.entry("announce").bytes(first.expose());
            }
            if self.trackers.iter().flatten().count() > 1 {
                file.entry("announce-list").list(|tiers| {
                    for tier in &self.trackers {
                        tiers.texts(tier.iter().map(SafeUrl::expose));
                    }
                });
            }
            if let Some(comment) = &self.comment {
                file.entry("comment").bytes(comment.as_bytes());
            }
            if let Some(program) = &self.created_by {
                file.entry("created by").bytes(program.as_bytes());
            }
            if let Some(moment) = self.created_at {
                file.entry("creation date").integer(moment);
            }
            file.entry("info").raw(self.info.raw());
            if !self.nodes.is_empty() {
                let nodes = self.nodes.iter();
                file.entry("nodes")
                    .list(|list| nodes.for_each(|node| write_node(list, node)));
            }
            if !self.webseeds.is_empty() {
                let webseeds = self.webseeds.iter();
                file.entry("url-list").texts(webseeds.map(SafeUrl::expose));
            }
        })
    }

    /// The magnet link.
    pub fn magnet(&self) -> Magnet {
        Magnet {
            info_hash: self.info.hash(),
            name: Some(self.info.name().as_str().to_owned()),
            trackers: self.trackers.iter().flatten().cloned().collect(),
            webseeds: self.webseeds.clone(),
            peers: Vec::new(),
            selected: Vec::new(),
            length: Some(self.info.total_length()),
        }
    }

    /// The magnet link without trackers and web servers, for those who have this file.
    pub fn own_link(&self) -> Magnet {
        Magnet {
            trackers: Vec::new(),
            webseeds: Vec::new(),
            ..self.magnet()
        }
    }
}

fn write_node(list: &mut Writer, (host, port): &(String, u16)) {
    list.list(|node| {
        node.bytes(host);
        node.integer(i64::from(*port));
    });
}

/// The tiers of `announce-list`; `announce` counts only if there are none (BEP 12).
fn trackers(file: Value<'_>) -> Vec<Vec<SafeUrl>> {
    let mut known = Vec::new();
    let mut keep = |value: Value<'_>| {
        let url = value.as_text().and_then(tracker)?;
        let is_new = known.len() < MAX_TRACKERS && !known.contains(&url);
        is_new.then(|| known.push(url.clone()))?;
        Some(url)
    };
    let tiers = file.get(b"announce-list").and_then(Value::as_list);
    let mut kept: Vec<Vec<_>> = Vec::new();
    for tier in tiers.into_iter().flatten().filter_map(Value::as_list) {
        let urls: Vec<_> = tier.filter_map(&mut keep).collect();
        if !urls.is_empty() {
            kept.push(urls);
        }
    }
    if kept.is_empty() {
        kept.extend(file.get(b"announce").and_then(keep).map(|url| vec![url]));
    }
    kept
}

/// One URL, or a list of them.
fn webseeds(value: Option<Value<'_>>) -> Vec<SafeUrl> {
    let mut kept = Vec::new();
    let list = value.and_then(Value::as_list);
    for url in list.into_iter().flatten().chain(value) {
        if let Some(url) = url.as_text().and_then(webseed)
            && kept.len() < MAX_WEBSEEDS
            && !kept.contains(&url)
        {
            kept.push(url);
        }
    }
    kept
}

fn nodes(value: Option<Value<'_>>) -> Vec<(String, u16)> {
    let list = value.and_then(Value::as_list).into_iter().flatten();
    let nodes = list.filter_map(|node| {
        let mut parts = node.as_list()?;
        let host = parts.next()?.as_text()?;
        let port = u16::try_from(parts.next()?.as_integer()?).ok()?;
        let is_usable = !host.is_empty() && host.len() <= MAX_HOST_BYTES && port != 0;
        is_usable.then(|| (host.to_owned(), port))
    });
    nodes.take(MAX_NODES).collect()
}

#[cfg(test)]
mod tests;
