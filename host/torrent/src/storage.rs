//! The files of a torrent.
//!
//! A file that is not complete has the suffix of part files, so that none looks finished before each of its pieces is
//! verified and synced. Bytes of unwanted files, which share pieces with wanted ones, are kept in one hidden parts file.
//!
//! Everything here blocks. Symbolic links below the torrent's directory are never followed.

pub(crate) mod handles;
pub(crate) mod layout;
mod open;
mod places;
pub(crate) mod resume;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use metainfo::Info;
use sha1::{Digest as _, Sha1};
use transfer::{Failure, FailureKind, FileName, file_name::PART_SUFFIX};

pub(crate) use self::places::{Places, parts_name};
use self::{
    handles::{Handles, Key},
    layout::{Extent, Layout},
};
use crate::{bitfield::Bitfield, geometry::Geometry};

/// Names for an occupied top name that are tried.
const MAX_ALTERNATIVES: usize = 1000;

/// How much of a piece is read at once to hash it.
const HASH_BUFFER_BYTES: usize = 256 * 1024;

/// The files of one torrent. Shared by the torrent's task and the threads that write and hash.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) info: Info,
    pub(crate) layout: Layout,
    /// Directory that contains the file, or the directory of files.
    directory: PathBuf,
    handles: Arc<Handles>,
    /// Tells our handles apart from those of other torrents.
    number: u64,
    /// The user chose the name: no other one is taken in its place.
    is_named: bool,
    places: Mutex<Places>,
}

/// The user's choice of where a torrent is stored.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) directory: PathBuf,
    /// Another name than the torrent's.
    pub(crate) name: Option<FileName>,
    /// As [`crate::TorrentSpec::paths`].
    pub(crate) paths: Vec<(u32, String)>,
}

