//! The results of resolvers. The runtime has validated and bounded these records; names and folders are safe path
//! components.

use transfer::{Checksum, Segment};
use url::Url;

/// The files of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// What it is called as a whole.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// A picture of it.
    pub cover: Option<Url>,
    /// Its files, in the site's order.
    pub entries: Vec<Entry>,
    /// More entries can be asked for with this.
    pub next_page: Option<String>,
    /// A password is needed; this is how to ask for it.
    pub password_prompt: Option<String>,
}

/// One file of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the plugin knows it by.
    pub id: String,
    /// Its name: one safe component of a path.
    pub name: String,
    /// What is known about it.
    pub facts: Facts,
    /// The folder it belongs into: safe components, outermost first.
    pub folder: Vec<String>,
    /// A small picture of it.
    pub thumbnail: Option<Url>,
    /// Whether it is wanted unless the user says otherwise.
    pub is_selected: Option<bool>,
    /// Its qualities or formats.
    pub variants: Vec<Variant>,
}

/// A quality or format of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// What the plugin knows it by.
    pub id: String,
    /// What the user sees.
    pub label: String,
    /// Higher is better.
    pub rank: i32,
    /// What is known about it.
    pub facts: Facts,
}

/// What is known about an entry or a variant of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What sort of file it is.
    pub kind: FileKind,
    /// Its length in bytes.
    pub size: Option<u64>,
    /// When it was changed, in milliseconds of the Unix epoch.
    pub modified_ms: Option<u64>,
    /// Algorithm and lower-case hexadecimal digest.
    pub checksums: Vec<(String, String)>,
    /// Its media type.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Any file.
    #[default]
    File,
    /// A folder that can be resolved by itself.
    Folder,
    /// Moving pictures, perhaps without sound.
    VideoStream,
    /// Sound.
    AudioStream,
    /// Subtitles.
    Subtitle,
    /// A picture.
    Image,
}

/// Where a file is, and how to ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The file.
    pub url: Url,
    /// Other places of the same file.
    pub mirrors: Vec<Url>,
    /// Fields to send along.
    pub headers: Vec<(String, String)>,
    /// Fields to send along whose values are templates with names of secrets in them. The plugin and its listing never
    /// hold the values.
    pub secret_headers: Vec<(String, String)>,
    /// Whether parts of it can be asked for, if that is known.
    pub supports_ranges: Option<bool>,
    /// Whether it works only once, so that nobody may try it out.
    pub is_single_use: bool,
    /// When it ends, in milliseconds of the Unix epoch.
    pub expires_ms: Option<u64>,
    /// How many connections the site allows.
    pub max_connections: Option<u32>,
    /// The sound that belongs to these pictures.
    pub audio: Option<Box<Link>>,
    /// `hls`, `dash` or `torrent`, if the URL leads to a description of the file instead of the file.
    pub manifest: Option<String>,
    /// What the file is joined from, in order; empty if it is what the URL leads to.
    pub segments: Vec<Segment>,
}
