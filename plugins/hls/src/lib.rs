//! Downloads recordings that are published as playlists of HTTP Live Streaming: the host joins their segments.
//!
//! *Owns* what playlists say (`playlist`) and what of it becomes a file (here).
//!
//! *Never* fetches a segment or a key; it asks for playlists only, at the host of the URL that it was given and at those
//! that the user allows when a playlist leads there.
//!
//! Start reading at [`Hls`].

mod playlist;

use std::collections::HashSet;

use svc_plugin::{prelude::*, text::Url};

use crate::playlist::{Master, Media, Playlist, Rendition, Segment, Variant};

/// A playlist of more segments than the host takes is shorter than this.
const MAX_PLAYLIST_BYTES: u32 = 8 * 1024 * 1024;

/// Segments of one file, which is what the host takes.
const MAX_SEGMENTS: usize = 50_000;

/// Variants of one entry, which is what the host takes.
const MAX_VARIANTS: usize = 50;

/// The entry of the pictures, with their sound if they have it.
const VIDEO: &str = "video";

/// What the entries of sound that stands alone begin with; their number follows.
const AUDIO: &str = "audio-";

/// Names that playlists have everywhere; the folder says more.
const COMMON_NAMES: [&str; 8] = [
    "chunklist",
    "hls",
    "index",
    "main",
    "manifest",
    "master",
    "playlist",
    "prog_index",
];

/// Lists what a playlist describes.
#[derive(Debug)]
pub struct Hls;

impl Resolver for Hls {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }

    fn link(call: &Call, entry: &str, variant: Option<&str>) -> Result<Link> {
        let (base, playlist) = fetch(call.url())?;
        let master = match playlist {
            Playlist::Media(media) if entry == VIDEO => return joined(&base, &media),
            Playlist::Media(_) => return Err(gone()),
            Playlist::Master(master) => master,
        };
        let uri = stream(&master, entry, variant).ok_or_else(gone)?;
        let (base, media) = fetch_media(&base.join(uri)?)?;
        joined(&base, &media)
    }
}

impl Preview for Hls {
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }
}

svc_plugin::plugin!(Hls: Resolver, Preview);

fn gone() -> Error {
    Error::NotFound("the playlist no longer has this stream".to_owned())
}

/// Where the playlist of an entry is.
fn stream<'m>(master: &'m Master, entry: &str, variant: Option<&str>) -> Option<&'m str> {
    if let Some(number) = entry.strip_prefix(AUDIO) {
        let (_, (uri, _)) = audio(master).find(|(index, _)| index.to_string() == number)?;
        return Some(uri);
    }
    let mut variants = variants(master).into_iter();
    let found = variants.find(|it| variant.is_none_or(|wanted| id(it) == wanted))?;
    Some(&found.uri)
}

/// A playlist and the URL that it came from in the end.
fn fetch(url: &Url) -> Result<(Url, Playlist)> {
    let response = http::get(url).task_cookies().max_bytes(MAX_PLAYLIST_BYTES).send()?;
    let playlist = playlist::read(&response.text()?)?;
    Ok((Url::parse(response.url())?, playlist))
}

/// The playlist of a stream.
fn fetch_media(url: &Url) -> Result<(Url, Media)> {
    match fetch(url) {
        Ok((base, Playlist::Media(media))) => Ok((base, media)),
        Ok((_, Playlist::Master(_))) | Err(Error::NotMatched) => {
            Err(Error::Parse("the playlist of a stream is none".to_owned()))
        }
        Err(error) => Err(error),
    }
}

fn list(call: &Call, out: &Listing<'_>) -> Result<()> {
    let (base, playlist) = fetch(call.url())?;
    let name = name(call.url());
    match playlist {
        Playlist::Media(media) => {
            let entry = out.add(VIDEO, &format!("{name}.{}", extension(&base, &media, "mp4")?));
            describe(&entry, &media);
        }
        Playlist::Master(master) => list_master(&base, &master, &name, out)?,
    }
    Ok(())
}

fn list_master(base: &Url, master: &Master, name: &str, out: &Listing<'_>) -> Result<()> {
    let variants = variants(master);
    let best = variants
        .iter()
        .max_by_key(|variant| variant.bandwidth)
        .ok_or_else(gone)?;
    // What the best stream is made of, the others are, too.
    let (base, media) = fetch_media(&base.join(&best.uri)?)?;
    let entry = out.add(VIDEO, &format!("{name}.{}", extension(&base, &media, "mp4")?));
    describe(&entry, &media);
    for variant in &variants {
        entry.variant(&id(variant), &label(variant), rank(variant));
    }
    let is_silent = !has_sound(master, best);
    for (index, (_, rendition)) in audio(master) {
        let label = rendition.language.as_deref().unwrap_or(&rendition.name);
        let extension = if media.is_fragmented { "m4a" } else { "aac" };
        let sound = out.add(&format!("{AUDIO}{index}"), &format!("{name}.{label}.{extension}"));
        sound.kind(FileKind::AudioStream).duration(media.duration);
        if !(is_silent && rendition.is_default) {
            sound.not_selected();
        }
    }
    Ok(())
}

