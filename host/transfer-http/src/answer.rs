//! What a response is worth, and what it calls its file. Pure.

mod disposition;
pub(crate) mod name;
pub(crate) mod verdict;
