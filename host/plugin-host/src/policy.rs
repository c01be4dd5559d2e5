//! Policy: permissions, and the consequences of failures. Pure except for clocks and counters: nothing here calls a
//! plugin, opens a connection or touches a disk.

pub(crate) mod breaker;
pub(crate) mod fault;
pub(crate) mod grant;
pub(crate) mod health;
pub(crate) mod hooks;
pub(crate) mod host;
pub(crate) mod keyed;
pub(crate) mod slots;

pub use grant::Interface;
pub use slots::{MAX_CALLS, PLUGIN_CALLS};
