//! What describes torrents: bencode, metainfo files, magnet links. And what their peers say.

use metainfo::{
    Info, InfoHash, Magnet, Metainfo,
    bencode::{self, Value},
};

use super::Target;

/// Walks every value that can be reached.
fn walk(value: Value<'_>) {
    if let Some(list) = value.as_list() {
        list.for_each(walk);
    } else if let Some(dict) = value.as_dict() {
        dict.for_each(|(_, value)| walk(value));
    } else {
        let is_integer = value.raw().starts_with(b"i");
        assert_eq!(value.as_bytes().is_none(), is_integer);
    }
}

pub(super) fn bencode() -> Target {
    Box::new(|bytes| {
        if let Ok((value, rest)) = bencode::parse_prefix(bytes) {
            assert_eq!(value.raw().len() + rest.len(), bytes.len());
            walk(value);
        }
    })
}

pub(super) fn metainfo() -> Target {
    Box::new(|bytes| {
        if let Ok(read) = Metainfo::parse(bytes) {
            check(&read.info);
            assert_eq!(Metainfo::parse(&read.encode()), Ok(read.clone()));
            let magnet: Magnet = read.magnet().to_string().parse().expect("a written link is read");
            assert_eq!(magnet.info_hash, read.info.hash());
        }
        if let Ok(info) = Info::parse(bytes) {
            check(&info);
            assert_eq!(Info::parse_expecting(bytes, InfoHash::of(bytes)), Ok(info));
        }
    })
}

/// What everything above relies on.
fn check(info: &Info) {
    let pieces = info.total_length().div_ceil(u64::from(info.piece_length()));
    assert_eq!(u64::from(info.piece_count()), pieces);
    assert!(info.piece_hash(info.piece_count() - 1).is_some());
    let mut end = 0;
    for file in info.files() {
        assert!(file.offset() >= end, "files overlap");
        end = file.offset() + file.length();
        assert!(
            file.path()
                .all(|part| !matches!(part, "." | "..") && !part.contains(['/', '\\', '\0']))
        );
        assert_eq!(file.path().next().is_none(), info.is_single_file());
    }
    assert!(end <= info.total_length());
}

pub(super) fn magnet() -> Target {
    Box::new(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(magnet) = text.parse::<Magnet>() {
            assert_eq!(magnet.to_string().parse(), Ok(magnet));
        }
    })
}

/// Peers that come and go and say anything, to one torrent without a connection.
pub(super) fn swarm() -> Target {
    Box::new(torrent::rehearse)
}
