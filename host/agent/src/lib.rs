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

mod access;
mod agent;
mod capture;
mod gate;
mod link;
mod metrics;
mod problem;
mod projection;
mod serve;
mod settings;
mod shutdown;
mod surface;

pub use access::key::{AccessKey, MIN_KEY_CHARS, NoRandom, SetupCode, WeakKey};
pub use agent::{Agent, StartError};
pub use aria2::Ending;
pub use link::connect::{ByteStream, Connect, ConnectError, Found};
pub use settings::{
    config::{Config, DEFAULT_PORT, Host, PresetKey},
    vault::{DirectoryError, Holder, Stored, holder, stored},
};
pub use surface::{mcp::mcp_tools, routes::openapi};
