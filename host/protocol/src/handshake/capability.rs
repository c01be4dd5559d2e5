//! Optional features beyond the protocol's version.

/// The client wants the event sequence of a write in its reply.
pub const CLIENT_SEQUENCES: &str = "client.sequences";

/// The client can show questions of tasks to its user.
pub const CLIENT_SELECTIONS: &str = "client.selections";

/// The client wants no members with usual values ([`crate::TaskDto::usual`]) in the tasks of snapshots and lists, which
/// halves their bytes. Events have whole tasks all the same.
pub const CLIENT_SPARSE: &str = "client.sparseTasks";

/// What every daemon of this version offers.
pub const DAEMON: &[&str] = &[
    "daemon.tasks",
    "daemon.queues",
    "daemon.groups",
    "daemon.config",
    "daemon.rss",
    "daemon.webhooks",
    "daemon.selections",
];

/// Plugins run.
pub const DAEMON_PLUGINS: &str = "daemon.plugins";

/// Files, uploads and exports go over HTTP, beside the connection.
pub const DAEMON_FILES: &str = "daemon.files";

/// Event sequences are in replies to a client that says [`CLIENT_SEQUENCES`].
pub const DAEMON_SEQUENCES: &str = "daemon.sequences";

/// This client may have files opened on the service's desktop, by `agent.task.open`.
pub const AGENT_OPENS_FILES: &str = "agent.openFiles";

/// What every agent of this version offers beside its daemon.
pub const AGENT: &[&str] = &["agent.gateway", "agent.externalCapture", "agent.sparseTasks"];
