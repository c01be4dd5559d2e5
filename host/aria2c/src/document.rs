//! What is to be downloaded: URIs, torrent files and Metalink documents; and the listing of documents for
//! `--show-files`.

use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use aria2::{files::Entry, option::Options};
use jiff::Timestamp;
use metainfo::{InfoHash, Magnet, Metainfo, MetainfoError};
use metalink_reader::{Document, Preference};

use crate::{Refused, console::Sizes};

/// aria2's exit codes of a torrent file that cannot be parsed, and of one whose content is invalid.
const BAD_BENCODE: u8 = 25;
const BAD_TORRENT: u8 = 26;

/// The width of the table of files, beside the column of numbers.
const WIDTH: usize = 75;

/// What is to be downloaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Uris(Entry),
    /// The files of a Metalink document.
    Metalink(Vec<u8>, Options),
    /// A torrent file.
    Torrent {
        info_hash: InfoHash,
        file: Vec<u8>,
        /// Web servers that have its files.
        webseeds: Vec<String>,
        options: Options,
    },
}

impl Wanted {
    /// The torrent, if it is one.
    pub(super) fn info_hash(&self) -> Option<InfoHash> {
        match self {
            Self::Torrent { info_hash, .. } => Some(*info_hash),
            Self::Uris(entry) => {
                let magnet = entry.uris.first()?.parse::<Magnet>().ok()?;
                Some(magnet.info_hash)
            }
            Self::Metalink(..) => None,
        }
    }
}

/// Where `--bt-save-metadata` writes the torrent file of a magnet link.
pub(super) fn saved_metadata(directory: &Path, info_hash: InfoHash) -> PathBuf {
    directory.join(info_hash.file_name())
}

/// Reads a document with the options of its downloads. `webseeds` belong to a torrent.
pub(super) fn read(path: &Path, own: &Options, webseeds: Vec<String>) -> Result<Wanted, Refused> {
    let file = bytes(path)?;
    let options = own.clone();
    match file.trim_ascii_start().first() {
        Some(b'<') => Ok(Wanted::Metalink(file, options)),
        Some(b'd') => torrent(path, file, options, webseeds),
        _ => Err(Refused::new(format!(
            "Unrecognized URI or unsupported protocol: {}",
            path.display()
        ))),
    }
}

