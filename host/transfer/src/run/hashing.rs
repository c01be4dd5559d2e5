//! Checksums of part files, computed off the lane.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{Checksum, Failure, PartFile, PieceHashes, RangeSet, failure::FailureKind, run::background::blocking};

/// The failure for a wrong checksum; the caller deletes the file.
pub fn mismatch(wanted: &Checksum, found: &Checksum) -> Failure {
    let name = wanted.algorithm().name();
    let (found, wanted) = (found.hex(), wanted.hex());
    let message = format!("the {name} of what came is {found}, not {wanted}; it was deleted");
    Failure::new(FailureKind::ChecksumMismatch, message)
}

/// Hashes the part file off this lane; stops early if the future is dropped.
pub async fn hash(part: Arc<PartFile>, wanted: Checksum) -> Result<Checksum, Failure> {
    let path = part.path().to_owned();
    let compute = move |reader: &mut dyn Read| Checksum::compute(wanted.algorithm(), reader);
    read_through(part, |part| Box::new(part.reader()), path, compute).await
}

/// The ranges of the part file's pieces that do not have their hash, like [`hash`].
pub async fn wrong_pieces(part: Arc<PartFile>, pieces: Arc<PieceHashes>) -> Result<RangeSet, Failure> {
    let path = part.path().to_owned();
    let compute = move |reader: &mut dyn Read| pieces.wrong(reader);
    read_through(part, |part| Box::new(part.reader()), path, compute).await
}

/// Hashes a finished file like [`hash`].
pub async fn hash_file(file: File, path: PathBuf, wanted: Checksum) -> Result<Checksum, Failure> {
    let compute = move |reader: &mut dyn Read| Checksum::compute(wanted.algorithm(), reader);
    read_through(file, |file| Box::new(file), path, compute).await
}

async fn read_through<S: Send + 'static, T: Send + 'static>(
    source: S,
    reader: fn(&S) -> Box<dyn Read + '_>,
    path: PathBuf,
    compute: impl FnOnce(&mut dyn Read) -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = SetOnDrop(Arc::clone(&is_abandoned));
    blocking("hashing", move || {
        let mut reader = StoppableReader {
            reader: reader(&source),
            is_abandoned,
        };
        compute(&mut reader).map_err(|error| Failure::disk("read", &path, &error))
    })
    .await
}

struct StoppableReader<R> {
    reader: R,
    is_abandoned: Arc<AtomicBool>,
}

impl<R: Read> Read for StoppableReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            Ok(0)
        } else {
            self.reader.read(bytes)
        }
    }
}
