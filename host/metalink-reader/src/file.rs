//! One file of a document: its URLs in their order, its size, and its hashes.

use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use transfer::{Checksum, PieceHashes, SafeUrl, checksum::Algorithm, pieces::InvalidPieces, source::MAX_URLS};

use crate::{
    name::{FilePath, InvalidName},
    xml::Element,
};

/// The priority of URLs without one: the last (RFC 5854, section 4.2.16.2).
const NO_PRIORITY: u32 = 999_999;

/// URLs that are looked at, of which the best [`MAX_URLS`] are kept.
const MAX_RANKED: usize = 4096;

/// Strongest first.
const HASHES: [Algorithm; 4] = [Algorithm::Sha512, Algorithm::Sha256, Algorithm::Sha1, Algorithm::Md5];

/// URL schemes by transport: all URLs of a file are of one, because one run uses one.
const TRANSPORTS: [&[&str]; 2] = [&["http", "https"], &["ftp", "ftpes", "ftps", "sftp"]];

/// The kind of a `metaurl` that leads to a torrent.
const TORRENT: [&str; 2] = ["torrent", "application/x-bittorrent"];

/// How URLs are ranked and completed.
#[derive(Debug, Clone, Default)]
pub struct Preference {
    /// Preferred country codes, in lower case.
    pub locations: Vec<String>,
    /// The preferred scheme.
    pub protocol: Option<String>,
    /// What is put before URLs without a scheme.
    pub base: String,
}

/// A file that a document describes.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its name and directories.
    pub path: FilePath,
    /// Best first, never empty, at most [`MAX_URLS`]. The only one is that of a torrent if the document has no other.
    pub urls: Vec<SafeUrl>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The strongest hash of a known kind.
    pub checksum: Option<Checksum>,
    /// The hashes of its pieces, of the strongest known kind.
    pub pieces: Option<Arc<PieceHashes>>,
    /// The most connections that the document allows to one server; from 1.
    pub max_connections: Option<u16>,
    /// Its language, as the document has it.
    pub language: Option<String>,
    /// Its operating system, as the document has it.
    pub os: Option<String>,
    /// Its version, as the document has it.
    pub version: Option<String>,
}

