//! A request as it came over the wire, read with no leniency to spare, and the record of it that tests look at.

use std::{
    io::{self, Read},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::server::lock;

/// A head longer than this is not a downloader's.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// A body longer than this is not a test's.
const MAX_BODY_BYTES: usize = 16 << 20;

/// One request that an origin received.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method, as sent.
    pub method: String,
    /// The request target, as sent: path and query, or an absolute URL at a proxy.
    pub target: String,
    /// Header fields in order, names as sent, values as Latin-1.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The connection it came over, counted from 0 in the order of acceptance.
    pub connection: usize,
    sent: Arc<AtomicU64>,
    tally: Arc<Tally>,
}

/// Where a text stands in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The path of the target.
    Path,
    /// The query of the target.
    Query,
    /// A header field, by its name in lower case; `host` is the name that the client has looked up.
    Header(String),
    /// The body.
    Body,
}

/// Bytes of body that a whole server has put on the wire.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes: Mutex<u64>,
    grown: Condvar,
}

impl Tally {
    pub(crate) fn bytes(&self) -> u64 {
        *lock(&self.bytes)
    }

    fn add(&self, bytes: u64) {
        *lock(&self.bytes) += bytes;
        self.grown.notify_all();
    }

    /// Waits until there are `bytes`; false if that took longer than `patience`.
    pub(crate) fn wait_for(&self, bytes: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut found = lock(&self.bytes);
        while *found < bytes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            found = self
                .grown
                .wait_timeout(found, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Request {
    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// Whether the client wants the connection to end with the answer.
    pub(crate) fn wants_close(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The first field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Where `text` stands in it, as it is or percent-encoded, in upper or lower case.
    pub fn places(&self, text: &str) -> Vec<Place> {
        let wanted = text.to_ascii_lowercase();
        let has = |part: &str| {
            let part = part.to_ascii_lowercase();
            part.contains(&wanted) || percent_decoded(&part).contains(&wanted)
        };
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut places = Vec::new();
        places.extend(has(path).then_some(Place::Path));
        places.extend(has(query).then_some(Place::Query));
        let fields = self.headers.iter().filter(|(name, value)| has(name) || has(value));
        places.extend(fields.map(|(name, _)| Place::Header(name.to_ascii_lowercase())));
        places.extend(has(&String::from_utf8_lossy(&self.body)).then_some(Place::Body));
        places
    }

    /// Bytes of the body that the answer has put on the wire so far, framing not counted.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// The single range that is asked for, as first and (if given) last byte; the last `n` bytes count as none here.
    pub fn range(&self) -> Option<(u64, Option<u64>)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let first = first.trim().parse().ok()?;
        match last.trim() {
            "" => Some((first, None)),
            last => last
                .parse()
                .ok()
                .filter(|last| *last >= first)
                .map(|last| (first, Some(last))),
        }
    }

    pub(crate) fn count_sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::SeqCst);
        self.tally.add(bytes);
    }

    /// Reads one request; `None` when the peer has closed, or stopped being HTTP.
    pub(crate) fn read(stream: &mut impl Read, connection: usize, tally: &Arc<Tally>) -> Option<Self> {
        let head = read_head(stream).ok()?;
        let text: String = head.iter().map(|byte| char::from(*byte)).collect();
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        words.next().filter(|version| version.starts_with("HTTP/1."))?;
        let headers = lines
            .take_while(|line| !line.is_empty())
            .map(|line| {
                line.split_once(':')
                    .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            })
            .collect::<Option<Vec<_>>>()?;
        let mut request = Self {
            method,
            target,
            headers,
            body: Vec::new(),
            connection,
            sent: Arc::default(),
            tally: Arc::clone(tally),
        };
        request.body = read_body(&request, stream)?;
        Some(request)
    }
}

/// A component of a URL, or a part of a form, as it was before it was encoded; `+` is a space.
pub(crate) fn percent_decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent_decoded_bytes(text)).into_owned()
}

