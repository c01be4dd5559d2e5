//! Plugins in the real sandbox: what loads, what a call gives, and what hostile guests come to.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod contract;
mod files;
mod foreign;
mod guest;
mod hostile;
mod loading;
mod network;
mod open_directory;
mod release_assets;
mod rig;
mod script;
