//! The agent: the process that everybody talks to, in the dialect they know.
//!
//! *Owns* the listener, the gate (host, origin, key, throttle), set-up and access key, the switches, the management API
//! with its `OpenAPI` description, `/rpc` for browsers and tools, and the projection of the daemon from which reads are
//! answered.
//!
//! *Never* touches a file of a task, a database or the environment, and starts no process: `app` tells it how.
//!
//! Start reading at [`Agent`] (what runs), then `gate` (who comes in), then `hub` and `session` (what is known of the
//! daemon, and how).

mod agent;
pub mod aria2;
mod budget;
mod config;
mod connect;
mod daemon;
mod gate;
mod hub;
mod key;
mod lexicon;
mod mcp;
mod metrics;
mod peer_user;
mod problem;
mod projection;
mod rest;
mod rpc;
mod serve;
mod session;
mod settings;
mod shelf;
mod socket;
mod takeover;
mod throttle;
mod ticket;
mod vault;

pub use agent::{Agent, StartError};
pub use aria2::Ending;
pub use config::{Config, DEFAULT_PORT, Host, PresetKey, SessionFile};
pub use connect::{ByteStream, Connect, ConnectError, Found};
pub use key::{AccessKey, MIN_KEY_CHARS, NoRandom, SetupCode, WeakKey};
pub use mcp::mcp_tools;
pub use rest::openapi;
pub use vault::{DirectoryError, Holder, Stored, holder, stored};