/// The qualities to choose from: each once, and only those with sound if there are any.
fn variants(master: &Master) -> Vec<&Variant> {
    let has_some = master.variants.iter().any(|variant| has_sound(master, variant));
    let mut seen = HashSet::new();
    let wanted = master
        .variants
        .iter()
        .filter(|variant| !has_some || has_sound(master, variant));
    wanted
        .filter(|variant| seen.insert(id(variant)))
        .take(MAX_VARIANTS)
        .collect()
}

/// Whether the sound of a variant is in it, instead of standing alone.
fn has_sound(master: &Master, variant: &Variant) -> bool {
    let Some(group) = &variant.audio else { return true };
    let mut renditions = master.renditions.iter().filter(|rendition| rendition.group == *group);
    renditions.clone().count() == 0 || renditions.any(|rendition| rendition.uri.is_none())
}

/// The sounds that stand alone, with their numbers and URIs.
fn audio(master: &Master) -> impl Iterator<Item = (usize, (&str, &Rendition))> {
    let alone = |rendition| -> Option<(&str, &Rendition)> {
        let rendition: &Rendition = rendition;
        Some((rendition.uri.as_deref()?, rendition))
    };
    master.renditions.iter().filter_map(alone).enumerate()
}

/// What a quality is known by. The URL of its playlist may be another one the next time.
fn id(variant: &Variant) -> String {
    let resolution = variant.resolution.as_deref().unwrap_or("audio");
    format!("{resolution}-{}", variant.bandwidth)
}

fn label(variant: &Variant) -> String {
    let kilobits = variant.bandwidth / 1000;
    match &variant.resolution {
        Some(resolution) => format!("{resolution}, {kilobits} kbit/s"),
        None => format!("{kilobits} kbit/s"),
    }
}

fn rank(variant: &Variant) -> i32 {
    i32::try_from(variant.bandwidth).unwrap_or(i32::MAX)
}

fn describe(entry: &Entry, media: &Media) {
    entry.kind(FileKind::VideoStream).duration(media.duration);
    // The length of the file is known if each segment says its own.
    let length = |segment: &Segment| segment.part.filter(|_| segment.key.is_none()).map(|(_, length)| length);
    if let Some(size) = media.segments.iter().map(length).sum() {
        entry.size(size);
    }
}

/// What the file ends in.
fn extension<'a>(base: &Url, media: &Media, fragmented: &'a str) -> Result<&'a str> {
    if media.is_fragmented {
        return Ok(fragmented);
    }
    let first = media
        .segments
        .first()
        .map(|segment| base.join(&segment.uri))
        .transpose()?;
    let last = first
        .as_ref()
        .and_then(|url| url.path().last())
        .and_then(|it| it.rsplit_once('.'));
    match last.map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("vtt" | "webvtt") => Err(Error::Unsupported(
            "playlists of subtitles cannot be downloaded".to_owned(),
        )),
        Some("aac") => Ok("aac"),
        Some("mp3") => Ok("mp3"),
        Some("mp4" | "m4s" | "m4v") => Ok(fragmented),
        _ => Ok("ts"),
    }
}

/// What the file is called: after the playlist, or after its folder if playlists are called so everywhere.
fn name(url: &Url) -> String {
    let stem = |segment: &String| segment.strip_suffix(".m3u8").unwrap_or(segment).to_owned();
    let mut names = url.path().iter().rev().map(stem).filter(|name| !name.is_empty());
    let own = names.next().unwrap_or_else(|| url.host().to_owned());
    if COMMON_NAMES.contains(&own.to_ascii_lowercase().as_str()) {
        names.next().unwrap_or(own)
    } else {
        own
    }
}

/// The link of a stream: its segments, and how they are encrypted.
fn joined(base: &Url, media: &Media) -> Result<Link> {
    if media.segments.len() > MAX_SEGMENTS {
        let message = format!("the playlist has more than {MAX_SEGMENTS} segments");
        return Err(Error::Unsupported(message));
    }
    let place = Place::new(base)?;
    let mut link = Link::new(base);
    let mut key = &None;
    for segment in &media.segments {
        if *key != segment.key {
            key = &segment.key;
            link = match key {
                Some(key) => link.segment_key_at(place.join(&key.uri)?, key.iv),
                None => link.no_segment_key(),
            };
        }
        let url = place.join(&segment.uri)?;
        link = match segment.part {
            Some((first, length)) => link.segment_part(url, first, length),
            None => link.segment(url),
        };
    }
    Ok(link)
}

/// What the references of a playlist mean. There are thousands, so the plain ones are not worth a call of the host.
struct Place<'a> {
    base: &'a Url,
    folder: Url,
}

impl<'a> Place<'a> {
    fn new(base: &'a Url) -> Result<Self> {
        let folder = base.join(".")?;
        Ok(Self { base, folder })
    }

    fn join(&self, reference: &str) -> Result<String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if reference.starts_with("https://") || reference.starts_with("http://") {
            Ok(reference.to_owned())
        } else if reference.bytes().next().is_some_and(is_name) && !reference.contains(':') && !reference.contains("/.")
        {
            Ok(format!("{}{reference}", self.folder.as_str()))
        } else {
            Ok(self.base.join(reference)?.as_str().to_owned())
        }
    }
}
