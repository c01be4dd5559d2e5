//! The table of hostile origins: every way a server can lie that we know of, and what a very careful downloader makes
//! of it.

mod connection;
mod encoding;
mod framing;
mod name;
mod range;
mod redirect;
mod status;
mod tls;
mod validator;

use crate::{
    case::{Case, Scene},
    content::Content,
    resource::Resource,
};

/// Large enough to be cut into segments, and not a round number.
const FILE_BYTES: u64 = (3 << 20) + 12_345;

const KIB: u64 = 1024;

/// Where most cases keep their file.
const PATH: &str = "/files/data.bin";

/// The option with the usual file's checksum.
const CHECKSUM: [&str; 2] = [
    "--checksum",
    "sha-256=30b6bc5d28dbed6e96de508929a1370462c7e9e0bbf2b4070824ec9b77da101d",
];

/// Every case.
pub fn cases() -> Vec<Case> {
    themes().into_iter().flat_map(|(_, cases)| cases).collect()
}

/// Every case under the heading of its theme, in the order of the documentation.
pub fn themes() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("Ranges", range::cases()),
        ("Files that change", validator::cases()),
        ("Framing", framing::cases()),
        ("Connections", connection::cases()),
        ("Statuses and pages", status::cases()),
        ("Redirects", redirect::cases()),
        ("Encodings", encoding::cases()),
        ("Names", name::cases()),
        ("TLS", tls::cases()),
    ]
}

/// The file of most cases.
fn content() -> Content {
    Content::seeded(1, FILE_BYTES)
}

/// The usual file as its origin misserves it.
fn file(misserve: impl FnOnce(Resource) -> Resource) -> Scene {
    Scene::new(content(), vec![misserve(Resource::new(PATH, content()))])
}

#[cfg(test)]
mod tests;
