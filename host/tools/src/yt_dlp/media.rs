//! The records that are made of what `-J` prints.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, de::IgnoredAny};
use transfer::{SafeUrl, Secret};

use super::loose::{Object, Objects, Scalar};

/// The most formats of a page. The richest sites have some hundred, for each language.
const MAX_FORMATS: usize = 1000;

/// The most entries of a list.
pub(super) const MAX_ENTRIES: usize = 5000;

/// The most header fields of a format.
const MAX_FIELDS: usize = 32;

/// What a page has: formats of one medium, or a list of other pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The site's name of it.
    pub id: String,
    /// Its title; empty if it has none.
    pub title: String,
    /// The page.
    pub webpage_url: Option<SafeUrl>,
    /// How long it plays.
    pub duration: Option<Duration>,
    /// Whether it is still being broadcast.
    pub is_live: bool,
    /// In the order of `yt-dlp`, the best last.
    pub formats: Vec<Format>,
    /// The formats that `yt-dlp` would download: one, or video and audio.
    pub chosen: Vec<String>,
    /// Of a list.
    pub entries: Vec<ListEntry>,
}

/// One form of a medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Format {
    /// Unique among the formats of a page.
    pub id: String,
    /// Where it is.
    pub url: SafeUrl,
    /// How it is sent: `https`, `http`, `m3u8_native`, `http_dash_segments`, … A manifest, if it is not HTTP.
    pub protocol: String,
    /// The extension of its files.
    pub extension: String,
    /// A description for people.
    pub note: String,
    /// Lines of its picture.
    pub height: Option<u32>,
    /// Columns of its picture.
    pub width: Option<u32>,
    /// Pictures per second.
    pub fps: Option<f64>,
    /// Of its picture.
    pub video_codec: Codec,
    /// Of its sound.
    pub audio_codec: Codec,
    /// Kilobits per second.
    pub bitrate: Option<f64>,
    /// Its size, if the site says so.
    pub size_bytes: Option<u64>,
    /// Its size by bit rate and duration.
    pub approximate_bytes: Option<u64>,
    /// Of its sound.
    pub language: Option<String>,
    /// Whether it cannot be played without keys that nobody gets.
    pub has_drm: bool,
    /// Header fields of the requests for it, by their names in lower case.
    pub headers: BTreeMap<String, Secret>,
    /// Cookies of the requests for it, with their attributes, as `yt-dlp` writes them.
    pub cookies: Secret,
}

/// The codec of a format's picture or sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codec {
    /// The site does not say whether there is one.
    Unknown,
    /// The format has no such stream.
    Absent,
    /// As the site names it.
    Named(String),
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListEntry {
    /// The site's name of it.
    pub id: String,
    /// Its title; empty if the list gives none.
    pub title: String,
    /// Its page.
    pub url: SafeUrl,
    /// How long it plays.
    pub duration: Option<Duration>,
}

/// What is read of a page, a format and an entry, which have most fields in common: a page with a single format has the
/// fields of that as its own.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Record<F, E> {
    id: Scalar,
    title: Scalar,
    webpage_url: Scalar,
    url: Scalar,
    duration: Scalar,
    is_live: Scalar,
    format_id: Scalar,
    format_note: Scalar,
    ext: Scalar,
    protocol: Scalar,
    height: Scalar,
    width: Scalar,
    fps: Scalar,
    vcodec: Scalar,
    acodec: Scalar,
    tbr: Scalar,
    filesize: Scalar,
    filesize_approx: Scalar,
    language: Scalar,
    has_drm: Scalar,
    http_headers: Object<BTreeMap<String, Scalar>>,
    cookies: Scalar,
    formats: F,
    entries: E,
}

/// Its lists are not read, so that nothing is deeper than two levels.
type Leaf = Record<IgnoredAny, IgnoredAny>;

type Page = Record<Objects<Leaf, MAX_FORMATS>, Objects<Leaf, MAX_ENTRIES>>;

impl Media {
    /// Reads the output of `-J`; none if the page has nothing.
    pub(crate) fn read(json: &[u8]) -> serde_json::Result<Option<Self>> {
        let Object(page) = serde_json::from_slice::<Object<Page>>(json)?;
        Ok(page.map(Self::from))
    }
}

