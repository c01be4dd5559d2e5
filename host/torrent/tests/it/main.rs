//! The engine against itself, against peers of other makes and against hostile ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod content;
mod encryption;
mod foreign;
mod hostile;
mod life;
mod stored;
mod webseed;
mod wire;
