//! Trackers over HTTP (BEP 3, 7, 23, 24, 31). Pure.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use metainfo::bencode::{self, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};
use url::Url;

use super::{Announce, Answer, Event, MAX_PEERS, Retry, TrackerFailure, text::shown};
use crate::peer;

/// The longest answer in bytes: several thousand peers, in whatever form. What is longer is no answer to us.
pub(crate) const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// The longest tracker id that is returned to a tracker.
const MAX_TRACKER_ID: usize = 256;

/// The longest wait that a tracker may ask for, so that a nonsense number does not silence it for good.
pub(crate) const MAX_WAIT: Duration = Duration::from_hours(24);

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URL of an announce. What the tracker's URL has as a query (a passkey) stays before it.
pub(crate) fn url(tracker: &Url, announce: &Announce) -> Url {
    let counters = announce.counters;
    let mut query = match tracker.query() {
        Some(query) if !query.is_empty() => format!("{query}&"),
        _ => String::new(),
    };
    let own_address = announce.address.map(|address| address.to_string());
    let mut write = |arguments: std::fmt::Arguments<'_>| query.write_fmt(arguments).expect("a String takes everything");
    write(format_args!("info_hash={}", encoded(announce.info_hash.as_bytes())));
    write(format_args!("&peer_id={}", encoded(&announce.peer_id)));
    write(format_args!("&port={}&uploaded={}", announce.port, counters.uploaded));
    write(format_args!(
        "&downloaded={}&left={}",
        counters.downloaded, counters.left
    ));
    write(format_args!("&key={:08X}&compact=1&no_peer_id=1", announce.key));
    write(format_args!("&numwant={}", announce.wanted_peers()));
    if let Some(event) = event(announce) {
        write(format_args!("&event={event}"));
    }
    if let Some(address) = &own_address {
        write(format_args!("&ip={}", encoded(address.as_bytes())));
    }
    if let Some(id) = &announce.tracker_id {
        write(format_args!("&trackerid={}", encoded(id)));
    }
    let mut url = tracker.clone();
    url.set_query(Some(&query));
    url.set_fragment(None);
    url
}

fn encoded(bytes: &[u8]) -> PercentEncode<'_> {
    percent_encode(bytes, ENCODED)
}

fn event(announce: &Announce) -> Option<&'static str> {
    match announce.event {
        Event::None => None,
        Event::Started => Some("started"),
        Event::Completed => Some("completed"),
        Event::Stopped => Some("stopped"),
        Event::Paused => Some("paused"),
    }
}

/// Reads an answer. Whole entries of a compact list count, and a rest of one is ignored, as by libtorrent.
pub(crate) fn read(body: &[u8]) -> Result<Answer, TrackerFailure> {
    let (value, _) = bencode::parse_prefix(body).map_err(|_| malformed())?;
    if value.as_dict().is_none() {
        return Err(malformed());
    }
    let get = |key: &[u8]| value.get(key);
    if let Some(reason) = get(b"failure reason").and_then(Value::as_bytes) {
        return Err(TrackerFailure {
            message: shown(&String::from_utf8_lossy(reason)),
            retry: retry(get(b"retry in")),
        });
    }
    let count = |key: &[u8]| u32::try_from(get(key)?.as_integer()?).ok();
    let tracker_id = get(b"tracker id").and_then(Value::as_bytes);
    let warning = get(b"warning message").and_then(Value::as_bytes);
    let mut peers = Vec::new();
    if let Some(compact) = get(b"peers").and_then(Value::as_bytes) {
        peers.extend(peer::compact_v4(compact).take(MAX_PEERS));
    }
    if let Some(list) = get(b"peers").and_then(Value::as_list) {
        peers.extend(list.filter_map(listed).take(MAX_PEERS));
    }
    if let Some(compact) = get(b"peers6").and_then(Value::as_bytes) {
        let room = MAX_PEERS - peers.len();
        peers.extend(peer::compact_v6(compact).take(room));
    }
    Ok(Answer {
        interval: get(b"interval").and_then(seconds),
        min_interval: get(b"min interval").and_then(seconds),
        seeds: count(b"complete"),
        leechers: count(b"incomplete"),
        downloads: count(b"downloaded"),
        warning: warning.map(|text| shown(&String::from_utf8_lossy(text))),
        tracker_id: tracker_id.filter(|id| id.len() <= MAX_TRACKER_ID).map(Into::into),
        own_address: get(b"external ip").and_then(Value::as_bytes).and_then(address),
        peers,
    })
}

fn malformed() -> TrackerFailure {
    TrackerFailure::new("the tracker's answer is not one of a tracker")
}

