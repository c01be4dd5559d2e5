//! What the signed files of a source say, parsed and checked for whatever a single file can show.

pub(crate) mod index;
pub(crate) mod revocation;
pub(crate) mod root;
pub(crate) mod timestamp;
