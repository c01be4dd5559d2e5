//! Validates and bounds a resolver's result while the plugin builds it.

use std::{collections::HashSet, sync::Arc};

use plugin_host::{Entry, Exceeded, Facts, LeftOut, LeftOutKind, Link, Listing, PluginFault, Variant};
use transfer::{ByteRange, Cipher, FileName, SafeUrl, Segment, SegmentKey};
use url::Url;

use crate::limits::OutputLimits;

/// The deepest folder of an entry.
const MAX_DEPTH: usize = 8;

/// The longest id, label or token.
const MAX_ID_BYTES: usize = 1024;

/// The longest name of something that is left out.
const MAX_LEFT_OUT_CHARS: usize = 200;

/// The fault for an invalid result.
#[expect(clippy::needless_pass_by_value, reason = "errors come by value, texts by reference")]
pub(crate) fn invalid(field: &'static str, reason: impl ToString) -> PluginFault {
    let reason = reason.to_string();
    PluginFault::InvalidOutput { field, reason }
}

/// Builds a listing within its limits.
#[derive(Debug)]
pub(crate) struct ListingBuilder {
    listing: Listing,
    /// The ids of its entries: a task asks for its file by this name.
    ids: HashSet<String>,
    limits: OutputLimits,
    bytes_left: usize,
}

