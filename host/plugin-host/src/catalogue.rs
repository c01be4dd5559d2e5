//! What is known of the market sources that the user trusts, and what they offer: the pure part of the market, and its
//! rows.
//!
//! `known` is the core: the state of all sources as a value, and every decision based on it.

pub(crate) mod bundled;
pub(crate) mod error;
pub(crate) mod known;
pub(crate) mod market_state;
pub(crate) mod offer;
pub(crate) mod rows;

pub use bundled::Bundled;
pub(crate) use bundled::BundledPlugin;
pub use error::{MarketError, Trouble, TroubleKind};
pub(crate) use market_state::{Clock, MarketState};
pub use market_state::{Config, Origins};
pub use offer::{Offer, SourceSummary, Times};
