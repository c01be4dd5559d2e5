//! The info dictionary: what a torrent consists of, and what its info hash identifies.

use std::{ops::Range, sync::Arc};

use transfer::FileName;

use crate::{
    bencode::{self, Dict, Limits, Value},
    error::{MetainfoError, PathProblem},
    info_hash::InfoHash,
    limit::{MAX_FILES, MAX_INFO_BYTES, MAX_PIECE_LENGTH, MAX_PIECES},
    path::{self, Names, Tree},
};

/// The longest file in bytes, and the longest torrent. Libtorrent's limit, 256 TiB.
const MAX_LENGTH: u64 = (1 << 48) - 1;

/// The longest text beside names and paths that is kept, in characters.
const MAX_TEXT: usize = 4096;

const HASH_BYTES: usize = 20;

/// A checked info dictionary. Clones share it.
#[derive(Debug, Clone)]
pub struct Info(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    hash: InfoHash,
    raw: Box<[u8]>,
    /// Where the piece hashes are in `raw`.
    pieces: Range<usize>,
    name: FileName,
    piece_length: u32,
    files: Box<[File]>,
    total_length: u64,
    flags: Flags,
    source: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy)]
struct Flags {
    is_single_file: bool,
    is_private: bool,
}

/// A file of a torrent. Padding (BEP 47) is no file: it is the gap between the end of a file and the offset of the next,
/// and its bytes are zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    path: Box<str>,
    length: u64,
    offset: u64,
    index: u32,
}

impl File {
    /// The path below the torrent's name, joined by `/`; empty for the file of a torrent that has only one. Every
    /// component is a [`FileName`].
    pub fn shown(&self) -> &str {
        &self.path
    }

    /// The components of the path below the torrent's name.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter(|component| !component.is_empty())
    }

    /// In bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The position of its first byte in the torrent.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its position in the info dictionary, padding counted: the number by which magnet links select it (BEP 53).
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl Info {
    /// Checks an info dictionary, as peers transfer it (BEP 9).
    pub fn parse(raw: &[u8]) -> Result<Self, MetainfoError> {
        if raw.len() > MAX_INFO_BYTES {
            return Err(MetainfoError::TooLarge {
                bytes: raw.len(),
                limit: MAX_INFO_BYTES,
            });
        }
        let (value, rest) = bencode::parse_within(raw, Limits::METAINFO)?;
        if !rest.is_empty() {
            return Err(bencode::BencodeError::Trailing(raw.len() - rest.len()).into());
        }
        Self::of(value)
    }

    /// Like [`parse`](Self::parse), if the dictionary has the hash that was asked for.
    pub fn parse_expecting(raw: &[u8], hash: InfoHash) -> Result<Self, MetainfoError> {
        if raw.len() <= MAX_INFO_BYTES && InfoHash::of(raw) != hash {
            return Err(MetainfoError::WrongHash);
        }
        Self::parse(raw)
    }

    /// Checks an info dictionary that is part of a metainfo file.
    pub(crate) fn of(value: Value<'_>) -> Result<Self, MetainfoError> {
        let raw = value.raw();
        let fields = Fields::of(value.as_dict().ok_or(MetainfoError::NoInfo)?);
        fields.check_version()?;
        let piece_length = fields.piece_length()?;
        let layout = fields.layout()?;
        let expected = layout.total_length.div_ceil(u64::from(piece_length));
        if expected > MAX_PIECES {
            return Err(MetainfoError::TooManyPieces(expected));
        }
        let pieces = bytes(fields.pieces, "pieces")?;
        if pieces.len() as u64 != expected * HASH_BYTES as u64 {
            return Err(MetainfoError::PieceCount {
                expected,
                found: pieces.len() / HASH_BYTES,
            });
        }
        let start = pieces.as_ptr().addr() - raw.as_ptr().addr();
        let (name, files) = layout.files()?;
        Ok(Self(Arc::new(Parts {
            hash: InfoHash::of(raw),
            raw: raw.into(),
            pieces: start..start + pieces.len(),
            name,
            piece_length,
            files,
            total_length: layout.total_length,
            flags: Flags {
                is_single_file: layout.files.is_none(),
                is_private: fields.private.and_then(Value::as_integer) == Some(1),
            },
            source: fields.source.and_then(text),
        })))
    }

    /// The torrent's identity.
    pub fn hash(&self) -> InfoHash {
        self.0.hash
    }

    /// The dictionary's bytes, which are what is hashed.
    pub fn raw(&self) -> &[u8] {
        &self.0.raw
    }

    /// The name of the file or of the directory.
    pub fn name(&self) -> &FileName {
        &self.0.name
    }

    /// In bytes; between 1 and [`MAX_PIECE_LENGTH`].
    pub fn piece_length(&self) -> u32 {
        self.0.piece_length
    }

    /// The number of pieces, at least one.
    pub fn piece_count(&self) -> u32 {
        u32::try_from(self.0.pieces.len() / HASH_BYTES).expect("there are at most MAX_PIECES")
    }

    /// The SHA-1 of a piece.
    pub fn piece_hash(&self, index: u32) -> Option<&[u8; HASH_BYTES]> {
        let (hashes, _) = self.0.raw[self.0.pieces.clone()].as_chunks();
        hashes.get(usize::try_from(index).ok()?)
    }

    /// The files in the order of their bytes, without padding. At least one.
    pub fn files(&self) -> &[File] {
        &self.0.files
    }

    /// Whether the torrent is one file, and no directory.
    pub fn is_single_file(&self) -> bool {
        self.0.flags.is_single_file
    }

    /// Whether peers may come from its trackers only (BEP 27).
    pub fn is_private(&self) -> bool {
        self.0.flags.is_private
    }

    /// The bytes of all files and of the padding between them; more than 0.
    pub fn total_length(&self) -> u64 {
        self.0.total_length
    }

    /// What a private tracker adds so that the same files have another info hash there.
    pub fn source(&self) -> Option<&str> {
        self.0.source.as_deref()
    }
}

