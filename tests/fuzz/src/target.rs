//! The targets and their names.

mod aria2;
mod document;
mod file;
mod ftp;
mod journal;
mod link;
mod market;
mod mcp;
mod peer;
mod playlist;
mod response;
mod sftp;
mod site;
mod socket;
mod takeover;
mod torrent;
mod unpack;

/// Takes any bytes; panics if something is wrong with what they cause.
pub type Target = Box<dyn FnMut(&[u8])>;

/// Makes a target ready.
type Ready = fn() -> Target;

/// Every target: its name, which is its folder in `corpus`, and what makes it ready.
pub const TARGETS: &[(&str, Ready)] = &[
    ("json-rpc", aria2::json_rpc),
    ("json-query", aria2::json_query),
    ("multicall", aria2::multicall),
    ("xml-rpc", aria2::xml_rpc),
    ("metalink", aria2::metalink),
    ("socket", socket::socket),
    ("takeover", takeover::batch),
    ("mcp", mcp::message),
    ("response", response::response),
    ("proxy", response::proxy),
    ("ftp", ftp::ftp),
    ("sftp", sftp::sftp),
    ("known-hosts", sftp::known_hosts),
    ("journal", journal::journal),
    ("cookies", file::cookies),
    ("aria2-conf", file::conf),
    ("session", file::session),
    ("market", market::documents),
    ("signature", market::signatures),
    ("manifest", document::manifest),
    ("package", document::package),
    ("playlist", playlist::playlist),
    ("site", site::site),
    ("unpack", unpack::unpack),
    ("bencode", torrent::bencode),
    ("metainfo", torrent::metainfo),
    ("magnet", torrent::magnet),
    ("swarm", torrent::swarm),
    ("peer", peer::peer),
    ("link-body", link::bodies),
    ("link-sealed", link::sealed),
];
