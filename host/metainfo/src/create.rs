//! The torrent of a file or a directory: what it will consist of, and the hashes of its pieces. Pure: the caller lists the
//! files and reads them.

use sha1::{Digest as _, Sha1};
use transfer::SafeUrl;

use crate::{
    bencode::Writer,
    error::{InvalidPath, MetainfoError},
    info::Info,
    limit::{MAX_FILES, MAX_PIECES},
    metainfo::Metainfo,
    path::{self, Tree},
};

/// The shortest piece in bytes that is chosen, and the unit in which peers ask for bytes.
pub const MIN_PIECE_LENGTH: u32 = 16 * 1024;

/// The longest piece in bytes that is chosen. Beyond this other programs refuse torrents.
pub const MAX_PIECE_LENGTH: u32 = 256 << 20;

/// Above so many bytes pieces are twice as long, beginning with [`MIN_PIECE_LENGTH`]. Libtorrent's table, so that the same
/// files get the same pieces: it makes the list of hashes as long as twice the square root of what it describes.
const LONGER_ABOVE: [u64; 10] = [
    2_684_355,
    10_737_418,
    42_949_673,
    171_798_692,
    687_194_767,
    2_748_779_069,
    10_995_116_278,
    43_980_465_111,
    175_921_860_444,
    703_687_441_777,
];

/// What a creator chooses.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A power of two from [`MIN_PIECE_LENGTH`] to [`MAX_PIECE_LENGTH`]; `None` chooses by size.
    pub piece_length: Option<u32>,
    /// Peers may come from the trackers only.
    pub is_private: bool,
    /// Part of the info dictionary; private trackers ask for it.
    pub source: Option<String>,
    /// Tiers of trackers.
    pub trackers: Vec<Vec<SafeUrl>>,
    /// Web servers that have the files.
    pub webseeds: Vec<SafeUrl>,
    /// For people.
    pub comment: Option<String>,
    /// The program.
    pub created_by: Option<String>,
    /// In seconds since 1970; `None` leaves it out, so that the same files always give the same torrent.
    pub created_at: Option<i64>,
}

/// Why a torrent cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// A name that no torrent may have.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// Nothing to share.
    #[error("a torrent needs at least one byte, and there is none in {0}")]
    Empty(String),
    /// More than [`MAX_FILES`].
    #[error("a torrent has at most {MAX_FILES} files, and there are {0}; share an archive of them instead")]
    TooManyFiles(usize),
    /// Not a power of two, or beyond the limits.
    #[error("a piece length of {0} bytes is not possible; it is a power of two from 16 KiB to 256 MiB")]
    PieceLength(u32),
    /// More than [`MAX_PIECES`].
    #[error("these files would have {0} pieces, and the limit is {MAX_PIECES}; choose a longer piece length")]
    TooManyPieces(u64),
    /// The bytes that were read are not as many as were listed.
    #[error("the files changed while they were read; try again when nothing writes to them")]
    Changed,
    /// A limit that only the result shows.
    #[error("the torrent would be refused")]
    Refused(#[from] MetainfoError),
}

/// A file to share: the components of its path below the torrent's name, and its length in bytes.
pub type Entry = (Vec<String>, u64);

/// What a torrent will consist of.
#[derive(Debug, Clone)]
pub struct Plan {
    name: String,
    /// In the order in which their bytes are hashed; `None` for a single file.
    files: Option<Vec<Entry>>,
    total_length: u64,
    piece_length: u32,
    options: Options,
}

impl Plan {
    /// The torrent of one file.
    pub fn of_file(name: &str, length: u64, options: Options) -> Result<Self, CreateError> {
        Self::new(name, None, length, options)
    }

    /// The torrent of a directory. Its files are sorted by their paths, so that the order in which they were listed makes
    /// no difference.
    pub fn of_directory(name: &str, mut files: Vec<Entry>, options: Options) -> Result<Self, CreateError> {
        if files.len() > MAX_FILES {
            return Err(CreateError::TooManyFiles(files.len()));
        }
        files.sort();
        let mut tree = Tree::default();
        for (path, _) in &files {
            tree.add(path)?;
        }
        let total_length = files
            .iter()
            .fold(0_u64, |total, (_, length)| total.saturating_add(*length));
        Self::new(name, Some(files), total_length, options)
    }

