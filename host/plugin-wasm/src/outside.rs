//! What outlives a call: its plugin's memory, secrets and log, as the calls reach them.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use plugin_host::{BoundSecret, LogLevel, RequestLine};
use transfer::Secret;
use url::Url;

/// An answer to come.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a plugin remembers between calls: its own values and nobody else's, within limits of its own.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The value of `key`, unless it has expired.
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>>;
    /// Sets a value, for ever or for a time; tells why it cannot.
    fn set(&self, key: String, value: Vec<u8>, lifetime: Option<Duration>) -> Pending<'_, Result<(), String>>;
    /// Forgets a value.
    fn remove(&self, key: String) -> Pending<'_, ()>;
    /// The keys that begin with `prefix`, in order.
    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>>;
}

/// The secrets and cookies of a plugin, which the host uses for it.
pub trait Vault: Send + Sync + fmt::Debug {
    /// The secret of this name, and where it may go.
    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>>;
    /// Keeps a value that was in a response from `url`; tells why it cannot.
    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>>;
    /// Forgets a captured value.
    fn forget(&self, name: String) -> Pending<'_, ()>;
    /// The cookies that were kept last.
    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>>;
    /// Keeps cookies instead of those before.
    fn keep_cookies(&self, cookies: Vec<u8>) -> Pending<'_, ()>;
}

/// Where a plugin's messages go. It is called often and must not wait.
pub trait LogSink: Send + Sync + fmt::Debug {
    /// A line as the plugin wrote it, whatever is in it.
    fn write(&self, level: LogLevel, message: &str);
    /// How far the call has come.
    fn progress(&self, done: u32, total: Option<u32>, note: &str);
    /// A request that it sent, for the user to read.
    fn exchanged(&self, line: RequestLine);
}
