//! What was found, in the JSON form that the contract of plugins describes (`tools.discover` in `plugin.wit`).

use std::collections::BTreeMap;

use serde::Serialize;
use transfer::SafeUrl;

use super::media::{Codec, Format, ListEntry, Media};

/// The most bytes of it: a page with a thousand formats. Guests have some tens of MiB of memory.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A page with more than a plugin is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the page has is longer than {MAX_BYTES} bytes")]
pub struct TooLong;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MediaRecord<'m> {
    id: &'m str,
    title: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    live: bool,
    formats: Vec<FormatRecord<'m>>,
    chosen: &'m [String],
    entries: Vec<EntryRecord<'m>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormatRecord<'m> {
    id: &'m str,
    url: &'m str,
    protocol: &'m str,
    extension: &'m str,
    note: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    video: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kilobits: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'m str>,
    drm: bool,
    headers: BTreeMap<&'m str, &'m str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    cookies: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryRecord<'m> {
    id: &'m str,
    title: &'m str,
    url: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

impl Media {
    /// The JSON form, with the headers and cookies that requests for the formats have to send.
    pub fn to_json(&self) -> Result<String, TooLong> {
        let record = MediaRecord {
            id: &self.id,
            title: &self.title,
            url: self.webpage_url.as_ref().map(SafeUrl::expose),
            duration_ms: self.duration.map(millis),
            live: self.is_live,
            formats: self.formats.iter().map(FormatRecord::from).collect(),
            chosen: &self.chosen,
            entries: self.entries.iter().map(EntryRecord::from).collect(),
        };
        // Numbers that JSON does not have were refused when they were read.
        let text = serde_json::to_string(&record).map_err(|_| TooLong)?;
        (text.len() <= MAX_BYTES).then_some(text).ok_or(TooLong)
    }
}

impl<'m> From<&'m Format> for FormatRecord<'m> {
    fn from(format: &'m Format) -> Self {
        let headers = format.headers.iter();
        Self {
            id: &format.id,
            url: format.url.expose(),
            protocol: &format.protocol,
            extension: &format.extension,
            note: &format.note,
            width: format.width,
            height: format.height,
            fps: format.fps,
            video: codec(&format.video_codec),
            audio: codec(&format.audio_codec),
            kilobits: format.bitrate,
            size: format.size_bytes,
            about_size: format.approximate_bytes,
            language: format.language.as_deref(),
            drm: format.has_drm,
            headers: headers.map(|(name, value)| (name.as_str(), value.expose())).collect(),
            cookies: cookies(format.cookies.expose()),
        }
    }
}

impl<'m> From<&'m ListEntry> for EntryRecord<'m> {
    fn from(entry: &'m ListEntry) -> Self {
        Self {
            id: &entry.id,
            title: &entry.title,
            url: entry.url.expose(),
            duration_ms: entry.duration.map(millis),
        }
    }
}

fn codec(codec: &Codec) -> Option<&str> {
    match codec {
        Codec::Unknown => None,
        Codec::Absent => Some("none"),
        Codec::Named(name) => Some(name),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The pairs of cookies without their attributes, as a request has them.
fn cookies(with_attributes: &str) -> String {
    const ATTRIBUTES: [&str; 4] = ["domain", "path", "expires", "version"];
    let is_attribute = |name: &str| ATTRIBUTES.iter().any(|known| name.eq_ignore_ascii_case(known));
    let parts = with_attributes.split(';').map(str::trim);
    let pairs: Vec<_> = parts
        .filter(|part| part.split_once('=').is_some_and(|(name, _)| !is_attribute(name)))
        .collect();
    pairs.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn media(page: &Value) -> Media {
        Media::read(page.to_string().as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn plugins_get_what_the_contract_says() {
        let page = media(&json!({
            "id": "x1", "title": "A film", "webpage_url": "https://v.example/x1?k=1", "duration": 61.5,
            "format_id": "137+140",
            "formats": [
                {"format_id": "140", "url": "https://v.example/a?sig=s", "ext": "m4a", "vcodec": "none", "acodec": "mp4a",
                 "filesize": 1000, "tbr": 128, "protocol": "https", "http_headers": {"Referer": "https://v.example/"},
                 "cookies": "sid=1; Domain=.v.example; Path=/; Secure; Expires=1900000000; b=\"2 3\"; Domain=v.example"},
                {"format_id": "137", "url": "https://v.example/v", "height": 1080},
            ],
        }));
        let handed: Value = serde_json::from_str(&page.to_json().unwrap()).unwrap();
        let expected = json!({
            "id": "x1", "title": "A film", "url": "https://v.example/x1?k=1", "durationMs": 61_500, "live": false,
            "formats": [
                {"id": "140", "url": "https://v.example/a?sig=s", "protocol": "https", "extension": "m4a", "note": "",
                 "video": "none", "audio": "mp4a", "kilobits": 128.0, "size": 1000, "drm": false,
                 "headers": {"referer": "https://v.example/"}, "cookies": "sid=1; b=\"2 3\""},
                {"id": "137", "url": "https://v.example/v", "protocol": "", "extension": "", "note": "", "height": 1080,
                 "drm": false, "headers": {}},
            ],
            "chosen": ["137", "140"], "entries": [],
        });
        assert_eq!(handed, expected);
    }

    #[test]
    fn a_list_is_handed_as_pages_and_one_that_is_too_long_is_not() {
        let entry =
            |length| json!({"id": "1", "url": format!("https://v.example/{}", "x".repeat(length)), "title": "One"});
        let page = media(&json!({"entries": [entry(1)]}));
        let handed: Value = serde_json::from_str(&page.to_json().unwrap()).unwrap();
        assert_eq!(
            handed["entries"],
            json!([{"id": "1", "url": "https://v.example/x", "title": "One"}])
        );
        let page = media(&json!({"entries": vec![entry(2000); 3000]}));
        assert_eq!(page.to_json(), Err(TooLong));
    }
}
