//! How a source's files are written: their records, keys and signatures, and the closed sets of words in them.

pub(crate) mod abi;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod level;
pub mod merge;
pub mod path;
pub mod record;
pub(crate) mod role;
pub mod signature;
pub mod text;
