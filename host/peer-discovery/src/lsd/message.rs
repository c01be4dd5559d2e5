//! The messages of the local network. Pure.

use std::{fmt::Write as _, net::SocketAddrV4};

use metainfo::InfoHash;

/// The longest message that is read; the standard's is at most 1400 bytes.
pub(super) const MAX_BYTES: usize = 1500;

/// The most info hashes in a message, so that it stays below 1400 bytes.
pub(super) const MAX_HASHES: usize = 20;

/// What another host announces.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) port: u16,
    pub(super) info_hashes: Vec<InfoHash>,
    pub(super) cookie: Option<String>,
}

pub(super) fn write(group: SocketAddrV4, port: u16, info_hashes: &[InfoHash], cookie: &str) -> String {
    let mut message = format!("BT-SEARCH * HTTP/1.1\r\nHost: {group}\r\nPort: {port}\r\n");
    for info_hash in info_hashes {
        write!(message, "Infohash: {info_hash}\r\n").expect("a String takes everything");
    }
    write!(message, "cookie: {cookie}\r\n\r\n\r\n").expect("a String takes everything");
    message
}

/// Reads a message; `None` if it is none.
pub(super) fn read(datagram: &[u8]) -> Option<Heard> {
    let text = std::str::from_utf8(datagram).ok()?;
    let mut lines = text.split("\r\n");
    let request = lines.next()?;
    if !request.starts_with("BT-SEARCH ") {
        return None;
    }
    let (mut port, mut info_hashes, mut cookie) = (None, Vec::new(), None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("port") {
            port = value.parse().ok();
        } else if name.eq_ignore_ascii_case("infohash") {
            info_hashes.extend(value.parse::<InfoHash>().ok());
        } else if name.eq_ignore_ascii_case("cookie") {
            cookie = Some(value.to_owned());
        }
    }
    let port = port.filter(|port| *port != 0)?;
    (!info_hashes.is_empty()).then_some(Heard {
        port,
        info_hashes,
        cookie,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lsd::GROUP;

    proptest! {
        #[test]
        fn what_is_written_is_read_and_fits(hashes in prop::collection::vec(any::<[u8; 20]>(), 1..=MAX_HASHES), port in 1_u16..) {
            let info_hashes: Vec<_> = hashes.into_iter().map(InfoHash).collect();
            let message = write(GROUP, port, &info_hashes, "c");
            prop_assert!(message.len() <= 1400);
            let cookie = Some("c".to_owned());
            prop_assert_eq!(read(message.as_bytes()), Some(Heard { port, info_hashes, cookie }));
        }

        #[test]
        fn any_datagram_is_read_or_passed_over(text in "(BT-SEARCH \\* HTTP/1.1\r\n)?((Port|Infohash|x): ?\\PC{0,45}\r\n){0,6}") {
            if let Some(heard) = read(text.as_bytes()) {
                prop_assert!(heard.port != 0 && !heard.info_hashes.is_empty());
            }
        }
    }

    #[test]
    fn a_message_of_libtorrent_is_read() {
        let message = "BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\nPort: 6881\r\n\
            Infohash: C12FE1C06BBA254A9DC9F519B335AA7C1367A88A\r\ncookie: 1a2b\r\n\r\n\r\n";
        let heard = read(message.as_bytes()).unwrap();
        assert_eq!((heard.port, heard.cookie.as_deref()), (6881, Some("1a2b")));
        assert_eq!(
            heard.info_hashes[0].to_string(),
            "c12fe1c06bba254a9dc9f519b335aa7c1367a88a"
        );
        for other in ["BT-SEARCH * HTTP/1.1\r\nPort: 0\r\n", "M-SEARCH * HTTP/1.1\r\n", ""] {
            assert_eq!(read(other.as_bytes()), None);
        }
    }
}