impl Storage {
    pub(crate) fn new(info: Info, target: &Target, handles: Arc<Handles>, places: Places) -> Self {
        Self {
            layout: Layout::of(&info),
            info,
            directory: target.directory.clone(),
            is_named: target.name.is_some(),
            number: handles.number(),
            handles,
            places: Mutex::new(places),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::new(self.info.piece_length(), self.info.total_length())
    }

    pub(crate) fn places(&self) -> Places {
        self.lock().clone()
    }

    /// The path of the file or directory that the torrent is.
    pub(crate) fn top(&self) -> PathBuf {
        self.directory.join(&self.lock().top)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory that contains it.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn relative(&self, places: &Places, index: usize) -> String {
        places.relative(&self.info, index)
    }

    fn final_relative(&self, places: &Places, index: usize) -> String {
        places.final_relative(&self.info, index)
    }

    /// Name of the file that holds parts of unwanted files.
    fn parts_name(&self) -> String {
        parts_name(self.info.hash())
    }

    /// A handle for reading and writing what `extent` is a part of, and the offset there. `None` where there is nothing
    /// to read: the file does not exist.
    fn handle(&self, extent: Extent, is_written: bool) -> Result<Option<(Arc<File>, u64)>, Failure> {
        let places = self.lock();
        let (relative, file, offset) = if places.files[extent.file].in_parts {
            // At the offset that the bytes have in the torrent; the file is sparse.
            (self.parts_name(), u32::MAX, extent.torrent_offset)
        } else {
            let file = u32::try_from(extent.file).expect("torrents have fewer files");
            (self.relative(&places, extent.file), file, extent.file_offset)
        };
        let key = Key {
            storage: self.number,
            file,
        };
        if let Some(handle) = self.handles.get(key) {
            return Ok(Some((handle, offset)));
        }
        let path = self.directory.join(&relative);
        let opened = open::open_below(&self.directory, &relative, is_written);
        match opened {
            Ok(opened) => Ok(Some((self.handles.put(key, opened), offset))),
            Err(error) if !is_written && error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::disk("open", &path, &error)),
        }
    }

    fn failed(&self, act: &str, extent: Extent, error: &io::Error) -> Failure {
        let places = self.lock();
        let path = self.directory.join(self.relative(&places, extent.file));
        Failure::disk(act, &path, error)
    }

    /// Writes bytes at an offset of the torrent.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        for extent in self.layout.extents(offset, bytes.len() as u64) {
            let (file, at) = self.handle(extent, true)?.expect("a file to write is created");
            let begin = usize::try_from(extent.torrent_offset - offset).expect("inside the bytes");
            let length = usize::try_from(extent.length).expect("inside the bytes");
            transfer::write_all_at(&file, &bytes[begin..begin + length], at)
                .map_err(|error| self.failed("write", extent, &error))?;
        }
        Ok(())
    }

    /// Reads bytes at an offset of the torrent; padding is zeros. Returns whether all of them are there.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<bool, Failure> {
        let length = bytes.len() as u64;
        let mut covered = 0;
        for extent in self.layout.extents(offset, length) {
            let begin = usize::try_from(extent.torrent_offset - offset).expect("inside the bytes");
            let end = begin + usize::try_from(extent.length).expect("inside the bytes");
            bytes[covered..begin].fill(0);
            covered = end;
            let Some((file, at)) = self.handle(extent, false)? else {
                return Ok(false);
            };
            let is_there = read_exact_at(&file, &mut bytes[begin..end], at)
                .map_err(|error| self.failed("read", extent, &error))?;
            if !is_there {
                return Ok(false);
            }
        }
        bytes[covered..].fill(0);
        Ok(true)
    }

    /// Whether the piece in memory is right.
    pub(crate) fn is_right(&self, piece: u32, bytes: &[u8]) -> bool {
        let hash: [u8; 20] = Sha1::digest(bytes).into();
        self.info.piece_hash(piece) == Some(&hash)
    }

    /// Whether the piece on the disk is right. `buffer` is used for reading.
    pub(crate) fn is_right_on_disk(&self, piece: u32, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        let geometry = self.geometry();
        let (mut offset, mut rest) = (geometry.offset(piece), geometry.length(piece) as usize);
        let mut hash = Sha1::new();
        while rest > 0 {
            let length = rest.min(HASH_BUFFER_BYTES);
            buffer.resize(length, 0);
            if !self.read(offset, buffer)? {
                return Ok(false);
            }
            hash.update(&buffer);
            offset += length as u64;
            rest -= length;
        }
        let hash: [u8; 20] = hash.finalize().into();
        Ok(self.info.piece_hash(piece) == Some(&hash))
    }

    /// Gives a complete file its final name, synced before and after. A name that was taken meanwhile is numbered.
    pub(crate) fn finish_file(&self, index: usize) -> Result<(), Failure> {
        let length = self.info.files()[index].length();
        let whole = Extent {
            file: index,
            file_offset: 0,
            torrent_offset: self.info.files()[index].offset(),
            length,
        };
        if self.lock().files[index].is_finished {
            return Ok(());
        }
        // Only a file without bytes has none yet.
        let Some((file, _)) = self.handle(whole, length == 0)? else {
            let path = self.directory.join(self.relative(&self.lock(), index));
            return Err(is_missing(&path));
        };
        file.sync_data().map_err(|error| self.failed("sync", whole, &error))?;
        let mut places = self.lock();
        let from = self.directory.join(self.relative(&places, index));
        let wanted = self.final_relative(&places, index);
        let mut to = self.directory.join(&wanted);
        let mut taken = alternatives(&wanted);
        let is_final = self.is_named && self.info.is_single_file();
        let renamed = loop {
            match transfer::rename_new(&from, &to) {
                Ok(()) => break None::<io::Error>,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_final => match taken.next() {
                    Some(next) => to = self.directory.join(next),
                    None => break Some(error),
                },
                Err(error) => break Some(error),
            }
        };
        match renamed {
            Some(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(is_taken(&to)),
            Some(error) => return Err(Failure::disk("rename", &from, &error)),
            None => {}
        }
        let named = to
            .strip_prefix(&self.directory)
            .ok()
            .and_then(Path::to_str)
            .unwrap_or(&wanted);
        if named != wanted {
            if self.info.is_single_file() {
                named.clone_into(&mut places.top);
            } else {
                let below = named.split_once('/').map_or(named, |(_, below)| below);
                places.files[index].renamed = Some(below.to_owned());
            }
        }
        places.files[index].is_finished = true;
        drop(places);
        if let Some(parent) = to.parent() {
            private_files::sync_directory(parent).map_err(|error| Failure::disk("sync", parent, &error.source))?;
        }
        Ok(())
    }

    /// A file has its final name although a piece of it is wrong: it becomes unfinished again.
    pub(crate) fn reopen_file(&self, index: usize) -> Result<(), Failure> {
        let mut places = self.lock();
        if !places.files[index].is_finished {
            return Ok(());
        }
        self.handles.forget(self.number);
        let from = self.directory.join(self.relative(&places, index));
        places.files[index].is_finished = false;
        let to = self.directory.join(self.relative(&places, index));
        match transfer::rename_new(&from, &to) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Failure::disk("rename", &from, &error)),
        }
    }

    /// Whether it is a file without bytes, which no piece completes, that is to be created.
    pub(crate) fn is_to_be_empty(&self, index: usize) -> bool {
        self.info.files()[index].length() == 0 && !self.lock().files[index].is_finished
    }

    /// Why the files that are wanted cannot be uploaded as they are, if pieces of them are not among `have`.
    pub(crate) fn lacks(&self, wanted: &[bool], have: &Bitfield) -> Option<Failure> {
        let places = self.lock();
        let geometry = self.geometry();
        let pieces = |file: &metainfo::File| geometry.pieces_of(file.offset(), file.offset() + file.length());
        let is_wanted = |(index, _): &(usize, &metainfo::File)| wanted[*index];
        for (index, file) in self.info.files().iter().enumerate().filter(is_wanted) {
            let path = self.directory.join(self.final_relative(&places, index));
            let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file);
            let bytes = metadata.map(|metadata| metadata.len());
            if bytes != Some(file.length()) {
                return Some(bytes.map_or_else(
                    || is_missing(&path),
                    |bytes| has_other_size(&path, bytes, file.length()),
                ));
            }
        }
        // A piece that is shared with a file that is not wanted cannot be hashed without that. Of a piece that two wanted
        // files share, either may have changed: one with a wrong piece of its own is named rather.
        let mut sharing = vec![0_u32; geometry.pieces() as usize];
        let mut unknown = Bitfield::new(geometry.pieces());
        for (index, file) in self.info.files().iter().enumerate() {
            for piece in pieces(file) {
                sharing[piece as usize] += 1;
                if !wanted[index] {
                    unknown.insert(piece);
                }
            }
        }
        let is_wrong = |piece: u32| !have.has(piece) && !unknown.has(piece);
        let is_own = |piece: u32| sharing[piece as usize] == 1;
        let mut files = self.info.files().iter();
        let by_own = files.position(|file| pieces(file).any(|piece| is_wrong(piece) && is_own(piece)));
        let mut files = self.info.files().iter();
        let index = by_own.or_else(|| files.position(|file| pieces(file).any(is_wrong)))?;
        Some(was_changed(&self.directory.join(self.final_relative(&places, index))))
    }

    /// Why bytes that were there cannot be read.
    pub(crate) fn why_missing(&self, offset: u64, length: u64) -> Failure {
        let places = self.lock();
        let path = |extent: Extent| self.directory.join(self.relative(&places, extent.file));
        let is_short = |extent: &Extent| {
            let bytes = fs::symlink_metadata(path(*extent)).map_or(0, |metadata| metadata.len());
            bytes < extent.file_offset + extent.length
        };
        let found = self.layout.extents(offset, length).find(is_short);
        is_missing(&found.map_or_else(|| self.directory.join(&places.top), path))
    }

    /// Takes the user's choice of files. Bytes that are in the parts file and now wanted move to their file. Returns the
    /// pieces that are no longer there, because the parts file was removed before.
    pub(crate) fn select(&self, wanted: &[bool], have: &Bitfield) -> Result<Vec<u32>, Failure> {
        let mut lost = Vec::new();
        for (index, is_wanted) in wanted.iter().enumerate() {
            let in_parts = self.lock().files[index].in_parts;
            if *is_wanted && in_parts {
                self.leave_parts(index, have, &mut lost)?;
            } else if !is_wanted && !in_parts && !self.exists(index) {
                self.lock().files[index].in_parts = true;
            }
        }
        Ok(lost)
    }

    /// Takes files that are there under their final names as complete, until their pieces are hashed.
    pub(crate) fn adopt(&self) {
        let mut places = self.lock();
        for index in 0..places.files.len() {
            let path = self.directory.join(self.final_relative(&places, index));
            places.files[index].is_finished = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        }
    }

    /// Finds files that got their final name before that was recorded: those of a process that was killed in between.
    /// Returns them; they have to be hashed.
    pub(crate) fn adopt_named(&self, have: &Bitfield) -> Vec<usize> {
        let mut places = self.lock();
        let geometry = self.geometry();
        let mut named = Vec::new();
        for (index, file) in self.info.files().iter().enumerate() {
            let place = &places.files[index];
            let mut pieces = geometry.pieces_of(file.offset(), file.offset() + file.length());
            if place.is_finished || place.in_parts || !pieces.all(|piece| have.has(piece)) {
                continue;
            }
            let part = self.directory.join(self.relative(&places, index));
            let path = self.directory.join(self.final_relative(&places, index));
            let is_there =
                fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.length());
            if is_there && fs::symlink_metadata(part).is_err() {
                places.files[index].is_finished = true;
                named.push(index);
            }
        }
        named
    }

    /// Whether anything of the file is on the disk under its own name.
    fn exists(&self, index: usize) -> bool {
        let places = self.lock();
        fs::symlink_metadata(self.directory.join(self.relative(&places, index))).is_ok()
    }

    fn leave_parts(&self, index: usize, have: &Bitfield, lost: &mut Vec<u32>) -> Result<(), Failure> {
        let file = &self.info.files()[index];
        let (start, end) = (file.offset(), file.offset() + file.length());
        let geometry = self.geometry();
        let mut moved = Vec::new();
        for piece in geometry.pieces_of(start, end).filter(|piece| have.has(*piece)) {
            let begin = geometry.offset(piece).max(start);
            let until = (geometry.offset(piece) + u64::from(geometry.length(piece))).min(end);
            let mut bytes = vec![0; usize::try_from(until - begin).expect("a piece fits into memory")];
            if self.read(begin, &mut bytes)? {
                // At most two: only the first and the last piece of an unwanted file are shared with wanted ones.
                moved.push((begin, bytes));
            } else {
                lost.push(piece);
            }
        }
        self.lock().files[index].in_parts = false;
        for (offset, bytes) in moved {
            self.write(offset, &bytes)?;
        }
        Ok(())
    }

    /// Removes the parts file, and unfinished files that are not wanted. Returns whether pieces became incomplete by that.
    pub(crate) fn drop_parts(&self, wanted: &[bool]) -> Result<bool, Failure> {
        self.handles.forget(self.number);
        let mut places = self.lock();
        let mut is_any = false;
        let unwanted = (0..wanted.len()).filter(|index| !wanted[*index] && !places.files[*index].is_finished);
        let mut paths = vec![self.directory.join(self.parts_name())];
        let unwanted: Vec<_> = unwanted.collect();
        for index in unwanted {
            if !places.files[index].in_parts {
                paths.push(self.directory.join(self.relative(&places, index)));
                places.files[index].in_parts = true;
            }
        }
        drop(places);
        for path in paths {
            match fs::remove_file(&path) {
                Ok(()) => is_any = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::disk("remove", &path, &error)),
            }
        }
        Ok(is_any)
    }

    /// Syncs every file that has bytes which may not be on the disk.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        for index in 0..self.info.files().len() {
            let is_open = {
                let places = self.lock();
                !places.files[index].is_finished && !places.files[index].in_parts
            };
            if is_open && self.exists(index) {
                let extent = Extent {
                    file: index,
                    file_offset: 0,
                    torrent_offset: 0,
                    length: 0,
                };
                if let Some((file, _)) = self.handle(extent, false)? {
                    file.sync_data().map_err(|error| self.failed("sync", extent, &error))?;
                }
            }
        }
        let parts = self.directory.join(self.parts_name());
        match File::open(&parts) {
            Ok(file) => file.sync_data().map_err(|error| Failure::disk("sync", &parts, &error)),
            Err(_) => Ok(()),
        }
    }

    /// Size and time of the last change of each file, as they are on the disk.
    pub(crate) fn stamps(&self) -> Vec<places::Stamp> {
        self.lock().stamps(&self.info, &self.directory)
    }

    /// Closes the handles of this torrent.
    pub(crate) fn close(&self) {
        self.handles.forget(self.number);
    }

    /// Deletes all files of the torrent, and directories that are empty then.
    pub(crate) fn delete(&self) -> Result<(), Failure> {
        self.handles.forget(self.number);
        let places = self.lock();
        let left = places.paths(&self.info, &self.directory, true);
        let parts = self.directory.join(self.parts_name());
        for path in left.files.iter().chain([&parts]) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::disk("remove", path, &error));
                }
                _ => {}
            }
        }
        for directory in left.directories {
            // One that is not empty holds files of the user.
            let _kept = fs::remove_dir(directory);
        }
        Ok(())
    }

    /// Gives a file another path below the top, or a torrent of one file another name.
    pub(crate) fn rename(&self, index: usize, path: &str) -> Result<(), Failure> {
        if !places::is_path_in(&self.info, path) || index >= self.info.files().len() {
            return Err(places::no_path(path));
        }
        let mut places = self.lock();
        let mut renamed = places.clone();
        if self.info.is_single_file() {
            path.clone_into(&mut renamed.top);
        } else {
            renamed.files[index].renamed = Some(path.to_owned());
        }
        let to_final = self.final_relative(&renamed, index);
        let is_taken = (0..places.files.len()).any(|other| {
            other != index && self.final_relative(&places, other).to_lowercase() == to_final.to_lowercase()
        });
        let from = self.directory.join(self.relative(&places, index));
        let to = self.directory.join(self.relative(&renamed, index));
        if is_taken || fs::symlink_metadata(self.directory.join(&to_final)).is_ok() {
            let message = format!(
                "{} exists; choose another name",
                self.directory.join(&to_final).display()
            );
            return Err(Failure::new(FailureKind::Exists, message));
        }
        self.handles.forget(self.number);
        if !places.files[index].in_parts && fs::symlink_metadata(&from).is_ok() {
            open::make_parents(&self.directory, &self.relative(&renamed, index))
                .map_err(|error| Failure::disk("make the directory of", &to, &error))?;
            transfer::rename_new(&from, &to).map_err(|error| Failure::disk("rename", &from, &error))?;
        }
        *places = renamed;
        Ok(())
    }

    /// Gives the directory of files, or the only file, another name.
    pub(crate) fn rename_top(&self, name: &FileName) -> Result<(), Failure> {
        if self.info.is_single_file() {
            return self.rename(0, name.as_str());
        }
        let mut places = self.lock();
        let from = self.directory.join(&places.top);
        let to = self.directory.join(name.as_str());
        self.handles.forget(self.number);
        match transfer::rename_new(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::disk("rename", &from, &error)),
        }
        name.as_str().clone_into(&mut places.top);
        Ok(())
    }
}

