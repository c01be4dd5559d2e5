//! The market: the sources that this host believes, what they offer, and what becomes of it here. What to believe is for
//! the crate `market` to say; this module keeps it, and brings it to what is installed.
//!
//! `refresh` asks sources for news, `adopt` begins and ends with one, `install` gets packages.

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

/// How the market is used from now on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What sources are reached through.
    pub proxies: Proxies,
    /// Whether new versions are installed unattended.
    pub updates_itself: bool,
}

/// The market, reached through certain proxies. Clones are the same one.
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
