//! The signed files of a source, parsed and validated as far as a single file allows.

pub(crate) mod index;
pub(crate) mod revocation;
pub(crate) mod root;
pub(crate) mod timestamp;