    fn new(name: &str, files: Option<Vec<Entry>>, total_length: u64, options: Options) -> Result<Self, CreateError> {
        path::safe(name).map_err(|problem| path::refusal(name, problem))?;
        if total_length == 0 {
            return Err(CreateError::Empty(name.to_owned()));
        }
        let is_possible =
            |length: &u32| length.is_power_of_two() && (MIN_PIECE_LENGTH..=MAX_PIECE_LENGTH).contains(length);
        let piece_length = match options.piece_length {
            None => piece_length(total_length),
            Some(length) if is_possible(&length) => length,
            Some(length) => return Err(CreateError::PieceLength(length)),
        };
        let pieces = total_length.div_ceil(u64::from(piece_length));
        if pieces > MAX_PIECES {
            return Err(CreateError::TooManyPieces(pieces));
        }
        Ok(Self {
            name: name.to_owned(),
            files,
            total_length,
            piece_length,
            options,
        })
    }

    /// The files below the torrent's name, in the order in which their bytes are passed to the [`Hasher`]; empty for a
    /// single file.
    pub fn files(&self) -> &[Entry] {
        self.files.as_deref().unwrap_or_default()
    }

    /// The bytes of all files.
    pub fn total_length(&self) -> u64 {
        self.total_length
    }

    /// In bytes.
    pub fn piece_length(&self) -> u32 {
        self.piece_length
    }

    /// Paths that some systems cannot store as they are: whoever downloads them there gets other names.
    pub fn changed_elsewhere(&self) -> impl Iterator<Item = String> {
        let is_changed = |component: &String| path::safe(component).map_or(true, |safe| safe.as_str() != component);
        let name = std::slice::from_ref(&self.name);
        let name = name.iter().filter(move |name| is_changed(name)).cloned();
        let files = self.files().iter().filter(move |(path, _)| path.iter().any(is_changed));
        name.chain(files.map(|(path, _)| path.join("/")))
    }

    /// Takes the bytes of the files.
    pub fn hasher(self) -> Hasher {
        Hasher {
            left: self.total_length,
            plan: self,
            hashes: Vec::new(),
            piece: Sha1::new(),
            in_piece: 0,
        }
    }

    /// The info dictionary. `private` is written only if it is set, as every program does.
    fn info(&self, hashes: &[u8]) -> Vec<u8> {
        Writer::dict(|info| {
            if let Some(files) = &self.files {
                info.entry("files")
                    .list(|list| files.iter().for_each(|file| write_file(list, file)));
            } else {
                info.entry("length").integer(integer(self.total_length));
            }
            info.entry("name").bytes(&self.name);
            info.entry("piece length").integer(i64::from(self.piece_length));
            info.entry("pieces").bytes(hashes);
            if self.options.is_private {
                info.entry("private").integer(1);
            }
            if let Some(source) = &self.options.source {
                info.entry("source").bytes(source);
            }
        })
    }
}

fn write_file(list: &mut Writer, (path, length): &Entry) {
    list.dict_value(|file| {
        file.entry("length").integer(integer(*length));
        file.entry("path").texts(path);
    });
}

fn integer(length: u64) -> i64 {
    i64::try_from(length).expect("the number of pieces limits the length")
}

/// The piece length for so many bytes.
fn piece_length(total_length: u64) -> u32 {
    let doublings = LONGER_ABOVE.iter().take_while(|above| total_length > **above).count();
    MIN_PIECE_LENGTH << doublings
}

