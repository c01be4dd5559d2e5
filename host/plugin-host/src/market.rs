//! The market: sources, their offers, and installing from them. The crate `market` verifies sources; this module stores
//! their state and applies it to installations.
//!
//! `refresh` refreshes sources, `adopt` adds and removes them, `install` fetches packages.

use std::sync::Arc;

use engine::Proxies;
pub use market::{Link, Revocation, choice::Unfit};

pub use crate::catalogue::{Bundled, Config, MarketError, Offer, Origins, SourceSummary, Times, Trouble, TroubleKind};
use crate::install::{Plugins, Shared};

mod adopt;
mod install;
mod refresh;

pub use crate::install::imports_digest;
pub use adopt::Adoption;

/// Settings of the background updates.
#[derive(Debug, Clone)]
pub struct Settings {
    pub proxies: Proxies,
    pub updates_itself: bool,
}

/// The market, reached through certain proxies. Clones share it.
#[derive(Debug, Clone)]
pub struct Market {
    shared: Arc<Shared>,
    proxies: Proxies,
}

impl Plugins {
    /// The market, reached through `proxies`.
    pub fn market(&self, proxies: Proxies) -> Market {
        Market {
            shared: Arc::clone(&self.0),
            proxies,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
