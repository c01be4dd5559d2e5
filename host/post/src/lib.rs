//! What happens to a download when it is finished: unpacking, renaming, checksum files, and the chain of such steps.
//!
//! *Owns* the formats of archives and what is refused of them, the process that unpacks them, the hidden directory by which
//! the result appears at once, and the state machine of chains ([`job`]).
//!
//! *Never* knows a task, a queue or a database; its embedder does, and gives it the tools of the user and the
//! plugins.
//!
//! Start reading at [`unpack()`], then [`job::State::apply`].
//!
//! # Layers
//!
//! - `runner`: executes a step
//! - `workspace`: the files of a download, as plugins work on them
//! - `job`: chains of steps, as a pure state machine
//! - `rename`, `checksum`: steps that need no process
//! - `unpack`: the service's side of unpacking
//! - `child`: the process that unpacks
//! - `stage`: the hidden directory
//! - `archive`: the formats
//! - `wire`: what service and process say to each other
//! - `tree`: the directory that is written to
//! - `codec`: decoders of compressed streams
//! - `volumes`, `names`, `text`: the files of an archive, names of entries, and their encoding
//! - `refusal`: why an archive is not unpacked
//! - `dir`: open directories, renaming without replacing, and files that are recognised

mod archive;
pub mod checksum;
mod child;
mod codec;
mod dir;
pub mod job;
mod names;
mod refusal;
pub mod rename;
mod runner;
mod stage;
mod text;
mod tree;
mod unpack;
mod volumes;
mod wire;
mod workspace;

pub use child::{unpack_child_main, unpack_in_process};
pub use dir::Original;
pub use job::{Events, Outcome};
pub use refusal::{Reason, Refusal};
pub use runner::Runner;
pub use stage::{InvalidRun, Placed, RunId, Swept, Unpacked, recover, sweep};
pub use unpack::{MAX_PASSWORDS, Progress, RESERVE_BYTES, Request, UnpackError, remove_originals, unpack};
pub use volumes::{directory_name, is_archive, volume_set, volumes};
pub use workspace::{Scratch, WorkError, Workspace};