impl ListingBuilder {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        Self {
            listing: Listing::default(),
            ids: HashSet::new(),
            bytes_left: limits.bytes,
            limits,
        }
    }

    pub(crate) fn finish(self) -> Listing {
        self.listing
    }

    /// The listing, for its own fields; texts put there go through [`Self::text`].
    pub(crate) fn listing_mut(&mut self) -> &mut Listing {
        &mut self.listing
    }

    /// Counts `text` against the limit.
    pub(crate) fn text(&mut self, text: String) -> Result<String, PluginFault> {
        self.count(text.len())?;
        Ok(text)
    }

    /// Parses `text` as a URL and counts it.
    pub(crate) fn url(&mut self, field: &'static str, text: &str) -> Result<Url, PluginFault> {
        self.count(text.len())?;
        parse_url(field, text, &self.limits)
    }

    /// Notes an omission. It is text for users, which never fails a call: what is too long is clipped, and beyond the
    /// number that are kept they are counted.
    pub(crate) fn leave_out(&mut self, kind: LeftOutKind, name: &str, count: u32) {
        let shown = name
            .chars()
            .map(|char| if char.is_control() { '\u{fffd}' } else { char });
        let name = shown.take(MAX_LEFT_OUT_CHARS).collect();
        let count = count.into();
        LeftOut { kind, name, count }.add_to(&mut self.listing.left_out);
    }

    pub(crate) fn add(&mut self, id: String, name: &str) -> Result<usize, PluginFault> {
        check_limit("entries", self.listing.entries.len(), self.limits.entries)?;
        check_id(&id)?;
        // Includes the size of the struct, so that many empty entries are bounded, too.
        self.count(size_of::<Entry>() + 2 * id.len() + name.len())?;
        if !self.ids.insert(id.clone()) {
            return Err(invalid("id", "two entries have the same"));
        }
        self.listing.entries.push(Entry {
            id,
            name: FileName::sanitise(name).as_str().to_owned(),
            ..Entry::default()
        });
        Ok(self.listing.entries.len() - 1)
    }

    pub(crate) fn add_variant(
        &mut self,
        at: EntryRef,
        id: String,
        label: String,
        rank: i32,
    ) -> Result<EntryRef, PluginFault> {
        if at.variant.is_some() {
            return Err(invalid("variant", "a variant has no variants"));
        }
        check_id(&id)?;
        if id.contains('@') {
            // Clients name it `entry@variant`.
            return Err(invalid("variant", "its id contains an @"));
        }
        check_limit("variants", self.entry_mut(at).variants.len(), self.limits.variants)?;
        self.count(size_of::<Variant>() + id.len() + label.len())?;
        let variants = &mut self.entry_mut(at).variants;
        if variants.iter().any(|variant| variant.id == id) {
            return Err(invalid("variant", "two of an entry have the same id"));
        }
        variants.push(Variant {
            id,
            label,
            rank,
            facts: Facts::default(),
        });
        let variant = Some(variants.len() - 1);
        Ok(EntryRef { variant, ..at })
    }

    /// The entry of `at`, also if `at` is one of its variants.
    pub(crate) fn entry_mut(&mut self, at: EntryRef) -> &mut Entry {
        &mut self.listing.entries[at.entry]
    }

    pub(crate) fn facts_mut(&mut self, at: EntryRef) -> &mut Facts {
        let entry = &mut self.listing.entries[at.entry];
        match at.variant {
            Some(variant) => &mut entry.variants[variant].facts,
            None => &mut entry.facts,
        }
    }

    pub(crate) fn set_folder(&mut self, at: EntryRef, folder: &str) -> Result<(), PluginFault> {
        self.count(folder.len())?;
        let components: Vec<_> = folder
            .split(['/', '\\'])
            .filter(|component| !matches!(*component, "" | "."))
            .map(|component| FileName::sanitise(component).as_str().to_owned())
            .collect();
        if components.len() > MAX_DEPTH {
            return Err(invalid("folder", format!("it is deeper than {MAX_DEPTH}")));
        }
        self.entry_mut(at).folder = components;
        Ok(())
    }

    pub(crate) fn add_checksum(&mut self, at: EntryRef, algorithm: &str, hex: &str) -> Result<(), PluginFault> {
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_known = matches!(algorithm, "md5" | "sha1" | "sha256" | "sha512" | "crc32" | "blake3");
        let length = match algorithm {
            "crc32" => 8,
            "md5" => 32,
            "sha1" => 40,
            "sha256" | "blake3" => 64,
            _ => 128,
        };
        if !is_hex || !is_known || hex.len() != length {
            return Err(invalid("checksum", "not a digest of a known algorithm"));
        }
        check_limit("checksums", self.facts_mut(at).checksums.len(), self.limits.link_parts)?;
        self.count(algorithm.len() + hex.len())?;
        let checksum = (algorithm.to_owned(), hex.to_ascii_lowercase());
        self.facts_mut(at).checksums.push(checksum);
        Ok(())
    }

    pub(crate) fn set_link(&mut self, at: EntryRef, link: LinkBuilder) -> Result<(), PluginFault> {
        self.count(size_of::<Link>() + link.bytes)?;
        self.facts_mut(at).link = Some(link.finish());
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), PluginFault> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes)
            .ok_or(PluginFault::Limit(Exceeded::Output(
                "bytes of output",
                self.limits.bytes,
            )))?;
        Ok(())
    }
}

/// Refers to an entry of the listing, or a variant of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct EntryRef {
    pub(crate) entry: usize,
    pub(crate) variant: Option<usize>,
}

/// Builds a link within its limits.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct LinkBuilder {
    link: Link,
    /// Total size of its texts and segments.
    bytes: usize,
    /// The encryption of the following segments.
    cipher: Option<Cipher>,
}

impl LinkBuilder {
    pub(crate) fn new(url: &str, limits: &OutputLimits) -> Result<Self, PluginFault> {
        Ok(Self {
            bytes: url.len(),
            link: Link::new(parse_url("link", url, limits)?),
            cipher: None,
        })
    }

    pub(crate) fn finish(self) -> Link {
        self.link
    }

    /// The link, for fields without validation.
    pub(crate) fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    pub(crate) fn add_mirror(&mut self, url: &str, limits: &OutputLimits) -> Result<(), PluginFault> {
        check_limit("mirrors", self.link.mirrors.len(), limits.link_parts)?;
        self.link.mirrors.push(parse_url("mirror", url, limits)?);
        self.count(url.len(), limits)
    }

