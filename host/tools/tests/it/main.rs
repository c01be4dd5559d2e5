//! Tools in their real processes: what hostile ones come to, and what the real ones give.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod conversion;
mod extraction;
mod rig;
mod supervisor;
