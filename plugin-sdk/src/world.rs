//! What a host for tests knows and remembers, and what plugins hand it, as plain records.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use svc_plugin_fixture::{
    Asked, Tape,
    record::{self, as_object, is_set, is_unset},
    work::Files,
};
use svc_plugin_text::join_url;

/// The redirects that a request follows, as in the real host.
const MAX_REDIRECTS: usize = 10;

/// When the tests of plugins happen, unless they say otherwise: 2026-01-01.
const NOW_MS: u64 = 1_767_225_600_000;

thread_local! {
    /// The host whose plugin is running on this thread.
    pub(crate) static RUNNING: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Does something with the running host.
pub(crate) fn with_host<T>(work: impl FnOnce(&mut State) -> T) -> T {
    RUNNING.with_borrow_mut(|running| {
        let host = running.as_mut();
        work(host.expect("plugins run inside svc_plugin::test::Host::run, resolve, link or preview"))
    })
}

/// What a host knows and remembers.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) settings: BTreeMap<String, String>,
    /// By slot and name.
    pub(crate) secrets: BTreeMap<(String, String), String>,
    pub(crate) features: BTreeSet<String>,
    pub(crate) storage: BTreeMap<String, Vec<u8>>,
    pub(crate) log: Vec<String>,
    pub(crate) now_ms: u64,
    pub(crate) locale: String,
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) tape: Option<Tape>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) random: u64,
    /// Those of a finished download.
    pub(crate) files: Files,
    /// What `yt-dlp` finds, by page.
    #[cfg(feature = "serde")]
    pub(crate) media: BTreeMap<String, Result<String, ToolError>>,
}

/// Why a program gave no result.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// The user has not switched it on, or it is missing or too old.
    NotAllowed(String),
    /// Not a URL that may be looked at, or the page leads to an address that may not be reached.
    Denied(String),
    /// It found nothing.
    Failed(String),
    /// It took longer, or printed more, than it may.
    TooMuch(String),
}

impl Default for State {
    fn default() -> Self {
        Self {
            settings: BTreeMap::new(),
            secrets: BTreeMap::new(),
            features: BTreeSet::new(),
            storage: BTreeMap::new(),
            log: Vec::new(),
            now_ms: NOW_MS,
            locale: "en".to_owned(),
            pages: BTreeMap::new(),
            tape: None,
            sent: Vec::new(),
            random: 0,
            files: Files::default(),
            #[cfg(feature = "serde")]
            media: BTreeMap::new(),
        }
    }
}

impl State {
    /// Bytes that look random and are the same in every test (after `SplitMix64`).
    pub(crate) fn random(&mut self, len: usize) -> Vec<u8> {
        let mut next = || {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)).to_le_bytes()
        };
        std::iter::repeat_with(&mut next)
            .take(len.div_ceil(8))
            .flatten()
            .take(len)
            .collect()
    }

    /// The secret of this name of an account; those of no account are the settings, too.
    pub(crate) fn secret(&self, account: &str, name: &str) -> Option<&str> {
        let setting = self.settings.get(name).filter(|_| account.is_empty());
        let kept = || self.secrets.get(&(account.to_owned(), name.to_owned()));
        setting.or_else(kept).map(String::as_str)
    }

    pub(crate) fn keep_secret(&mut self, account: &str, name: &str, value: &str) {
        let key = (account.to_owned(), name.to_owned());
        self.secrets.insert(key, value.to_owned());
    }

    /// The names of the secrets of an account, sorted.
    pub(crate) fn secret_names(&self, account: &str) -> Vec<String> {
        let all = self.secrets.keys().filter(|(other, _)| other == account);
        all.map(|(_, name)| name.clone()).collect()
    }

    /// The page that a request ends at.
    pub(crate) fn answer(&mut self, mut sent: Sent, follows: bool) -> Result<Answered, String> {
        let mut cookies = Vec::new();
        for _ in 0..=MAX_REDIRECTS {
            self.sent.push(sent.clone());
            let page = self.page(&sent);
            cookies.extend(page.set_cookies());
            match page
                .field("location")
                .filter(|_| follows && (300..400).contains(&page.status))
            {
                Some(location) => {
                    let url = join_url(&sent.url, location).map_err(|error| error.to_string())?;
                    sent = sent.redirected(page.status, url);
                }
                None => {
                    return Ok(Answered {
                        url: sent.url,
                        page,
                        cookies,
                    });
                }
            }
        }
        Err("too many redirects".to_owned())
    }

    /// What the test has for a request; it fails if there is nothing.
    fn page(&mut self, sent: &Sent) -> Page {
        if let Some(tape) = &mut self.tape {
            let asked = Asked {
                method: &sent.method,
                url: &sent.url,
                headers: &sent.headers,
                body: &sent.body,
            };
            return match tape.answer(asked) {
                Ok(response) => response.into(),
                Err(unrecorded) => panic!("{unrecorded}"),
            };
        }
        let url = sent.url.split('#').next().unwrap_or_default();
        let known = || self.pages.keys().map(String::as_str).collect::<Vec<_>>().join("\n  ");
        let page = self.pages.get(url).cloned();
        page.unwrap_or_else(|| panic!("the test has no page {url}; it has\n  {}", known()))
    }
}

