//! What a resolver hands out. Entries go to the host one by one, which checks and shows them while the plugin works.

use std::time::Duration;

use crate::host::listing as host;

pub use host::FileKind;

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
}
