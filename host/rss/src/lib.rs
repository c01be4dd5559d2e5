//! Subscriptions to feeds: what feeds say, which of their items are taken and why, and when they are fetched.
//!
//! *Owns* sources, items and rules: reading of feeds ([`feed::read`]), titles of releases ([`title::Release`]), rules
//! ([`rule::Rules::judge`]), the state machine ([`state::State::apply`]) and OPML.
//!
//! *Never* moves the bytes of a download: the engine does, under an id that the item is saved with.
//!
//! # Layers
//!
//! - `state`: what follows from each input
//! - `opml`: lists of sources of other programs
//! - `model`: sources and items as they are held
//! - `rule`: which items are taken
//! - `feed`: what a feed says
//! - `title`: what a title says
//!
//! All layers from `state` on are pure. Start reading at [`state`] (what
//! happens), [`rule`] (why an item is taken), and [`feed`].

pub mod feed;
pub mod model;
pub mod opml;
pub mod rule;
pub mod state;
pub mod title;
