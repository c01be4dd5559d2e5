//! Programs that the user has installed and allows the service to run: `ffmpeg` and `yt-dlp`.
//!
//! *Owns* the list of these programs and of what they are run for, their arguments, the process around each run with its
//! limits and isolation, the proxy through which `yt-dlp` reaches the network, and the records that are read from its
//! output.
//!
//! *Never* takes an argument or a program from a plugin, a page or a request, starts a shell, or moves a finished file to
//! its name: callers say which job is to be done, and rename the result.
//!
//! # Layers
//!
//! - `service`: the handle: one method per job, a few runs of each tool at once
//! - `ffmpeg`, `yt_dlp`: a job as arguments, and what the tool prints as records
//! - `locate`: where a program is
//! - `run`: one run of a tool, from this process
//! - `proxy`: the only way from `yt-dlp` to the network
//! - `supervisor`: the process between this one and the tool
//! - `sys`: what the operating system gives for it
//! - `order`: what `run` and `supervisor` say to each other
//! - `error`, `settings`: vocabulary
//! - `places`: how many runs of `yt-dlp` go on at once
//!
//! Start reading at [`Tools`], then `run`.

mod error;
mod ffmpeg;
mod locate;
mod order;
mod places;
mod proxy;
mod run;
mod service;
mod settings;
mod supervisor;
mod sys;
mod yt_dlp;

pub use error::ToolError;
pub use ffmpeg::{Container, Conversion, Inputs, Progress};
pub use order::Isolation;
pub use service::{FoundTool, Tools};
pub use settings::{Choice, Config, InvalidChoice, Launcher, Settings, Tool};
pub use supervisor::supervisor_main;
pub use yt_dlp::{Codec, Extraction, Format, ListEntry, Media, TooLong};
