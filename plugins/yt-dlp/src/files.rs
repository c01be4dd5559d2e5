//! Which formats make a file: those that can be downloaded as they are, grouped by what they have in them and their kind, so
//! that the name of a file is right for each of its variants.

use svc_plugin::{
    FileKind, Link,
    tools::{Format, Media},
};

/// Variants of one entry, which is what the host takes.
const MAX_VARIANTS: usize = 50;

/// The longest id of a format that becomes a variant, in bytes.
const MAX_ID_BYTES: usize = 100;

/// Header fields that belong to a connection or a transfer, which are the host's.
const OWN_FIELDS: [&str; 8] = [
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "host",
    "range",
    "te",
    "transfer-encoding",
];

/// What is in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    /// Picture and sound, or nobody knows.
    Whole,
    Picture,
    Sound,
}

/// A file, and the formats that it can be had in.
#[derive(Debug)]
pub(crate) struct File<'m> {
    /// Stays the same as long as the page has formats of this sort.
    pub(crate) id: String,
    pub(crate) kind: FileKind,
    /// Whether it is what the user wants who does not choose.
    pub(crate) is_selected: bool,
    content: Content,
    extension: &'m str,
    /// At least one; the best last.
    formats: Vec<&'m Format>,
}

impl<'m> File<'m> {
    /// The best format.
    pub(crate) fn best(&self) -> &'m Format {
        self.formats.last().expect("a file has a format")
    }

    /// The format of this id.
    pub(crate) fn format(&self, id: &str) -> Option<&'m Format> {
        self.formats.iter().find(|format| format.id == id).copied()
    }

    /// All formats; the best last.
    pub(crate) fn formats(&self) -> &[&'m Format] {
        &self.formats
    }

    /// Whether it has everything in it and is of this kind.
    pub(crate) fn is_kind(&self, extension: &str) -> bool {
        self.content == Content::Whole && self.extension == extension
    }

    /// What the name of the file ends in.
    pub(crate) fn suffix(&self) -> String {
        let part = match self.content {
            Content::Whole => "",
            Content::Picture => ".video",
            Content::Sound => ".audio",
        };
        format!("{part}.{}", self.extension)
    }
}

/// The files of a page. Of each content, one is selected; picture and sound alone only if no file has both.
pub(crate) fn files(media: &Media) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    for format in media.formats.iter().filter(|format| is_file(format)) {
        let (content, extension) = (content(format), extension(format));
        let known = files
            .iter()
            .position(|file| file.content == content && file.extension == extension);
        let index = known.unwrap_or_else(|| {
            files.push(File {
                id: match content {
                    Content::Whole => extension.to_owned(),
                    Content::Picture => format!("video-{extension}"),
                    Content::Sound => format!("audio-{extension}"),
                },
                kind: match content {
                    Content::Sound => FileKind::AudioStream,
                    Content::Whole | Content::Picture => FileKind::VideoStream,
                },
                is_selected: false,
                content,
                extension,
                formats: Vec::new(),
            });
            files.len() - 1
        });
        if files[index].format(&format.id).is_none() {
            files[index].formats.push(format);
        }
    }
    for file in &mut files {
        // A stable order: of those that are equal, the later one is better, as yt-dlp lists them.
        file.formats.sort_by_key(|format| quality(format));
        let surplus = file.formats.len().saturating_sub(MAX_VARIANTS);
        file.formats.drain(..surplus);
    }
    files.sort_by_key(|file| (file.content, std::cmp::Reverse(quality(file.best()))));
    select(media, &mut files);
    files
}

fn select(media: &Media, files: &mut [File<'_>]) {
    let has_whole = files.iter().any(|file| file.content == Content::Whole);
    let wanted = if has_whole {
        &[Content::Whole][..]
    } else {
        &[Content::Picture, Content::Sound]
    };
    for content in wanted {
        let of_content = |file: &File<'_>| file.content == *content;
        let is_chosen = |file: &File<'_>| media.chosen.iter().any(|id| file.format(id).is_some());
        let chosen = files.iter().position(|file| of_content(file) && is_chosen(file));
        let best = chosen.or_else(|| files.iter().position(of_content));
        if let Some(best) = best {
            files[best].is_selected = true;
        }
    }
}

/// Whether a format is a file that can be downloaded and played.
fn is_file(format: &Format) -> bool {
    let is_web = format.url.starts_with("https://") || format.url.starts_with("http://");
    let has_id = (1..=MAX_ID_BYTES).contains(&format.id.len());
    is_web && has_id && !format.has_drm && matches!(format.protocol.as_str(), "https" | "http")
}

fn content(format: &Format) -> Content {
    let lacks = |codec: &Option<String>| codec.as_deref() == Some("none");
    match (lacks(&format.video), lacks(&format.audio)) {
        (true, false) => Content::Sound,
        (false, true) => Content::Picture,
        _ => Content::Whole,
    }
}

/// What its files end in; an extension that is none is left out of names.
fn extension(format: &Format) -> &str {
    let is_extension =
        |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_extension(&format.extension) {
        &format.extension
    } else {
        "bin"
    }
}

/// Better formats have more lines, then more bits.
fn quality(format: &Format) -> (u32, u64) {
    let kilobits = format.kilobits.unwrap_or(0.0).clamp(0.0, 1e9);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 1e9"
    )]
    let kilobits = kilobits as u64;
    (format.height.unwrap_or(0), kilobits)
}

/// What the user chooses a format by.
pub(crate) fn label(format: &Format) -> String {
    let mut parts = Vec::new();
    let fps = format.fps.filter(|fps| *fps > 31.0).map(|fps| format!("{fps:.0}"));
    parts.extend(
        format
            .height
            .map(|height| format!("{height}p{}", fps.unwrap_or_default())),
    );
    let note = format.note.trim();
    parts.extend((!note.is_empty() && !parts.iter().any(|part| part == note)).then(|| note.to_owned()));
    parts.extend(format.language.clone().filter(|_| content(format) == Content::Sound));
    parts.extend(
        format
            .kilobits
            .filter(|kilobits| *kilobits >= 1.0)
            .map(|kilobits| format!("{kilobits:.0} kbit/s")),
    );
    if parts.is_empty() {
        parts.push(format.id.clone());
    }
    parts.join(", ").chars().filter(|c| !c.is_control()).take(100).collect()
}

/// The link of a format, with what its requests have to send.
pub(crate) fn link_to(format: &Format) -> Link {
    let mut link = Link::new(&format.url);
    for (name, value) in &format.headers {
        if !OWN_FIELDS.contains(&name.as_str()) {
            link = link.header(name, value);
        }
    }
    if !format.cookies.is_empty() {
        link = link.header("cookie", &format.cookies);
    }
    link
}
