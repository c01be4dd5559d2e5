//! The agent: the process that all clients talk to, each over the interface it knows.
//!
//! *Owns* the listener, authorization of requests (host, origin, key, rate limits), set-up and access key, the switches,
//! `/rpc` for browsers and tools, MCP, aria2's dialect and the management API over HTTP (their crates are `aria2` and
//! `rest`), and the projection of the daemon from which reads are answered.
//!
//! *Never* touches a file of a task, a database or the environment, and starts no process: the embedding program
//! supplies how.
//!
//! Start reading at [`Agent`] (what runs), then `gate` (authorization), `surface` (the interfaces), `projection` (the
//! mirrored state of the daemon) and `daemon_link` (the session with it).
//!
//! # Layers
//! - `agent`: what is started, in which order, and how it ends
//! - `desk`: what a desktop shows of it
//! - `surface`: the interfaces; in it `routes`, then the interfaces themselves, then `socket`, `committed` and `state`, which
//!   they share
//! - `serve`: the listener
//! - `device_link`: what the device link needs of this service
//! - `capture`: downloads that wait for their user's decision
//! - `gate`: who may call what
//! - `opener`: requests that the desktop opens a file
//! - `daemon_link`: the session with the daemon
//! - `projection`: the daemon's state, and the events that clients follow
//! - `metrics`: counters
//! - `settings`: configuration, switches, and where they are stored
//! - `shutdown`: the steps of an end
//! - `access`: keys, tickets, the users of local clients
//! - `clock`: the time of day

mod access;
mod agent;
mod capture;
mod clock;
mod daemon_link;
mod desk;
mod device_link;
mod gate;
mod metrics;
mod opener;
mod projection;
mod serve;
mod settings;
mod shutdown;
mod surface;

pub use access::key::{AccessKey, MIN_KEY_CHARS, NoRandom, SetupCode, WeakKey};
pub use agent::{Agent, StartError};
pub use aria2::Ending;
pub use daemon_link::connect::{ByteStream, Connect, ConnectError, Found};
pub use desk::{Desk, DeskView, FinishedTask};
pub use opener::OpenRequest;
pub use settings::{
    config::{Config, DEFAULT_PORT, Edition, PresetKey, RestartRequest},
    file::{DirectoryError, Holder, Stored, holder, stored},
    preference::{PREFERENCES, Preference},
    switches::fresh_switches,
};
pub use surface::{mcp::mcp_tools, routes::openapi};
