//! Metalink documents, version 4 (RFC 5854) and 3: the files that they describe, with mirrors and hashes. Pure.
//!
//! *Owns* the formats, their limits, and which names of a document are refused. `svc get`, `svc add`, the daemon and
//! aria2's dialect all read documents with [`Document::read`].
//!
//! *Never* opens a connection or a file: callers bring the text, and make downloads of what is in it.
//!
//! Start reading at [`Document`].
//!
//! # Layers
//!
//! - `document`: what a document says
//! - `file`: what it says of one file
//! - `name`: which names it may give, and to how many files
//! - `xml`: a bounded XML parser, which aria2's XML-RPC uses as well

mod document;
mod file;
mod name;
pub mod xml;

pub use document::{Document, MAX_DOCUMENT_BYTES, MAX_FILES, Unreadable, is_document_name};
pub use file::{File, InvalidFile, Preference};
pub use name::{FilePath, InvalidName};
