//! Optional features beyond the protocol's version.

/// The client wants the event sequence of a write in its reply.
pub const CLIENT_SEQUENCES: &str = "client.sequences";

/// The client answers questions that a task asks its user.
pub const CLIENT_SELECTIONS: &str = "client.selections";

/// What a daemon of this version offers.
pub const DAEMON: &[&str] = &[
    "daemon.tasks",
    "daemon.queues",
    "daemon.groups",
    "daemon.config",
    "daemon.files",
    "daemon.sequences",
];