/// Where a request has ended.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) url: String,
    pub(crate) page: Page,
    /// The `Set-Cookie` fields of all pages on the way.
    pub(crate) cookies: Vec<String>,
}

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; the generated twin has none either")]
pub enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

/// How a digest is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; the generated twin has none either")]
pub enum Encoding {
    Hex,
    Base64,
    Base64url,
}

/// What sort of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it; the generated twin has none either")]
pub enum FileKind {
    File,
    Folder,
    VideoStream,
    AudioStream,
    Subtitle,
    Image,
}

/// Why something is not in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it; the generated twin has none either")]
pub enum LeftOut {
    Unreadable,
    TooManyFiles,
    TooManyFolders,
    TooDeep,
}

/// A response of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Page {
    /// A page of any type.
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
        }
    }

    /// An HTML page.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new("text/html", body)
    }

    /// A JSON text.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new("application/json", body)
    }

    /// A redirect.
    pub fn redirect(location: &str) -> Self {
        Self::html("").status(302).header("location", location)
    }

    /// With another status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// With another field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// Its `Set-Cookie` fields; those of a fixture are the lines of one.
    fn set_cookies(&self) -> impl Iterator<Item = String> {
        let fields = self.headers.iter().filter(|(name, _)| name == "set-cookie");
        fields.flat_map(|(_, value)| value.lines()).map(str::to_owned)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A request of the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The method.
    pub method: String,
    /// Where it went.
    pub url: String,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: Vec<u8>,
}

impl Sent {
    /// The request that follows a redirect. As browsers do, only 307 and 308 send a body again.
    fn redirected(mut self, status: u16, url: String) -> Self {
        if !matches!(status, 307 | 308) && !matches!(self.method.as_str(), "GET" | "HEAD") {
            "GET".clone_into(&mut self.method);
            self.headers.retain(|(name, _)| name != "content-type");
            self.body.clear();
        }
        Self { url, ..self }
    }
}

/// What a resolver handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// What it is called.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// A picture of it.
    pub cover: Option<String>,
    /// Its files.
    pub entries: Vec<Entry>,
    /// The token of the next page.
    pub next_page: Option<String>,
    /// How to ask for the password.
    pub password_prompt: Option<String>,
    /// What is not in it.
    pub left_out: Vec<Omission>,
}

/// Something that is not in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// Why.
    pub kind: LeftOut,
    /// The folder.
    pub name: String,
    /// How many; 0 if that is not known.
    pub count: u32,
}

/// What a feed handler handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Feed {
    /// What it is called.
    pub title: Option<String>,
    /// For the next call.
    pub etag: Option<String>,
    /// How long it asks to be left alone.
    pub ttl_seconds: Option<u32>,
    /// Its items.
    pub items: Vec<Item>,
}

/// An item of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// What the plugin knows it by.
    pub guid: String,
    /// What it is called.
    pub title: String,
    /// The page about it.
    pub link: String,
    /// When it was published.
    pub published_ms: Option<u64>,
    /// What it is about.
    pub summary: Option<String>,
    /// The length of its file or files.
    pub size: Option<u64>,
    /// Its file.
    pub enclosure: Option<Enclosure>,
    /// Of its torrent.
    pub infohash: Option<String>,
    /// Whether its link is for a resolver.
    #[serde(skip_serializing_if = "is_unset")]
    pub resolve_with_plugin: bool,
}

impl Item {
    pub(crate) fn new(guid: &str, title: &str, link: &str) -> Self {
        Self {
            guid: guid.to_owned(),
            title: title.to_owned(),
            link: link.to_owned(),
            ..Self::default()
        }
    }
}

