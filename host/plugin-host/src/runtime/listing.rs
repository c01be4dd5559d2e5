//! The results of resolvers. The runtime has validated and bounded these records; names and folders are safe path
//! components. They serialise as fixtures expect them.

use engine::LeftOut;
use serde::{Serialize, Serializer};
use svc_plugin_fixture::record::{self, as_object, is_unset};
use transfer::{Checksum, Segment, SegmentKey};
use url::Url;

/// The files of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    pub title: Option<String>,
    pub description: Option<String>,
    pub cover: Option<Url>,
    /// Its files, in the site's order.
    pub entries: Vec<Entry>,
    /// The token of the next page, if there is one.
    pub next_page: Option<String>,
    /// The prompt for a password, if one is needed.
    pub password_prompt: Option<String>,
    /// What it leaves out.
    pub left_out: Vec<LeftOut>,
}

/// One file of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The plugin's id for it.
    pub id: String,
    /// Its name: one safe component of a path.
    pub name: String,
    #[serde(flatten)]
    pub facts: Facts,
    /// The folder to save it in: safe components, outermost first.
    #[serde(serialize_with = "as_path")]
    pub folder: Vec<String>,
    pub thumbnail: Option<Url>,
    /// Whether it is selected by default.
    pub selected: Option<bool>,
    pub variants: Vec<Variant>,
}

impl Entry {
    /// Whether it is downloaded unless the user says otherwise.
    pub fn is_selected(&self) -> bool {
        self.facts.kind != FileKind::Folder && self.selected != Some(false)
    }

    /// The variant of the highest rank, the first of equals.
    pub fn default_variant(&self) -> Option<&Variant> {
        self.variants.iter().rev().max_by_key(|variant| variant.rank)
    }

    /// The facts of that variant, or its own without variants.
    pub fn default_facts(&self) -> &Facts {
        self.default_variant().map_or(&self.facts, |variant| &variant.facts)
    }

    pub(crate) fn default_facts_mut(&mut self) -> &mut Facts {
        let variants = self.variants.iter_mut().rev();
        let best = variants.max_by_key(|variant| variant.rank);
        best.map_or(&mut self.facts, |variant| &mut variant.facts)
    }
}

/// A quality or format of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Variant {
    /// The plugin's id for it.
    pub id: String,
    pub label: String,
    /// Higher is better.
    pub rank: i32,
    #[serde(flatten)]
    pub facts: Facts,
}

/// What is known about an entry or a variant of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    pub kind: FileKind,
    /// Its length in bytes.
    pub size: Option<u64>,
    /// Whether its server told the length to the host, and not the plugin: a hint, which the file may outgrow.
    #[serde(skip)]
    pub is_size_of_server: bool,
    /// When it was changed, in milliseconds of the Unix epoch.
    pub modified_ms: Option<u64>,
    /// Algorithm and lower-case hexadecimal digest.
    #[serde(serialize_with = "as_object")]
    pub checksums: Vec<(String, String)>,
    pub media_type: Option<String>,
    /// How long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Its link, if the listing includes it.
    pub link: Option<Link>,
}

impl Facts {
    /// The strongest checksum that the host can compute.
    pub fn strongest_checksum(&self) -> Option<Checksum> {
        let given = self.checksums.iter();
        let known = given.filter_map(|(algorithm, hex)| format!("{algorithm}={hex}").parse::<Checksum>().ok());
        known.max_by_key(|checksum| checksum.algorithm().digest_bytes())
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    #[default]
    File,
    /// A folder that can be resolved by itself.
    Folder,
    /// A video, perhaps without audio.
    VideoStream,
    AudioStream,
    Subtitle,
    Image,
}

/// The URL of a file, and how to request it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    pub url: Url,
    /// Other URLs of the same bytes.
    pub mirrors: Vec<Url>,
    /// Extra request headers.
    #[serde(serialize_with = "as_object")]
    pub headers: Vec<(String, String)>,
    /// Extra request headers whose values are templates with placeholders for secrets. The plugin and its listing never
    /// contain the secrets.
    #[serde(serialize_with = "as_object")]
    pub secret_headers: Vec<(String, String)>,
    /// The slot of the account whose secrets and cookies are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether the server supports range requests, if that is known.
    #[serde(rename = "ranges")]
    pub supports_ranges: Option<bool>,
    /// Whether the URL works only once, so that no probe may be sent before the download.
    #[serde(rename = "singleUse", skip_serializing_if = "is_unset")]
    pub is_single_use: bool,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    pub max_connections: Option<u32>,
    /// The separate audio track of a video.
    pub audio: Option<Box<Link>>,
    /// `hls`, `dash` or `torrent`, if the URL leads to a description of the file instead of the file.
    pub manifest: Option<String>,
    /// The segments that the file is joined from, in order; empty if the URL has the whole file.
    #[serde(serialize_with = "as_segments")]
    pub segments: Vec<Segment>,
}

impl Link {
    /// A link with nothing but a URL.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            mirrors: Vec::new(),
            headers: Vec::new(),
            secret_headers: Vec::new(),
            account: None,
            supports_ranges: None,
            is_single_use: false,
            expires_ms: None,
            max_connections: None,
            audio: None,
            manifest: None,
            segments: Vec::new(),
        }
    }
}

fn as_path<S: Serializer>(folder: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&folder.join("/"))
}

fn as_segments<S: Serializer>(segments: &[Segment], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(segments.iter().map(|segment| {
        let cipher = segment.cipher.as_ref().map(|cipher| {
            let key = match &*cipher.key {
                SegmentKey::At(url) => record::Key::At(url.expose()),
                SegmentKey::Bytes(bytes) => record::Key::Bytes(bytes),
            };
            (key, &cipher.iv[..])
        });
        let part = segment.part.map(|part| [part.start, part.end]);
        record::segment(segment.url.expose(), part, cipher)
    }))
}
