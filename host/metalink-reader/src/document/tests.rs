use proptest::prelude::*;
use transfer::source::MAX_URLS;

use super::*;
use crate::name::InvalidName;

const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
const SHA1: &str = "a9993e364706816aba3e25717850c26c9cd0d89d";
const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn read(text: &str) -> Result<Document, Unreadable> {
    Document::read(text.as_bytes(), &Preference::default())
}

/// A document of version 4 with these children of its only file.
fn with(children: &str) -> String {
    format!(
        r#"<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="f">{children}<url>http://a.test/f</url></file></metalink>"#
    )
}

fn urls(document: &Document) -> Vec<&str> {
    document.files[0].urls.iter().map(transfer::SafeUrl::expose).collect()
}

#[test]
fn version_4_says_where_a_file_is_and_what_it_hashes_to() {
    let text = format!(
        r#"<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink"><generator>x</generator>
        <file name="a/b.iso"><size>5</size><hash type="md5">{MD5}</hash><hash type="sha-256">{SHA256}</hash>
            <pieces length="4" type="md5"><hash>{MD5}</hash></pieces>
            <pieces length="3" type="sha-1"><hash>{SHA1}</hash><hash>{SHA1}</hash></pieces>
            <signature mediatype="application/pgp-signature">-----BEGIN PGP SIGNATURE-----</signature>
            <language>en</language><os>linux</os><version>1</version>
            <url priority="2" location="de">https://b.test/x</url><url priority="1">http://a.test/x</url>
            <url>ftp://c.test/x</url><url>y</url><url>http://a.test/x</url>
            <metaurl mediatype="torrent">http://t.test</metaurl></file>
        <file name="none"><url>gopher://c.test/x</url></file></metalink>"#
    );
    let document = read(&text).unwrap();
    assert_eq!(
        (document.files.len(), &document.left_out[..]),
        (1, &["none".to_owned()][..])
    );
    let file = &document.files[0];
    assert_eq!(urls(&document), ["http://a.test/x", "https://b.test/x"]);
    assert_eq!(file.checksum.as_ref().unwrap().to_string(), format!("sha-256={SHA256}"));
    assert_eq!((file.path.to_string().as_str(), file.size), ("a/b.iso", Some(5)));
    assert_eq!(file.os.as_deref(), Some("linux"));
    let pieces = file.pieces.as_ref().unwrap();
    assert_eq!(
        (pieces.algorithm().name(), pieces.piece_bytes(), pieces.count()),
        ("sha-1", 3, 2)
    );
}

#[test]
fn version_3_ranks_the_other_way_round_and_numbers_its_pieces() {
    let text = format!(
        r#"<metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="v3">
        <verification><hash type="sha1">{SHA1}</hash><pieces type="sha1" length="2">
            <hash piece="1">{SHA1}</hash><hash piece="0">{}</hash></pieces></verification>
        <resources maxconnections="5"><url type="http" preference="10" maxconnections="2">http://low.test/</url>
        <url type="http" preference="90">http://high.test/</url><url type="bittorrent">http://t.test/f</url>
        </resources></file></files></metalink>"#,
        "0".repeat(40)
    );
    let document = read(&text).unwrap();
    assert_eq!(urls(&document), ["http://high.test/", "http://low.test/"]);
    let file = &document.files[0];
    assert_eq!(file.checksum.as_ref().unwrap().to_string(), format!("sha-1={SHA1}"));
    assert_eq!(file.max_connections, Some(2));
    assert!(
        file.pieces
            .as_ref()
            .unwrap()
            .to_string()
            .starts_with("sha-1=2:AAAAAAAA")
    );
}

