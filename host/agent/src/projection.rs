//! What is known of the daemon without asking it: [`tasks`] is its state, kept current by its events; [`hub`] is what
//! clients read and follow.

pub(crate) mod hub;
pub(crate) mod lexicon;
pub(crate) mod shelf;
pub(crate) mod tasks;
