//! Traits for what outlives a call: its plugin's storage, secrets and log.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use accounts::{BoundSecret, LoginId};
use plugin_host::{LogLevel, RequestLine};
use transfer::Secret;
use url::Url;

/// A boxed future.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The storage of one plugin, within its own limits.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The value of `key`, unless it has expired.
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>>;
    /// Stores a value, permanently or for a time; the error is for the plugin.
    fn set(&self, key: String, value: Vec<u8>, lifetime: Option<Duration>) -> Pending<'_, Result<(), String>>;
    /// Deletes a value.
    fn remove(&self, key: String) -> Pending<'_, ()>;
    /// The keys that begin with `prefix`, in order.
    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>>;
}

/// The secrets and cookies of a plugin, which the host uses for it.
pub trait Vault: Send + Sync + fmt::Debug {
    /// The secrets of the account in a slot; `None` if nobody is logged in there.
    fn of_account(&self, slot: String) -> Pending<'_, Option<Arc<dyn Vault>>>;
    /// The slots of all accounts of the plugin, and that of the login.
    fn slots(&self) -> Pending<'_, Vec<String>>;
    /// The session that the account had when this was made; none for the plugin's own secrets, and for a login.
    fn session(&self) -> Option<LoginId> {
        None
    }
    /// Every secret of this account that a response could repeat, by name, and the hosts that it may be sent to.
    fn all(&self) -> Pending<'_, Vec<(String, BoundSecret)>>;
    /// The secret of this name, and the hosts that it may be sent to.
    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>>;
    /// Stores a value captured from a response of `url`; the error is for the plugin.
    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>>;
    /// Keeps a secret that was computed from another, until the call or the login is over; the error is for the plugin.
    fn keep_derived(&self, name: String, secret: BoundSecret) -> Result<(), String>;
    /// Deletes a captured value.
    fn forget(&self, name: String) -> Pending<'_, ()>;
    /// The stored cookies.
    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>>;
    /// Replaces the stored cookies.
    fn keep_cookies(&self, cookies: Vec<u8>) -> Pending<'_, ()>;
}

/// Receives a plugin's messages. Called often; must not block.
pub trait LogSink: Send + Sync + fmt::Debug {
    /// A line as the plugin wrote it, whatever is in it.
    fn write(&self, level: LogLevel, message: &str);
    /// The progress of the call.
    fn progress(&self, done: u32, total: Option<u32>, note: &str);
    /// A request that it sent, for the journal.
    fn exchanged(&self, line: RequestLine);
}
