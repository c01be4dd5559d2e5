//! The error of packages: which check failed, for which file, and what is allowed.

/// Why an archive is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("package check {check} failed{}: {reason}", file.as_ref().map(|file| format!(" for {file:?}")).unwrap_or_default())]
pub struct InvalidPackage {
    /// The check that failed.
    pub check: Check,
    /// The file that failed it, if it is about one file.
    pub file: Option<String>,
    /// What was found, and what is allowed.
    pub reason: String,
}

crate::text::named_values! {
    /// A check of an archive or of the files in it.
    pub enum Check {
        /// The size of the archive.
        ArchiveSize = "archiveSize",
        /// The archive has the structure of a ZIP archive.
        Format = "format",
        /// The number of entries.
        Entries = "entries",
        /// No parts of the archive overlap or contradict each other.
        Layout = "layout",
        /// The names of files are safe on every system.
        Name = "name",
        /// No two entries are the same file on some system.
        Duplicate = "duplicate",
        /// Entries are regular files or folders.
        Kind = "kind",
        /// The compression method of a file.
        Method = "method",
        /// The size of a file, or of all of them.
        Size = "size",
        /// The size of a file relative to its compressed size.
        Ratio = "ratio",
        /// The checksum of a file.
        Checksum = "checksum",
        /// The archive has the files that every package has.
        Content = "content",
    }
}

pub(crate) type Result<T> = std::result::Result<T, InvalidPackage>;

pub(crate) fn refuse<T>(check: Check, file: Option<&str>, reason: impl Into<String>) -> Result<T> {
    Err(InvalidPackage {
        check,
        file: file.map(str::to_owned),
        reason: reason.into(),
    })
}
