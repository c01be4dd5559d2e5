//! Finds the feeds that a web page names.

use std::{cell::RefCell, rc::Rc};

use lol_html::{HtmlRewriter, MemorySettings, Settings, element};
use transfer::SafeUrl;

use super::links::MAX_LINK_BYTES;

/// How much of a page is searched. Links to feeds stand in its head.
const SEARCHED_BYTES: usize = 1024 * 1024;

/// The most links that are looked at, and feeds that are reported, of one page.
const MAX_FOUND: usize = 20;

/// Memory of the parser for one token.
const MAX_PARSER_BYTES: usize = 256 * 1024;

const TYPES: &[&str] = &[
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
    "text/xml",
    "application/xml",
];

/// The feeds that the page at `url` names with `rel=alternate`, in its order; over HTTP only.
pub fn discover(page: &[u8], url: &SafeUrl) -> Vec<SafeUrl> {
    let found = Rc::new(RefCell::new((url.clone(), Vec::new())));
    let (links, bases) = (Rc::clone(&found), Rc::clone(&found));
    let (mut left, mut has_base) = (MAX_FOUND, false);
    let link = element!("link[href]", move |element| {
        let value = |name| element.get_attribute(name).unwrap_or_default();
        let rel = value("rel").to_ascii_lowercase();
        let media_type = value("type").to_ascii_lowercase();
        let is_feed = rel
            .split_ascii_whitespace()
            .any(|word| word == "alternate" || word == "feed")
            && TYPES.contains(&media_type.split(';').next().unwrap_or("").trim());
        if !is_feed || left == 0 {
            return Ok(());
        }
        left -= 1;
        let mut found = links.borrow_mut();
        let (base, urls) = &mut *found;
        let href = html_escape::decode_html_entities(&value("href")).into_owned();
        let target = base.join(&href).ok().filter(is_usable);
        urls.extend(target.filter(|target| !urls.contains(target)));
        Ok(())
    });
    let base = element!("base[href]", move |element| {
        let href = element.get_attribute("href").unwrap_or_default();
        // The first one counts, as in browsers.
        if !std::mem::replace(&mut has_base, true) {
            let mut found = bases.borrow_mut();
            let joined = found.0.join(&href).ok().filter(is_usable);
            found.0 = joined.unwrap_or_else(|| found.0.clone());
        }
        Ok(())
    });
    let settings = Settings::new()
        .append_element_content_handler(link)
        .append_element_content_handler(base)
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MAX_PARSER_BYTES));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let searched = &page[..page.len().min(SEARCHED_BYTES)];
    // A page that is too strange for the parser has the feeds that were found up to there.
    let _whole = rewriter.write(searched).and_then(|()| rewriter.end());
    let found = found.borrow();
    found.1.clone()
}

fn is_usable(url: &SafeUrl) -> bool {
    matches!(url.scheme(), "http" | "https") && url.expose().len() <= MAX_LINK_BYTES
}
