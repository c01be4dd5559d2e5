//! The signed files of a source, validated as far as a single file allows.

pub(crate) mod index;
pub(crate) mod revocation;
pub(crate) mod root;