/// Why a file's description is refused. Messages follow the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFile {
    /// Its name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// `<size>` is not a number of bytes that a file can have.
    #[error("has a size that is no number of bytes")]
    Size,
    /// A hash is not one of its kind.
    #[error("has a hash that is no {0}")]
    Hash(&'static str),
    /// A list of piece hashes cannot be used.
    #[error("has piece hashes that cannot be used: {0}")]
    Pieces(#[from] InvalidPieces),
    /// `<pieces>` without a length, or its hashes are numbered and some are missing or double.
    #[error("has piece hashes without a length, or they do not count 0, 1, 2, …")]
    Numbering,
    /// Size and number of pieces contradict each other.
    #[error("has {pieces} piece hashes of {piece_bytes} bytes for {size} bytes")]
    Count {
        /// Pieces.
        pieces: u64,
        /// Bytes of each.
        piece_bytes: u64,
        /// The file's size.
        size: u64,
    },
    /// It has more URLs than any list of mirrors.
    #[error("has more than {MAX_RANKED} URLs")]
    Urls,
}

/// The name of a file as its document has it, for messages: bounded, and without what controls a terminal.
pub(crate) fn shown_name(element: &Element) -> String {
    let name = element.attribute("name").unwrap_or_default();
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

/// Reads a `file` element; `None` if it has no URL that could be downloaded.
pub(crate) fn read(element: &Element, preference: &Preference) -> Result<Option<File>, InvalidFile> {
    let path = FilePath::parse(element.attribute("name").unwrap_or_default())?;
    // Version 3 nests URLs and hashes in their own elements.
    let resources = element.child("resources").unwrap_or(element);
    let hashes = element.child("verification").unwrap_or(element);
    let urls = urls(resources, preference)?;
    if urls.is_empty() {
        return Ok(None);
    }
    let text = |name: &str| {
        let found = element.child(name).map(|child| child.text.trim().to_owned());
        found.filter(|text| !text.is_empty())
    };
    let size = text("size").map(|text| size(&text)).transpose()?;
    let checksum = checksum(hashes)?;
    Ok(Some(File {
        path,
        urls,
        size,
        pieces: pieces(hashes, size, checksum.is_some())?.map(Arc::new),
        checksum,
        max_connections: max_connections(resources),
        language: text("language"),
        os: text("os"),
        version: text("version"),
    }))
}

/// Sizes are signed where files are made.
fn size(text: &str) -> Result<u64, InvalidFile> {
    let size = text.parse().ok().filter(|size| i64::try_from(*size).is_ok());
    size.ok_or(InvalidFile::Size)
}

/// The URLs of the transport that is preferred, best first.
fn urls(resources: &Element, preference: &Preference) -> Result<Vec<SafeUrl>, InvalidFile> {
    if resources.children("url").nth(MAX_RANKED).is_some() {
        return Err(InvalidFile::Urls);
    }
    let mut ranked: Vec<_> = resources
        .children("url")
        .filter_map(|url| ranked(url, preference))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let has = |schemes: &&&[&str]| ranked.iter().any(|(_, url)| schemes.contains(&url.scheme()));
    let wanted = |schemes: &&&[&str]| {
        preference
            .protocol
            .as_deref()
            .is_some_and(|scheme| schemes.contains(&scheme))
    };
    let mut transports = TRANSPORTS.iter().filter(has);
    let transport = transports.clone().find(wanted).or_else(|| transports.next());
    let Some(schemes) = transport else {
        return Ok(torrent(resources).into_iter().collect());
    };
    let mut urls: Vec<SafeUrl> = Vec::new();
    for (_, url) in ranked {
        if urls.len() < MAX_URLS && schemes.contains(&url.scheme()) && !urls.contains(&url) {
            urls.push(url);
        }
    }
    Ok(urls)
}

/// Less is better.
type Rank = (bool, bool, u32);

/// A URL with its rank; `None` if it is none that could be downloaded.
fn ranked(element: &Element, preference: &Preference) -> Option<(Rank, SafeUrl)> {
    let mut text = element.text.trim().to_owned();
    if !text.contains("://") {
        text.insert_str(0, &preference.base);
    }
    let url = SafeUrl::parse(&text).ok()?;
    // Version 3 lists torrents among the URLs.
    let is_torrent = element
        .attribute("type")
        .is_some_and(|kind| kind.eq_ignore_ascii_case("bittorrent"));
    if is_torrent || !TRANSPORTS.iter().any(|schemes| schemes.contains(&url.scheme())) {
        return None;
    }
    let is_elsewhere = !element
        .attribute("location")
        .is_some_and(|location| preference.locations.contains(&location.to_ascii_lowercase()));
    let is_other = preference
        .protocol
        .as_ref()
        .is_some_and(|wanted| *wanted != url.scheme());
    let number = |name: &str| {
        element
            .attribute(name)
            .and_then(|number| number.trim().parse::<u32>().ok())
    };
    // Version 3 has the opposite order: 100 is best.
    let turned = || number("preference").map(|preference| 100u32.saturating_sub(preference));
    let priority = number("priority").or_else(turned).unwrap_or(NO_PRIORITY);
    Some(((is_elsewhere, is_other, priority), url))
}

/// The best link to a torrent of the file.
fn torrent(resources: &Element) -> Option<SafeUrl> {
    let v3 = resources.children("url").filter(|url| {
        url.attribute("type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("bittorrent"))
    });
    let v4 = resources
        .children("metaurl")
        .filter(|url| url.attribute("mediatype").is_some_and(|kind| TORRENT.contains(&kind)));
    let number = |element: &Element| element.attribute("priority").and_then(|text| text.trim().parse().ok());
    let mut found: Vec<(u32, SafeUrl)> = v4
        .chain(v3)
        .filter_map(|element| {
            Some((
                number(element).unwrap_or(NO_PRIORITY),
                SafeUrl::parse(&element.text).ok()?,
            ))
        })
        .filter(|(_, url)| matches!(url.scheme(), "http" | "https"))
        .collect();
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().next().map(|(_, url)| url)
}

/// The least of the numbers that the document has for the file and for its servers.
fn max_connections(resources: &Element) -> Option<u16> {
    let of = |element: &Element| {
        let number = element.attribute("maxconnections")?.trim().parse::<u16>().ok();
        number.filter(|number| *number > 0)
    };
    resources.children("url").filter_map(of).chain(of(resources)).min()
}

fn algorithm(element: &Element) -> Option<Algorithm> {
    let found = Algorithm::from_name(element.attribute("type")?.trim())?;
    HASHES.contains(&found).then_some(found)
}

/// The strongest hash of the whole file. One that is not of its kind was damaged, and refused: without it, the file
/// would not be verified any more.
fn checksum(hashes: &Element) -> Result<Option<Checksum>, InvalidFile> {
    let of = |wanted: Algorithm| {
        hashes
            .children("hash")
            .find(move |hash| algorithm(hash) == Some(wanted))
    };
    let Some((wanted, hash)) = HASHES.into_iter().find_map(|wanted| Some((wanted, of(wanted)?))) else {
        return Ok(None);
    };
    let checksum = format!("{}={}", wanted.name(), hash.text.trim()).parse();
    checksum.map(Some).map_err(|_| InvalidFile::Hash(wanted.name()))
}

/// The strongest list of piece hashes. With a hash of the whole file, a list that is too long for a task is left out:
/// the file is verified all the same.
fn pieces(hashes: &Element, size: Option<u64>, has_checksum: bool) -> Result<Option<PieceHashes>, InvalidFile> {
    let lists = hashes
        .children("pieces")
        .filter_map(|list| Some((algorithm(list)?, list)));
    let strength = |algorithm: Algorithm| HASHES.iter().position(|known| *known == algorithm);
    let Some((algorithm, list)) = lists.min_by_key(|(algorithm, _)| strength(*algorithm)) else {
        return Ok(None);
    };
    if size == Some(0) {
        return Ok(None);
    }
    let length = list
        .attribute("length")
        .and_then(|length| length.trim().parse::<u64>().ok());
    let length = length.ok_or(InvalidFile::Numbering)?;
    let mut digests = Vec::new();
    for hash in in_order(list)? {
        let digest = HEXLOWER_PERMISSIVE.decode(hash.text.trim().as_bytes());
        let digest = digest.ok().filter(|digest| digest.len() == algorithm.digest_bytes());
        digests.extend(digest.ok_or(InvalidFile::Hash(algorithm.name()))?);
    }
    let pieces = match PieceHashes::new(algorithm, length, digests) {
        Err(InvalidPieces::TooMany(_)) if has_checksum => return Ok(None),
        pieces => pieces?,
    };
    match size.filter(|size| !pieces.fits(*size)) {
        None => Ok(Some(pieces)),
        Some(size) => Err(InvalidFile::Count {
            pieces: pieces.count(),
            piece_bytes: length,
            size,
        }),
    }
}

/// The hashes of a list. Version 3 numbers them, in any order.
fn in_order(list: &Element) -> Result<Vec<&Element>, InvalidFile> {
    let mut hashes: Vec<_> = list.children("hash").collect();
    let number = |hash: &&Element| {
        hash.attribute("piece")
            .and_then(|number| number.trim().parse::<usize>().ok())
    };
    if hashes.iter().any(|hash| hash.attribute("piece").is_some()) {
        hashes.sort_by_key(number);
        if hashes
            .iter()
            .enumerate()
            .any(|(index, hash)| number(hash) != Some(index))
        {
            return Err(InvalidFile::Numbering);
        }
    }
    Ok(hashes)
}
