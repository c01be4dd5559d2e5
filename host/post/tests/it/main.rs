//! Unpacking in the real process: what archives hold, what is refused of them, and what a crash leaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers are small")]

mod formats;
mod kill;
mod random;
mod rig;
mod steps;
mod tar_writer;
mod tricks;
mod workspace;
mod zip_writer;
