//! `svc get` as it is used every day, one theme per file.

mod digest;
mod listing;
mod metalink;
mod names;
mod network;
mod output;
mod request;
mod resume;
mod torrent;

use support::{Content, Origin, Resource};

/// A file of a size that needs no segments.
fn small() -> Content {
    Content::seeded(31, 300_000)
}

/// An origin with [`small`] at `/f.bin`.
fn small_origin() -> Origin {
    Origin::start(vec![Resource::new("/f.bin", small())])
}
