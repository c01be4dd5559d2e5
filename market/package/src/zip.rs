//! The subset of ZIP that packages use: stored or deflated files, one disk, no bytes before, between or after the
//! parts. There is one reader, because two that read an archive differently are how checks of archives are fooled, and
//! one writer, whose archives depend on nothing but the files.

mod format;
mod reader;
mod writer;

pub use format::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES};
pub(crate) use reader::unpack;
pub use writer::pack;

#[cfg(test)]
mod tests;
