//! The protocol-independent part of moving bytes.
//!
//! *Owns* the types and tools that every transport and its callers share: [`Source`], [`Target`], [`Transport`],
//! [`PartFile`], [`RangeSet`], [`RateLimits`], [`RetryBudget`], [`FileName`], [`Checksum`], [`SafeUrl`], [`Failure`],
//! [`ByteCount`].
//!
//! *Never* knows a protocol, a task, a queue or a database.
//!
//! Start reading at [`Transport`] and [`Job`]; a transport is written against [`PartFile`] and [`RateLimits`].
//!
//! # Layers
//!
//! - `run`: what the runs of every protocol have in common
//! - `transport`: a job, and the trait that executes it
//! - `part_file`: the bytes of an unfinished file, and the journal that says which are valid
//! - `lane`: threads that may block on a disk
//! - `os`: what differs between systems
//! - `template`: paths made of what is known about a download
//! - `source`, `file_name`, `range_set`, `rate`, `retry`, `failure`, `byte_count`, `text`: the vocabulary

mod byte_count;
pub mod failure;
pub mod file_name;
pub mod lane;
mod os;
pub mod part_file;
pub mod range_set;
pub mod rate;
pub mod retry;
pub mod run;
pub mod source;
mod template;
pub mod text;
pub mod transport;

pub use byte_count::ByteCount;
pub use failure::{Failure, FailureKind};
pub use file_name::FileName;
pub use lane::Lanes;
pub use os::{CarryError, KernelPipe, boot_id, free_bytes, read_at, rename_new, resident_bytes, write_all_at};
pub use part_file::{Claim, Claimed, Landing, Mark, OnConflict, Origin, PartFile, Recorded};
pub use range_set::{ByteRange, RangeSet};
pub use rate::{RateLimiter, RateLimits};
pub use retry::{RetryBudget, RetryPolicy, retry_after};
pub use source::{
    Cipher, Cookie, CookieJar, CookieProblem, Credentials, GivenBy, HostKeyFingerprint, InvalidCookies,
    InvalidFingerprint, Netrc, RequestBody, RequestOptions, Secret, Segment, SegmentKey, Source, TorrentOptions,
    UserHost,
    checksum::{self, Checksum},
    pieces::{self, PieceHashes},
    proxy,
    safe_url::{self, SafeUrl},
    validator,
};
pub use template::Template;
pub use transport::{
    ConnectionPlan, Directory, DirectoryFile, Discarded, Finished, Job, LeftoversFuture, ListFuture, Outcome, Progress,
    Purpose, Receipt, Report, Reporter, Reports, RunEvent, RunFuture, SPEED_WINDOW, SegmentView, ServerView,
    SourceFailure, SourceFate, Stage, Target, Transport,
};
