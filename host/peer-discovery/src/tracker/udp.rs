//! Trackers over UDP (BEP 15, BEP 41). Pure.

use std::{net::IpAddr, time::Duration};

use url::Url;

use super::{Announce, Answer, Event, MAX_PEERS, TrackerFailure, text::shown};
use crate::peer;

/// Says which protocol a first packet is for.
const PROTOCOL: u64 = 0x0417_2710_1980;

const CONNECT: u32 = 0;
const ANNOUNCE: u32 = 1;
const ERROR: u32 = 3;

/// BEP 41: a part of the path and query of the tracker's URL.
const URL_DATA: u8 = 2;

/// The bytes of URLs that are sent. Packets beyond what every network takes would be lost.
const MAX_URL_DATA: usize = 1000;

/// The longest packet that is read: [`MAX_PEERS`] of IPv6 and the head.
pub(crate) const MAX_PACKET_BYTES: usize = 4096;

/// A packet that is no answer to what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreign;

/// The request for a connection.
pub(crate) fn connect(transaction: u32) -> Vec<u8> {
    let mut packet = PROTOCOL.to_be_bytes().to_vec();
    packet.extend_from_slice(&CONNECT.to_be_bytes());
    packet.extend_from_slice(&transaction.to_be_bytes());
    packet
}

/// The id of the connection.
pub(crate) fn read_connection(packet: &[u8], transaction: u32) -> Result<Result<u64, TrackerFailure>, Foreign> {
    let (action, rest) = head(packet, transaction)?;
    match (action, rest.first_chunk()) {
        (CONNECT, Some(id)) => Ok(Ok(u64::from_be_bytes(*id))),
        (ERROR, _) => Ok(Err(error(rest))),
        _ => Err(Foreign),
    }
}

/// The announce.
pub(crate) fn announce(announce: &Announce, tracker: &Url, connection: u64, transaction: u32) -> Vec<u8> {
    let counters = announce.counters;
    let event: u32 = match announce.event {
        Event::None => 0,
        Event::Completed => 1,
        Event::Started => 2,
        Event::Stopped => 3,
        // BEP 21 gives no number; libtorrent sends this one.
        Event::Paused => 4,
    };
    let address = match announce.address {
        Some(IpAddr::V4(address)) => address.to_bits(),
        _ => 0,
    };
    let mut packet = connection.to_be_bytes().to_vec();
    packet.extend_from_slice(&ANNOUNCE.to_be_bytes());
    packet.extend_from_slice(&transaction.to_be_bytes());
    packet.extend_from_slice(announce.info_hash.as_bytes());
    packet.extend_from_slice(&announce.peer_id);
    for count in [counters.downloaded, counters.left, counters.uploaded] {
        packet.extend_from_slice(&count.to_be_bytes());
    }
    for number in [event, address, announce.key, announce.wanted_peers()] {
        packet.extend_from_slice(&number.to_be_bytes());
    }
    packet.extend_from_slice(&announce.port.to_be_bytes());
    let mut path = tracker.path().to_owned();
    if let Some(query) = tracker.query() {
        path.push('?');
        path.push_str(query);
    }
    if path.len() > 1 && path.len() <= MAX_URL_DATA {
        for part in path.as_bytes().chunks(usize::from(u8::MAX)) {
            packet.extend_from_slice(&[URL_DATA, u8::try_from(part.len()).expect("a chunk is no longer")]);
            packet.extend_from_slice(part);
        }
    }
    packet
}

/// The answer to an announce. `is_v6` says over which protocol it came, which decides the form of the peers.
pub(crate) fn read_announce(
    packet: &[u8],
    transaction: u32,
    is_v6: bool,
) -> Result<Result<Answer, TrackerFailure>, Foreign> {
    let (action, rest) = head(packet, transaction)?;
    let numbers = match action {
        ANNOUNCE => rest.split_at_checked(12),
        ERROR => return Ok(Err(error(rest))),
        _ => None,
    };
    let (numbers, peers) = numbers.ok_or(Foreign)?;
    let (numbers, _) = numbers.as_chunks();
    let [interval, leechers, seeds] = [0, 1, 2].map(|at| i32::from_be_bytes(numbers[at]));
    let peers = if is_v6 {
        peer::compact_v6(peers).take(MAX_PEERS).collect()
    } else {
        peer::compact_v4(peers).take(MAX_PEERS).collect()
    };
    let interval = u64::try_from(interval).ok().filter(|interval| *interval > 0);
    Ok(Ok(Answer {
        interval: interval.map(Duration::from_secs),
        seeds: u32::try_from(seeds).ok(),
        leechers: u32::try_from(leechers).ok(),
        peers,
        ..Answer::default()
    }))
}

