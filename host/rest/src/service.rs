//! The interface that the API needs from the service. Calls go to the daemon; reads of tasks and lists are answered from
//! the state that the service has of it.

use std::{
    fmt::{self, Debug},
    sync::Arc,
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Request, Response, request::Parts},
};
use futures_util::future::BoxFuture;
use protocol::{Method, RpcError, TaskStatus, client::CallError, proof::NoRandom};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

/// A list that the service has as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `QueueDto` of every queue.
    Queues,
    /// `GroupDto` of every group.
    Groups,
    /// `PluginDto` of every plugin.
    Plugins,
    /// `SiteAuthEntryDto` of every stored login.
    Sites,
}

/// Which tasks a list has; `None` is no restriction.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this status.
    pub status: Option<TaskStatus>,
    /// Of this queue.
    pub queue: Option<String>,
    /// Of this group.
    pub group: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
}

/// Tasks, newest first.
pub struct Page {
    /// A JSON array, in pieces that are serialized while they are sent.
    pub tasks: Box<dyn Iterator<Item = Bytes> + Send>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
    /// How many tasks all pages have; counted only if there is a limit.
    pub total: Option<usize>,
}

impl Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = f.debug_struct("Page");
        page.field("next", &self.next).field("total", &self.total);
        page.finish_non_exhaustive()
    }
}

/// Why there is no page of tasks.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The known state of the tasks may be stale.
    #[error(transparent)]
    Call(#[from] CallError),
    /// No page returned this cursor.
    #[error("the cursor is of no page")]
    BadCursor,
}

/// Authorizes one request for a file without the access key.
#[derive(Debug)]
pub struct FileTicket {
    /// What the request shows.
    pub text: String,
    /// How long it can be used.
    pub valid_for: Duration,
}

/// Why the first access key was not set.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is a key; another client may have set it meanwhile.
    #[error("setup already completed")]
    Completed,
    /// The client must show the code, and showed none or another one.
    #[error("the setup code shown where the server was started is needed")]
    WrongCode,
    /// The client showed too many wrong codes.
    #[error("too many wrong codes; try again in {seconds} s")]
    TooMany {
        /// The remaining lock-out.
        seconds: u64,
    },
    /// The key breaks this rule.
    #[error("{0}")]
    Weak(String),
    /// The key could not be stored, for this reason.
    #[error("{0}")]
    NotStored(String),
}

/// A service as other devices know it.
#[derive(Debug, Clone)]
pub struct Device {
    /// SHA-256 of its public key in hexadecimal digits.
    pub fingerprint: String,
    /// Its name.
    pub name: String,
    /// Its platform.
    pub platform: String,
}

/// The service behind the API.
pub trait Service: Debug + Send + Sync {
    /// Whether an access key is set.
    fn has_key(&self) -> bool;

    /// Whether the management API is switched on.
    fn offers_api(&self) -> bool;

    /// Whether the service is shutting down.
    fn is_draining(&self) -> bool;

    /// Calls a method of the daemon. When this resolves, the reads below see its effect.
    fn command<'s>(&'s self, method: Method, params: &'s RawValue) -> BoxFuture<'s, Result<Box<RawValue>, CallError>>;

    /// Sends an HTTP request to the daemon, which holds the bytes of files, exports and uploads.
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, CallError>>;

    /// A list as JSON; fails while it may be stale. Right after the start, waits for the daemon, like the other reads.
    fn part(&self, part: Part) -> BoxFuture<'_, Result<String, CallError>>;

    /// A task as JSON, if there is one of this id; fails while it may be stale.
    fn task<'s>(&'s self, id: &'s str) -> BoxFuture<'s, Result<Option<String>, CallError>>;

    /// Tasks, at most `limit`, after the cursor.
    fn tasks<'s>(
        &'s self,
        filter: Filter,
        limit: Option<usize>,
        cursor: Option<&'s str>,
    ) -> BoxFuture<'s, Result<Page, PageError>>;

    /// What this service is for other devices; none while the device link is off.
    fn device(&self) -> Option<Device>;

    /// Issues a ticket for one `GET` of `path`.
    fn ticket(&self, path: &str) -> Result<FileTicket, NoRandom>;

    /// Whether the sender of a request must show the set-up code to set the first key.
    fn needs_code<'s>(&'s self, request: &'s Parts) -> BoxFuture<'s, bool>;

    /// Sets the first access key, for the sender of `request`.
    fn set_first_key<'s>(
        &'s self,
        request: &'s Parts,
        key: &'s str,
        code: Option<&'s str>,
    ) -> BoxFuture<'s, Result<(), SetupError>>;
}

impl dyn Service {
    /// Calls a method with a record, and reads the result as one.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CallError> {
        let result = self.raw(method, params).await?;
        serde_json::from_str(result.get()).map_err(|_| CallError::Unreadable)
    }

    /// Calls a method with a record.
    pub(crate) async fn raw(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<Box<RawValue>, CallError> {
        let params = to_raw_value(params).map_err(|error| RpcError::internal(error.to_string()))?;
        self.command(method, &params).await
    }
}

/// What is known of the service when it starts.
#[derive(Debug, Clone)]
pub struct About {
    /// The version of the program.
    pub version: Arc<str>,
    /// The initial language of user interfaces.
    pub language: Option<Arc<str>>,
    /// The port that the service listens on.
    pub port: u16,
    /// The shortest access key.
    pub min_key_chars: usize,
    /// Whether it is a server, whose first client sets the access key, and not a desktop's service.
    pub is_server: bool,
}
