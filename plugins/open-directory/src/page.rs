//! What the pages of directories look like.
//!
//! Every server has its own page, and their themes are many. What all have in common is a link to each file, and that
//! such a link leads exactly one step down; so links are what is read, and the rest only for sizes.

use std::collections::HashMap;

use svc_plugin::{
    http::Response,
    prelude::*,
    text::{self, Url},
};

/// What the titles of such pages begin with, lower-case.
const TITLES: &[&str] = &["index of ", "directory listing for ", "listing of "];

/// A size in bytes behind a link, as nginx (a column in the text) and Caddy (an attribute of the cell) have it. Others
/// round sizes, which is worse than none.
const SIZES: &[&str] = &[
    r#"<a href="([^"]+)">[^<]*</a>\s+\d{2}-\w{3}-\d{4} \d{2}:\d{2}\s+(\d+)\s"#,
    r#"<a href="([^"]+)">(?:[^<]|<[^/t]|</[^t])*</a>\s*</td>\s*<td[^>]*data-(?:size|order)="(\d+)""#,
];

/// Something in a directory.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) url: Url,
    pub(crate) name: String,
    pub(crate) is_folder: bool,
    pub(crate) size: Option<u64>,
}

/// What the page of the directory at `directory` shows, or `None` if it is another sort of page.
pub(crate) fn read(directory: &Url, response: &Response) -> Result<Option<Vec<Child>>> {
    let is_html = response
        .header("content-type")
        .is_some_and(|kind| kind.contains("html"));
    if !is_html || !directory.path().last().is_some_and(String::is_empty) {
        return Ok(None);
    }
    let html = response.text()?;
    if !is_index(&html)? {
        return Ok(None);
    }
    let sizes = sizes(&html)?;
    let mut children = Vec::new();
    for link in text::select(&html, "a[href]")? {
        let href = link.attribute("href").unwrap_or_default();
        children.extend(child(directory, href, sizes.get(href).copied()));
    }
    Ok(Some(children))
}

fn is_index(html: &str) -> Result<bool> {
    let headings = text::select(html, "title, h1, h2")?;
    let has_title = headings.iter().any(|heading| {
        let heading = heading.text.trim_start().to_lowercase();
        TITLES.iter().any(|title| heading.starts_with(title))
    });
    Ok(has_title || !text::select(html, "tr.file a[href]")?.is_empty())
}

fn sizes(html: &str) -> Result<HashMap<String, u64>> {
    let mut sizes = HashMap::new();
    for pattern in SIZES {
        for groups in text::captures(pattern, html)? {
            if let [_, Some(href), Some(size)] = groups.as_slice()
                && let Ok(size) = size.parse()
            {
                sizes.insert(href.replace("&amp;", "&"), size);
            }
        }
    }
    Ok(sizes)
}

/// What a link leads to, if that is one step down: not the parent, not a column's order, not another site.
fn child(directory: &Url, href: &str, size: Option<u64>) -> Option<Child> {
    let (href, _) = href.split_once('#').unwrap_or((href, ""));
    if href.is_empty() || href.contains('?') {
        return None;
    }
    let url = directory.join(href).ok()?;
    let parents = &directory.path()[..directory.path().len() - 1];
    let below = url.path().strip_prefix(parents).unwrap_or_default();
    let (name, is_folder) = match below {
        [name] if !name.is_empty() => (name.clone(), false),
        [name, end] if !name.is_empty() && end.is_empty() => (name.clone(), true),
        _ => return None,
    };
    url.has_same_origin(directory).then(|| Child {
        url,
        name,
        is_folder,
        size: size.filter(|_| !is_folder),
    })
}
