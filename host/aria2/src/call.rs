//! Calls: what each method does, and many of them in one message.

mod add;
mod control;
mod dispatch;
pub(crate) mod message;
mod options;
mod outcome;
mod tally;
mod tell;
