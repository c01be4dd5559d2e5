use proptest::prelude::*;

use super::*;

/// A tree, as the model of what the reader walks lazily.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Integer(i64),
    Bytes(Vec<u8>),
    List(Vec<Tree>),
    Dict(std::collections::BTreeMap<Vec<u8>, Tree>),
}

fn write(tree: &Tree, writer: &mut Writer) {
    match tree {
        Tree::Integer(value) => writer.integer(*value),
        Tree::Bytes(text) => writer.bytes(text),
        Tree::List(items) => writer.list(|writer| items.iter().for_each(|item| write(item, writer))),
        Tree::Dict(entries) => writer.dict_value(|dict| {
            for (key, value) in entries {
                write(value, dict.entry(key));
            }
        }),
    }
}

fn read(value: Value<'_>) -> Tree {
    if let Some(integer) = value.as_integer() {
        return Tree::Integer(integer);
    }
    if let Some(text) = value.as_bytes() {
        return Tree::Bytes(text.to_vec());
    }
    if let Some(list) = value.as_list() {
        return Tree::List(list.map(read).collect());
    }
    let Some(entries) = value.as_dict() else {
        assert_eq!(value.raw()[0], b'i', "a value is one of four kinds");
        // Beyond 64 bits.
        return Tree::Integer(0);
    };
    Tree::Dict(entries.map(|(key, value)| (key.to_vec(), read(value))).collect())
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Tree::Integer),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Tree::Bytes),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        let key = prop::collection::vec(any::<u8>(), 0..6);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Tree::List),
            prop::collection::btree_map(key, inner, 0..8).prop_map(Tree::Dict),
        ]
    })
}

/// Bytes of which many are nearly bencode.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(&b"0123456789:ilde-"[..]),
        1 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..60)
}

proptest! {
    #[test]
    fn what_is_written_is_read(tree in any_tree(), rest in prop::collection::vec(any::<u8>(), 0..8)) {
        let mut writer = Writer::default();
        write(&tree, &mut writer);
        let mut bytes = writer.0;
        let length = bytes.len();
        bytes.extend_from_slice(&rest);
        let (value, after) = parse_prefix(&bytes).unwrap();
        prop_assert_eq!(value.raw().len(), length);
        prop_assert_eq!(after, &rest[..]);
        prop_assert_eq!(read(value), tree);
    }

    #[test]
    fn a_cut_value_is_truncated(tree in any_tree()) {
        let mut writer = Writer::default();
        write(&tree, &mut writer);
        for end in 0..writer.0.len() {
            let cut = parse(&writer.0[..end]);
            prop_assert!(matches!(cut, Err(BencodeError::Truncated | BencodeError::TooLong(_))), "{:?}", cut);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in nearly()) {
        if let Ok((value, rest)) = parse_prefix(&bytes) {
            let _tree = read(value);
            prop_assert_eq!(value.raw().len() + rest.len(), bytes.len());
        }
    }
}

#[test]
fn sloppy_and_invalid_input_is_judged_as_libtorrent_does() {
    for accepted in [
        "i03e",
        "i-0e",
        "i0e",
        "03:abc",
        "0:",
        "d1:bi1e1:ai2ee",
        "d1:ai1e1:ai2ee",
        "le",
        "de",
        "d0:i1ee",
        "i9223372036854775808e",
    ] {
        assert!(parse(accepted.as_bytes()).is_ok(), "{accepted}");
    }
    for refused in [
        "",
        "ie",
        "i-e",
        "i 3e",
        "i+3e",
        "i--1e",
        "i1",
        "-1:a",
        "3:ab",
        "di1ei2ee",
        "d1:ae",
        "l",
        "1a:x",
        "e",
        "lee",
        "99999999999999999999:a",
        "x",
    ] {
        assert!(parse(refused.as_bytes()).is_err(), "{refused}");
    }
}

#[test]
fn the_first_of_two_equal_keys_counts() {
    let value = parse(b"d1:ai1e1:ai2ee").unwrap();
    assert_eq!(value.get(b"a").and_then(Value::as_integer), Some(1));
}

#[test]
fn a_number_beyond_64_bits_is_no_integer() {
    assert_eq!(parse(b"i9223372036854775808e").unwrap().as_integer(), None);
    assert_eq!(parse(b"i-9223372036854775808e").unwrap().as_integer(), Some(i64::MIN));
}

#[test]
fn depth_and_items_are_limited() {
    let deep = |levels: usize| ["l".repeat(levels), "e".repeat(levels)].concat().into_bytes();
    let limits = Limits { depth: 3, items: 100 };
    assert!(parse_within(&deep(3), limits).is_ok());
    assert_eq!(parse_within(&deep(4), limits), Err(BencodeError::TooDeep(3)));
    let wide = |items: usize| format!("l{}e", "0:".repeat(items)).into_bytes();
    assert!(parse_within(&wide(99), limits).is_ok());
    assert_eq!(parse_within(&wide(101), limits), Err(BencodeError::TooManyItems(100)));
    // A megabyte of opening brackets costs no more than the limit.
    assert_eq!(parse(&vec![b'l'; 1 << 20]), Err(BencodeError::TooDeep(32)));
}

#[test]
fn what_follows_a_message_is_refused_or_returned() {
    assert_eq!(parse(b"i1ex"), Err(BencodeError::Trailing(3)));
    let (_, rest) = parse_prefix(b"d1:ai1eeDATA").unwrap();
    assert_eq!(rest, b"DATA");
}
