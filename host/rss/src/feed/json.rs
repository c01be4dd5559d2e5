//! The outline of a JSON Feed. Written as Atom, because `feed-rs` refuses a whole JSON Feed for one wrong member.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use transfer::SafeUrl;

use super::{
    FeedError, MAX_ENTRIES, MAX_TEXT_BYTES, Outline, Piece,
    entry::{Extras, one_line},
    links::Cost,
};
use crate::title::truncate;

/// Attachments that are read per entry.
const MAX_ATTACHMENTS: usize = 16;

/// The longest entry that is read, in bytes. Parsed, JSON takes up to a hundred times as much memory.
const MAX_ENTRY_BYTES: usize = 256 * 1024;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    items: Option<Items<'a>>,
}

/// The entries as text: the first ones, and how many more there are.
#[derive(Default)]
struct Items<'a> {
    first: Vec<&'a RawValue>,
    dropped: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<'de>, A::Error> {
                let mut items = Items::default();
                while items.first.len() < MAX_ENTRIES
                    && let Some(item) = list.next_element()?
                {
                    items.first.push(item);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    items.dropped += 1;
                }
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}

pub(super) fn outline(text: &str, url: &SafeUrl) -> Result<Outline, FeedError> {
    let feed: Document<'_> =
        serde_json::from_str(text).map_err(|error| FeedError::Broken(one_line(&error.to_string())))?;
    let (version, title) = (small(feed.version), small(feed.title));
    let is_feed = version
        .as_ref()
        .and_then(Value::as_str)
        .is_some_and(|version| version.contains("jsonfeed.org/version/1"));
    let items = feed.items.filter(|_| is_feed).ok_or(FeedError::NotAFeed)?;
    let (mut entries, mut cost) = (Vec::with_capacity(items.first.len()), Cost::default());
    for item in items
        .first
        .iter()
        .filter_map(|item| small(Some(item)))
        .filter(Value::is_object)
    {
        let (pieces, extras) = entry(&item, url, &mut cost);
        for piece in &pieces {
            cost.keep(piece);
        }
        cost.check()?;
        entries.push((pieces, extras));
    }
    Ok(Outline {
        is_atom: true,
        channel: text_piece("title", title.as_ref()).into_iter().collect(),
        entries,
        dropped: items.dropped,
        ..Outline::default()
    })
}

/// A value that is short enough to be read.
fn small(text: Option<&RawValue>) -> Option<Value> {
    let text = text.filter(|text| text.get().len() <= MAX_ENTRY_BYTES)?;
    serde_json::from_str(text.get()).ok()
}

fn entry(item: &Value, url: &SafeUrl, cost: &mut Cost) -> (Vec<Piece>, Extras) {
    // Old generators write the identifier as a number.
    let id = item
        .get("id")
        .map(|id| id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned));
    let mut pieces: Vec<_> = id.map(|id| piece("id", &id)).into_iter().collect();
    pieces.extend(text_piece("title", item.get("title")));
    pieces.extend(text_piece("updated", item.get("date_modified")));
    pieces.extend(text_piece("published", item.get("date_published")));
    let page = ["url", "external_url"]
        .into_iter()
        .find_map(|name| item.get(name)?.as_str());
    pieces.extend(page.and_then(|page| linked(cost, url, page, "alternate", item)));
    let attachments = item.get("attachments").and_then(Value::as_array);
    let attachments = attachments.map_or(&[][..], Vec::as_slice).iter().take(MAX_ATTACHMENTS);
    pieces.extend(attachments.filter_map(|file| linked(cost, url, file.get("url")?.as_str()?, "enclosure", file)));
    (pieces, Extras::default())
}

fn linked(cost: &mut Cost, base: &SafeUrl, href: &str, rel: &str, of: &Value) -> Option<Piece> {
    let url = cost.resolve(base, href)?;
    let mut attributes = vec![("href", url.expose().to_owned()), ("rel", rel.to_owned())];
    let media_type = of.get("mime_type").and_then(Value::as_str);
    attributes.extend(media_type.map(|text| ("type", truncate(text, MAX_TEXT_BYTES).to_owned())));
    attributes.extend(
        of.get("size_in_bytes")
            .and_then(Value::as_u64)
            .map(|bytes| ("length", bytes.to_string())),
    );
    Some(Piece {
        name: "link",
        attributes,
        text: String::new(),
    })
}

fn text_piece(name: &'static str, value: Option<&Value>) -> Option<Piece> {
    value.and_then(Value::as_str).map(|text| piece(name, text))
}

fn piece(name: &'static str, text: &str) -> Piece {
    // What JSON may hold and XML may not.
    let legal: String = truncate(text, MAX_TEXT_BYTES)
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    Piece {
        name,
        attributes: Vec::new(),
        text: legal,
    }
}
