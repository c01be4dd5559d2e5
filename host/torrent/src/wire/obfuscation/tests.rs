use super::*;

const TORRENT: InfoHash = InfoHash([5; 20]);

#[test]
fn both_sides_have_the_same_keys_and_understand_the_offer() {
    let (here, there) = (KeyPair::new([1; 20]), KeyPair::new([2; 20]));
    let secret = here.agree(&there.public).unwrap();
    let same = there.agree(&here.public).unwrap();
    assert_eq!(first_mark(&secret), first_mark(&same));
    assert_eq!(torrent_mark(&secret, TORRENT), torrent_mark(&same, TORRENT));
    assert_ne!(torrent_mark(&secret, TORRENT), torrent_mark(&same, InfoHash([6; 20])));
    let ways = Ways { plain: true, rc4: true };
    let mut bytes = offer(ways, 30);
    assert_eq!(bytes.len(), OFFER_BYTES + 30);
    Keys::new(&secret, TORRENT).connecting.apply(&mut bytes);
    Keys::new(&same, TORRENT).connecting.apply(&mut bytes);
    assert_eq!(read_offer(bytes.first_chunk().unwrap()), Some((ways, 30)));
    Keys::new(&same, TORRENT).accepting.apply(&mut bytes);
    assert_eq!(
        read_offer(bytes.first_chunk().unwrap()),
        None,
        "the other direction's key"
    );
}

#[test]
fn an_offer_with_too_much_padding_is_none() {
    let mut bytes = [0; OFFER_BYTES];
    bytes[OFFER_BYTES - 2..].copy_from_slice(&513_u16.to_be_bytes());
    assert_eq!(read_offer(&bytes), None);
}

#[test]
fn the_way_is_one_that_both_have() {
    let all = Ways { plain: true, rc4: true };
    let [plain, rc4] = [(true, false), (false, true)].map(|(plain, rc4)| Ways { plain, rc4 });
    assert_eq!(all.choose(all), Some(plain));
    assert_eq!(rc4.choose(all), Some(rc4));
    assert_eq!(all.choose(rc4), Some(rc4));
    assert_eq!(plain.choose(rc4), None);
}
