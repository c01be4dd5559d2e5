//! aria2's RPC interface: its options, its methods over JSON-RPC and XML-RPC, status records, and notifications. Lets
//! aria2's clients control any program that implements [`Service`].
//!
//! *Owns* the orders of aria2's lists (active, waiting, stopped), GIDs, and the default options for new downloads.
//!
//! *Never* opens a connection, knows a key or stores a task: the program implements [`Service`] (tasks and commands),
//! [`Subscription`] (changes of tasks), [`Client`] (the rights of a token) and [`Room`] (memory for answers).
//!
//! Start reading at [`Caller::answer`] (a message), then `call` (the methods) and `board` (the lists).
//!
//! # Layers
//! - `client`: the dialect within the process of the service
//! - `call`: messages, and what each method does
//! - `notices`: what happens to downloads, for one reader
//! - `visitor`: whose downloads a call may see, and what a browser without a key may do
//! - `caller`: a client of the dialect, and its commands
//! - `dialect`: what lives as long as the process
//! - `status`: a download as aria2 describes it
//! - `board`: the orders and the notices
//! - `torrent`: what is known of a torrent
//! - `wire`: JSON-RPC and XML-RPC as text
//! - `files`: aria2.conf, input files and session files
//! - `option`: aria2's options
//! - `service`: what the dialect needs of the service
//! - `vocabulary`: faults, GIDs, methods, parameters

mod board;
mod call;
mod caller;
mod client;
mod dialect;
pub mod files;
mod notices;
pub mod option;
mod service;
mod status;
mod torrent;
mod visitor;
mod vocabulary;
mod wire;

pub use board::{Kind, Missed};
pub use call::message::Answer;
pub use caller::Caller;
pub use client::Aria2;
pub use dialect::{Dialect, Ending, Saving, SessionFile, Setup};
pub use notices::{Notice, Notices};
pub use service::{Change, Client, Rights, Room, Service, Snapshot, Subscription, Task};
pub use visitor::{KEY_FIRST, check_directory};
pub use vocabulary::{
    fault::{CommandError, Fault},
    method::{FEATURES, VERSION},
};
pub use wire::{json, xml_rpc};
