//! A small client of D-Bus, the bus by which the programs of a desktop talk: calls with their answers, signals, and objects
//! that other programs call.
//!
//! *Owns* the connection to the session's or the system's bus, and the form of its messages.
//!
//! *Never* passes a descriptor, or connects over TCP. It knows no interface: its users do.
//!
//! Calls block for at most a few seconds; a call of an asynchronous program belongs on a thread of its own. The exchange is
//! written here because a dozen calls are all that is needed, and `zbus` would add 1.9 MB and 65 crates; see the README.

#[cfg(unix)]
mod connection;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use connection::{Connection, Event};
#[cfg(unix)]
pub use wire::{Call, Malformed, Reader, Signal, Writer};

/// Where a bus is, as the environment of a session says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusAddress {
    /// `DBUS_SESSION_BUS_ADDRESS`, or the same of another bus.
    pub address: Option<String>,
    /// `XDG_RUNTIME_DIR`, whose `bus` it is without an address.
    pub runtime_dir: Option<std::path::PathBuf>,
}

/// A method of an object.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    /// The name of the program on the bus.
    pub destination: &'a str,
    /// The object.
    pub path: &'a str,
    /// The interface.
    pub interface: &'a str,
    /// The method.
    pub member: &'a str,
}

/// How a call fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// There is no bus, or no program on it that has the name.
    #[error("{0}")]
    Absent(String),
    /// The program answered with an error of this name.
    #[error("it refuses a call with {0}")]
    Refused(String),
    /// The answer cannot be read, or does not come.
    #[error("{0}")]
    Broken(String),
}
