//! Systems without a Secret Service.

use crate::{BusAddress, KeyStore, KeyStoreError};

/// The Secret Service, which this system does not have.
#[derive(Debug)]
pub struct SecretService;

impl SecretService {
    /// A store that is never there.
    pub fn new(_bus: BusAddress) -> Self {
        Self
    }
}

fn absent<T>() -> Result<T, KeyStoreError> {
    Err(KeyStoreError::Absent("this system has none".to_owned()))
}

impl KeyStore for SecretService {
    fn load(&self, _name: &str) -> Result<Option<Vec<u8>>, KeyStoreError> {
        absent()
    }

    fn save(&self, _name: &str, _secret: &[u8]) -> Result<(), KeyStoreError> {
        absent()
    }

    fn remove(&self, _name: &str) -> Result<(), KeyStoreError> {
        absent()
    }
}