/// The action and the rest of a packet of our transaction.
fn head(packet: &[u8], transaction: u32) -> Result<(u32, &[u8]), Foreign> {
    let (action, rest) = packet.split_first_chunk().ok_or(Foreign)?;
    let (known, rest) = rest.split_first_chunk().ok_or(Foreign)?;
    if u32::from_be_bytes(*known) != transaction {
        return Err(Foreign);
    }
    Ok((u32::from_be_bytes(*action), rest))
}

fn error(text: &[u8]) -> TrackerFailure {
    TrackerFailure::new(shown(&String::from_utf8_lossy(text)))
}

#[cfg(test)]
mod tests {
    use metainfo::InfoHash;
    use proptest::prelude::*;

    use super::*;
    use crate::tracker::Counters;

    #[test]
    fn an_announce_has_the_form_of_the_standard() {
        let request = Announce {
            info_hash: InfoHash([1; 20]),
            peer_id: [2; 20],
            key: 3,
            port: 0x1ae1,
            counters: Counters {
                uploaded: 6,
                downloaded: 4,
                left: 5,
                is_partial_seed: false,
                wanted_peers: 50,
            },
            event: Event::Started,
            address: None,
            tracker_id: None,
        };
        let plain = announce(&request, &Url::parse("udp://t.test:1").unwrap(), 7, 8);
        assert_eq!(plain.len(), 98);
        assert_eq!(plain[..16], [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 8]);
        assert_eq!(
            plain[56..84],
            [
                &[0; 7][..],
                &[4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 2]
            ]
            .concat()
        );
        assert_eq!(plain[88..], [0, 0, 0, 3, 0, 0, 0, 50, 0x1a, 0xe1]);
        let long = format!("udp://t.test:1/{}?auth=1", "x".repeat(300));
        let with_url = announce(&request, &Url::parse(&long).unwrap(), 7, 8);
        assert_eq!(with_url[98..100], [URL_DATA, 255]);
        assert_eq!(with_url[100 + 255..100 + 257], [URL_DATA, 53]);
    }

    #[test]
    fn packets_of_others_are_passed_over() {
        let answer = |action: u32, transaction: u32, rest: &[u8]| {
            [&action.to_be_bytes()[..], &transaction.to_be_bytes(), rest].concat()
        };
        assert_eq!(read_connection(&answer(0, 9, &[0, 0, 0, 0, 0, 0, 0, 5]), 9), Ok(Ok(5)));
        for foreign in [
            answer(0, 8, &[0; 8]),
            answer(1, 9, &[0; 8]),
            answer(0, 9, &[0; 7]),
            vec![0; 3],
            Vec::new(),
        ] {
            assert_eq!(read_connection(&foreign, 9), Err(Foreign), "{foreign:?}");
        }
        let refused = read_connection(&answer(3, 9, b"not\x1bhere\0"), 9)
            .unwrap()
            .unwrap_err();
        assert_eq!(refused.message, "not here ");
        let peers = [&[0, 0, 7, 8, 0, 0, 0, 1, 0, 0, 0, 2][..], &[1, 2, 3, 4, 0, 5], &[9; 3]].concat();
        let read = read_announce(&answer(1, 9, &peers), 9, false).unwrap().unwrap();
        assert_eq!(
            (read.interval, read.leechers, read.seeds),
            (Some(Duration::from_mins(30)), Some(1), Some(2))
        );
        assert_eq!(read.peers, ["1.2.3.4:5".parse().unwrap()]);
        assert_eq!(read_announce(&answer(1, 9, &[0; 11]), 9, false), Err(Foreign));
        let negative = read_announce(&answer(1, 9, &[0xff; 12]), 9, false).unwrap().unwrap();
        assert_eq!((negative.interval, negative.seeds), (None, None));
    }

    proptest! {
        #[test]
        fn any_packet_is_read_or_passed_over(packet in prop::collection::vec(any::<u8>(), 0..200), is_v6: bool) {
            let transaction = packet.get(4..8).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
            let _connection = read_connection(&packet, transaction);
            if let Ok(Ok(answer)) = read_announce(&packet, transaction, is_v6) {
                prop_assert!(answer.peers.len() <= MAX_PEERS);
            }
        }
    }
}
