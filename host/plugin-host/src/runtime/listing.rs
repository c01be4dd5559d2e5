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
    /// More entries can be asked for with this.
    pub next_page: Option<String>,
    /// A password is needed; this is how to ask for it.
    pub password_prompt: Option<String>,
    /// What it leaves out.
    pub left_out: Vec<LeftOut>,
}

/// One file of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What the plugin knows it by.
    pub id: String,
    /// Its name: one safe component of a path.
    pub name: String,
    #[serde(flatten)]
    pub facts: Facts,
    /// The folder it belongs into: safe components, outermost first.
    #[serde(serialize_with = "as_path")]
    pub folder: Vec<String>,
    pub thumbnail: Option<Url>,
    /// Whether it is wanted unless the user says otherwise.
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
}

/// A quality or format of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Variant {
    /// What the plugin knows it by.
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
    /// When it was changed, in milliseconds of the Unix epoch.
    pub modified_ms: Option<u64>,
    /// Algorithm and lower-case hexadecimal digest.
    #[serde(serialize_with = "as_object")]
    pub checksums: Vec<(String, String)>,
    pub media_type: Option<String>,
    /// How long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Where it is, if the plugin knows that already.
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

/// What sort of file an entry is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    #[default]
    File,
    /// A folder that can be resolved by itself.
    Folder,
    /// Moving pictures, perhaps without sound.
    VideoStream,
    AudioStream,
    Subtitle,
    Image,
}

/// Where a file is, and how to ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    pub url: Url,
    /// Other places of the same file.
    pub mirrors: Vec<Url>,
    /// Fields to send along.
    #[serde(serialize_with = "as_object")]
    pub headers: Vec<(String, String)>,
    /// Fields to send along whose values are templates with names of secrets in them. The plugin and its listing never
    /// hold the values.
    #[serde(serialize_with = "as_object")]
    pub secret_headers: Vec<(String, String)>,
    /// Whether parts of it can be asked for, if that is known.
    #[serde(rename = "ranges")]
    pub supports_ranges: Option<bool>,
    /// Whether it works only once, so that nobody may try it out.
    #[serde(rename = "singleUse", skip_serializing_if = "is_unset")]
    pub is_single_use: bool,
    /// When it ends, in milliseconds of the Unix epoch.
    pub expires_ms: Option<u64>,
    pub max_connections: Option<u32>,
    /// The sound that belongs to these pictures.
    pub audio: Option<Box<Link>>,
    /// `hls`, `dash` or `torrent`, if the URL leads to a description of the file instead of the file.
    pub manifest: Option<String>,
    /// What the file is joined from, in order; empty if it is what the URL leads to.
    #[serde(serialize_with = "as_segments")]
    pub segments: Vec<Segment>,
}

impl Link {
    /// A link of which nothing else is known.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            mirrors: Vec::new(),
            headers: Vec::new(),
            secret_headers: Vec::new(),
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