#[test]
fn preferences_go_before_the_documents_order() {
    let text = r#"<metalink><file name="f"><url priority="2" location="de">https://b.test/x</url>
        <url priority="1">http://a.test/x</url><url>y</url><url priority="3">ftp://c.test/x</url></file></metalink>"#;
    let read = |preference: Preference| Document::read(text.as_bytes(), &preference).unwrap();
    let near = read(Preference {
        locations: vec!["de".into()],
        ..Preference::default()
    });
    assert_eq!(urls(&near)[0], "https://b.test/x");
    let secure = read(Preference {
        protocol: Some("https".into()),
        base: "http://base.test/".into(),
        ..Preference::default()
    });
    assert_eq!(
        urls(&secure),
        ["https://b.test/x", "http://a.test/x", "http://base.test/y"]
    );
    let ftp = read(Preference {
        protocol: Some("ftp".into()),
        ..Preference::default()
    });
    assert_eq!(urls(&ftp), ["ftp://c.test/x"]);
}

#[test]
fn a_file_that_only_torrents_have_is_its_best_torrent() {
    let document = read(
        r#"<metalink><file name="f"><metaurl mediatype="torrent" priority="2">http://b.test/f</metaurl>
        <metaurl mediatype="torrent" priority="1">http://a.test/f</metaurl>
        <metaurl mediatype="x">http://c.test/f</metaurl></file></metalink>"#,
    );
    assert_eq!(urls(&document.unwrap()), ["http://a.test/f"]);
}

#[test]
fn what_is_no_document_is_refused_by_what_it_is() {
    for (text, why) in [
        ("", Unreadable::NotXml),
        ("<metalink", Unreadable::NotXml),
        (
            "<metalink><file name='a'><url>&x;</url></file></metalink>",
            Unreadable::NotXml,
        ),
        ("<!DOCTYPE metalink [<!ENTITY x 'y'>]><metalink/>", Unreadable::NotXml),
        (
            "<!DOCTYPE metalink SYSTEM 'file:///etc/passwd'><metalink/>",
            Unreadable::NotXml,
        ),
        ("<html/>", Unreadable::NotMetalink),
        ("<a><metalink/></a>", Unreadable::NotMetalink),
    ] {
        assert_eq!(read(text), Err(why), "{text}");
    }
    let no_text = Document::read(b"<metalink>\xff</metalink>", &Preference::default());
    assert_eq!(no_text, Err(Unreadable::NotText));
    let large = " ".repeat(MAX_DOCUMENT_BYTES + 1);
    assert_eq!(read(&large), Err(Unreadable::TooLarge(MAX_DOCUMENT_BYTES + 1)));
    assert_eq!(
        read(&format!("<metalink>{}", "<a>".repeat(100_000))),
        Err(Unreadable::NotXml)
    );
    let many = format!("<metalink>{}</metalink>", "<file/>".repeat(MAX_FILES + 1));
    assert_eq!(read(&many), Err(Unreadable::TooManyFiles(MAX_FILES + 1)));
    assert_eq!(read("<metalink/>").unwrap().files, []);
}

/// Everything in which a document can contradict itself, by the words that name it.
#[test]
fn a_file_that_contradicts_itself_is_refused_by_name() {
    for (children, why) in [
        ("<size>x</size>", "no number of bytes"),
        ("<size>-1</size>", "no number of bytes"),
        ("<size>99999999999999999999</size>", "no number of bytes"),
        ("<hash type='sha-256'>abc</hash>", "no sha-256"),
        ("<hash type='md5'>zz</hash>", "no md5"),
        ("<pieces type='sha-1'><hash>00</hash></pieces>", "without a length"),
        (
            "<pieces type='sha-1' length='0'><hash>{SHA1}</hash></pieces>",
            "least is 1",
        ),
        ("<pieces type='sha-1' length='4'><hash>00</hash></pieces>", "no sha-1"),
        ("<pieces type='sha-1' length='4'></pieces>", "0 bytes of sha-1 digests"),
        (
            "<size>9</size><pieces type='sha-1' length='4'><hash>{SHA1}</hash></pieces>",
            "1 piece hashes of 4 bytes for 9 bytes",
        ),
        (
            "<size>9</size><pieces type='sha-1' length='18446744073709551615'><hash>{SHA1}</hash><hash>{SHA1}</hash></pieces>",
            "2 piece hashes",
        ),
        (
            "<pieces type='sha-1' length='4'><hash piece='0'>{SHA1}</hash><hash piece='2'>{SHA1}</hash></pieces>",
            "do not count",
        ),
        (
            "<pieces type='sha-1' length='4'><hash piece='0'>{SHA1}</hash><hash piece='0'>{SHA1}</hash></pieces>",
            "do not count",
        ),
    ] {
        let message = read(&with(&children.replace("{SHA1}", SHA1))).unwrap_err().to_string();
        assert!(
            message.contains("file \"f\"") && message.contains(why),
            "{children}: {message}"
        );
    }
}

