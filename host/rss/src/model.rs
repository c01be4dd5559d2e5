//! Sources and items as the state machine holds them.

pub mod item;
pub mod source;
mod time;

pub use time::{after, since};
