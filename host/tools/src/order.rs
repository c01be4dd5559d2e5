//! What a run and its supervisor say to each other. The order is the supervisor's first argument, which every process of
//! this machine can read; the password of the proxy is the first message on the supervisor's standard input, a socket on
//! which it then reports. The inputs of the tool, opened, come with that message. The end of that socket is the request to
//! stop.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The user name that belongs to the password of the proxy.
pub(crate) const PROXY_USER: &str = "tool";

/// How long a tool may take to end by itself when it is asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long the supervisor waits for processes that were killed: one that waits for a disk ends when the disk answers.
pub(crate) const REAP: Duration = Duration::from_secs(3);

/// The longest message of a supervisor, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4096;

/// The most files that come with the first message.
pub(crate) const MAX_INPUTS: usize = 2;

/// The number of the first input's descriptor in the tool; those of the others follow. No process has opened so many of its
/// own when it starts.
pub(crate) const FIRST_INPUT: i32 = 100;

/// How a tool is to be run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// How many files come with the first message.
    pub(crate) inputs: usize,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
}

impl Order {
    /// Whether a message precedes the reports.
    pub(crate) fn has_first_message(&self) -> bool {
        self.network == Network::Proxy || self.inputs > 0
    }
}

/// What a tool may use. The operating system counts each process by itself, except for the time on the clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Time from its start on the clock, for the tool and all that it starts.
    pub(crate) wall: Duration,
    pub(crate) cpu_seconds: u64,
    /// Address space, including what is only reserved; runtimes of JavaScript reserve more than machines have.
    pub(crate) address_space_bytes: Option<u64>,
    /// Memory that is its own and can be written to.
    pub(crate) data_bytes: u64,
    /// Size of each file that it writes.
    pub(crate) file_bytes: u64,
}

/// What a tool may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Network {
    Nothing,
    /// A proxy, which the process that gave the order serves.
    Proxy,
}

/// How far a tool is separated from the rest of the machine, beside its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// It has a network and a table of processes of its own: it reaches nothing but what it is given, and all that it
    /// started ends with it.
    Namespaces,
    /// This system does not permit that: the tool's own options, and its process group, are what remains.
    LimitsOnly {
        /// The error of the system.
        reason: String,
    },
}

/// What a supervisor reports.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The tool runs, in a process group with the number of its process. If it has a proxy, the listener of that comes
    /// with this message.
    Started { process: i32, isolation: Isolation },
    /// The tool could not be started.
    Refused { message: String },
    /// The tool and all that it started have ended; the last message.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        is_late: bool,
    },
}