impl PartialEq for Info {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Info {}

/// A text for people: invalid UTF-8 replaced, truncated to [`MAX_TEXT`] characters.
pub(crate) fn text(value: Value<'_>) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(value.as_bytes()?);
    let kept: String = text.chars().take(MAX_TEXT).collect();
    (!kept.is_empty()).then(|| kept.into())
}

/// The entries that are read, the first of each key.
#[derive(Default)]
struct Fields<'a> {
    name: Option<Value<'a>>,
    name_utf_8: Option<Value<'a>>,
    piece_length: Option<Value<'a>>,
    pieces: Option<Value<'a>>,
    length: Option<Value<'a>>,
    files: Option<Value<'a>>,
    file_tree: Option<Value<'a>>,
    meta_version: Option<Value<'a>>,
    private: Option<Value<'a>>,
    source: Option<Value<'a>>,
    attr: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    fn of(dict: Dict<'a>) -> Self {
        let mut fields = Self::default();
        for (key, value) in dict {
            let field = match key {
                b"name" => &mut fields.name,
                b"name.utf-8" => &mut fields.name_utf_8,
                b"piece length" => &mut fields.piece_length,
                b"pieces" => &mut fields.pieces,
                b"length" => &mut fields.length,
                b"files" => &mut fields.files,
                b"file tree" => &mut fields.file_tree,
                b"meta version" => &mut fields.meta_version,
                b"private" => &mut fields.private,
                b"source" => &mut fields.source,
                b"attr" => &mut fields.attr,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
    }

    /// A hybrid has the keys of both versions, and is read as version 1.
    fn check_version(&self) -> Result<(), MetainfoError> {
        match self.meta_version.and_then(Value::as_integer) {
            None | Some(1 | 2) => {}
            Some(other) => return Err(MetainfoError::UnknownVersion(other)),
        }
        let is_v1 = self.pieces.is_some() || self.length.is_some() || self.files.is_some();
        let is_v2 = self.file_tree.is_some() || self.meta_version.is_some();
        if is_v2 && !is_v1 {
            return Err(MetainfoError::V2Only);
        }
        Ok(())
    }

    fn piece_length(&self) -> Result<u32, MetainfoError> {
        let length = self.piece_length.and_then(Value::as_integer);
        let length = length.ok_or(MetainfoError::Missing("piece length"))?;
        let checked = u32::try_from(length).ok();
        let checked = checked.filter(|length| (1..=MAX_PIECE_LENGTH).contains(length));
        checked.ok_or(MetainfoError::PieceLength(length))
    }

    /// Adds the lengths up; allocates for nothing but names that are not UTF-8.
    fn layout(&self) -> Result<Layout<'a>, MetainfoError> {
        let utf_8 = self.name_utf_8.and_then(Value::as_bytes);
        let utf_8 = utf_8.filter(|name| std::str::from_utf8(name).is_ok());
        let name = match utf_8 {
            Some(name) => name,
            None => bytes(self.name, "name")?,
        };
        let Some(files) = self.files else {
            if is_link(self.attr) {
                let name = String::from_utf8_lossy(name);
                return Err(path::refusal(&name, PathProblem::Link).into());
            }
            let total_length = length(self.length)?;
            return Layout::of(name, None, total_length);
        };
        let files = files.as_list().ok_or(MetainfoError::Missing("files"))?;
        let mut total_length = 0;
        for (count, entry) in files.clone().enumerate() {
            if count == MAX_FILES {
                return Err(MetainfoError::TooManyFiles);
            }
            total_length += length(entry.get(b"length"))?;
            if total_length > MAX_LENGTH {
                return Err(MetainfoError::Length);
            }
        }
        Layout::of(name, Some(files), total_length)
    }
}

fn bytes<'a>(value: Option<Value<'a>>, key: &'static str) -> Result<&'a [u8], MetainfoError> {
    value.and_then(Value::as_bytes).ok_or(MetainfoError::Missing(key))
}

/// The length of a file, at most [`MAX_LENGTH`].
fn length(value: Option<Value<'_>>) -> Result<u64, MetainfoError> {
    let length = value.and_then(Value::as_integer).ok_or(MetainfoError::Length)?;
    let length = u64::try_from(length).ok().filter(|length| *length <= MAX_LENGTH);
    length.ok_or(MetainfoError::Length)
}

fn has_attribute(attr: Option<Value<'_>>, wanted: u8) -> bool {
    attr.and_then(Value::as_bytes)
        .is_some_and(|attr| attr.contains(&wanted))
}

fn is_link(attr: Option<Value<'_>>) -> bool {
    has_attribute(attr, b'l')
}

/// The files, whose number and length are within limits.
struct Layout<'a> {
    name: &'a [u8],
    /// `None` if the torrent is one file.
    files: Option<bencode::List<'a>>,
    total_length: u64,
}