    pub(crate) fn add_header(&mut self, name: &str, value: &str, limits: &OutputLimits) -> Result<(), PluginFault> {
        check_limit("headers", self.link.headers.len(), limits.link_parts)?;
        if !crate::http::header::guest_may_send(name) && !name.eq_ignore_ascii_case("cookie") {
            return Err(invalid("header", format!("{name} is not for plugins to set")));
        }
        if !crate::http::header::is_value(value) || value.len() > limits.url_bytes {
            return Err(invalid("header", format!("the value of {name} cannot be sent")));
        }
        self.link.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self.count(name.len() + value.len(), limits)
    }

    /// A header whose value the host fills in when the file is requested.
    pub(crate) fn add_secret_header(
        &mut self,
        name: &str,
        template: &str,
        limits: &OutputLimits,
    ) -> Result<(), PluginFault> {
        check_limit("headers", self.link.secret_headers.len(), limits.link_parts)?;
        if !crate::http::header::guest_may_send(name) || template.len() > limits.url_bytes {
            return Err(invalid("header", format!("{name} is not for plugins to set")));
        }
        let header = (name.to_ascii_lowercase(), template.to_owned());
        self.link.secret_headers.push(header);
        self.count(name.len() + template.len(), limits)
    }

    /// Whose secrets and cookies are sent for the file.
    pub(crate) fn set_account(&mut self, slot: String, limits: &OutputLimits) -> Result<(), PluginFault> {
        self.count(slot.len(), limits)?;
        self.link.account = Some(slot).filter(|slot| !slot.is_empty());
        Ok(())
    }

    pub(crate) fn set_audio(&mut self, audio: Self, limits: &OutputLimits) -> Result<(), PluginFault> {
        if audio.link.audio.is_some() {
            return Err(invalid("link", "the audio of a link has no audio of its own"));
        }
        self.link.audio = Some(Box::new(audio.link));
        self.count(audio.bytes, limits)
    }

    pub(crate) fn set_manifest(&mut self, kind: &str) -> Result<(), PluginFault> {
        if !matches!(kind, "hls" | "dash" | "torrent") {
            return Err(invalid("manifest", "hls, dash and torrent are known"));
        }
        self.link.manifest = Some(kind.to_owned());
        Ok(())
    }

    /// Adds a segment, or the part of one that begins at a byte and has a length.
    pub(crate) fn add_segment(
        &mut self,
        url: &str,
        part: Option<(u64, u64)>,
        limits: &OutputLimits,
    ) -> Result<(), PluginFault> {
        check_limit("segments", self.link.segments.len(), limits.segments)?;
        let part = part.map(|(first, length)| {
            let end = first.checked_add(length).filter(|end| *end > first && *end < u64::MAX);
            end.map(|end| ByteRange::new(first, end))
                .ok_or_else(|| invalid("segment", "it has no bytes, or too many"))
        });
        let segment = Segment {
            url: parse_web_url("segment", url, limits)?,
            part: part.transpose()?,
            cipher: self.cipher.clone(),
        };
        self.link.segments.push(segment);
        self.count(size_of::<Segment>() + url.len(), limits)
    }

    /// Sets the URL of the key of the following segments.
    pub(crate) fn set_key_at(&mut self, url: &str, iv: &[u8], limits: &OutputLimits) -> Result<(), PluginFault> {
        self.count(url.len(), limits)?;
        let key = SegmentKey::At(parse_web_url("segment key", url, limits)?);
        self.set_cipher(key, iv)
    }

    /// Sets the key of the following segments.
    pub(crate) fn set_key(&mut self, key: &[u8], iv: &[u8]) -> Result<(), PluginFault> {
        self.set_cipher(SegmentKey::Bytes(block("segment key", key)?), iv)
    }

    fn set_cipher(&mut self, key: SegmentKey, iv: &[u8]) -> Result<(), PluginFault> {
        // Share the key: many segments have the same one, with different vectors.
        let same = self
            .cipher
            .take()
            .map(|before| before.key)
            .filter(|before| **before == key);
        self.cipher = Some(Cipher {
            key: same.unwrap_or_else(|| Arc::new(key)),
            iv: block("initialisation vector", iv)?,
        });
        Ok(())
    }

