//! The seam to whoever knows what is behind a URL that is no file itself: plugins.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use transfer::{Checksum, Failure, FileName, GivenBy, RequestOptions, SafeUrl, Secret, Segment};

use crate::{
    model::resolution::{Item, Resolution, ResolverId},
    proxies::Proxies,
};

/// What a resolver is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRequest {
    /// Who is asked, and for which file.
    pub resolution: Resolution,
    /// What the user gave.
    pub url: SafeUrl,
    /// Who gave the URL.
    pub given_by: GivenBy,
    /// How the user would ask for it: cookies, headers and credentials of the URL's own site.
    pub request: RequestOptions,
    /// Which proxy leads to the URL, and to whatever else is asked on its behalf.
    pub proxies: Proxies,
}

/// What is behind a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The resolver found that the URL is not its business: it is downloaded as it is.
    Pass,
    /// One file, here.
    Link(Box<Link>),
    /// Files to choose from; each is asked for again when its turn comes.
    List(List),
}

/// Where a file is now. It may be good for once, or for minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the rest is what a task specification has under these names")]
pub struct Link {
    /// The file's URL, then mirrors. Never empty.
    pub urls: Vec<SafeUrl>,
    /// Headers for it, and for nobody else.
    pub headers: Vec<(String, Secret)>,
    pub file_name: Option<FileName>,
    pub promised_size: Option<u64>,
    pub checksum: Option<Checksum>,
    /// It answers once: no second connection, no second try.
    pub is_single_use: bool,
    /// It has no ranges: one connection.
    pub is_whole_only: bool,
    /// The most connections that it bears.
    pub max_connections: Option<u16>,
    /// What the file is joined from, in order; empty if it is what the URLs lead to.
    pub segments: Arc<[Segment]>,
}

/// Files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Whose list it is: who is asked for its files.
    pub resolver: ResolverId,
    /// What they are together; may be empty.
    pub name: String,
    /// The files.
    pub files: Vec<ListedFile>,
}

/// A file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Which it is, in the variant that is taken unless somebody chooses.
    pub item: Item,
    /// Its name.
    pub name: FileName,
    /// Its directories below the list's own, outermost first.
    pub directories: Vec<FileName>,
    /// Its size, if known.
    pub size_bytes: Option<u64>,
    /// What its bytes must hash to, if known.
    pub checksum: Option<Checksum>,
}

/// The future of a question.
pub type ResolveFuture = Pin<Box<dyn Future<Output = Result<Resolved, Failure>> + Send>>;

/// Somebody who knows what is behind URLs.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// Who claims `url`, if anybody does. Cheap: it is asked for every new task.
    fn claim(&self, url: &SafeUrl) -> Option<ResolverId>;

    /// What is behind the URL. The future may be dropped. A failure is the task's: what is claimed is never downloaded
    /// as it is because its resolver failed.
    fn resolve(&self, request: ResolveRequest) -> ResolveFuture;
}
