//! The desktop's key store (`org.freedesktop.secrets`, the Secret Service of GNOME, KDE and others): keeps
//! small secrets that the user's session unlocks.
//!
//! *Owns* the exchange with it over the session bus, and what can be wrong with a store.
//!
//! *Never* knows what a secret is for, never asks the user to unlock anything, and never creates a collection.
//!
//! Calls block for at most a few seconds; a call of an asynchronous program belongs on a thread of its own.
//!
//! # Layers
//!
//! - `secret_service`: items of the default collection
//! - `portable`: the same for systems that have none

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod secret_service;

pub use message_bus::BusAddress;
#[cfg(not(unix))]
pub use portable::SecretService;
#[cfg(unix)]
pub use secret_service::SecretService;

/// A store of small secrets by name.
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// The secret of this name; `None` if an unlocked store has none.
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, KeyStoreError>;

    /// Stores a secret, replacing one of the same name.
    fn save(&self, name: &str, secret: &[u8]) -> Result<(), KeyStoreError>;

    /// Removes a secret; a missing one is no error.
    fn remove(&self, name: &str) -> Result<(), KeyStoreError>;
}

/// Why a key store cannot be used now.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// There is no session bus, or no program on it that keeps secrets.
    #[error(
        "no key store answers on the desktop's session bus ({0}); is this a desktop session, and does its keyring run?"
    )]
    Absent(String),
    /// The default collection, or the item, is locked.
    #[error("the desktop's key store is locked; unlock its default keyring, for example by logging in to the desktop")]
    Locked,
    /// It has no default collection to put anything in.
    #[error("the desktop's key store has no default keyring; create one in the desktop's settings")]
    NoCollection,
    /// It did not answer in time, or something that the protocol does not allow.
    #[error("the desktop's key store does not work: {0}")]
    Broken(String),
}

#[cfg(unix)]
impl From<message_bus::BusError> for KeyStoreError {
    fn from(error: message_bus::BusError) -> Self {
        use message_bus::BusError;
        match error {
            BusError::Absent(why) => Self::Absent(why),
            BusError::Refused(name) if name == "org.freedesktop.Secret.Error.IsLocked" => Self::Locked,
            refused @ BusError::Refused(_) => Self::Broken(refused.to_string()),
            BusError::Broken(why) => Self::Broken(why),
        }
    }
}