    pub(crate) fn set_no_key(&mut self) {
        self.cipher = None;
    }

    fn count(&mut self, bytes: usize, limits: &OutputLimits) -> Result<(), PluginFault> {
        self.bytes += bytes;
        check_limit("bytes of a link", self.bytes, limits.bytes)
    }
}

fn block(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], PluginFault> {
    bytes.try_into().map_err(|_| invalid(field, "it needs 16 bytes"))
}

/// Parses the URL of a segment or key, which must be HTTP.
fn parse_web_url(field: &'static str, text: &str, limits: &OutputLimits) -> Result<SafeUrl, PluginFault> {
    let url = parse_url(field, text, limits)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(field, "only http and https are joined"));
    }
    SafeUrl::parse(url.as_str()).map_err(|error| invalid(field, error))
}

pub(crate) fn parse_url(field: &'static str, text: &str, limits: &OutputLimits) -> Result<Url, PluginFault> {
    if text.len() > limits.url_bytes {
        return Err(invalid(field, format!("it is longer than {} bytes", limits.url_bytes)));
    }
    let url = Url::parse(text).map_err(|error| invalid(field, error))?;
    if !matches!(url.scheme(), "http" | "https" | "ftp" | "ftps" | "magnet") {
        return Err(invalid(
            field,
            format!("{} is not a scheme to download with", url.scheme()),
        ));
    }
    Ok(url)
}

fn check_id(id: &str) -> Result<(), PluginFault> {
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return Err(invalid("id", format!("it needs 1 to {MAX_ID_BYTES} bytes")));
    }
    Ok(())
}

pub(crate) fn check_limit(what: &'static str, count: usize, limit: usize) -> Result<(), PluginFault> {
    if count >= limit {
        return Err(PluginFault::Limit(Exceeded::Output(what, limit)));
    }
    Ok(())
}