#[test]
fn a_name_is_refused_by_name_and_printed_without_control_characters() {
    let refused = |names: &[&str]| {
        let files: Vec<_> = names
            .iter()
            .map(|name| format!("<file name=\"{name}\"><url>http://a.test/</url></file>"))
            .collect();
        read(&format!("<metalink>{}</metalink>", files.concat()))
    };
    let name = |name: &str, problem: InvalidName| {
        Err(Unreadable::File {
            name: name.to_owned(),
            problem: problem.into(),
        })
    };
    assert_eq!(refused(&["ok", "../x"]), name("../x", InvalidName::Traversal));
    assert_eq!(refused(&["&#27;[2J"]), name("\\u{1b}[2J", InvalidName::Control));
    assert_eq!(refused(&["a", "A"]), name("A", InvalidName::Taken));
    assert_eq!(refused(&[""]), name("", InvalidName::Empty));
    assert!(refused(&["a", "b"]).is_ok());
}

#[test]
fn mirrors_and_pieces_beyond_the_limits_are_left_out() {
    let urls: Vec<_> = (0..MAX_URLS + 9)
        .map(|n| format!("<url>http://m{n}.test/f</url>"))
        .collect();
    let document = read(&format!("<metalink><file name='f'>{}</file></metalink>", urls.concat())).unwrap();
    assert_eq!(document.files[0].urls.len(), MAX_URLS);
    let piece = format!("<hash>{SHA1}</hash>");
    let count = transfer::pieces::MAX_DIGEST_BYTES / 20 + 1;
    let list = format!("<pieces type='sha-1' length='4'>{}</pieces>", piece.repeat(count));
    let whole = format!("<hash type='sha-256'>{SHA256}</hash>");
    assert_eq!(read(&with(&format!("{whole}{list}"))).unwrap().files[0].pieces, None);
    assert!(
        read(&with(&list))
            .unwrap_err()
            .to_string()
            .contains("the limit is 524288")
    );
    let urls = "<url>http://a.test/f</url>".repeat(5000);
    let message = read(&with(&urls)).unwrap_err().to_string();
    assert!(message.contains("more than 4096 URLs"), "{message}");
}

#[test]
fn documents_are_known_by_their_names() {
    for name in ["a.meta4", "A.METALINK", "a.b.meta4"] {
        assert!(is_document_name(name), "{name}");
    }
    for name in ["meta4", ".meta4", "a.meta4.zip", ""] {
        assert!(!is_document_name(name), "{name}");
    }
}

proptest! {
    #[test]
    fn no_document_makes_the_reader_panic(inner in "[<>/a-z\"= 0-9]{0,80}", any in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _any = read(&with(&inner));
        let _any = Document::read(&any, &Preference::default());
    }

    #[test]
    fn attributes_of_any_value_are_read_or_refused(
        tag in "url|hash|pieces|size|metaurl", name in "priority|preference|location|type|length|piece|maxconnections",
        value in "[-+0-9a-z ]{0,24}", text in "[0-9a-f:/.]{0,40}",
    ) {
        let _any = read(&with(&format!("<{tag} {name}='{value}'>{text}</{tag}>")));
    }
}
