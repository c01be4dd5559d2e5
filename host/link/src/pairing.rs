//! The pairing, as pure state machines: [`responder`] for the device that shows the code, [`initiator`] for the one on
//! which it is entered. [`guesses`] limits wrong codes, [`hello`] reads what a stranger says first.

pub mod guesses;
pub mod hello;
pub mod initiator;
pub mod refusal;
pub mod responder;

use crate::crypto::{identity::Fingerprint, transcript::About};

/// A device with which a pairing has ended well.
#[derive(Clone, PartialEq, Eq)]
pub struct NewDevice {
    /// Its name.
    pub fingerprint: Fingerprint,
    /// What it said of itself.
    pub about: About,
    /// Where it said that it can be reached.
    pub addresses: Vec<String>,
    /// The key of this pair of devices.
    pub link_key: [u8; 32],
}

impl std::fmt::Debug for NewDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewDevice({})", self.fingerprint)
    }
}
