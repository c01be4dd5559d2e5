//! How a torrent is downloaded, and which one a magnet link names.

use std::time::Duration;

use data_encoding::{BASE32, HEXLOWER_PERMISSIVE};

use crate::{FileName, source::safe_url::SafeUrl};

/// Options of a torrent, beyond those that every source has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the user")]
pub struct TorrentOptions {
    /// The files to download, by their places in the torrent from 0, ascending; empty is all.
    pub files: Box<[u32]>,
    /// Trackers besides those of the torrent; unused if it is private.
    pub trackers: Vec<SafeUrl>,
    /// Web servers that have the files (BEP 19), besides those of the torrent.
    pub webseeds: Vec<SafeUrl>,
    /// Download pieces from the beginning to the end, instead of the rarest first.
    pub is_sequential: bool,
    /// Download the first and last piece of each file before all others, so that players can show it.
    pub edges_first: bool,
    /// Download the pieces of so many bytes at the beginning of each file before all others.
    pub head_bytes: u64,
    /// The same of its end.
    pub tail_bytes: u64,
    /// Ask which files to download once they are known, if there are several and anything can answer.
    pub asks_for_files: bool,
    /// Once the files are known, stop until the task is resumed.
    pub stops_after_metadata: bool,
    /// Only the metadata of a magnet link is wanted ([`crate::Outcome::Described`]).
    pub is_metadata_only: bool,
    /// Write the metadata of a magnet link into the task's directory once it came, unless a file has its name.
    pub saves_metadata: bool,
    /// How long the metadata of a magnet link may take; `None` is the transport's default.
    pub metadata_timeout: Option<Duration>,
    /// How long nothing may be received before the run fails; `None` is for ever.
    pub stall_timeout: Option<Duration>,
    /// The most connections; `None` is the transport's default.
    pub max_peers: Option<u16>,
    /// Paths of files below the torrent's directory in place of those that it names, by their places, ascending; of a torrent
    /// of one file, its name. Each is a [`FileName::is_path`].
    pub paths: Vec<(u32, String)>,
}

/// What a magnet link says of its torrent. Nobody has verified it: it is shown until the metadata is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Announced {
    /// The name of its file or directory (`dn`).
    pub name: Option<FileName>,
    /// The size of all files in bytes (`xl`).
    pub total_bytes: Option<u64>,
}

/// What a magnet link says of its torrent; nothing for every other URL.
pub fn announced(url: &SafeUrl) -> Announced {
    let mut announced = Announced::default();
    if url.scheme() != "magnet" {
        return announced;
    }
    for (name, value) in url.as_url().query_pairs() {
        match &*name {
            "dn" => announced.name = announced.name.or_else(|| FileName::sanitise_or_none(&value)),
            // A database holds no more than an i64.
            "xl" => announced.total_bytes = value.parse().ok().filter(|bytes| i64::try_from(*bytes).is_ok()),
            _ => {}
        }
    }
    announced
}

/// The hash of the torrent that a magnet link names (BEP 9); `None` for every other URL.
pub fn torrent_hash(url: &SafeUrl) -> Option<[u8; 20]> {
    if url.scheme() != "magnet" {
        return None;
    }
    let mut topics = url.as_url().query_pairs().filter(|(name, _)| is_topic(name));
    topics.find_map(|(_, topic)| {
        let (namespace, hash) = topic.split_at_checked("urn:btih:".len())?;
        namespace
            .eq_ignore_ascii_case("urn:btih:")
            .then(|| parse_torrent_hash(hash))?
    })
}

/// `xt`, or `xt.1` where a link names several.
fn is_topic(name: &str) -> bool {
    name == "xt" || name.starts_with("xt.")
}

/// The hash of a torrent: 40 hexadecimal digits, or 32 letters and digits of base 32.
pub fn parse_torrent_hash(text: &str) -> Option<[u8; 20]> {
    let decoded = match text.len() {
        40 => HEXLOWER_PERMISSIVE.decode(text.as_bytes()),
        32 => BASE32.decode(text.to_ascii_uppercase().as_bytes()),
        _ => return None,
    };
    decoded.ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_magnet_link_says_name_and_size() {
        let said = |text: &str| announced(&SafeUrl::parse(text).unwrap());
        let link = said("magnet:?xt=urn:btih:0123456789ABCDEF0123456789abcdef01234567&dn=a%2F..%2Fb+c&xl=7");
        assert_eq!(link.name.unwrap().as_str(), "a_.._b c");
        assert_eq!(link.total_bytes, Some(7));
        assert_eq!(said("magnet:?dn=&xl=9223372036854775808"), Announced::default());
        assert_eq!(said("http://a.test/?dn=x&xl=7"), Announced::default());
    }

    #[test]
    fn magnet_links_of_one_torrent_have_one_hash() {
        let hash = |text: &str| torrent_hash(&SafeUrl::parse(text).unwrap());
        let hex = hash("magnet:?xt=urn:btih:0123456789ABCDEF0123456789abcdef01234567&dn=a");
        assert!(hex.is_some());
        assert_eq!(hex, hash("magnet:?dn=b&xt.1=URN:BTIH:aerukz4jvpg66ajdivtytk6n54asgrlh"));
        assert_eq!(hash("magnet:?xt=urn:btmh:1220aa"), None, "version 2 alone");
        assert_eq!(
            hash("http://example.test/?xt=urn:btih:0123456789ABCDEF0123456789abcdef01234567"),
            None
        );
        assert_eq!(hash("magnet:?xt=urn:btih:012345"), None);
    }
}
