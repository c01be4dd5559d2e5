//! A search of an indexer that speaks Torznab or Newznab, as a feed.
//!
//! *Owns* the request for a search and what indexers answer.
//!
//! *Never* reads the API key: the host puts it into requests to the indexer.
//!
//! Start reading at [`Torznab`].

mod time;

use roxmltree::{Document, Node, ParsingOptions};
use svc_plugin::{http::Response, prelude::*};

/// Items that are asked for: what indexers give at most.
const ITEMS: &str = "100";

/// How many nodes of a document are read. A hundred items have some five thousand.
const MAX_NODES: u32 = 100_000;

/// Reads indexers.
#[derive(Debug)]
pub struct Torznab;

/// The fields of a source.
#[derive(Debug, Settings)]
struct Fields {
    search: Option<String>,
    #[setting(default = "search")]
    kind: String,
    categories: Option<String>,
    #[setting(default = "0")]
    min_seeders: u64,
}

impl FeedHandler for Torznab {
    fn fetch(call: &FeedCall, out: &Feed<'_>) -> Result<()> {
        let wanted = Fields::read()?;
        let mut request = http::get(call.url())
            .query("t", &wanted.kind)
            .query("extended", "1")
            .query("limit", ITEMS);
        for (name, value) in [("q", &wanted.search), ("cat", &wanted.categories)] {
            if let Some(value) = value {
                request = request.query(name, value);
            }
        }
        if vault::has("apiKey") {
            request = request.secret_query("apikey", "{apiKey}");
        }
        read(&request.send()?, wanted.min_seeders, out)
    }
}

svc_plugin::plugin!(Torznab: FeedHandler);

fn read(response: &Response, min_seeders: u64, out: &Feed<'_>) -> Result<()> {
    let text = response.text()?;
    let options = ParsingOptions {
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text.trim_start_matches('\u{feff}').trim_start(), options);
    let document = document.map_err(|error| Error::Parse(format!("the answer of the indexer is not XML: {error}")))?;
    let root = document.root_element();
    if root.has_tag_name("error") {
        return Err(refusal(root));
    }
    let channel = child(root, "channel").ok_or_else(|| Error::Parse("the indexer gives no channel".to_owned()))?;
    if let Some(title) = text_of(channel, "title") {
        out.title(title);
    }
    for item in channel.children().filter(|node| node.has_tag_name("item")) {
        add(item, min_seeders, out);
    }
    Ok(())
}

/// What the codes of the protocol mean.
fn refusal(error: Node<'_, '_>) -> Error {
    let code = error
        .attribute("code")
        .and_then(|code| code.parse().ok())
        .unwrap_or(900);
    let description = error.attribute("description").unwrap_or("without a reason");
    let said = format!("the indexer answers {code}: {description}");
    match code {
        100..=199 => Error::InvalidInput(format!("{said}; check the API key of the source")),
        200 | 201 => Error::InvalidInput(said),
        202 | 203 => Error::Unsupported(said),
        300 => Error::NotFound(said),
        429 | 500 | 501 => Error::RateLimited(None),
        _ => Error::Network(said),
    }
}

fn add(item: Node<'_, '_>, min_seeders: u64, out: &Feed<'_>) {
    let attribute = |name: &str| attribute(item, name);
    if number(attribute("seeders")).is_some_and(|seeders| seeders < min_seeders) {
        return;
    }
    let title = text_of(item, "title").unwrap_or_default();
    let file = child(item, "enclosure");
    let file_url = file.and_then(|file| file.attribute("url"));
    let target = attribute("magneturl").or(file_url).or_else(|| text_of(item, "link"));
    let Some(target) = target.filter(|target| is_web(target) || target.starts_with("magnet:")) else {
        log::debug(format!("{title} has no file"));
        return;
    };
    // The comments are at the page; the link is the file in the answers of most indexers.
    let page = ["comments", "link"].map(|name| text_of(item, name).filter(|page| is_web(page)));
    let page = page.into_iter().flatten().next().unwrap_or_default();
    let entry = out.add(text_of(item, "guid").unwrap_or_default(), title, page);
    entry.enclosure(target, file.and_then(|file| file.attribute("type")).unwrap_or_default());
    let length = file.and_then(|file| file.attribute("length"));
    let sizes = [attribute("size"), text_of(item, "size"), length];
    if let Some(size) = sizes.into_iter().find_map(number) {
        entry.size(size);
    }
    if let Some(time) = text_of(item, "pubDate").and_then(time::milliseconds) {
        entry.published_ms(time);
    }
    if let Some(hash) = attribute("infohash").filter(|hash| is_infohash(hash)) {
        entry.infohash(hash);
    }
}

/// A `torznab:attr` or `newznab:attr`.
fn attribute<'a>(item: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let is_it = |node: &Node<'_, '_>| {
        let named = node.attribute("name");
        node.tag_name().name() == "attr" && named.is_some_and(|other| other.eq_ignore_ascii_case(name))
    };
    let value = item.children().find(is_it)?.attribute("value")?;
    (!value.is_empty()).then_some(value)
}

fn child<'a, 'd>(node: Node<'a, 'd>, name: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn text_of<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let text = child(node, name)?.text()?.trim();
    (!text.is_empty()).then_some(text)
}

fn number(text: Option<&str>) -> Option<u64> {
    text?.trim().parse().ok()
}

fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

fn is_infohash(hash: &str) -> bool {
    matches!(hash.len(), 40 | 64) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}
