//! The interface to plugins: they resolve URLs that are not files themselves.

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use transfer::{Checksum, Failure, FileName, GivenBy, Netrc, RequestOptions, SafeUrl, Secret, Segment};

use crate::{
    model::account::{AccountKey, AccountUse, LoginNeed},
    model::group::LeftOut,
    model::resolution::{Item, Resolution, ResolverId},
    proxies::Proxies,
};

/// A request to a resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRequest {
    /// The resolver, and the file of its list.
    pub resolution: Resolution,
    /// The user's URL.
    pub url: SafeUrl,
    /// Who gave the URL.
    pub given_by: GivenBy,
    /// The user's request options: cookies, headers and credentials of the URL's own site.
    pub request: RequestOptions,
    /// Proxies for the URL and for all further requests of the resolver.
    pub proxies: Proxies,
    /// The user's logins by host, if the task may use them. Plugins do not get them.
    pub netrc: Option<Arc<Netrc>>,
    /// Accept any certificate of the URL's host.
    pub ignore_tls_errors: bool,
    /// Automatic retries before this request: the link that an earlier one was answered with may have been refused.
    pub attempts: u32,
    /// Accounts of the resolver whose limits allow no download now. A link of one of these would not be used.
    pub full_accounts: Vec<AccountKey>,
}

/// A resolver's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The resolver does not handle the URL: it is downloaded as it is.
    Pass,
    /// One file with its direct URLs.
    Link(Box<Link>),
    /// Several files; each is resolved again when its run starts.
    List(List),
    /// The link would be of an account in [`ResolveRequest::full_accounts`]: the task waits for it.
    AccountFull(Box<AccountUse>),
}

/// The direct URLs of a file. They may be valid once only, or for minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the rest is what a task specification has under these names")]
pub struct Link {
    /// The file's URL, then mirrors. Never empty.
    pub urls: Vec<SafeUrl>,
    /// Headers for the first URL's origin only.
    pub headers: Vec<(String, Secret)>,
    pub file_name: Option<FileName>,
    pub promised_size: Option<u64>,
    pub checksum: Option<Checksum>,
    /// It can be requested once: no second connection, no retry.
    pub is_single_use: bool,
    /// No range requests: one connection.
    pub is_whole_only: bool,
    /// The most connections that the server allows.
    pub max_connections: Option<u16>,
    /// The segments to join, in order; empty if the URLs are the file.
    pub segments: Arc<[Segment]>,
    /// The account whose limits the download is subject to.
    pub account: Option<AccountUse>,
}

/// The files of a page or album.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The resolver to ask for each file.
    pub resolver: ResolverId,
    /// Title of the list; may be empty.
    pub name: String,
    /// The files.
    pub files: Vec<ListedFile>,
    /// What it leaves out.
    pub left_out: Vec<LeftOut>,
}

impl List {
    /// The directory that a group of its files wants in `parent`: one with its name, if it has one.
    pub(crate) fn directory(&self, parent: &Path) -> PathBuf {
        let name = FileName::sanitise_or_none(&self.name);
        name.map_or_else(|| parent.to_owned(), |name| parent.join(name.as_str()))
    }
}

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its id, with the default variant.
    pub item: Item,
    /// Its own URL, if the file is downloaded from there without the resolver; otherwise the resolver is asked for a link.
    pub url: Option<SafeUrl>,
    /// Its name.
    pub name: FileName,
    /// Subdirectories of the list's directory, outermost first.
    pub directories: Vec<FileName>,
    /// Its size, if known.
    pub size_bytes: Option<u64>,
    /// What its bytes must hash to, if known.
    pub checksum: Option<Checksum>,
}

/// Why a resolver does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct Unresolved {
    /// The failure of the task.
    pub failure: Failure,
    /// The login after which the resolver will answer. With it the task waits for [`crate::Engine::logged_in`]; without
    /// it the failure's kind decides whether it is retried.
    pub login: Option<LoginNeed>,
}

impl From<Failure> for Unresolved {
    fn from(failure: Failure) -> Self {
        Self { failure, login: None }
    }
}

/// The future of [`Resolver::resolve`].
pub type ResolveFuture = Pin<Box<dyn Future<Output = Result<Resolved, Unresolved>> + Send>>;

/// Resolves URLs to files. Implemented by the plugin host.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// The resolver that handles `url`, if any. Must be cheap: called for every new task.
    fn claim(&self, url: &SafeUrl) -> Option<ResolverId>;

    /// Resolves the URL. The future may be dropped. A failure fails the task: a claimed URL is never downloaded as it
    /// is because its resolver failed.
    fn resolve(&self, request: ResolveRequest) -> ResolveFuture;
}
