//! What a resolver hands out. Entries go to the host one by one, which checks and shows them while the plugin works.

use std::time::Duration;

use crate::host::listing as host;

pub use host::FileKind;

/// The deepest folder of an entry that the host takes.
const MAX_DEPTH: usize = 8;

/// The list of files behind a URL.
#[derive(Debug)]
pub struct Listing<'a>(&'a host::Listing);

impl<'a> Listing<'a> {
    pub(crate) fn new(listing: &'a host::Listing) -> Self {
        Self(listing)
    }

    /// What it is called as a whole; files are put into a folder of this name.
    pub fn title(&self, title: &str) {
        self.0.title(title);
    }

    /// What it is about.
    pub fn description(&self, text: &str) {
        self.0.description(text);
    }

    /// A picture of it.
    pub fn cover(&self, url: &str) {
        self.0.cover(url);
    }

    /// Adds a file. The host comes back with `id` when it wants its link.
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

    /// There is more; the host asks for it with this token.
    pub fn next_page(&self, token: &str) {
        self.0.next_page(token);
    }

    /// A password is needed.
    pub fn ask_password(&self, prompt: &str) {
        self.0.ask_password(prompt);
    }
}

/// A file of a listing, or a variant of one.
#[derive(Debug)]
pub struct Entry(host::Entry);

impl Entry {
    /// What sort of file it is.
    pub fn kind(&self, kind: FileKind) -> &Self {
        self.0.kind(kind);
        self
    }

    /// The folder it belongs into, below the listing's own, with slashes.
    pub fn folder(&self, path: &str) -> &Self {
        self.0.dir(path);
        self
    }

    /// Its length.
    pub fn size(&self, bytes: u64) -> &Self {
        self.0.size(bytes);
        self
    }

    /// When it was changed, in milliseconds of the Unix epoch.
    pub fn modified_ms(&self, time: u64) -> &Self {
        self.0.modified_ms(time);
        self
    }

    /// Its digest in hexadecimal digits.
    pub fn checksum(&self, algorithm: &str, hex: &str) -> &Self {
        self.0.checksum(algorithm, hex);
        self
    }

    /// Its media type.
    pub fn media_type(&self, media_type: &str) -> &Self {
        self.0.media_type(media_type);
        self
    }

    /// A small picture of it.
    pub fn thumbnail(&self, url: &str) -> &Self {
        self.0.thumbnail(url);
        self
    }

    /// How long it plays.
    pub fn duration(&self, duration: Duration) -> &Self {
        self.0
            .duration_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Leaves it out unless the user wants it.
    pub fn not_selected(&self) -> &Self {
        self.0.default_selected(false);
        self
    }

    /// Adds a quality or format; of a higher `rank` the better.
    #[expect(clippy::return_self_not_must_use, reason = "it is in the listing already")]
    pub fn variant(&self, id: &str, label: &str, rank: i32) -> Self {
        Self(self.0.add_variant(id, label, rank))
    }

    /// Says where it is now, so that nobody asks later. Not for links that expire soon.
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

    /// Another place of the same bytes.
    pub fn mirror(self, url: &str) -> Self {
        self.0.mirror(url);
        self
    }

    /// A field to send along.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.0.header(name, value);
        self
    }

    /// A field to send along, with a secret in it that the host puts there; see
    /// [`Request::secret_header`](crate::http::Request::secret_header).
    pub fn secret_header(self, name: &str, template: &str) -> Self {
        self.0.secret_header(name, template);
        self
    }

    /// Whether the site can send parts of it.
    pub fn ranges(self, is_supported: bool) -> Self {
        self.0.range_supported(is_supported);
        self
    }

    /// It works once: nobody may try it out first.
    pub fn single_use(self) -> Self {
        self.0.single_use(true);
        self
    }

    /// It ends at this time (milliseconds of the Unix epoch); the host asks anew before.
    pub fn expires_ms(self, time: u64) -> Self {
        self.0.expires_ms(time);
        self
    }

    /// It ends after this time.
    pub fn expires_in(self, duration: Duration) -> Self {
        let lifetime = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.expires_ms(crate::env::now_ms().saturating_add(lifetime))
    }

    /// How many connections the site allows.
    pub fn max_connections(self, count: u32) -> Self {
        self.0.max_connections(count);
        self
    }

    /// The sound that belongs to these pictures.
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