impl From<Page> for Media {
    fn from(mut page: Page) -> Self {
        let formats = std::mem::take(&mut page.formats).0;
        let entries = std::mem::take(&mut page.entries).0;
        let chosen = page.format_id.clone().text().unwrap_or_default();
        let mut media = Self {
            id: page.id.clone().text().unwrap_or_default(),
            title: page.title.clone().text().unwrap_or_default(),
            webpage_url: web(page.webpage_url.clone()),
            duration: duration(&page.duration),
            is_live: page.is_live.is_true(),
            formats: formats.into_iter().filter_map(Format::read).collect(),
            chosen: chosen
                .split('+')
                .filter(|id| !id.is_empty())
                .map(str::to_owned)
                .collect(),
            entries: entries.into_iter().filter_map(ListEntry::read).collect(),
        };
        if media.formats.is_empty() && media.entries.is_empty() {
            media.formats.extend(Format::read(page));
        }
        media
    }
}

impl Format {
    /// None if it is not on the web.
    fn read<F, E>(record: Record<F, E>) -> Option<Self> {
        let headers = record.http_headers.0.unwrap_or_default();
        let headers = headers.into_iter().filter_map(|(name, value)| {
            let value = value.text().filter(|value| !value.contains(['\r', '\n', '\0']))?;
            is_token(&name).then(|| (name.to_ascii_lowercase(), Secret::new(value)))
        });
        let codec = |name: Scalar| match name.text() {
            None => Codec::Unknown,
            Some(name) if name == "none" => Codec::Absent,
            Some(name) => Codec::Named(name),
        };
        let pixels = |number: &Scalar| number.whole().and_then(|number| u32::try_from(number).ok());
        let text = |text: Scalar| text.text().unwrap_or_default();
        Some(Self {
            url: web(record.url)?,
            id: text(record.format_id),
            protocol: text(record.protocol),
            extension: text(record.ext),
            note: text(record.format_note),
            height: pixels(&record.height),
            width: pixels(&record.width),
            fps: record.fps.real(),
            video_codec: codec(record.vcodec),
            audio_codec: codec(record.acodec),
            bitrate: record.tbr.real(),
            size_bytes: record.filesize.whole(),
            approximate_bytes: record.filesize_approx.whole(),
            language: record.language.text(),
            has_drm: record.has_drm.is_true(),
            headers: headers.take(MAX_FIELDS).collect(),
            cookies: Secret::new(text(record.cookies)),
        })
    }
}

impl ListEntry {
    fn read(record: Leaf) -> Option<Self> {
        Some(Self {
            url: web(record.url).or_else(|| web(record.webpage_url))?,
            id: record.id.text().unwrap_or_default(),
            title: record.title.text().unwrap_or_default(),
            duration: duration(&record.duration),
        })
    }
}

fn duration(seconds: &Scalar) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.real()?).ok()
}

