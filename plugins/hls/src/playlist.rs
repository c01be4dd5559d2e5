//! What stands in a playlist (RFC 8216): lines that are URLs, and tags that say what the next ones are. Pure.

use std::time::Duration;

use svc_plugin::{Error, Result};

/// A playlist of either sort.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Playlist {
    /// The same recording in several qualities.
    Master(Master),
    /// The segments of a recording.
    Media(Media),
}

/// Streams to choose from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Master {
    pub(crate) variants: Vec<Variant>,
    pub(crate) renditions: Vec<Rendition>,
}

/// A quality.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Variant {
    /// Where its playlist is.
    pub(crate) uri: String,
    /// Bits per second at most.
    pub(crate) bandwidth: u64,
    /// `1280x720`, if it has pictures and somebody said so.
    pub(crate) resolution: Option<String>,
    /// The group of renditions that its sound is in.
    pub(crate) audio: Option<String>,
}

/// Sound to choose from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rendition {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) language: Option<String>,
    /// Where its playlist is; none if it is part of the variants themselves.
    pub(crate) uri: Option<String>,
    pub(crate) is_default: bool,
}

/// The segments of a recording, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Media {
    pub(crate) segments: Vec<Segment>,
    pub(crate) duration: Duration,
    /// The segments are fragments of an MP4 file, whose beginning is a segment, too.
    pub(crate) is_fragmented: bool,
}

/// A segment, or the beginning that those behind it need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) uri: String,
    /// The first byte and the length, if it is a part of what is there.
    pub(crate) part: Option<(u64, u64)>,
    pub(crate) key: Option<Key>,
}

/// How a segment is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) uri: String,
    pub(crate) iv: [u8; 16],
}

/// Reads a playlist. One that is of another kind than HTTP Live Streaming is not ours.
pub(crate) fn read(text: &str) -> Result<Playlist> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines.next().is_none_or(|first| !first.starts_with("#EXTM3U")) {
        return Err(Error::NotMatched);
    }
    let has = |tag: &str| text.lines().any(|line| line.trim_start().starts_with(tag));
    if has("#EXT-X-DEFINE") {
        return Err(unsupported("playlists with variables"));
    }
    if has("#EXT-X-STREAM-INF:") {
        read_master(lines).map(Playlist::Master)
    } else if has("#EXT-X-TARGETDURATION") {
        read_media(lines).map(Playlist::Media)
    } else {
        Err(Error::NotMatched)
    }
}

fn read_master<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Master> {
    let mut master = Master::default();
    let mut next = None;
    for line in lines {
        if let Some(attributes) = line.strip_prefix("#EXT-X-STREAM-INF:") {
            let attributes = Attributes::read(attributes);
            next = Some(Variant {
                uri: String::new(),
                bandwidth: attributes
                    .get("BANDWIDTH")
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0),
                resolution: attributes.text("RESOLUTION"),
                audio: attributes.text("AUDIO"),
            });
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-MEDIA:") {
            let attributes = Attributes::read(attributes);
            if attributes.get("TYPE") == Some("AUDIO") {
                master.renditions.push(Rendition {
                    group: attributes.text("GROUP-ID").unwrap_or_default(),
                    name: attributes.text("NAME").unwrap_or_default(),
                    language: attributes.text("LANGUAGE"),
                    uri: attributes.text("URI"),
                    is_default: attributes.get("DEFAULT") == Some("YES"),
                });
            }
        } else if !line.starts_with('#')
            && let Some(variant) = next.take()
        {
            let uri = line.to_owned();
            master.variants.push(Variant { uri, ..variant });
        }
    }
    if master.variants.is_empty() {
        return Err(Error::Parse("the playlist names no stream".to_owned()));
    }
    Ok(master)
}

/// What tags have said of the segments to come.
#[derive(Default)]
struct Reader {
    media: Media,
    sequence: u64,
    seconds: f64,
    key: Option<KeyTag>,
    range: Option<Range>,
    /// Where the part before ended, for one that begins there.
    end: Option<(String, u64)>,
    /// The beginning that the segments have now.
    map: Option<(String, Option<(u64, u64)>)>,
    is_gap: bool,
    is_ended: bool,
}

/// A key as its tag says it.
#[derive(Clone)]
struct KeyTag {
    uri: String,
    iv: Option<[u8; 16]>,
}

/// A length and, unless the part begins where the one before ended, the first byte.
type Range = (u64, Option<u64>);

fn read_media<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Media> {
    let mut reader = Reader::default();
    for line in lines {
        match line.strip_prefix('#') {
            Some(tag) => reader.tag(tag)?,
            None => reader.segment(line)?,
        }
    }
    if !reader.is_ended {
        return Err(unsupported("live streams, which have no end yet"));
    }
    if reader.media.segments.is_empty() {
        return Err(Error::NotFound("the playlist has no segments".to_owned()));
    }
    reader.media.duration = Duration::try_from_secs_f64(reader.seconds).unwrap_or_default();
    Ok(reader.media)
}

