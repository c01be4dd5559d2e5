//! Programs that the user has installed: [`discover`] has `yt-dlp` look at a web page. Users are asked about this permission
//! (`tools:discover`), and switch the program on in the settings of their service.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Error, host::tools as host};

pub use host::ToolError;

/// What `yt-dlp` finds at a web page. The call waits for it, some seconds; a call can do that three times.
///
/// ```
/// use svc_plugin::{test, tools};
///
/// let host = test::Host::new().media(
///     "https://example.org/watch",
///     r#"{"id": "1", "title": "A film", "formats": [{"id": "hd", "url": "https://cdn.example.org/1.mp4", "protocol": "https"}]}"#,
/// );
/// let media = host.run(|| tools::discover("https://example.org/watch")).unwrap();
/// assert_eq!(media.formats[0].id, "hd");
/// // A test that gives nothing for a page is like a page where nothing is found.
/// assert!(matches!(host.run(|| tools::discover("https://example.org/")), Err(tools::ToolError::Failed(_))));
/// ```
pub fn discover(url: impl AsRef<str>) -> Result<Media, ToolError> {
    let json = host::discover(url.as_ref())?;
    serde_json::from_str(&json).map_err(|error| ToolError::Failed(format!("it found what cannot be read: {error}")))
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        match error {
            ToolError::NotAllowed(reason) => Self::Unsupported(reason),
            ToolError::Denied(reason) => Self::Denied(reason),
            ToolError::Failed(reason) => Self::NotFound(reason),
            ToolError::TooMuch(reason) => Self::Internal(reason),
        }
    }
}

/// What a page has: the formats of one medium, or a list of other pages.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Media {
    /// The site's name of it.
    pub id: String,
    /// Its title; empty if it has none.
    pub title: String,
    /// The page.
    pub url: Option<String>,
    /// How long it plays.
    pub duration_ms: Option<u64>,
    /// Whether it is still being broadcast.
    #[serde(rename = "live")]
    pub is_live: bool,
    /// In the order of `yt-dlp`, the best last.
    pub formats: Vec<Format>,
    /// The ids of the formats that `yt-dlp` would download: one, or one with a picture and one with sound.
    pub chosen: Vec<String>,
    /// The pages, if it is a list.
    pub entries: Vec<Page>,
}

/// One form of a medium.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Format {
    /// Unique among those of the page.
    pub id: String,
    /// Where it is.
    pub url: String,
    /// How it is sent: `https` and `http` are files, others are playlists and the like.
    pub protocol: String,
    /// The extension of its files.
    pub extension: String,
    /// A description for people.
    pub note: String,
    /// Columns of its picture.
    pub width: Option<u32>,
    /// Lines of its picture.
    pub height: Option<u32>,
    /// Pictures a second.
    pub fps: Option<f64>,
    /// The codec of its picture: `none` if it has no picture, and nothing if that is not known.
    pub video: Option<String>,
    /// The codec of its sound.
    pub audio: Option<String>,
    /// Kilobits a second.
    pub kilobits: Option<f64>,
    /// Its size.
    pub size: Option<u64>,
    /// Its size by bit rate and duration.
    pub about_size: Option<u64>,
    /// Of its sound.
    pub language: Option<String>,
    /// Whether it cannot be played without keys that nobody gets.
    #[serde(rename = "drm")]
    pub has_drm: bool,
    /// What requests for it have to send.
    pub headers: BTreeMap<String, String>,
    /// The same for the field `Cookie`.
    pub cookies: String,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Page {
    /// The site's name of it.
    pub id: String,
    /// Its title; empty if the list has none.
    pub title: String,
    /// The page.
    pub url: String,
    /// How long it plays.
    pub duration_ms: Option<u64>,
}
