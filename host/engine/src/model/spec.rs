//! The specification of a task as the user gave it, and the limits of its fields.

use std::{path::PathBuf, sync::Arc};

use transfer::{
    Checksum, FileName, GivenBy, OnConflict, PieceHashes, RequestOptions, RetryPolicy, SafeUrl, Secret, TorrentOptions,
    source::MAX_URLS,
};

use crate::model::{
    id::{GroupId, QueueId},
    proxy::ProxyChoice,
    resolution::Resolution,
    seeding::SeedLimits,
    speed::Speeds,
};

/// The most segments of one task.
pub const MAX_SEGMENTS: u16 = 64;

/// The most connections of one run.
pub const MAX_CONNECTIONS: u16 = 128;

/// The most extra headers; browsers send about twenty.
pub const MAX_HEADERS: usize = 128;

/// The longest header or cookie value in bytes. Servers stop at 8 to 64 KiB for all of them together.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The longest name of a queue or group.
pub const MAX_LABEL_BYTES: usize = 512;

/// The most additional trackers, and webseeds, of one torrent.
pub const MAX_TRACKERS: usize = 256;

/// The most tags of a task.
pub const MAX_TAGS: usize = 32;

/// The longest tag.
pub const MAX_TAG_BYTES: usize = 64;

/// The largest request body. Bodies are captured forms, not uploads.
pub const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The specification of a task. `Default` has no URL and is not valid; start from [`TaskSpec::new`] or
/// [`TaskSpec::parse`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the switches that a request has")]
pub struct TaskSpec {
    /// The file's URL, then mirrors of the same bytes.
    pub urls: Vec<SafeUrl>,
    /// The file's name; `None` takes it from the server or the URL.
    pub file_name: Option<FileName>,
    /// The directory, absolute; `None` is the queue's, else the settings', else the configured one.
    pub save_dir: Option<PathBuf>,
    /// Segments; 0 is the queue's number, else the settings', else automatic.
    pub segments: u16,
    /// The most connections of a run; `None` is the settings' ceiling.
    pub max_connections: Option<u16>,
    /// A range is never split finer than this; `None` is the transport's own limit.
    pub min_split_bytes: Option<u64>,
    /// The request: method, body, headers, cookies, referrer, user agent, credentials.
    pub request: RequestOptions,
    /// Which proxy.
    pub proxy: ProxyChoice,
    /// Accept any certificate.
    pub ignore_tls_errors: bool,
    /// How a resolver finds the bytes. A new task without this gets the resolver that claims its URL.
    pub resolution: Option<Resolution>,
    /// Who gave the URLs.
    pub given_by: GivenBy,
    /// The subscription that created it. Once deleted, a task of its id is not created again until the subscription has
    /// noted the deletion ([`Engine::note_deleted`](crate::Engine::note_deleted)).
    pub feed: Option<Box<str>>,
    /// The program that created it without an access key and may change it. The agent checks that.
    pub created_by: Option<Box<str>>,
    /// What the finished bytes must hash to.
    pub checksum: Option<Checksum>,
    /// What the pieces of the finished bytes must hash to.
    pub pieces: Option<Arc<PieceHashes>>,
    /// The size according to the page or plugin that supplied the URL.
    pub promised_size: Option<u64>,
    /// The media type according to the page or plugin that supplied the URL.
    pub promised_type: Option<String>,
    /// The queue; `None` is the default queue.
    pub queue: Option<QueueId>,
    /// The group.
    pub group: Option<GroupId>,
    /// Create it paused; its queue or the user starts it.
    pub start_paused: bool,
    /// Bytes per second at most; 0 is no limit.
    pub speed_limit_bytes: u64,
    /// Bytes per second that it uploads at most; 0 is no limit.
    pub upload_limit_bytes: u64,
    /// What to do if the name is taken; `None` is the settings' rule.
    pub on_conflict: Option<OnConflict>,
    /// Retries and time limits of a run; `None` is the transport's default.
    pub retry: Option<RetryPolicy>,
    /// Continue a part file that no task owns; for command-line runs.
    pub adopt: bool,
    /// Set the file's time from the server; `None` is the settings' rule.
    pub use_server_time: Option<bool>,
    /// Close connections that are slower, in bytes per second; 0 is no limit.
    pub lowest_speed_bytes: u64,
    /// Answers "not found" before the first byte until the run fails; 0 is the first.
    pub max_not_found: u32,
    /// If the file is there, check it instead of downloading it again.
    pub check_integrity: bool,
    /// Use no login of [`crate::Config::netrc`].
    pub no_netrc: bool,
    /// The task's own limits of seeding.
    pub seed_limits: SeedLimits,
    /// Do not seed the finished file.
    pub is_not_seeded: bool,
    /// How it is downloaded if it is a torrent.
    pub torrent: Option<Arc<TorrentOptions>>,
    /// Words of the user by which tasks are found.
    pub tags: Vec<Box<str>>,
    /// Whether a torrent file that the URL leads to is followed instead of saved; `None` is the settings' rule.
    pub follow_torrent: Option<bool>,
}

