//! The result of a resolver. Entries are passed to the host one by one; it validates each as it arrives, and an invalid
//! one ends the call.

use std::time::Duration;

use crate::host::listing as host;

pub use host::{FileKind, LeftOut};

/// The deepest folder of an entry that the host takes.
const MAX_DEPTH: usize = 8;

/// The list of files behind a URL.
#[derive(Debug)]
pub struct Listing<'a>(&'a host::Listing);

impl<'a> Listing<'a> {
    pub(crate) fn new(listing: &'a host::Listing) -> Self {
        Self(listing)
    }

    /// Sets the title. Downloads of several files go into a folder of this name.
    pub fn title(&self, title: &str) {
        self.0.title(title);
    }

    /// Sets a description, which previews show.
    pub fn description(&self, text: &str) {
        self.0.description(text);
    }

    /// Sets the URL of a picture, which previews show.
    pub fn cover(&self, url: &str) {
        self.0.cover(url);
    }

    /// Adds a file. Unless the entry gets a [`Link`], the host asks [`Resolver::link`](crate::Resolver::link) for it by
    /// `id` when the download starts.
    pub fn add(&self, id: &str, name: &str) -> Entry {
        Entry(self.0.add(id, name))
    }

    /// Adds a file by its path below the listing's own folder, with slashes. Folders that are deeper than the host takes
    /// become part of the name.
    ///
    /// ```
    /// use svc_plugin::prelude::*;
    ///
    /// struct Acme;
    ///
    /// impl Resolver for Acme {
    ///     fn resolve(_: &Call, out: &Listing<'_>) -> Result<()> {
    ///         out.add_path("1", "discs/1/a.flac").size(5);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let entry = test::Host::new().resolve::<Acme>("https://acme.example/").unwrap().entries.remove(0);
    /// assert_eq!((entry.folder.as_str(), entry.name.as_str()), ("discs/1", "a.flac"));
    /// ```
    pub fn add_path(&self, id: &str, path: &str) -> Entry {
        let mut parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = parts.split_off(parts.len().saturating_sub(1).min(MAX_DEPTH)).join("_");
        let entry = self.add(id, &name);
        entry.folder(&parts.join("/"));
        entry
    }

    /// Announces another page, which the host asks [`Resolver::more`](crate::Resolver::more) for with this token.
    pub fn next_page(&self, token: &str) {
        self.0.next_page(token);
    }

    /// Asks the user for a password, with this text. The host then calls again with
    /// [`Call::password`](crate::Call::password).
    pub fn ask_password(&self, prompt: &str) {
        self.0.ask_password(prompt);
    }

