//! What the archive says about an item. It writes numbers as texts, and a field that occurs twice as a list.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use svc_plugin::{Error, Result, log};

/// Digests, strongest first, with the number of their digits, by their names there and here.
const DIGESTS: [(&str, &str, usize); 3] = [("sha1", "sha1", 40), ("md5", "md5", 32), ("crc32", "crc32", 8)];

/// An item that can be downloaded.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) title: Option<String>,
    /// In HTML.
    pub(crate) description: Option<String>,
    pub(crate) files: Vec<File>,
}

/// A file of an item.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path in the item.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) size: Option<u64>,
    pub(crate) modified_ms: Option<u64>,
    pub(crate) duration: Option<Duration>,
    pub(crate) digests: Vec<(&'static str, String)>,
}

/// Where a file comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Somebody uploaded it.
    Original,
    /// The archive made it: another format, a list, a picture.
    Archive,
}

/// An item as it is answered. One that does not exist is an object without anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemRecord {
    is_dark: bool,
    metadata: Map<String, Value>,
    files: Vec<Map<String, Value>>,
}

impl Item {
    /// Reads the answer.
    pub(crate) fn read(json: &str) -> Result<Self> {
        let record: ItemRecord = serde_json::from_str(json)?;
        if record.is_dark {
            return Err(Error::Gone("the archive has taken the item down".to_owned()));
        }
        let field = |name| text(&record.metadata, name);
        if is_true(&record.metadata, "access-restricted-item") {
            return Err(Error::Forbidden("the item is lent out, not given away".to_owned()));
        }
        if field("mediatype").as_deref() == Some("collection") {
            return Err(Error::Unsupported(
                "a collection has no files; its items have URLs of their own".to_owned(),
            ));
        }
        if record.files.is_empty() {
            return Err(Error::NotFound(
                "the archive has no such item, or no file in it".to_owned(),
            ));
        }
        let (open, closed): (Vec<_>, Vec<_>) = record.files.iter().partition(|file| !is_true(file, "private"));
        if open.is_empty() {
            return Err(Error::Forbidden("no file of the item is public".to_owned()));
        }
        if !closed.is_empty() {
            log::info(format!("{} files are not public", closed.len()));
        }
        Ok(Self {
            title: field("title"),
            description: field("description"),
            files: open
                .into_iter()
                .map(File::read)
                .filter_map(Result::transpose)
                .collect::<Result<_>>()?,
        })
    }
}

impl File {
    /// Reads a file; one whose name leads elsewhere is left out.
    fn read(record: &Map<String, Value>) -> Result<Option<Self>> {
        let name = record.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Error::Parse("a file has no name".to_owned()))?;
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            log::warn(format!("{name:?} is no name of a file; it is left out"));
            return Ok(None);
        }
        let number = |field| text(record, field).map(|digits| digits.parse::<u64>()).transpose();
        let mut digests = Vec::new();
        for (there, here, digits) in DIGESTS {
            if let Some(hex) = text(record, there) {
                if hex.len() != digits || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(Error::Parse(format!("{hex:?} is no {there}")));
                }
                digests.push((here, hex));
            }
        }
        Ok(Some(Self {
            name: name.to_owned(),
            source: match text(record, "source").as_deref() {
                Some("original") => Source::Original,
                _ => Source::Archive,
            },
            size: number("size")?,
            modified_ms: number("mtime")?.map(|seconds| seconds.saturating_mul(1000)),
            duration: text(record, "length").and_then(|length| duration(&length)),
            digests,
        }))
    }
}

/// A field as text: as it is, as it would be written, or the first of several.
fn text(record: &Map<String, Value>, field: &str) -> Option<String> {
    let value = record.get(field)?;
    match value.as_array().map_or(Some(value), |values| values.first())? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_true(record: &Map<String, Value>, field: &str) -> bool {
    record.get(field) == Some(&Value::Bool(true)) || text(record, field).as_deref() == Some("true")
}

/// `244.09` (seconds), `4:04` or `1:02:03`.
fn duration(length: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    for part in length.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    Duration::try_from_secs_f64(seconds).ok()
}
