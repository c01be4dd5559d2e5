//! Documents of sites, read by the plugins that come with the product.

use archive_item::ArchiveItem;
use metalink::Metalink;
use open_directory::OpenDirectory;
use svc_plugin::test::{Host, Page};

use super::Target;

const DOCUMENT: &str = "https://example.org/a/list.meta4";
const DIRECTORY: &str = "https://example.org/pub/";
const ITEM: &str = "https://archive.org/details/item";

/// The same bytes as a Metalink document, as the page of a directory without folders in it, and as the description of an
/// item of the Internet Archive.
pub(super) fn site() -> Target {
    Box::new(|data| {
        let host = Host::new()
            .page(DOCUMENT, Page::new("application/metalink4+xml", data))
            .page(DIRECTORY, Page::new("text/html", data))
            .page("https://archive.org/metadata/item", Page::json(data))
            .setting("depth", "0");
        let _refused = host.resolve::<Metalink>(DOCUMENT);
        let _refused = host.resolve::<OpenDirectory>(DIRECTORY);
        let _refused = host.resolve::<ArchiveItem>(ITEM);
    })
}