/// The file of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Enclosure {
    /// Where it is.
    pub url: String,
    /// Its media type.
    pub media_type: String,
}

/// An entry, or a variant of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What the plugin knows it by.
    pub id: String,
    /// Its name; the label of a variant.
    pub name: String,
    /// The rank of a variant.
    #[serde(skip)]
    pub rank: i32,
    /// What sort of file it is.
    pub kind: FileKind,
    /// The folder it belongs into.
    pub folder: String,
    /// Its length.
    pub size: Option<u64>,
    /// When it was changed.
    pub modified_ms: Option<u64>,
    /// Algorithms and digests.
    #[serde(serialize_with = "as_object")]
    pub checksums: Vec<(String, String)>,
    /// Its media type.
    pub media_type: Option<String>,
    /// A small picture of it.
    pub thumbnail: Option<String>,
    /// How long it plays.
    pub duration_ms: Option<u64>,
    /// Whether it is wanted unless the user says otherwise.
    #[serde(rename = "selected", skip_serializing_if = "is_set")]
    pub is_selected: bool,
    /// Where it is.
    pub link: Option<Link>,
    /// Its qualities or formats.
    #[serde(serialize_with = "as_variants")]
    pub variants: Vec<Entry>,
}

impl Entry {
    /// An entry of which nothing else is known.
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            rank: 0,
            kind: FileKind::File,
            folder: String::new(),
            size: None,
            modified_ms: None,
            checksums: Vec::new(),
            media_type: None,
            thumbnail: None,
            duration_ms: None,
            is_selected: true,
            link: None,
            variants: Vec::new(),
        }
    }
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The file.
    pub url: String,
    /// Other places of it.
    pub mirrors: Vec<String>,
    /// Fields to send along.
    #[serde(serialize_with = "as_object")]
    pub headers: Vec<(String, String)>,
    /// Fields to send along with secrets in them, which stand there by their names.
    #[serde(serialize_with = "as_object")]
    pub secret_headers: Vec<(String, String)>,
    /// The slot of the account that is to ask for it.
    pub account: Option<String>,
    /// Whether parts of it can be asked for.
    #[serde(rename = "ranges")]
    pub supports_ranges: Option<bool>,
    /// Whether it works only once.
    #[serde(rename = "singleUse", skip_serializing_if = "is_unset")]
    pub is_single_use: bool,
    /// When it ends.
    pub expires_ms: Option<u64>,
    /// How many connections the site allows.
    pub max_connections: Option<u32>,
    /// The sound that belongs to it.
    pub audio: Option<Box<Link>>,
    /// What sort of description the URL leads to.
    pub manifest: Option<String>,
    /// What the file is joined from.
    #[serde(serialize_with = "as_segments")]
    pub segments: Vec<Segment>,
    /// How the next segment is encrypted.
    #[serde(skip)]
    pub(crate) cipher: Option<Cipher>,
}

/// One of the segments that a file is joined from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it is.
    pub url: String,
    /// The first byte and the length, if it is a part of what is there.
    pub part: Option<(u64, u64)>,
    /// How it is encrypted.
    pub cipher: Option<Cipher>,
}

/// AES-128 in CBC mode: the key, then the initialisation vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cipher {
    /// The key is what is at this URL.
    KeyAt(String, Vec<u8>),
    /// The key itself.
    Key(Vec<u8>, Vec<u8>),
}

impl Link {
    /// A link of which nothing else is known.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            mirrors: Vec::new(),
            headers: Vec::new(),
            secret_headers: Vec::new(),
            account: None,
            supports_ranges: None,
            is_single_use: false,
            expires_ms: None,
            max_connections: None,
            audio: None,
            manifest: None,
            segments: Vec::new(),
            cipher: None,
        }
    }
}

fn as_variants<S: Serializer>(variants: &[Entry], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(variants.iter().map(|variant| {
        let mut value = json!(variant);
        value["label"] = value["name"].take();
        value["rank"] = variant.rank.into();
        value
    }))
}

fn as_segments<S: Serializer>(segments: &[Segment], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(segments.iter().map(|segment| -> Value {
        let cipher = segment.cipher.as_ref().map(|cipher| match cipher {
            Cipher::KeyAt(url, iv) => (record::Key::At(url), &iv[..]),
            Cipher::Key(key, iv) => (record::Key::Bytes(key), &iv[..]),
        });
        let part = segment.part.map(|(first, length)| [first, first + length]);
        record::segment(&segment.url, part, cipher)
    }))
}
