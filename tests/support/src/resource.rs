//! A file at an origin: what an honest server would answer, and the behaviours that bend it.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    content::Content,
    reply::{End, Reply},
    request::Request,
};

/// One state of a file, with the validators that tell it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The bytes.
    pub content: Content,
    /// The `ETag`, quotes included.
    pub etag: Option<String>,
    /// The `Last-Modified` date.
    pub last_modified: Option<String>,
}

impl Version {
    /// `content` with validators that are different for every `number`, which is below 60.
    pub fn numbered(content: Content, number: usize) -> Self {
        Self {
            content,
            etag: Some(format!("\"version-{number}\"")),
            last_modified: Some(format!("Wed, 21 Oct 2015 07:28:{:02} GMT", number % 60)),
        }
    }

    /// `content` with no validators.
    pub fn unnamed(content: Content) -> Self {
        Self {
            content,
            etag: None,
            last_modified: None,
        }
    }

    /// The same without its `ETag`.
    #[must_use]
    pub fn without_etag(self) -> Self {
        Self { etag: None, ..self }
    }
}

/// When a request comes, seen from its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Requests for this resource before, HEAD not counted.
    pub nth: usize,
    /// The connection, counted from 0 in the order of acceptance.
    pub connection: usize,
    /// Requests on this connection before.
    pub nth_on_connection: usize,
    /// Bytes of body that this resource has put on the wire before.
    pub served: u64,
    /// Answers of this resource that are on their way, this one included. One that has stalled is not on its way.
    pub active: usize,
}

/// A request with all that an answer may depend on.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// When it comes.
    pub visit: Visit,
    /// The state of the file that it sees.
    pub version: Version,
}

type Behaviour = Box<dyn Fn(&Exchange, &mut Reply) + Send + Sync>;

/// A file at an origin.
pub struct Resource {
    path: String,
    media_type: &'static str,
    methods: Vec<&'static str>,
    version: Box<dyn Fn(&Visit) -> Version + Send + Sync>,
    behaviours: Vec<Behaviour>,
    visits: AtomicUsize,
    active: AtomicUsize,
}

impl Resource {
    /// `content` at `path`, served as it should be.
    pub fn new(path: &str, content: Content) -> Self {
        Self::changing(path, move |_| Version::numbered(content.clone(), 0))
    }

    /// A file at `path` whose state is decided for each request.
    pub fn changing(path: &str, version: impl Fn(&Visit) -> Version + Send + Sync + 'static) -> Self {
        Self {
            path: path.to_owned(),
            media_type: "application/octet-stream",
            methods: vec!["GET", "HEAD"],
            version: Box::new(version),
            behaviours: Vec::new(),
            visits: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
        }
    }

    /// The same with this `Content-Type`.
    #[must_use]
    pub fn media_type(self, media_type: &'static str) -> Self {
        Self { media_type, ..self }
    }

    /// The same that also takes requests with this method.
    #[must_use]
    pub fn method(mut self, method: &'static str) -> Self {
        self.methods.push(method);
        self
    }

    /// The same with one more behaviour, which may change any answer that those before it have left.
    #[must_use]
    pub fn with(mut self, behaviour: impl Fn(&Exchange, &mut Reply) + Send + Sync + 'static) -> Self {
        self.behaviours.push(Box::new(behaviour));
        self
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Counts a request in; the answer counts as active until the guard is dropped.
    pub(crate) fn enter(&self, request: &Request) -> Entered<'_> {
        let counts = usize::from(request.method != "HEAD");
        let nth = self.visits.fetch_add(counts, Ordering::SeqCst);
        let active = self.active.fetch_add(1, Ordering::SeqCst) + 1;
        Entered {
            resource: self,
            nth,
            active,
        }
    }

    pub(crate) fn behaviours(&self) -> usize {
        self.behaviours.len()
    }

    /// The answer, and which of the behaviours have changed it.
    pub(crate) fn reply(&self, request: &Request, visit: Visit) -> (Reply, Vec<usize>) {
        let exchange = Exchange {
            request: request.clone(),
            visit,
            version: (self.version)(&visit),
        };
        let mut reply = if self.methods.contains(&request.method.as_str()) {
            honest(&exchange, self.media_type)
        } else {
            Reply::text(405, "text/plain", "this method is not for this file\n")
        };
        let mut acted = Vec::new();
        for (index, behaviour) in self.behaviours.iter().enumerate() {
            let before = reply.clone();
            behaviour(&exchange, &mut reply);
            acted.extend((reply != before).then_some(index));
        }
        if request.wants_close() && reply.end == End::KeepAlive {
            reply.end = End::Close;
        }
        (reply, acted)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Counts an answer as active while it lives.
pub(crate) struct Entered<'a> {
    resource: &'a Resource,
    pub(crate) nth: usize,
    pub(crate) active: usize,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.resource.active.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What RFC 9110 wants.
fn honest(exchange: &Exchange, media_type: &str) -> Reply {
    let Exchange { request, version, .. } = exchange;
    if request
        .header("if-match")
        .is_some_and(|tag| tag != "*" && Some(tag) != version.etag.as_deref())
    {
        return Reply::text(412, "text/plain", "the file has changed\n");
    }
    let mut reply = whole(version, media_type);
    if request.method != "GET" || !if_range_holds(request, version) {
        return reply;
    }
    let total = version.content.len();
    match asked(request, total) {
        Asked::Whole => {}
        Asked::Nothing => {
            reply = Reply::text(416, "text/plain", "there are no such bytes\n");
            reply.set("Content-Range", format!("bytes */{total}"));
        }
        Asked::Range { first, last } => partial(&mut reply, &version.content, first, last),
    }
    reply
}

/// The answer with the whole file.
pub(crate) fn whole(version: &Version, media_type: &str) -> Reply {
    let mut reply = Reply::new(200);
    reply.set("Content-Type", media_type);
    reply.set("Accept-Ranges", "bytes");
    if let Some(etag) = &version.etag {
        reply.set("ETag", etag);
    }
    if let Some(date) = &version.last_modified {
        reply.set("Last-Modified", date);
    }
    reply.set_body(&version.content, 0, version.content.len());
    reply
}

/// Makes `reply` the answer with these bytes.
pub(crate) fn partial(reply: &mut Reply, content: &Content, first: u64, last: u64) {
    reply.status = 206;
    reply.set("Content-Range", format!("bytes {first}-{last}/{}", content.len()));
    reply.set_body(content, first, last - first + 1);
}

/// What a request wants of a file.
pub(crate) enum Asked {
    Whole,
    Nothing,
    Range { first: u64, last: u64 },
}

pub(crate) fn asked(request: &Request, total: u64) -> Asked {
    if let Some((first, last)) = request.range() {
        if first >= total {
            return Asked::Nothing;
        }
        return Asked::Range {
            first,
            last: last.unwrap_or(u64::MAX).min(total - 1),
        };
    }
    let suffix = request
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=-")?.parse::<u64>().ok());
    match suffix {
        None => Asked::Whole,
        Some(0) => Asked::Nothing,
        Some(_) if total == 0 => Asked::Nothing,
        Some(len) => Asked::Range {
            first: total.saturating_sub(len),
            last: total - 1,
        },
    }
}

/// Whether the file is still the one that the client has begun; only strong validators prove it.
fn if_range_holds(request: &Request, version: &Version) -> bool {
    request.header("if-range").is_none_or(|validator| {
        let is_strong = !validator.starts_with("W/");
        let is_current = [&version.etag, &version.last_modified]
            .into_iter()
            .flatten()
            .any(|known| known == validator);
        is_strong && is_current
    })
}
