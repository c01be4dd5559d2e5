//! The methods, and messages with one or many calls.

mod add;
mod add_torrent;
mod control;
mod dispatch;
pub(crate) mod message;
mod options;
mod outcome;
mod tally;
mod tell;
mod torrent;