/// Fills `bytes` from `offset`; `false` if the file ends before.
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<bool> {
    while !bytes.is_empty() {
        match transfer::read_at(file, bytes, offset) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Names for a file whose name is taken.
fn alternatives(relative: &str) -> impl Iterator<Item = String> + use<> {
    let (parent, name) = relative
        .rsplit_once('/')
        .map_or((None, relative), |(parent, name)| (Some(parent), name));
    let parent = parent.map(str::to_owned);
    let name = FileName::sanitise(name);
    (1..=u32::try_from(MAX_ALTERNATIVES).unwrap_or(u32::MAX)).map(move |number| {
        let name = name.numbered(number);
        parent
            .as_ref()
            .map_or_else(|| name.to_string(), |parent| format!("{parent}/{name}"))
    })
}

/// Finds a top name that is free, for a torrent that begins. A name that the user chose must be free.
pub(crate) fn free_top(info: &Info, target: &Target) -> Result<String, Failure> {
    let name = target.name.as_ref().unwrap_or_else(|| info.name());
    let is_there = |name: &FileName| {
        let exists = |name: &str| fs::symlink_metadata(target.directory.join(name)).is_ok();
        exists(name.as_str()) || exists(&name.with_suffix(PART_SUFFIX))
    };
    if !is_there(name) {
        return Ok(name.to_string());
    }
    let path = target.directory.join(name.as_str());
    if target.name.is_some() {
        return Err(is_taken(&path));
    }
    let found = if info.is_single_file() {
        let numbers = 1..=u32::try_from(MAX_ALTERNATIVES).unwrap_or(u32::MAX);
        numbers.map(|number| name.numbered(number)).find(|name| !is_there(name))
    } else {
        name.directories()
            .skip(1)
            .take(MAX_ALTERNATIVES)
            .find(|name| !is_there(name))
    };
    found.map(|name| name.to_string()).ok_or_else(|| is_taken(&path))
}

fn is_taken(path: &Path) -> Failure {
    let message = format!("{} exists; remove it, or choose another name", path.display());
    Failure::new(FailureKind::Exists, message)
}

fn has_other_size(path: &Path, bytes: u64, expected: u64) -> Failure {
    let message = format!(
        "{} has {bytes} bytes instead of {expected}; put back what was downloaded, or download it again",
        path.display()
    );
    Failure::new(FailureKind::DiskIo, message)
}

fn was_changed(path: &Path) -> Failure {
    let message = format!(
        "{} was changed since it was downloaded; put back what was downloaded, or download it again",
        path.display()
    );
    Failure::new(FailureKind::DiskIo, message)
}

fn is_missing(path: &Path) -> Failure {
    let message = format!(
        "{} is missing, or shorter than it was; put back what was downloaded, or download it again",
        path.display()
    );
    Failure::new(FailureKind::DiskIo, message)
}

#[cfg(test)]
mod tests;
