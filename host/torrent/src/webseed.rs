//! Web servers that have the files of a torrent (BEP 19).

use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use egress::Pins;
use transfer::{GivenBy, SafeUrl};

/// A web server that has the files of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webseed {
    /// Its URL: of the only file, or of the directory of the torrent's directory.
    pub url: SafeUrl,
    /// Who named it: others than the user can name public servers only.
    pub given_by: GivenBy,
}

/// Asks for bytes of a file.
#[derive(Debug, Clone, Copy)]
pub struct WebseedRequest<'a> {
    /// The server.
    pub webseed: &'a Webseed,
    /// The file's URL there.
    pub url: &'a SafeUrl,
    /// The first byte.
    pub offset: u64,
    /// How many bytes; at least one.
    pub length: u64,
    /// What earlier requests of the torrent learned about names.
    pub pins: &'a Pins,
    /// The proxy of the torrent ([`crate::TorrentSpec::proxy`]).
    pub proxy: Option<&'a SafeUrl>,
}

/// The body of an answer, in parts.
pub trait WebseedBody: Send {
    /// The next bytes; `None` at the end.
    fn chunk(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, WebseedError>> + Send + '_>>;
}

/// A request that is answered later.
pub type WebseedAnswer<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn WebseedBody>, WebseedError>> + Send + 'a>>;

/// Fetches ranges of files. The embedder decides which addresses it may reach.
pub trait WebseedClient: fmt::Debug + Send + Sync {
    /// Asks for bytes of a file. An answer with other bytes is an error.
    fn fetch<'a>(&'a self, request: WebseedRequest<'a>) -> WebseedAnswer<'a>;
}

/// Why a webseed gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebseedError {
    /// It may be asked again later.
    #[error("the web server cannot be reached or is busy")]
    Unavailable,
    /// It does not have the file, or does not serve ranges of it.
    #[error("the web server does not have the file")]
    Refused,
}
