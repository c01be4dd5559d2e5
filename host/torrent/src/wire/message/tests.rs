use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { pieces: Some(100) };

fn block() -> impl Strategy<Value = Block> {
    (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(piece, begin, length)| Block { piece, begin, length })
}

/// Every kind of message, with its bytes.
fn message() -> impl Strategy<Value = (usize, u32, Block, Vec<u8>)> {
    let content = prop::collection::vec(any::<u8>(), 0..200);
    (0_usize..16, any::<u32>(), block(), content)
}

prop_compose! {
    fn encoded()((kind, number, block, content) in message()) -> (Vec<u8>, usize) {
        let bits = vec![0; 13];
        let data = Block { length: block.length % BLOCK_BYTES + 1, ..block };
        let message = match kind {
            0 => Message::KeepAlive,
            1 => Message::Choke,
            2 => Message::Unchoke,
            3 => Message::Interested,
            4 => Message::NotInterested,
            5 => Message::Have(number),
            6 => Message::Bitfield(&bits),
            7 => Message::Request(block),
            8 => Message::Piece(data),
            9 => Message::Cancel(block),
            10 => Message::Suggest(number),
            11 => Message::HaveAll,
            12 => Message::HaveNone,
            13 => Message::Reject(block),
            14 => Message::AllowedFast(number),
            _ => Message::Extended(3, &content),
        };
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        let decoded = decode(&bytes, LIMITS).unwrap().map(|(decoded, _)| decoded == message);
        assert_eq!(decoded, Some(true));
        (bytes, kind)
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_and_needs_all_its_bytes((bytes, _) in encoded()) {
        let (_, taken) = decode(&bytes, LIMITS).unwrap().unwrap();
        prop_assert_eq!(taken, bytes.len());
        for end in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end], LIMITS), Ok(None));
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused_within_the_limit(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(Some((_, taken))) = decode(&bytes, LIMITS) {
            prop_assert!(taken <= bytes.len());
            prop_assert!(taken <= LIMITS.largest());
        }
    }
}

/// Checks what the bytes of one message, in hexadecimal groups, are refused for.
fn check_refused(bytes: &[u8], expected: Malformed) {
    assert_eq!(decode(bytes, LIMITS), Err(expected));
}

#[test]
fn lengths_that_a_message_cannot_have_are_refused_before_anything_is_kept() {
    check_refused(&[0, 0, 0, 2, CHOKE, 0], Malformed::Length { id: CHOKE, length: 2 });
    check_refused(&[0, 0, 0, 4, HAVE, 0, 0, 0], Malformed::Length { id: HAVE, length: 4 });
    check_refused(&[0, 0, 0, 9, PIECE], Malformed::Length { id: PIECE, length: 9 });
    check_refused(
        &[0, 0, 0x40, 0x0a, PIECE],
        Malformed::Long {
            id: PIECE,
            length: 16_394,
            limit: 16_393,
        },
    );
    check_refused(
        &[0xff, 0xff, 0xff, 0xff, EXTENDED],
        Malformed::Long {
            id: EXTENDED,
            length: u32::MAX,
            limit: 24_578,
        },
    );
    check_refused(
        &[0, 0, 0, 15, BITFIELD],
        Malformed::Long {
            id: BITFIELD,
            length: 15,
            limit: 14,
        },
    );
    check_refused(
        &[0, 0, 0, 65, 99],
        Malformed::Long {
            id: 99,
            length: 65,
            limit: 64,
        },
    );
}