impl<'a> Layout<'a> {
    fn of(name: &'a [u8], files: Option<bencode::List<'a>>, total_length: u64) -> Result<Self, MetainfoError> {
        if files.clone().is_some_and(|mut files| files.next().is_none()) {
            return Err(MetainfoError::NoFiles);
        }
        if total_length == 0 {
            return Err(MetainfoError::Length);
        }
        Ok(Self {
            name,
            files,
            total_length,
        })
    }

    /// The torrent's name and its files.
    fn files(&self) -> Result<(FileName, Box<[File]>), MetainfoError> {
        let of_files = self
            .files
            .clone()
            .into_iter()
            .flatten()
            .flat_map(|entry| components(entry));
        let names = Names::of(of_files.chain([self.name]));
        let spelled = names.read(self.name);
        let name = path::safe(&spelled).map_err(|problem| path::refusal(&spelled, problem))?;
        let Some(entries) = self.files.clone() else {
            let only = File {
                path: Box::default(),
                length: self.total_length,
                offset: 0,
                index: 0,
            };
            return Ok((name, Box::new([only])));
        };
        let (mut tree, mut files, mut offset) = (Tree::default(), Vec::new(), 0);
        for (index, entry) in entries.enumerate() {
            let length = length(entry.get(b"length"))?;
            let attr = entry.get(b"attr");
            if !has_attribute(attr, b'p') {
                let spelled: Vec<_> = components(entry).map(|component| names.read(component)).collect();
                if is_link(attr) || entry.get(b"symlink path").is_some() {
                    return Err(path::refusal(&spelled.join("/"), PathProblem::Link).into());
                }
                files.push(File {
                    path: tree.add(&spelled)?,
                    length,
                    offset,
                    index: u32::try_from(index).expect("there are at most MAX_FILES"),
                });
            }
            offset += length;
        }
        if files.is_empty() {
            return Err(MetainfoError::NoFiles);
        }
        Ok((name, files.into()))
    }
}

/// The components of a file's path: those of `path.utf-8`, if all of them are UTF-8. Elements that are no texts count as
/// empty names, which are refused.
fn components(entry: Value<'_>) -> impl Iterator<Item = &[u8]> + use<'_> {
    let list = |key: &[u8]| entry.get(key).and_then(Value::as_list);
    let utf_8 = list(b"path.utf-8").filter(|list| {
        let mut list = list.clone().peekable();
        list.peek().is_some() && list.all(|component| component.as_text().is_some())
    });
    let path = utf_8.or_else(|| list(b"path"));
    let components = path.into_iter().flatten();
    components.map(|component| component.as_bytes().unwrap_or(b""))
}
