//! Subscriptions to feeds: what feeds say, which of their items are taken and why, and when they are fetched.
//!
//! *Owns* titles of releases ([`title::Release`]) and rules ([`rule::Rules::judge`]).
//!
//! *Never* moves the bytes of a download: the engine does, under an id that the item is saved with.
//!
//! # Layers
//!
//! - `rule`: which items are taken
//! - `title`: what a title says
//!
//! All layers are pure. Start reading at [`rule`] (why an item is taken).

pub mod rule;
pub mod title;
