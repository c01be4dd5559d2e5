//! A document: its files, and why it is refused.

use crate::{
    file::{self, File, InvalidFile, Preference},
    name::Names,
    xml::Element,
};

/// The most bytes of a document. One with ten thousand files and their hashes has about ten million.
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// The most files of a document; aria2 takes as many calls at once.
pub const MAX_FILES: usize = 10_000;

/// Endings of names of documents, in lower case.
const ENDINGS: [&str; 2] = [".meta4", ".metalink"];

/// What a Metalink document describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The files that can be downloaded, in order. Their names are different ones on every file system.
    pub files: Vec<File>,
    /// The names of files without a URL of a known kind, as messages show them.
    pub left_out: Vec<String>,
}

/// Why a document is refused. Nothing of it is used then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It has more than [`MAX_DOCUMENT_BYTES`].
    #[error("the Metalink document has {0} bytes; the limit is {MAX_DOCUMENT_BYTES}")]
    TooLarge(usize),
    /// Not UTF-8.
    #[error("the Metalink document is not text in UTF-8")]
    NotText,
    /// Not XML, or XML with a document type, entities of its own, or more elements than any document has.
    #[error("the Metalink document is not XML, or has a document type, entities or more elements than are allowed")]
    NotXml,
    /// XML of another kind.
    #[error("the document is no Metalink: its root is not <metalink>")]
    NotMetalink,
    /// It has more than [`MAX_FILES`].
    #[error("the Metalink document has {0} files; the limit is {MAX_FILES}")]
    TooManyFiles(usize),
    /// One of its files.
    #[error("the Metalink document is refused: its file \"{name}\" {problem}")]
    File {
        /// The file's name, without control characters.
        name: String,
        /// What is wrong with it.
        problem: InvalidFile,
    },
}

/// Whether a file of this name is a Metalink document, by its ending.
pub fn is_document_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ENDINGS
        .iter()
        .any(|ending| lower.ends_with(ending) && lower.len() > ending.len())
}

impl Document {
    /// Reads a document of either version. One bad name or hash refuses all of it: a document that was damaged or made
    /// to do harm deserves no trust in its other parts.
    pub fn read(bytes: &[u8], preference: &Preference) -> Result<Self, Unreadable> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(Unreadable::TooLarge(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::NotText)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = Element::read(text).map_err(|_| Unreadable::NotXml)?;
        if root.name != "metalink" {
            return Err(Unreadable::NotMetalink);
        }
        let elements = root.child("files").unwrap_or(&root);
        let count = elements.children("file").count();
        if count > MAX_FILES {
            return Err(Unreadable::TooManyFiles(count));
        }
        let (mut files, mut names, mut left_out) = (Vec::new(), Names::default(), Vec::new());
        for element in elements.children("file") {
            let refuse = |problem: InvalidFile| Unreadable::File {
                name: file::shown_name(element),
                problem,
            };
            let Some(file) = file::read(element, preference).map_err(refuse)? else {
                left_out.push(file::shown_name(element));
                continue;
            };
            names.take(&file.path).map_err(|problem| refuse(problem.into()))?;
            files.push(file);
        }
        Ok(Self { files, left_out })
    }
}

#[cfg(test)]
mod tests;
