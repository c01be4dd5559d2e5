//! What the runs of every protocol do beside talking to a server: the plan of ranges, the part file and its name, retries,
//! rates and syncs, checksums. Everything but `plan` belongs to one run and stays on its lane.

pub mod background;
pub mod destination;
pub mod disk;
pub mod hashing;
mod host_caps;
pub mod logins;
pub mod plan;
pub mod retries;
mod sources;
pub mod upkeep;
pub mod walk;

pub use destination::Destination;
pub use disk::Disk;
pub use host_caps::HostCaps;
pub use plan::{Pace, Plan, WorkerId};
pub use retries::Retries;
pub use sources::SourceReports;
pub use upkeep::Upkeep;

/// A file smaller than this gets no journal in a command-line run: fetching it again costs less than the journal.
pub const SMALL_BYTES: u64 = 1024 * 1024;

/// How many of the last bytes on disk are compared with the server's before they are believed.
pub const SAMPLE_BYTES: u64 = 64 * 1024;
