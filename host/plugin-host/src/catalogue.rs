//! What is known of the sources that this host believes, and what they offer: the pure part of the market, and its rows.
//!
//! `shelf` is the heart: what is known, as a value, and every choice that is made of it.

pub(crate) mod bundled;
pub(crate) mod error;
pub(crate) mod holdings;
pub(crate) mod offer;
pub(crate) mod rows;
pub(crate) mod shelf;

pub use bundled::Bundled;
pub(crate) use bundled::BundledPlugin;
pub use error::{MarketError, Trouble, TroubleKind};
pub(crate) use holdings::{Clock, Holdings};
pub use holdings::{Config, Origins};
pub use offer::{Offer, SourceSummary, Times};