/// Reads a torrent file.
pub(super) fn read_torrent(path: &Path, own: &Options, webseeds: Vec<String>) -> Result<Wanted, Refused> {
    if !path.is_file() {
        let problem = "Could not get file status: No such file or directory";
        return Err(Refused::bad_value("torrent-file", problem));
    }
    torrent(path, bytes(path)?, own.clone(), webseeds)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Refused> {
    let failed = |error| Refused::new(format!("Failed to open the file {}, cause: {error}", path.display()));
    std::fs::read(path).map_err(failed)
}

fn torrent(path: &Path, file: Vec<u8>, options: Options, webseeds: Vec<String>) -> Result<Wanted, Refused> {
    let parsed = Metainfo::parse(&file).map_err(|error| match error {
        MetainfoError::Bencode(_) => Refused {
            message: "Bencode decoding failed".to_owned(),
            code: BAD_BENCODE,
        },
        error => Refused {
            message: format!("{}: {error}", path.display()),
            code: BAD_TORRENT,
        },
    })?;
    Ok(Wanted::Torrent {
        info_hash: parsed.info.hash(),
        file,
        webseeds,
        options,
    })
}

/// The files of a Metalink document that cannot be downloaded, since none of their URLs can; relative ones are those below `base`.
pub(super) fn without_urls(document: &[u8], base: &str) -> Vec<String> {
    let preference = Preference {
        base: base.to_owned(),
        ..Preference::default()
    };
    Document::read(document, &preference)
        .map_or_else(|_refused_when_it_is_added| Vec::new(), |document| document.left_out)
}

/// The listing of a document.
pub(super) fn listing(path: &Path) -> Result<String, Refused> {
    let mut text = format!(">>> Printing the contents of file '{}'...\n", path.display());
    match read(path, &Options::default(), Vec::new())? {
        Wanted::Torrent { file, .. } => {
            let torrent = Metainfo::parse(&file).map_err(Refused::of)?;
            describe(&torrent, &mut text);
        }
        Wanted::Metalink(document, _) => {
            let document = Document::read(&document, &Preference::default()).map_err(Refused::of)?;
            let files = document.files.iter();
            let files = files.map(|file| (format!("./{}", file.path), file.size.unwrap_or(0)));
            table(files, &mut text);
        }
        Wanted::Uris(_) => {}
    }
    Ok(text)
}

/// As aria2 describes a torrent.
fn describe(torrent: &Metainfo, text: &mut String) {
    let info = &torrent.info;
    let mut line = |what: &str, value: &dyn fmt::Display| {
        let _infallible = writeln!(text, "{what}{value}");
    };
    line("", &"*** BitTorrent File Information ***");
    if let Some(comment) = &torrent.comment {
        line("Comment: ", comment);
    }
    if let Some(created) = torrent.created_at.and_then(|at| Timestamp::from_second(at).ok()) {
        line("Creation Date: ", &created.strftime("%a, %d %b %Y %H:%M:%S GMT"));
    }
    if let Some(program) = &torrent.created_by {
        line("Created By: ", program);
    }
    line("Mode: ", &if info.is_single_file() { "single" } else { "multi" });
    line("", &"Announce:");
    for tier in &torrent.trackers {
        let urls: String = tier.iter().flat_map(|url| [" ", url.expose()]).collect();
        line("", &urls);
    }
    let length: u64 = info.files().iter().map(metainfo::File::length).sum();
    line("Info Hash: ", &info.hash());
    line(
        "Piece Length: ",
        &format!("{}B", Sizes::Short.write(info.piece_length().into())),
    );
    line("The Number of Pieces: ", &info.piece_count());
    line("Total Length: ", &size(length));
    if !torrent.webseeds.is_empty() {
        line("", &"URL List:");
        for url in &torrent.webseeds {
            line(" ", &url.expose());
        }
    }
    line("Name: ", info.name());
    line("Magnet URI: ", &magnet(torrent.magnet()));
    let base = format!("./{}", info.name());
    let files = info.files().iter().map(|file| {
        let names: String = file.path().flat_map(|name| ["/", name]).collect();
        (format!("{base}{names}"), file.length())
    });
    table(files, text);
}

/// aria2 writes the hash in capital letters, and only the name and the trackers beside it.
fn magnet(magnet: Magnet) -> String {
    let magnet = Magnet {
        length: None,
        webseeds: Vec::new(),
        ..magnet
    };
    let hash = magnet.info_hash.to_string();
    magnet.to_string().replacen(&hash, &hash.to_uppercase(), 1)
}

fn table(files: impl Iterator<Item = (String, u64)>, text: &mut String) {
    let _infallible = writeln!(text, "Files:\nidx|path/length\n===+{}", "=".repeat(WIDTH));
    for ((path, length), index) in files.zip(1_u32..) {
        let (length, rule) = (size(length), "-".repeat(WIDTH));
        let _infallible = writeln!(text, "{index:>3}|{path}\n   |{length}\n---+{rule}");
    }
}

/// `128KiB (131,072)`
fn size(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{}B ({grouped})", Sizes::Short.write(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    fn example() -> Vec<u8> {
        let info = [
            &b"d5:filesld6:lengthi40000e4:pathl5:a.bineed6:lengthi5e4:pathl3:sub5:b.bineee4:name3:dir12:piece lengthi65536e6:pieces20:"[..],
            &[b'x'; 20],
            b"e",
        ]
        .concat();
        let head = b"d8:announce17:http://t.test/ann7:comment2:hi13:creation datei1700000000e4:info";
        [&head[..], &info, b"e"].concat()
    }

    /// As aria2c 1.36 prints it.
    #[test]
    fn a_torrent_is_listed_as_aria2_lists_it() {
        let (_dir, path) = file("x.torrent", &example());
        let shown = listing(&path).unwrap();
        let hash = Metainfo::parse(&example()).unwrap().info.hash().to_string();
        let expect = format!(
            ">>> Printing the contents of file '{}'...\n*** BitTorrent File Information ***\nComment: hi\n\
            Creation Date: Tue, 14 Nov 2023 22:13:20 GMT\nMode: multi\nAnnounce:\n http://t.test/ann\nInfo Hash: {hash}\n\
            Piece Length: 64KiB\nThe Number of Pieces: 1\nTotal Length: 39KiB (40,005)\nName: dir\n\
            Magnet URI: magnet:?xt=urn:btih:{}&dn=dir&tr=http%3A%2F%2Ft.test%2Fann\nFiles:\nidx|path/length\n===+{}\n\
            \u{20} 1|./dir/a.bin\n   |39KiB (40,000)\n---+{}\n  2|./dir/sub/b.bin\n   |5B (5)\n---+{}\n",
            path.display(),
            hash.to_uppercase(),
            "=".repeat(75),
            "-".repeat(75),
            "-".repeat(75),
        );
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_file_that_is_no_document_is_refused_with_aria2s_code() {
        let code = |bytes: &[u8]| {
            let (_dir, path) = file("x", bytes);
            read(&path, &Options::default(), Vec::new()).unwrap_err().code
        };
        assert_eq!(code(b"import os"), 1);
        assert_eq!(code(b"d4:infod"), BAD_BENCODE);
        assert_eq!(code(b"d4:infod4:name1:aee"), BAD_TORRENT);
        let missing = read_torrent(Path::new("/nowhere.torrent"), &Options::default(), Vec::new());
        assert_eq!(missing.unwrap_err().code, crate::BAD_OPTION);
    }
}