/// The guest's handle of the call's only listing.
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct ListingHandle;

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> ListingBuilder {
        ListingBuilder::new(OutputLimits {
            entries: 3,
            variants: 2,
            bytes: 4096,
            url_bytes: 100,
            link_parts: 2,
            segments: 2,
        })
    }

    fn place(entry: usize) -> EntryRef {
        EntryRef { entry, variant: None }
    }

    #[test]
    fn names_and_folders_are_made_safe() {
        let mut builder = builder();
        let at = place(builder.add("1".into(), "../../etc/passwd").unwrap());
        builder.set_folder(at, "/a/./../b\\c/").unwrap();
        let entry = &builder.finish().entries[0];
        assert!(
            !entry.name.contains('/') && !entry.name.starts_with('.'),
            "{}",
            entry.name
        );
        assert_eq!(entry.folder.len(), 4);
        assert!(
            entry
                .folder
                .iter()
                .all(|component| component != ".." && !component.contains(['/', '\\']))
        );
    }

    #[test]
    fn omissions_are_bounded_and_fit_for_display() {
        let mut builder = builder();
        builder.leave_out(LeftOutKind::Unreadable, &format!("a\u{1b}[2J{}", "b".repeat(1000)), 1);
        for _ in 0..10_000 {
            builder.leave_out(LeftOutKind::TooDeep, "deep", 2);
        }
        let left_out = builder.finish().left_out;
        assert!(left_out[0].name.starts_with("a\u{fffd}[2Jb") && left_out[0].name.len() < 210);
        assert_eq!(
            (left_out.len(), left_out.last().unwrap().count),
            (51, 2 * (10_000 - 49))
        );
    }

    #[test]
    fn a_listing_ends_at_its_limits() {
        let mut builder = builder();
        for id in ["1", "2", "3"] {
            builder.add(id.into(), id).unwrap();
        }
        let over = |what, limit| Err(PluginFault::Limit(Exceeded::Output(what, limit)));
        assert_eq!(builder.add("4".into(), "4"), over("entries", 3));
        for id in ["a", "b"] {
            builder.add_variant(place(0), id.into(), id.into(), 0).unwrap();
        }
        assert!(builder.add_variant(place(0), "c".into(), "c".into(), 0).is_err());
        assert!(builder.text("x".repeat(5000)).is_err());
    }

    #[test]
    fn a_file_is_asked_for_by_a_name_that_no_other_has() {
        let mut builder = builder();
        let at = place(builder.add("1".into(), "a").unwrap());
        assert!(builder.add("1".into(), "b").is_err());
        builder.add_variant(at, "hd".into(), String::new(), 0).unwrap();
        for id in ["hd", "1080@60", ""] {
            assert!(builder.add_variant(at, id.into(), String::new(), 0).is_err(), "{id}");
        }
        builder.add_checksum(at, "sha256", &"0".repeat(64)).unwrap();
        assert!(
            builder.add_checksum(at, "sha256", "abcd").is_err(),
            "a digest has its length"
        );
    }

    #[test]
    fn what_cannot_be_downloaded_is_no_link() {
        let limits = OutputLimits::default();
        for url in ["", "x", "file:///etc/passwd", "javascript:alert(1)", "data:,x"] {
            assert!(LinkBuilder::new(url, &limits).is_err(), "{url}");
        }
        let mut link = LinkBuilder::new("https://example.org/a", &limits).unwrap();
        assert!(link.add_header("Host", "x", &limits).is_err());
        assert!(link.add_header("X-A", "a\r\nb", &limits).is_err());
        assert!(link.add_header("Referer", "https://example.org/", &limits).is_ok());
        assert!(link.set_manifest("exe").is_err());
    }

    #[test]
    fn segments_are_checked_counted_and_share_their_key() {
        let limits = builder().limits;
        let link = || LinkBuilder::new("https://example.org/a", &limits).unwrap();
        let segment = |url, part| link().add_segment(url, part, &limits);
        assert!(segment("https://example.org/1.ts", None).is_ok());
        assert!(segment("ftp://example.org/1.ts", None).is_err());
        assert!(segment("https://example.org/1.ts", Some((5, 0))).is_err());
        assert!(segment("https://example.org/1.ts", Some((5, u64::MAX))).is_err());
        assert!(link().set_key(&[0; 15], &[0; 16]).is_err());
        assert!(link().set_key_at("https://example.org/key", &[0; 17], &limits).is_err());

        let mut link = link();
        for iv in [[1; 16], [2; 16]] {
            link.set_key_at("https://example.org/key", &iv, &limits).unwrap();
            link.add_segment("https://example.org/1.ts", Some((5, 10)), &limits)
                .unwrap();
        }
        assert!(
            link.add_segment("https://example.org/1.ts", None, &limits).is_err(),
            "a third"
        );
        let segments = link.finish().segments;
        assert_eq!(segments[1].part, Some(ByteRange::new(5, 15)));
        let ciphers: Vec<_> = segments.iter().filter_map(|segment| segment.cipher.as_ref()).collect();
        assert!(Arc::ptr_eq(&ciphers[0].key, &ciphers[1].key) && ciphers[0].iv != ciphers[1].iv);
    }

    #[test]
    fn facts_of_a_variant_are_its_own() {
        let mut builder = builder();
        let at = place(builder.add("1".into(), "a").unwrap());
        let variant = builder.add_variant(at, "hd".into(), "HD".into(), 1).unwrap();
        builder.facts_mut(variant).size = Some(5);
        assert!(builder.add_variant(variant, "x".into(), "x".into(), 0).is_err());
        assert!(builder.add_checksum(variant, "md5", "xyz").is_err());
        let listing = builder.finish();
        assert_eq!(listing.entries[0].facts.size, None);
        assert_eq!(listing.entries[0].variants[0].facts.size, Some(5));
    }
}
