//! Interpretation of responses: whether one is usable, and the name of its file. Pure.

mod disposition;
pub(crate) mod name;
pub(crate) mod verdict;