/// What the copies of one request may have in bytes, if several tasks get it.
const MAX_REPEATED_BYTES: usize = 16 * 1024 * 1024;

/// Why a specification is invalid: the field and its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// There is no URL.
    #[error("url is required")]
    NoUrl,
    /// The URL cannot be used.
    #[error("url: {0}")]
    Url(transfer::safe_url::InvalidUrl),
    /// No transport supports this scheme.
    #[error("url: \"{scheme}\" is not a scheme that can be downloaded; these are: {known}")]
    Scheme {
        /// The scheme.
        scheme: String,
        /// The ones that work, separated by commas.
        known: String,
    },
    /// A number is out of range.
    #[error("{field} is {found}; the limit is {limit}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// The value.
        found: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A text is not what the field needs.
    #[error("{field} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl TaskSpec {
    /// A file at `url`, everything else by default.
    pub fn new(url: SafeUrl) -> Self {
        Self {
            urls: vec![url],
            ..Self::default()
        }
    }

    /// [`TaskSpec::new`] from a text.
    pub fn parse(url: &str) -> Result<Self, InvalidSpec> {
        if url.trim().is_empty() {
            return Err(InvalidSpec::NoUrl);
        }
        SafeUrl::parse(url).map(Self::new).map_err(InvalidSpec::Url)
    }

    /// Checks every field against its limits, except the schemes of URLs: the engine checks those, because it knows the
    /// registered transports.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        if self.urls.is_empty() {
            return Err(InvalidSpec::NoUrl);
        }
        check_limit("the number of urls", self.urls.len(), MAX_URLS)?;
        check_limit("segments", self.segments.into(), MAX_SEGMENTS.into())?;
        check_limit(
            "max connections",
            self.max_connections.unwrap_or(0).into(),
            MAX_CONNECTIONS.into(),
        )?;
        if self.max_connections == Some(0) {
            return Err(InvalidSpec::Field {
                field: "max connections",
                problem: "is 0; the least is 1",
            });
        }
        if let Some(dir) = &self.save_dir {
            validate_dir(dir)?;
        }
        validate_tags(&self.tags)?;
        if let Some(torrent) = &self.torrent {
            check_limit("the number of trackers", torrent.trackers.len(), MAX_TRACKERS)?;
            check_limit("the number of webseeds", torrent.webseeds.len(), MAX_TRACKERS)?;
        }
        self.validate_request()
    }

    fn validate_request(&self) -> Result<(), InvalidSpec> {
        let request = &self.request;
        check_limit("the number of headers", request.headers.len(), MAX_HEADERS)?;
        for (name, value) in &request.headers {
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(InvalidSpec::Field {
                    field: "headers",
                    problem: "have a name that is not an HTTP token",
                });
            }
            header_value("headers", value.expose())?;
        }
        header_value("cookies", request.cookies.expose())?;
        header_value("referrer", &request.referrer)?;
        header_value("user agent", &request.user_agent)?;
        if let Some(method) = &request.method
            && (method.is_empty() || !method.bytes().all(is_token))
        {
            return Err(InvalidSpec::Field {
                field: "method",
                problem: "is not an HTTP token",
            });
        }
        if request
            .credentials
            .as_ref()
            .is_some_and(|credentials| credentials.user.contains(':'))
        {
            return Err(InvalidSpec::Field {
                field: "http user",
                problem: "holds a colon, which HTTP Basic cannot carry",
            });
        }
        check_limit("body bytes", body_bytes(request), MAX_BODY_BYTES)
    }

    pub(crate) fn speeds(&self) -> Speeds {
        Speeds {
            download: self.speed_limit_bytes,
            upload: self.upload_limit_bytes,
        }
    }

    /// Takes the fields that most tasks have out of this specification, and leaves the rare ones.
    pub(crate) fn take_common(&mut self) -> (Vec<SafeUrl>, Option<FileName>, u16) {
        (
            std::mem::take(&mut self.urls),
            self.file_name.take(),
            std::mem::take(&mut self.segments),
        )
    }
}

pub(crate) fn validate_dir(dir: &std::path::Path) -> Result<(), InvalidSpec> {
    let problem = |problem| {
        Err(InvalidSpec::Field {
            field: "save directory",
            problem,
        })
    };
    match dir.to_str() {
        None => problem("is not valid UTF-8"),
        Some(text) if text.contains('\0') => problem("holds a NUL character"),
        Some(_) if !dir.is_absolute() => problem("is not an absolute path"),
        Some(_) => Ok(()),
    }
}

