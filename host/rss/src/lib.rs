//! Subscriptions to feeds: what feeds say, which of their items are taken and why, and when they are fetched.
//!
//! *Owns* sources, items and rules: reading of feeds ([`feed::read`]), titles of releases ([`title::Release`]), rules
//! ([`rule::Rules::judge`]), the state machine ([`state::State::apply`]) and OPML.
//!
//! *Never* moves the bytes of a download: the engine does, under an id that the item is saved with.
//!
//! # Layers
//!
//! - `handle`: what callers use
//! - `driver`: the loop around the state
//! - `fetch`: feeds over HTTP and by plugins
//! - `provider`: plugins that read feeds
//! - `rows`: tables
//! - `state`: what follows from each input
//! - `opml`: lists of sources of other programs
//! - `model`: sources and items as they are held
//! - `rule`: which items are taken
//! - `feed`: what a feed says
//! - `title`: what a title says
//!
//! All layers from `state` on are pure. Start reading at [`Subscriptions`] (what can be asked), then [`state`] (what
//! happens), [`rule`] (why an item is taken), and [`feed`].

mod driver;
pub mod feed;
mod fetch;
mod handle;
pub mod model;
pub mod opml;
mod provider;
mod rows;
pub mod rule;
pub mod state;
pub mod title;

pub use driver::{Change, Error};
pub use handle::{Config, StartError, Subscriptions, parse_id};
pub use provider::{ProviderError, ProviderFuture, ProviderRequest, Providers};
pub use rows::{LoadError, MIGRATIONS, SEALED};