fn web(url: Scalar) -> Option<SafeUrl> {
    let url = SafeUrl::parse(&url.text()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

/// Whether `name` can be the name of a header field (RFC 9110, section 5.1).
fn is_token(name: &str) -> bool {
    let is_sign = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(json: &serde_json::Value) -> Media {
        Media::read(json.to_string().as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn formats_are_read_with_what_their_requests_need() {
        let media = read(&json!({
            "id": "x1", "title": "A film", "webpage_url": "https://v.example/x1", "duration": 61.5, "is_live": false,
            "format_id": "137+140", "automatic_captions": {"de": [{"url": "https://v.example/c"}]},
            "formats": [
                {"format_id": "sb0", "url": "mhtml:x", "protocol": "mhtml"},
                {"format_id": 140, "url": "https://v.example/a?sig=s", "ext": "m4a", "vcodec": "none", "acodec": "mp4a",
                 "filesize": 1000, "tbr": 128, "protocol": "https"},
                {"format_id": "137", "url": "https://v.example/v", "ext": "mp4", "vcodec": "avc1", "acodec": "none",
                 "height": 1080.0, "width": 1920, "fps": 29.97, "filesize_approx": 5000.7, "has_drm": true,
                 "http_headers": {"Referer": "https://v.example/", "X\nY": "1", "Z": "a\r\nB: c", "N": 5, "O": null},
                 "cookies": "sid=1; Domain=v.example"},
            ],
        }));
        assert_eq!((media.id.as_str(), media.title.as_str()), ("x1", "A film"));
        assert_eq!(media.duration, Some(Duration::from_millis(61_500)));
        assert_eq!(media.chosen, ["137", "140"]);
        let [audio, video] = &media.formats[..] else {
            panic!("{media:?}")
        };
        assert_eq!((audio.id.as_str(), audio.size_bytes), ("140", Some(1000)));
        let codecs = (&audio.video_codec, &audio.audio_codec);
        assert_eq!(codecs, (&Codec::Absent, &Codec::Named("mp4a".to_owned())));
        assert_eq!(
            (video.height, video.approximate_bytes, video.has_drm),
            (Some(1080), Some(5000), true)
        );
        let names: Vec<_> = video.headers.keys().map(String::as_str).collect();
        assert_eq!(names, ["n", "referer"]);
        assert_eq!(video.cookies.expose(), "sid=1; Domain=v.example");
        // Neither signatures nor cookies are printed.
        let shown = format!("{media:?}");
        assert!(!shown.contains("sig=s") && !shown.contains("sid=1"), "{shown}");
    }

    #[test]
    fn a_page_that_is_a_file_has_one_format() {
        let media =
            read(&json!({"id": "f", "url": "http://127.0.0.1/f.mp4", "format_id": "0", "ext": "mp4", "direct": true}));
        assert_eq!(media.formats.len(), 1);
        assert_eq!(media.formats[0].url.expose(), "http://127.0.0.1/f.mp4");
        assert_eq!(media.formats[0].video_codec, Codec::Unknown);
    }

    #[test]
    fn a_list_has_the_pages_of_its_entries() {
        let media = read(&json!({
            "_type": "playlist", "title": "All", "entries": [
                {"id": "1", "url": "https://v.example/1", "title": null, "duration": "long"},
                null,
                {"id": "2", "url": "javascript:x", "webpage_url": "https://v.example/2", "title": "Two"},
                {"id": "3", "url": "file:///etc/passwd"},
                {"id": "4", "entries": [{"url": "https://v.example/deep"}]},
            ],
        }));
        let pages: Vec<_> = media
            .entries
            .iter()
            .map(|entry| (entry.url.expose(), entry.title.as_str()))
            .collect();
        assert_eq!(pages, [("https://v.example/1", ""), ("https://v.example/2", "Two")]);
        assert!(media.formats.is_empty());
    }

    #[test]
    fn lists_end() {
        let format = json!({"format_id": "1", "url": "https://v.example/v"});
        let page = json!({"formats": vec![format; MAX_FORMATS + 50]});
        assert_eq!(read(&page).formats.len(), MAX_FORMATS);
        let long = "x".repeat(64 * 1024);
        assert_eq!(read(&json!({"title": long})).title, "");
    }

    #[test]
    fn what_is_no_page_is_nothing_or_an_error() {
        assert_eq!(Media::read(b"null").unwrap(), None);
        assert_eq!(Media::read(b"[1]").unwrap(), None);
        for broken in ["", "{", "{\"id\": }", "ERROR: no", &"[".repeat(4000)] {
            assert!(Media::read(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(|flag| json!(flag)),
            any::<i64>().prop_map(|number| json!(number)),
            any::<f64>().prop_map(|number| json!(number)),
            "[a-z:/.]{0,12}".prop_map(|text| json!(text)),
        ];
        let names = prop::sample::select(
            &[
                "id",
                "title",
                "url",
                "formats",
                "entries",
                "http_headers",
                "duration",
                "height",
                "has_drm",
                "vcodec",
            ][..],
        );
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(|list| json!(list)),
                prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn fields_of_any_kind_are_read(json in any_json()) {
            let media = Media::read(json.to_string().as_bytes());
            prop_assert_eq!(media.unwrap().is_some(), json.is_object());
        }
    }
}
