//! What moving bytes means, whatever the protocol.
//!
//! *Owns* the words and tools that every transport and every user of one share: [`Source`], [`Target`], [`Transport`],
//! [`PartFile`], [`RangeSet`], [`RateLimits`], [`RetryBudget`], [`FileName`], [`Checksum`], [`SafeUrl`], [`Failure`],
//! [`ByteCount`].
//!
//! *Never* knows a protocol, a task, a queue or a database.
//!
//! Start reading at [`Transport`] and [`Job`]; a transport is written against [`PartFile`] and [`RateLimits`].

mod byte_count;
pub mod checksum;
pub mod failure;
pub mod file_name;
mod journal;
pub mod lane;
mod names;
mod os;
pub mod part_file;
pub mod range_set;
pub mod rate;
pub mod retry;
pub mod safe_url;
pub mod source;
pub mod transport;
pub mod validator;

pub use byte_count::ByteCount;
pub use checksum::Checksum;
pub use failure::{Failure, FailureKind};
pub use file_name::FileName;
pub use journal::{Mark, Origin};
pub use lane::Lanes;
pub use os::{CarryError, KernelPipe};
pub use part_file::{Claim, Claimed, Landing, PartFile};
pub use range_set::{ByteRange, RangeSet};
pub use rate::{RateLimiter, RateLimits};
pub use retry::{RetryBudget, RetryPolicy};
pub use safe_url::SafeUrl;
pub use source::{
    Cipher, Credentials, GivenBy, RequestBody, RequestOptions, Secret, Segment, SegmentKey, Source, UserHost,
};
pub use transport::{
    ConnectionPlan, Finished, Job, OnConflict, Outcome, Progress, Receipt, Recorded, Report, Reporter, Reports,
    RunEvent, RunFuture, SegmentView, Stage, Target, Transport,
};
