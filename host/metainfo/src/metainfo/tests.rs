use proptest::prelude::*;

use super::*;
use crate::{MAX_FILES, MAX_PIECE_LENGTH, PathProblem, bencode::DictWriter};

/// A file, as an info dictionary lists it.
fn file(list: &mut Writer, path: &[&[u8]], length: i64, attr: &str) {
    list.dict_value(|file| {
        if !attr.is_empty() {
            file.entry("attr").bytes(attr);
        }
        file.entry("length").integer(length);
        file.entry("path")
            .list(|list| path.iter().for_each(|part| list.bytes(part)));
    });
}

/// A torrent whose info dictionary is completed with a piece length of 16 KiB and one hash.
fn torrent(write: impl FnOnce(&mut DictWriter<'_>)) -> Vec<u8> {
    let info = Writer::dict(|info| {
        write(info);
        info.entry("name").bytes("n");
        info.entry("piece length").integer(16 << 10);
        info.entry("pieces").bytes([7; 20]);
    });
    of_info(&info)
}

fn of_info(info: &[u8]) -> Vec<u8> {
    Writer::dict(|file| file.entry("info").raw(info))
}

fn single(name: &str, piece_length: i64, pieces: usize, length: i64) -> Result<Metainfo, MetainfoError> {
    let info = Writer::dict(|info| {
        info.entry("length").integer(length);
        info.entry("name").bytes(name);
        info.entry("piece length").integer(piece_length);
        info.entry("pieces").bytes(vec![7; pieces]);
    });
    Metainfo::parse(&of_info(&info))
}

/// Why a torrent of files with these paths is refused.
fn refused(paths: &[&[&[u8]]]) -> PathProblem {
    let bytes = torrent(|info| {
        info.entry("files")
            .list(|list| paths.iter().for_each(|path| file(list, path, 5, "")));
    });
    match Metainfo::parse(&bytes) {
        Err(MetainfoError::Path(refused)) => refused.problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_that_cannot_be_are_refused_by_name() {
    assert!(single("n", 16 << 10, 20, 5).is_ok());
    for piece_length in [0, -1, i64::MIN, i64::from(MAX_PIECE_LENGTH) + 1, i64::MAX] {
        assert_eq!(
            single("n", piece_length, 20, 5),
            Err(MetainfoError::PieceLength(piece_length))
        );
    }
    let count = |expected, found| Err(MetainfoError::PieceCount { expected, found });
    assert_eq!(single("n", 16 << 10, 40, 5), count(1, 2));
    assert_eq!(single("n", 16 << 10, 21, 5), count(1, 1));
    assert_eq!(single("n", 16 << 10, 0, 5), count(1, 0));
    assert_eq!(single("n", 4, 20, 5), count(2, 1));
    for length in [0, -1, 1 << 48, i64::MAX] {
        assert_eq!(single("n", 1 << 28, 20, length), Err(MetainfoError::Length), "{length}");
    }
    // A thousand million pieces, told in a hundred bytes.
    assert_eq!(
        single("n", 1, 20, 1_000_000_000),
        Err(MetainfoError::TooManyPieces(1_000_000_000))
    );
}

#[test]
fn lengths_that_overflow_together_are_refused() {
    let bytes = torrent(|info| {
        info.entry("files").list(|list| {
            for name in [&b"a"[..], b"b"] {
                file(list, &[name], (1 << 48) - 1, "");
            }
        });
    });
    assert_eq!(Metainfo::parse(&bytes), Err(MetainfoError::Length));
}

#[test]
fn paths_that_are_tricks_are_refused_by_name() {
    for (paths, problem) in [
        (&[&[&b".."[..], b"a"][..]][..], PathProblem::Parent),
        (&[&[b"a/../../b"]], PathProblem::Parent),
        (&[&[b"/etc/passwd"]], PathProblem::Absolute),
        (&[&[b"C:\\x"]], PathProblem::Absolute),
        (&[&[b"a\0b"]], PathProblem::Nul),
        (&[&[b"nul.txt"]], PathProblem::Reserved),
        (&[&[]], PathProblem::Empty),
        (&[&[b"", b"a"]], PathProblem::Empty),
        (&[&[b"a"], &[b"a"]], PathProblem::Duplicate),
        (&[&[b"a"], &[b"A"]], PathProblem::Case),
        (&[&[b"a"], &[b"a", b"b"]], PathProblem::FileAndDirectory),
        (&[&[&[b'x'; 5000]]], PathProblem::TooLong),
    ] {
        assert_eq!(refused(paths), problem, "{paths:?}");
    }
    for name in ["..", "/x", "a/b", "con", "a\0", "."] {
        assert!(
            matches!(single(name, 16 << 10, 20, 5), Err(MetainfoError::Path(_))),
            "{name:?}"
        );
    }
}

#[test]
fn a_link_is_refused_and_padding_is_not_shown() {
    let with = |attr: &str| {
        torrent(|info| {
            info.entry("files").list(|list| {
                file(list, &[b"a"], 5, "");
                file(list, &[b".pad", b"11"], 11, attr);
                file(list, &[b"b"], 5, "x");
            });
        })
    };
    let info = Metainfo::parse(&with("p")).unwrap().info;
    let files: Vec<_> = info
        .files()
        .iter()
        .map(|file| (file.shown(), file.offset(), file.index()))
        .collect();
    assert_eq!(files, [("a", 0, 0), ("b", 16, 2)]);
    assert_eq!(info.total_length(), 21);
    let refused = Metainfo::parse(&with("l")).unwrap_err().to_string();
    assert!(
        refused.contains("symbolic link") && refused.contains(".pad/11"),
        "{refused}"
    );
}

#[test]
fn version_2_alone_is_refused_and_a_hybrid_is_version_1() {
    let version = |number: i64, has_v1: bool| {
        let info = Writer::dict(|info| {
            info.entry("file tree").dict_value(|_| {});
            if has_v1 {
                info.entry("length").integer(5);
            }
            info.entry("meta version").integer(number);
            info.entry("name").bytes("n");
            info.entry("piece length").integer(16 << 10);
            if has_v1 {
                info.entry("pieces").bytes([7; 20]);
            }
        });
        Metainfo::parse(&of_info(&info))
    };
    assert!(version(2, true).is_ok());
    assert_eq!(version(2, false), Err(MetainfoError::V2Only));
    assert_eq!(version(3, true), Err(MetainfoError::UnknownVersion(3)));
}

#[test]
fn what_is_no_torrent_says_so() {
    for bytes in [&b"de"[..], b"i1e", b"d4:infoi1ee", b"le"] {
        assert_eq!(Metainfo::parse(bytes), Err(MetainfoError::NoInfo));
    }
    assert!(matches!(Metainfo::parse(b"<html>"), Err(MetainfoError::Bencode(_))));
    assert!(matches!(
        Metainfo::parse(&vec![b'x'; MAX_METAINFO_BYTES + 1]),
        Err(MetainfoError::TooLarge { .. })
    ));
    assert_eq!(
        Metainfo::parse(b"d4:infodee"),
        Err(MetainfoError::Missing("piece length"))
    );
}

#[test]
fn the_number_of_files_is_limited() {
    let with = |count: usize| {
        torrent(|info| {
            info.entry("files").list(|list| {
                for at in 0..count {
                    file(list, &[at.to_string().as_bytes()], i64::from(at == 0), "");
                }
            });
        })
    };
    assert_eq!(Metainfo::parse(&with(2_000)).unwrap().info.files().len(), 2_000);
    assert_eq!(Metainfo::parse(&with(MAX_FILES + 1)), Err(MetainfoError::TooManyFiles));
}

#[test]
fn the_hash_is_that_of_the_bytes_as_they_were_written() {
    // Keys out of order and an unknown one, as some program wrote it.
    let info = b"d4:name1:n5:extra1:x12:piece lengthi16384e6:lengthi5e6:pieces20:aaaaaaaaaaaaaaaaaaaae";
    let parsed = Metainfo::parse(&of_info(info)).unwrap();
    assert_eq!(parsed.info.hash(), crate::InfoHash::of(info));
    assert_eq!(Metainfo::parse(&parsed.encode()).unwrap().info.raw(), info);
    assert_eq!(Info::parse_expecting(info, parsed.info.hash()), Ok(parsed.info));
    assert_eq!(
        Info::parse_expecting(info, crate::InfoHash([0; 20])),
        Err(MetainfoError::WrongHash)
    );
}

#[test]
fn trackers_keep_their_tiers_and_useless_urls_are_left_out() {
    let bytes = |has_list: bool| {
        let info = torrent(|info| info.entry("length").integer(5));
        let info = bencode::parse(&info).unwrap().get(b"info").unwrap().raw().to_vec();
        Writer::dict(|file| {
            file.entry("announce").bytes("http://first.test/");
            file.entry("announce-list").list(|tiers| {
                if has_list {
                    tiers.texts(["http://a.test/x", "wss://b.test/", "udp://c.test:1/"]);
                    tiers.texts(["not a url"]);
                    tiers.texts(["http://a.test/x", " https://d.test/ "]);
                }
            });
            file.entry("info").raw(&info);
            file.entry("nodes").list(|nodes| {
                nodes.list(|node| {
                    node.bytes("router.test");
                    node.integer(6881);
                });
                nodes.list(|node| node.bytes("no port"));
            });
            file.entry("url-list").bytes("http://w.test/f");
        })
    };
    let urls = |bytes: &[u8]| -> Vec<Vec<String>> {
        let tiers = Metainfo::parse(bytes).unwrap().trackers;
        tiers
            .iter()
            .map(|tier| tier.iter().map(|url| url.expose().to_owned()).collect())
            .collect()
    };
    assert_eq!(
        urls(&bytes(true)),
        [vec!["http://a.test/x", "udp://c.test:1/"], vec!["https://d.test/"]]
    );
    assert_eq!(urls(&bytes(false)), [["http://first.test/"]]);
    let read = Metainfo::parse(&bytes(true)).unwrap();
    assert_eq!(read.nodes, [("router.test".to_owned(), 6881)]);
    assert_eq!(read.webseeds.len(), 1);
    assert_eq!(Metainfo::parse(&read.encode()).unwrap(), read);
}

proptest! {
    #[test]
    fn any_change_of_a_torrent_is_read_or_refused(
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..6),
        end in 0_usize..400,
    ) {
        let mut bytes = torrent(|info| {
            info.entry("files").list(|list| {
                file(list, &[b"d", b"a"], 5, "");
                file(list, &[b"d", b"b"], 6, "p");
                file(list, &[b"c"], 7, "");
            });
        });
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[at % length] = byte;
        }
        bytes.truncate(length.max(end));
        if let Ok(read) = Metainfo::parse(&bytes) {
            let info = &read.info;
            prop_assert_eq!(info.hash(), crate::InfoHash::of(info.raw()));
            prop_assert_eq!(u64::from(info.piece_count()), info.total_length().div_ceil(u64::from(info.piece_length())));
            prop_assert!(info.piece_hash(info.piece_count()).is_none());
            let last = info.files().last().unwrap();
            prop_assert!(last.offset() + last.length() <= info.total_length());
            prop_assert_eq!(Metainfo::parse(&read.encode()).unwrap(), read);
        }
    }
}