/// Checks the tags of a task.
pub(crate) fn validate_tags(tags: &[Box<str>]) -> Result<(), InvalidSpec> {
    let refuse = |problem| Err(InvalidSpec::Field { field: "tags", problem });
    check_limit("the number of tags", tags.len(), MAX_TAGS)?;
    for (place, tag) in tags.iter().enumerate() {
        check_limit("the bytes of a tag", tag.len(), MAX_TAG_BYTES)?;
        if tag.trim().is_empty() || tag.trim().len() != tag.len() {
            return refuse("are words: none is empty, begins or ends with a space");
        }
        if tag.chars().any(|c| c.is_control() || c == ',') {
            return refuse("have no comma and no control character");
        }
        if tags[..place].contains(tag) {
            return refuse("are there once each");
        }
    }
    Ok(())
}

fn check_limit(field: &'static str, found: usize, limit: usize) -> Result<(), InvalidSpec> {
    if found > limit {
        Err(InvalidSpec::TooMany { field, found, limit })
    } else {
        Ok(())
    }
}

impl TaskSpec {
    /// The size that a magnet link says its torrent has, if all of it is wanted.
    pub(crate) fn announced_bytes(&self) -> Option<u64> {
        let torrent = self.torrent.as_ref();
        if torrent.is_some_and(|torrent| !torrent.files.is_empty()) {
            return None;
        }
        transfer::source::announced(self.urls.first()?).total_bytes
    }

    /// Whether `count` tasks with this request would need more memory than is allowed for copies of one.
    pub fn has_too_much_for(&self, count: usize) -> bool {
        let request = &self.request;
        let headers = request.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.expose().len());
        let urls = self.urls.iter().map(|url| url.expose().len());
        let texts = request.cookies.expose().len() + request.referrer.len() + request.user_agent.len();
        let pieces = self.pieces.as_ref().map_or(0, |pieces| pieces.digest_bytes());
        let bytes = texts + body_bytes(request) + headers.sum::<usize>() + urls.sum::<usize>() + pieces;
        bytes.saturating_mul(count) > MAX_REPEATED_BYTES
    }
}

/// Whether `text` is a valid header value.
fn header_value(field: &'static str, text: &str) -> Result<(), InvalidSpec> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(InvalidSpec::Field {
            field,
            problem: "holds a control character",
        });
    }
    if text.len() > MAX_HEADER_BYTES {
        return Err(InvalidSpec::TooMany {
            field,
            found: text.len(),
            limit: MAX_HEADER_BYTES,
        });
    }
    Ok(())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn body_bytes(request: &RequestOptions) -> usize {
    use transfer::RequestBody;
    match &request.body {
        None => 0,
        Some(RequestBody::FormData(fields)) => fields
            .iter()
            .map(|(name, values)| name.len() + values.iter().map(String::len).sum::<usize>())
            .sum(),
        Some(RequestBody::UrlEncoded(text)) => text.len(),
        Some(RequestBody::Raw { bytes, .. }) => bytes.len(),
    }
}

/// Whether `request` holds a secret that must be sealed before it is stored.
pub(crate) fn has_secrets(request: &RequestOptions) -> bool {
    request.body.is_some()
        || !request.headers.is_empty()
        || !Secret::is_empty(&request.cookies)
        || request.credentials.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut TaskSpec)) -> String {
        let mut spec = TaskSpec::parse("http://a.test/f").unwrap();
        assert_eq!(spec.validate(), Ok(()));
        change(&mut spec);
        spec.validate().unwrap_err().to_string()
    }

    #[test]
    fn a_refusal_names_the_field_and_its_limit() {
        assert_eq!(refused(|spec| spec.segments = 65), "segments is 65; the limit is 64");
        assert_eq!(refused(|spec| spec.urls.clear()), "url is required");
        assert_eq!(
            refused(|spec| spec.save_dir = Some("rel".into())),
            "save directory is not an absolute path"
        );
        assert_eq!(
            refused(|spec| spec.max_connections = Some(0)),
            "max connections is 0; the least is 1"
        );
        assert!(refused(|spec| spec.request.referrer = "a\r\nb".into()).starts_with("referrer holds a control"));
        assert!(refused(|spec| spec.request.headers = vec![("a b".into(), Secret::default())]).contains("token"));
        assert_eq!(TaskSpec::parse("  ").unwrap_err().to_string(), "url is required");
        assert!(
            TaskSpec::parse(&"x".repeat(40_000))
                .unwrap_err()
                .to_string()
                .contains("the limit is")
        );
    }
}
