//! The file formats of a source: records, keys, signatures and enumerations.

pub(crate) mod abi;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod level;
pub mod merge;
pub mod path;
pub mod record;
pub(crate) mod role;
pub mod signature;
pub(crate) mod source_id;