    /// Tells the user that something is not in the listing: `name` is the folder that is left out, or that the rest
    /// would be in (empty: several, or the listing itself); `count` is how many (0: unknown). The host keeps the first
    /// fifty one by one and counts the others.
    pub fn left_out(&self, why: LeftOut, name: &str, count: usize) {
        self.0.left_out(why, name, u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// A file of a listing, or a variant of one.
#[derive(Debug)]
pub struct Entry(host::Entry);

impl Entry {
    /// Sets the kind; [`FileKind::File`] unless set.
    pub fn kind(&self, kind: FileKind) -> &Self {
        self.0.kind(kind);
        self
    }

    /// Sets the folder, relative to that of the listing, with slashes between names; at most 8 deep.
    pub fn folder(&self, path: &str) -> &Self {
        self.0.dir(path);
        self
    }

    /// Sets the length in bytes.
    pub fn size(&self, bytes: u64) -> &Self {
        self.0.size(bytes);
        self
    }

    /// Sets when the file was modified, in milliseconds since the Unix epoch.
    pub fn modified_ms(&self, time: u64) -> &Self {
        self.0.modified_ms(time);
        self
    }

    /// Adds a digest in hexadecimal digits; `algorithm` is `md5`, `sha1`, `sha256`, `sha512`, `crc32` or `blake3`.
    pub fn checksum(&self, algorithm: &str, hex: &str) -> &Self {
        self.0.checksum(algorithm, hex);
        self
    }

    /// Sets the media type, such as `video/mp4`.
    pub fn media_type(&self, media_type: &str) -> &Self {
        self.0.media_type(media_type);
        self
    }

    /// Sets the URL of a small picture of it.
    pub fn thumbnail(&self, url: &str) -> &Self {
        self.0.thumbnail(url);
        self
    }

    /// Sets how long it plays.
    pub fn duration(&self, duration: Duration) -> &Self {
        self.0
            .duration_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Does not download it unless the user selects it.
    pub fn not_selected(&self) -> &Self {
        self.0.default_selected(false);
        self
    }

    /// Adds a quality or format of the file. The one of the highest `rank` is downloaded unless the user chooses.
    #[expect(clippy::return_self_not_must_use, reason = "it is in the listing already")]
    pub fn variant(&self, id: &str, label: &str, rank: i32) -> Self {
        Self(self.0.add_variant(id, label, rank))
    }

    /// Sets the link, so that the host need not ask for it later. Not for links that expire within minutes.
    pub fn link(&self, link: Link) -> &Self {
        self.0.link(link.0);
        self
    }
}

/// Where a file is, and how to ask for it.
#[derive(Debug)]
#[must_use = "a link does nothing until it is handed out"]
pub struct Link(pub(crate) host::Link);

impl Link {
    /// The file at `url`.
    pub fn new(url: impl AsRef<str>) -> Self {
        Self(host::Link::new(url.as_ref()))
    }

    /// Adds another URL of the same bytes.
    pub fn mirror(self, url: &str) -> Self {
        self.0.mirror(url);
        self
    }

    /// Adds a header field to send with the requests for the file.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.0.header(name, value);
        self
    }

    /// Adds a header field with a secret in it, which the host fills in; see
    /// [`Request::secret_header`](crate::http::Request::secret_header).
    pub fn secret_header(self, name: &str, template: &str) -> Self {
        self.0.secret_header(name, template);
        self
    }

    /// Asks as the account of this slot: with its cookies, and templates of
    /// [`secret_header`](Self::secret_header) have its secrets.
    pub fn account(self, slot: &str) -> Self {
        self.0.account(slot);
        self
    }

    /// Says whether the site answers range requests. Without them, the file is downloaded over one connection.
    pub fn ranges(self, is_supported: bool) -> Self {
        self.0.range_supported(is_supported);
        self
    }

    /// The URL works once: the host sends one request, without a probe before it.
    pub fn single_use(self) -> Self {
        self.0.single_use(true);
        self
    }

    /// The URL expires at this time (milliseconds since the Unix epoch); the host asks for a new link before.
    pub fn expires_ms(self, time: u64) -> Self {
        self.0.expires_ms(time);
        self
    }

    /// The URL expires after this time.
    pub fn expires_in(self, duration: Duration) -> Self {
        let lifetime = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.expires_ms(crate::env::now_ms().saturating_add(lifetime))
    }

    /// Sets how many connections the site allows at once.
    pub fn max_connections(self, count: u32) -> Self {
        self.0.max_connections(count);
        self
    }

    /// Adds the link of the sound track, where a site has sound and pictures in two files.
    pub fn audio(self, audio: Self) -> Self {
        self.0.pair_audio(audio.0);
        self
    }

    /// The URL leads to a description of the file: `hls`, `dash` or `torrent`.
    pub fn manifest(self, kind: &str) -> Self {
        self.0.manifest(kind);
        self
    }

    /// Adds a segment: a link with segments is the file that they make, joined in this order. What the link's own URL
    /// leads to is then not fetched.
    pub fn segment(self, url: impl AsRef<str>) -> Self {
        self.0.segment(url.as_ref(), None);
        self
    }

    /// Adds a segment that is `length` bytes, from byte `first` on, of what is at `url`.
    pub fn segment_part(self, url: impl AsRef<str>, first: u64, length: u64) -> Self {
        self.0.segment(url.as_ref(), Some((first, length)));
        self
    }

    /// The segments from here on are encrypted with AES-128 in CBC mode; the 16 bytes of the key are at `url`.
    pub fn segment_key_at(self, url: impl AsRef<str>, iv: [u8; 16]) -> Self {
        self.0.segment_key_at(url.as_ref(), &iv);
        self
    }

    /// The segments from here on are encrypted with this key, by AES-128 in CBC mode.
    pub fn segment_key(self, key: [u8; 16], iv: [u8; 16]) -> Self {
        self.0.segment_key(&key, &iv);
        self
    }

    /// The segments from here on are not encrypted.
    pub fn no_segment_key(self) -> Self {
        self.0.no_segment_key();
        self
    }
}
