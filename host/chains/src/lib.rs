//! What follows finished downloads in a service: which chain follows which task, and the durable jobs of the chains.
//!
//! *Owns* the tables of jobs and passwords, and the loop that executes [`post::job::State`].
//!
//! *Never* unpacks, renames or joins anything itself: `post` does, and for programs and plugins of the user the daemon.
//!
//! Start reading at [`Jobs`], then `driver`.
//!
//! # Layers
//!
//! - `handle`: what callers use
//! - `driver`: the loop around the state
//! - `plan`: which files and steps belong to a finished task
//! - `record`: steps and jobs as clients see them
//! - `rows`: the tables

mod driver;
mod handle;
mod plan;
mod record;
mod rows;

pub use driver::{ChainOf, Error, StartError, Subject};
pub use handle::{Config, Jobs};
pub use record::{InvalidChain, chain, chain_of, chain_text};
pub use rows::{LoadError, MIGRATIONS, SEALED};