/// The same where it is no text.
pub(crate) fn percent_decoded_bytes(text: &str) -> Vec<u8> {
    let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let encoded = (bytes[at] == b'%').then(|| hex(bytes.get(at + 1..at + 3)?)).flatten();
        decoded.push(match (encoded, bytes[at]) {
            (Some(byte), _) => byte,
            (None, b'+') => b' ',
            (None, byte) => byte,
        });
        at += if encoded.is_some() { 3 } else { 1 };
    }
    decoded
}

/// Reads through the empty line, byte by byte so that nothing of what follows is taken. What does not start like a
/// method, such as a TLS handshake, is refused at its first byte.
fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
        if head.len() > MAX_HEAD_BYTES || !head[0].is_ascii_uppercase() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

fn read_body(request: &Request, stream: &mut impl Read) -> Option<Vec<u8>> {
    if request
        .header("transfer-encoding")
        .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    {
        return read_chunked(stream);
    }
    let len: usize = request
        .header("content-length")
        .map_or(Some(0), |len| len.parse().ok())?;
    read_exactly(stream, len)
}

fn read_chunked(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && line.len() < 100 {
            line.extend(read_exactly(stream, 1)?);
        }
        let len = usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim_end(), 16).ok()?;
        body.extend(read_exactly(stream, len)?);
        read_exactly(stream, 2).filter(|end| end == b"\r\n")?;
        if len == 0 {
            return Some(body);
        }
    }
}

fn read_exactly(stream: &mut impl Read, len: usize) -> Option<Vec<u8>> {
    if len > MAX_BODY_BYTES {
        return None;
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Request> {
        Request::read(&mut text.as_bytes(), 3, &Arc::default())
    }

    #[test]
    fn a_request_is_recorded_as_it_came() {
        let request = read("POST /a?b HTTP/1.1\r\nX-One: 1\r\nx-two:  zwei \r\nContent-Length: 3\r\n\r\nabc").unwrap();
        assert_eq!(
            (request.method.as_str(), request.target.as_str(), request.path()),
            ("POST", "/a?b", "/a")
        );
        let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["X-One", "x-two", "Content-Length"]);
        assert_eq!(request.header("X-Two"), Some("zwei"));
        assert_eq!(request.body, b"abc");
        assert_eq!(request.connection, 3);
    }

    #[test]
    fn chunked_bodies_are_read() {
        let request =
            read("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").unwrap();
        assert_eq!(request.body, b"abcde");
    }

    #[test]
    fn ranges_are_read_and_nonsense_is_none() {
        let range = |value: &str| {
            read(&format!("GET / HTTP/1.1\r\nRange: {value}\r\n\r\n"))
                .unwrap()
                .range()
        };
        assert_eq!(range("bytes=0-"), Some((0, None)));
        assert_eq!(range("bytes=5-9"), Some((5, Some(9))));
        assert_eq!(range("bytes=9-5"), None);
        assert_eq!(range("bytes=0-1,5-6"), None);
        assert_eq!(range("items=0-1"), None);
    }

    #[test]
    fn a_text_is_found_wherever_it_stands() {
        let request =
            read("POST /a%2fb?q=A/B HTTP/1.1\r\nHost: a.test\r\nX-Key: a/b\r\nContent-Length: 9\r\n\r\nx=a%2fb+c")
                .unwrap();
        let places = [
            Place::Path,
            Place::Query,
            Place::Header("x-key".to_owned()),
            Place::Body,
        ];
        assert_eq!(request.places("a/b"), places);
        assert_eq!(request.places("A.test"), [Place::Header("host".to_owned())]);
        assert_eq!(request.places("b c"), [Place::Body]);
        assert!(request.places("other").is_empty());
    }

    #[test]
    fn what_is_not_http_ends_the_connection() {
        assert!(read("hello\r\n\r\n").is_none());
        assert!(read("GET / SPDY/3\r\n\r\n").is_none());
        assert!(read("GET / HTTP/1.1\r\nno colon\r\n\r\n").is_none());
        assert!(read("").is_none());
    }
}
