//! Why an archive is not a package: which check refused it, for which file, and what is allowed.

/// Why an archive is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("package check {check} failed{}: {reason}", file.as_ref().map(|file| format!(" for {file:?}")).unwrap_or_default())]
pub struct InvalidPackage {
    /// Which check.
    pub check: Check,
    /// For which file.
    pub file: Option<String>,
    /// What was found and what is allowed.
    pub reason: String,
}

/// The checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// The size of the archive.
    ArchiveSize,
    /// It is an archive, as its end says.
    Format,
    /// The number of entries.
    Entries,
    /// Parts of the archive that overlap or contradict each other.
    Layout,
    /// Names of files.
    Name,
    /// Two entries that are one file on some system.
    Duplicate,
    /// Entries that are no regular files.
    Kind,
    /// The way a file is packed.
    Method,
    /// The size of a file, or of all of them.
    Size,
    /// How much larger a file is than what it is packed into.
    Ratio,
    /// What is unpacked is not what was packed.
    Checksum,
    /// Files that a package has.
    Content,
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ArchiveSize => "archiveSize",
            Self::Format => "format",
            Self::Entries => "entries",
            Self::Layout => "layout",
            Self::Name => "name",
            Self::Duplicate => "duplicate",
            Self::Kind => "kind",
            Self::Method => "method",
            Self::Size => "size",
            Self::Ratio => "ratio",
            Self::Checksum => "checksum",
            Self::Content => "content",
        })
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