/// Hashes the bytes of all files, one after the other.
#[derive(Debug)]
pub struct Hasher {
    plan: Plan,
    hashes: Vec<u8>,
    piece: Sha1,
    in_piece: u32,
    left: u64,
}

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) -> Result<(), CreateError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(CreateError::Changed)?;
        while !bytes.is_empty() {
            let room = self.plan.piece_length - self.in_piece;
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.piece.update(now);
            self.in_piece += u32::try_from(now.len()).expect("it is at most a piece");
            if self.in_piece == self.plan.piece_length {
                self.finish_piece();
            }
            bytes = later;
        }
        Ok(())
    }

    /// The bytes that are missing.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The torrent, when all bytes were taken.
    pub fn finish(mut self) -> Result<Metainfo, CreateError> {
        if self.left > 0 {
            return Err(CreateError::Changed);
        }
        if self.in_piece > 0 {
            self.finish_piece();
        }
        let info = Info::parse(&self.plan.info(&self.hashes))?;
        let options = self.plan.options;
        Ok(Metainfo {
            trackers: options.trackers.into_iter().filter(|tier| !tier.is_empty()).collect(),
            webseeds: options.webseeds,
            comment: options.comment.map(Into::into),
            created_by: options.created_by.map(Into::into),
            created_at: options.created_at,
            ..Metainfo::of_info(info)
        })
    }

    fn finish_piece(&mut self) {
        self.hashes.extend_from_slice(&self.piece.finalize_reset());
        self.in_piece = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
    }

    fn entry(path: &str, length: u64) -> Entry {
        (path.split('/').map(str::to_owned).collect(), length)
    }

    #[test]
    fn a_created_torrent_is_the_same_in_whatever_order_files_were_listed() {
        let created = |files: Vec<Entry>| {
            let mut hasher = Plan::of_directory("d", files, Options::default()).unwrap().hasher();
            hasher.update(&content(30)).unwrap();
            hasher.finish().unwrap().info.hash()
        };
        let (a, b) = (entry("a", 10), entry("b/c", 20));
        assert_eq!(created(vec![a.clone(), b.clone()]), created(vec![b, a]));
    }

    #[test]
    fn pieces_are_as_long_as_libtorrent_makes_them() {
        for (length, expected) in [
            (1, 16 << 10),
            (2_684_355, 16 << 10),
            (2_684_356, 32 << 10),
            (1 << 30, 512 << 10),
            (1 << 40, 16 << 20),
        ] {
            let plan = Plan::of_file("f", length, Options::default()).unwrap();
            assert_eq!(plan.piece_length(), expected, "{length}");
        }
    }

    #[test]
    fn what_would_be_refused_is_not_created() {
        let of_file = |name, length, piece_length| {
            let options = Options {
                piece_length,
                ..Options::default()
            };
            Plan::of_file(name, length, options).map(|_| ()).unwrap_err()
        };
        assert_eq!(of_file("f", 0, None), CreateError::Empty("f".to_owned()));
        assert_eq!(of_file("f", 1, Some(20_000)), CreateError::PieceLength(20_000));
        assert_eq!(of_file("f", 1, Some(8192)), CreateError::PieceLength(8192));
        assert!(matches!(
            of_file("f", 1 << 44, Some(16 << 10)),
            CreateError::TooManyPieces(_)
        ));
        assert!(matches!(of_file("..", 1, None), CreateError::Path(_)));
        let twice = vec![entry("a", 1), entry("A", 1)];
        assert!(Plan::of_directory("d", twice, Options::default()).is_err());
    }

    #[test]
    fn files_that_change_meanwhile_give_no_torrent() {
        let plan = Plan::of_file("f", 10, Options::default()).unwrap();
        let mut hasher = plan.clone().hasher();
        assert_eq!(hasher.update(&[0; 11]), Err(CreateError::Changed));
        let mut hasher = plan.hasher();
        hasher.update(&[0; 9]).unwrap();
        assert_eq!(hasher.finish().unwrap_err(), CreateError::Changed);
    }

    proptest! {
        #[test]
        fn what_is_created_is_what_was_planned(
            lengths in prop::collection::vec(0_u16..40_000, 1..6),
            is_private: bool,
            step in 1_usize..50_000,
        ) {
            let total: usize = lengths.iter().map(|length| usize::from(*length)).sum();
            prop_assume!(total > 0);
            let files = lengths.iter().enumerate().map(|(at, length)| entry(&format!("{at}/f"), u64::from(*length)));
            let options = Options { is_private, source: Some("S".to_owned()), ..Options::default() };
            let plan = Plan::of_directory("d", files.collect(), options).unwrap();
            let mut hasher = plan.hasher();
            for bytes in content(total).chunks(step) {
                hasher.update(bytes).unwrap();
            }
            let created = hasher.finish().unwrap();
            let read = Metainfo::parse(&created.encode()).unwrap();
            prop_assert_eq!(&read, &created);
            prop_assert_eq!(read.info.is_private(), is_private);
            prop_assert_eq!(read.info.source(), Some("S"));
            let read_lengths: Vec<_> = read.info.files().iter().map(super::super::info::File::length).collect();
            prop_assert_eq!(read_lengths, lengths.iter().map(|length| u64::from(*length)).collect::<Vec<_>>());
            for (at, piece) in content(total).chunks(16 << 10).enumerate() {
                let hash: [u8; 20] = Sha1::digest(piece).into();
                prop_assert_eq!(read.info.piece_hash(u32::try_from(at).unwrap()), Some(&hash));
            }
        }
    }
}
