//! Secrets that a plugin can use but never read: the user's secret settings, and what an account was given; see
//! [`Request::secret_header`](crate::http::Request::secret_header).

use crate::{Error, Result, host::vault as host};

pub use host::{Encoding, Hash};

/// The account of the plugin's own secrets, as opposed to those of a login.
const NO_ACCOUNT: &str = "";

/// Whether there is a secret of this name: a request cannot be sent with one that the user has not set.
///
/// ```
/// use svc_plugin::{test, vault};
///
/// assert!(test::Host::new().setting("token", "abc").run(|| vault::has("token")));
/// assert!(!test::Host::new().run(|| vault::has("token")));
/// ```
pub fn has(name: &str) -> bool {
    host::has(NO_ACCOUNT, name)
}

/// The secrets of the account of a slot.
///
/// ```
/// use svc_plugin::{Error, test, vault};
///
/// let host = test::Host::new().secret("main", "access", "abcdef");
/// assert!(host.run(|| vault::account("main").has("access")));
/// let missing = host.run(|| vault::account("other").require("access"));
/// assert_eq!(missing, Err(Error::LoginRequired(Some("other".to_owned()))));
/// ```
pub fn account(slot: &str) -> Account<'_> {
    Account(slot)
}

/// The secrets of an account.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a>(&'a str);

impl Account<'_> {
    /// Whether there is a secret of this name.
    pub fn has(&self, name: &str) -> bool {
        host::has(self.0, name)
    }

    /// Fails with [`Error::LoginRequired`] if there is no secret of this name: the account must log in first.
    pub fn require(&self, name: &str) -> Result<()> {
        let is_there = self.has(name);
        is_there
            .then_some(())
            .ok_or_else(|| Error::LoginRequired(Some(self.0.to_owned())))
    }

    /// Deletes a secret that was captured or filled in; a missing one is no error.
    pub fn forget(&self, name: &str) {
        host::forget(self.0, name);
    }

    /// The digest of a text with secrets in it, for sites that want the digest of a password. What comes back can be sent
    /// anywhere: users are asked about this permission (`secrets:derive`).
    ///
    /// ```
    /// use svc_plugin::{test, vault::{self, Encoding, Hash}};
    ///
    /// let host = test::Host::new().secret("main", "password", "password");
    /// let digest = host.run(|| vault::account("main").digest("{password}", Hash::Md5, Encoding::Hex));
    /// assert_eq!(digest.as_deref(), Ok("5f4dcc3b5aa765d61d8327deb882cf99"));
    /// ```
    pub fn digest(&self, template: &str, hash: Hash, encoding: Encoding) -> Result<String> {
        host::digest(self.0, template, hash, encoding).map_err(Error::Internal)
    }

    /// The keyed digest (HMAC) of `data`; the key is the secret of the name `key`. For sites whose requests are signed;
    /// users are asked about it as about [`Account::digest`].
    ///
    /// ```
    /// use svc_plugin::{test, vault::{self, Encoding, Hash}};
    ///
    /// let host = test::Host::new().secret("main", "password", "Jefe");
    /// let what = "what do ya want for nothing?";
    /// let signature = host.run(|| vault::account("main").hmac("password", what, Hash::Sha256, Encoding::Hex));
    /// assert_eq!(signature.unwrap(), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    /// ```
    pub fn hmac(&self, key: &str, data: &str, hash: Hash, encoding: Encoding) -> Result<String> {
        host::hmac(self.0, key, data, hash, encoding).map_err(Error::Internal)
    }

    /// Encrypts the secret of this name to the public RSA key of a site, in PEM: with OAEP, or as PKCS #1 v1.5 says. The
    /// result stays a secret, which may be sent to the same hosts; this is its place in templates. It is gone after the
    /// call or the login. The host for tests computes nothing.
    ///
    /// ```
    /// use svc_plugin::{test, vault::{self, Encoding}};
    ///
    /// let host = test::Host::new().secret("main", "password", "hunter2");
    /// let place = host.run(|| vault::account("main").rsa_encrypt("password", "-----BEGIN …", true, Encoding::Base64));
    /// assert_eq!(place.as_deref(), Ok("{password.rsa}"));
    /// ```
    pub fn rsa_encrypt(&self, name: &str, public_key_pem: &str, uses_oaep: bool, encoding: Encoding) -> Result<String> {
        let encrypted = host::rsa_encrypt(self.0, name, public_key_pem, uses_oaep, encoding);
        encrypted.map(|name| format!("{{{name}}}")).map_err(Error::Internal)
    }
}
