use proptest::prelude::*;

use super::*;

const HEX: &str = "c12fe1c06bba254a9dc9f519b335aa7c1367a88a";

fn parse(text: &str) -> Result<Magnet, InvalidMagnet> {
    text.parse()
}

#[test]
fn both_forms_of_a_hash_are_read() {
    let base32 = data_encoding::BASE32.encode(&HEX.parse::<InfoHash>().unwrap().0);
    for text in [
        format!("magnet:?xt=urn:btih:{HEX}"),
        format!("MAGNET:?XT=x&xt=urn:btih:{}", HEX.to_uppercase()),
        format!("magnet:?dn=x&xt.1=urn:BTIH:{}", base32.to_lowercase()),
        format!(" magnet:?xt=urn:btih:{base32}&xt=urn:btmh:1220{} ", "a".repeat(64)),
    ] {
        assert_eq!(parse(&text).unwrap().info_hash.to_string(), HEX, "{text}");
    }
}

#[test]
fn what_is_no_magnet_link_is_refused_by_what_is_missing() {
    let long = format!("magnet:?xt=urn:btih:{HEX}&dn={}", "x".repeat(MAX_MAGNET_BYTES));
    for (text, expected) in [
        ("http://x/", InvalidMagnet::Scheme),
        ("magnet:xt=", InvalidMagnet::Scheme),
        ("magnet:?dn=x", InvalidMagnet::NoInfoHash),
        ("magnet:?xt=urn:sha1:x", InvalidMagnet::NoInfoHash),
        ("magnet:?xt=urn:btmh:1220aa", InvalidMagnet::V2Only),
        ("magnet:?xt=urn:btih:aa", InvalidMagnet::InfoHash(InvalidInfoHash)),
        (&*long, InvalidMagnet::TooLong(long.len())),
    ] {
        assert_eq!(parse(text), Err(expected));
    }
    let two = format!("magnet:?xt=urn:btih:{HEX}&xt=urn:btih:{}", "0".repeat(40));
    assert_eq!(parse(&two), Err(InvalidMagnet::SeveralInfoHashes));
}

#[test]
fn parameters_are_read_and_useless_ones_left_out() {
    let magnet = parse(&format!(
        "magnet:?xt=urn:btih:{HEX}&dn=a+b%20c&tr=http%3A%2F%2Ft.test%2Fa&tr.1=udp://t.test:1&tr=wss://t.test&tr=x&ws=http://w.test/\
         &x.pe=1.2.3.4:5&x.pe=[::1]:6&x.pe=nas.local:7&x.pe=1.2.3.4:0&x.pe=::1:2&so=0,2-4,9-8,x&xl=17"
    ));
    let magnet = magnet.unwrap();
    assert_eq!(magnet.name.as_deref(), Some("a b c"));
    let trackers: Vec<_> = magnet.trackers.iter().map(SafeUrl::expose).collect();
    assert_eq!(trackers, ["http://t.test/a", "udp://t.test:1"]);
    let peers: Vec<_> = magnet.peers.iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["1.2.3.4:5", "[::1]:6", "nas.local:7"]);
    assert_eq!(magnet.selected, [0..=0, 2..=4]);
    assert_eq!((magnet.webseeds.len(), magnet.length), (1, Some(17)));
}

#[test]
fn the_number_of_everything_is_limited() {
    let many = |parameter: &str| {
        let parameters: Vec<_> = (1..2_000)
            .map(|at: u32| parameter.replace('#', &at.to_string()))
            .collect();
        let parameters = format!("&{}", parameters.join("&"));
        parse(&format!("magnet:?xt=urn:btih:{HEX}{parameters}")).unwrap()
    };
    assert_eq!(many("tr=http://t#/").trackers.len(), MAX_TRACKERS);
    assert_eq!(many("ws=http://t#/").webseeds.len(), MAX_WEBSEEDS);
    assert_eq!(many("x.pe=t#:1").peers.len(), MAX_PEERS);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        hash: [u8; 20],
        name in "\\PC{0,30}",
        hosts in prop::collection::btree_set("[a-z]{1,9}\\.test", 0..4),
        port in 1_u16..,
        first in 0_u32..1000,
        length: Option<u64>,
    ) {
        let url = |host: &String| SafeUrl::parse(&format!("http://{host}:{port}/a?x=1&y=%20")).unwrap();
        let magnet = Magnet {
            info_hash: InfoHash(hash),
            name: (!name.is_empty()).then_some(name),
            trackers: hosts.iter().map(url).collect(),
            webseeds: hosts.iter().map(url).collect(),
            peers: hosts.iter().map(|host| PeerAddress { host: host.clone(), port }).collect(),
            selected: vec![first..=first, first + 2..=first + 5],
            length,
        };
        prop_assert_eq!(parse(&magnet.to_string()), Ok(magnet));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(magnet:\\?)?(xt=urn:btih:[0-9a-f]{38,42})?\\PC{0,60}") {
        if let Ok(magnet) = parse(&text) {
            prop_assert_eq!(parse(&magnet.to_string()), Ok(magnet));
        }
    }
}