impl Reader {
    fn tag(&mut self, tag: &str) -> Result<()> {
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        match name {
            "EXTINF" => {
                let seconds = value.split(',').next().unwrap_or_default().trim();
                self.seconds += seconds
                    .parse()
                    .ok()
                    .filter(|it: &f64| it.is_finite())
                    .unwrap_or(0.0)
                    .max(0.0);
            }
            "EXT-X-BYTERANGE" => self.range = Some(range(value)?),
            "EXT-X-MEDIA-SEQUENCE" => self.sequence = value.trim().parse().map_err(|_| malformed(name))?,
            "EXT-X-KEY" => self.key = key(&Attributes::read(value))?,
            "EXT-X-MAP" => self.map(&Attributes::read(value))?,
            "EXT-X-GAP" => self.is_gap = true,
            "EXT-X-ENDLIST" => self.is_ended = true,
            "EXT-X-PLAYLIST-TYPE" if value.trim() == "VOD" => self.is_ended = true,
            "EXT-X-I-FRAMES-ONLY" => return Err(unsupported("playlists of single pictures")),
            _ => {}
        }
        Ok(())
    }

    fn segment(&mut self, uri: &str) -> Result<()> {
        let part = self.range.take().map(|range| self.part(uri, range)).transpose()?;
        if !std::mem::take(&mut self.is_gap) {
            self.push(uri, part);
        }
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// The beginning of the segments from here on, unless it is the one that they have.
    fn map(&mut self, attributes: &Attributes<'_>) -> Result<()> {
        let uri = attributes.get("URI").ok_or_else(|| malformed("EXT-X-MAP"))?;
        let range = attributes.get("BYTERANGE").map(range).transpose()?;
        let part = range.map(|(length, first)| (first.unwrap_or(0), length));
        self.media.is_fragmented = true;
        let map = Some((uri.to_owned(), part));
        if self.map != map {
            self.push(uri, part);
            self.map = map;
        }
        Ok(())
    }

    fn push(&mut self, uri: &str, part: Option<(u64, u64)>) {
        let key = self.key.clone().map(|key| Key {
            uri: key.uri,
            iv: key.iv.unwrap_or_else(|| u128::from(self.sequence).to_be_bytes()),
        });
        self.media.segments.push(Segment {
            uri: uri.to_owned(),
            part,
            key,
        });
    }

    fn part(&mut self, uri: &str, (length, first): Range) -> Result<(u64, u64)> {
        let follows = self.end.take().filter(|(before, _)| before == uri).map(|(_, end)| end);
        let first = first.or(follows).ok_or_else(|| malformed("EXT-X-BYTERANGE"))?;
        let end = first.checked_add(length).ok_or_else(|| malformed("EXT-X-BYTERANGE"))?;
        self.end = Some((uri.to_owned(), end));
        Ok((first, length))
    }
}

fn key(attributes: &Attributes<'_>) -> Result<Option<KeyTag>> {
    match (
        attributes.get("METHOD"),
        attributes.get("KEYFORMAT").unwrap_or("identity"),
    ) {
        (Some("NONE"), _) => Ok(None),
        (Some("AES-128"), "identity") => {
            let iv = attributes
                .get("IV")
                .map(|iv| read_iv(iv).ok_or_else(|| malformed("EXT-X-KEY")));
            Ok(Some(KeyTag {
                uri: attributes.text("URI").ok_or_else(|| malformed("EXT-X-KEY"))?,
                iv: iv.transpose()?,
            }))
        }
        (Some(_), _) => Err(unsupported("streams with copy protection")),
        (None, _) => Err(malformed("EXT-X-KEY")),
    }
}

/// `0x` and up to 32 hexadecimal digits.
fn read_iv(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u128::from_str_radix(digits, 16).ok())?
        .map(u128::to_be_bytes)
}

/// `length` or `length@first`.
fn range(text: &str) -> Result<Range> {
    let number = |text: &str| text.trim().parse().map_err(|_| malformed("EXT-X-BYTERANGE"));
    match text.split_once('@') {
        Some((length, first)) => Ok((number(length)?, Some(number(first)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Attributes of a tag: `NAME=value` or `NAME="value"`, with commas between.
struct Attributes<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Attributes<'a> {
    /// Reads as many as make sense.
    fn read(mut text: &'a str) -> Self {
        let mut attributes = Vec::new();
        while let Some((name, rest)) = text.split_once('=') {
            let (value, rest) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
            };
            attributes.push((name.trim(), value.trim()));
            text = rest.split_once(',').map_or("", |(_, rest)| rest);
        }
        Self(attributes)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let mut attributes = self.0.iter();
        attributes.find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// A text that is not empty.
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

fn malformed(tag: &str) -> Error {
    Error::Parse(format!("the playlist has an unusable {tag}"))
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!("{what} cannot be downloaded"))
}