/// A peer of a list of dictionaries, which the tracker may name; names are not looked up.
fn listed(peer: Value<'_>) -> Option<SocketAddr> {
    let port = u16::try_from(peer.get(b"port")?.as_integer()?).ok()?;
    let address: IpAddr = peer.get(b"ip")?.as_text()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

/// A time of the tracker. One that is negative or 0 counts as none.
fn seconds(value: Value<'_>) -> Option<Duration> {
    let seconds = u64::try_from(value.as_integer()?).ok().filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

/// BEP 31: minutes, or `never`.
fn retry(value: Option<Value<'_>>) -> Retry {
    let Some(value) = value else {
        return Retry::Default;
    };
    if value.as_text() == Some("never") {
        return Retry::Never;
    }
    let minutes = value.as_integer().or_else(|| value.as_text()?.parse().ok());
    match minutes.and_then(|minutes| u64::try_from(minutes).ok()) {
        Some(minutes) => Retry::After(Duration::from_secs(minutes.saturating_mul(60)).min(MAX_WAIT)),
        None => Retry::Default,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use metainfo::InfoHash;
    use proptest::prelude::*;

    use super::*;
    use crate::tracker::Counters;

    fn announce(event: Event) -> Announce {
        Announce {
            info_hash: InfoHash([0xfe; 20]),
            peer_id: *b"-SV0001-abcdefghijkl",
            key: 0xab,
            port: 6881,
            counters: Counters {
                uploaded: 1,
                downloaded: 2,
                left: 3,
                is_partial_seed: false,
                wanted_peers: 1000,
            },
            event,
            address: None,
            tracker_id: Some((*b"t&d").into()),
        }
    }

    #[test]
    fn an_announce_is_added_to_the_query_of_the_tracker() {
        let tracker = Url::parse("http://t.test/announce?passkey=p%20q#x").unwrap();
        let url = url(&tracker, &announce(Event::Started));
        let hash = "%FE".repeat(20);
        assert_eq!(
            url.as_str(),
            format!(
                "http://t.test/announce?passkey=p%20q&info_hash={hash}&peer_id=-SV0001-abcdefghijkl&port=6881&uploaded=1\
                 &downloaded=2&left=3&key=000000AB&compact=1&no_peer_id=1&numwant=200&event=started&trackerid=t%26d"
            )
        );
    }

    #[test]
    fn a_torrent_that_stops_asks_for_no_peers() {
        let tracker = Url::parse("http://t.test/a").unwrap();
        let url = url(&tracker, &announce(Event::Stopped)).to_string();
        assert!(url.contains("&numwant=0&event=stopped"), "{url}");
    }

    #[test]
    fn both_forms_of_peers_are_read() {
        let compact = read(b"d8:completei5e10:downloadedi9e10:incompletei6e8:intervali1800e5:peers6:\x01\x02\x03\x04\x1a\xe16:peers618:\
            \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x05e").unwrap();
        let peers: Vec<_> = compact.peers.iter().map(ToString::to_string).collect();
        assert_eq!(peers, ["1.2.3.4:6881", "[2001:db8::1]:5"]);
        assert_eq!(
            (compact.seeds, compact.leechers, compact.downloads),
            (Some(5), Some(6), Some(9))
        );
        assert_eq!(compact.interval, Some(Duration::from_mins(30)));
        let listed =
            read(b"d5:peersld2:ip7:1.2.3.44:porti5eed2:ip9:some.name4:porti5eed2:ip3:::14:porti70000eeee").unwrap();
        assert_eq!(listed.peers, ["1.2.3.4:5".parse().unwrap()]);
    }

    #[test]
    fn what_a_tracker_says_that_cannot_be_is_not_believed() {
        let answer =
            read(b"d8:intervali-5e12:min intervali0e8:completei-1e5:peers7:\x01\x02\x03\x04\x1a\xe1\xffe").unwrap();
        assert_eq!((answer.interval, answer.min_interval, answer.seeds), (None, None, None));
        assert_eq!(answer.peers.len(), 1);
        let answer = read(b"d8:intervali9223372036854775807ee").unwrap();
        assert_eq!(answer.interval, Some(MAX_WAIT));
        for refused in [&b"<html>"[..], b"", b"le", b"d5:peers", b"5:peers"] {
            assert!(read(refused).is_err(), "{refused:?}");
        }
        let mut million = b"d5:peers600000:".to_vec();
        million.extend(std::iter::repeat_n(1, 600_000));
        million.push(b'e');
        assert_eq!(read(&million).unwrap().peers.len(), MAX_PEERS);
    }

    #[test]
    fn a_refusal_has_its_text_in_one_line_and_its_wait() {
        let refused = |body: &[u8]| read(body).unwrap_err();
        let failure = refused(b"d14:failure reason26:no\x1b[31m http://u:p@t/x?k=12e");
        assert!(!failure.message.contains(['\u{1b}', '\n']), "{failure}");
        let failure = refused(b"d14:failure reason4:busy8:retry in5:nevere");
        assert_eq!((failure.message.as_str(), failure.retry), ("busy", Retry::Never));
        assert_eq!(
            refused(b"d14:failure reason1:x8:retry ini5ee").retry,
            Retry::After(Duration::from_mins(5))
        );
        assert_eq!(refused(b"d14:failure reason1:x8:retry ini-5ee").retry, Retry::Default);
        let long = format!("d14:failure reason5000:{}e", "x".repeat(5000));
        assert!(refused(long.as_bytes()).message.len() < 300);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), key in "(peers6?|interval|external ip|tracker id)") {
            let mut answer = format!("d{}:{key}", key.len()).into_bytes();
            answer.extend_from_slice(&body);
            for bytes in [&answer, &body] {
                if let Ok(answer) = read(bytes) {
                    prop_assert!(answer.peers.len() <= MAX_PEERS);
                }
            }
        }
    }
}
