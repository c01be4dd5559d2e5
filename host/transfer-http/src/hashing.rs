//! Checksums of part files, computed off the lane.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use transfer::{Checksum, Failure, PartFile, failure::FailureKind};

use crate::background::blocking;

/// The failure for a wrong checksum; the caller deletes the file.
pub(crate) fn mismatch(wanted: &Checksum, found: &Checksum) -> Failure {
    let name = wanted.algorithm().name();
    let (found, wanted) = (found.hex(), wanted.hex());
    let message = format!("the {name} of what came is {found}, not {wanted}; it was deleted");
    Failure::new(FailureKind::ChecksumMismatch, message)
}

/// Hashes the part file off this lane; stops early if the future is dropped.
pub(crate) async fn hash(part: Arc<PartFile>, wanted: Checksum) -> Result<Checksum, Failure> {
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
            reader: part.reader(),
            is_abandoned,
        };
        Checksum::compute(wanted.algorithm(), &mut reader).map_err(|error| Failure::disk("read", part.path(), &error))
    })
    .await
}

struct StoppableReader<R> {
    reader: R,
    is_abandoned: Arc<AtomicBool>,
}

impl<R: std::io::Read> std::io::Read for StoppableReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            Ok(0)
        } else {
            self.reader.read(bytes)
        }
    }
}
