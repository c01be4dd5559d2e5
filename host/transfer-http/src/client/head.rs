//! Heads of requests and responses, and how a response's body is framed (RFC 9112).

use std::time::{Duration, SystemTime};

use transfer::{Failure, failure::FailureKind};

/// The longest response head. Servers stop accepting or sending between 8 KiB and 64 KiB.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most header lines in a response.
const MAX_HEADERS: usize = 128;

/// The head of a request, to be sent as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHead {
    lines: Vec<u8>,
}

impl RequestHead {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self {
            lines: format!("{method} {target} HTTP/1.1\r\n").into_bytes(),
        }
    }

    /// Adds a header. Callers validate values and report errors by name; as a last defence, a value that would end its
    /// line or the head is dropped.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        const BREAKING: [char; 3] = ['\r', '\n', '\0'];
        if name.contains(BREAKING) || name.contains(':') || value.contains(BREAKING) {
            tracing::error!(header = %name.escape_default(), "a header with a line end in it is not sent");
            debug_assert!(false, "unchecked header {}", name.escape_default());
            return;
        }
        for part in [name, ": ", value, "\r\n"] {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }

    /// The head's bytes, its empty line included, followed by `body`.
    pub(crate) fn encode(mut self, body: &[u8]) -> Vec<u8> {
        self.lines.extend_from_slice(b"\r\n");
        self.lines.extend_from_slice(body);
        self.lines
    }
}

/// The head of a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    is_http10: bool,
    /// Names are lower-case; values are as sent.
    headers: Vec<(String, Vec<u8>)>,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// By an empty chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

fn malformed(why: impl Into<String>) -> Failure {
    Failure::new(FailureKind::MalformedResponse, why)
}

impl ResponseHead {
    /// Parses the head at the start of `bytes`: the head and its length, or `None` if it is not complete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Failure> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = httparse::ParserConfig::default()
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .parse_response(&mut response, bytes);
        match parsed {
            Ok(httparse::Status::Complete(length)) => {
                let head = Self {
                    status: response.code.unwrap_or(0),
                    is_http10: response.version == Some(0),
                    headers: response
                        .headers
                        .iter()
                        .map(|header| (header.name.to_ascii_lowercase(), header.value.trim_ascii().to_vec()))
                        .collect(),
                };
                Ok(Some((head, length)))
            }
            Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD_BYTES => Err(malformed(format!(
                "the response head is longer than {MAX_HEAD_BYTES} bytes"
            ))),
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                Err(malformed(format!("the response has more than {MAX_HEADERS} headers")))
            }
            Err(error) => Err(malformed(format!("the response is not HTTP: {error}"))),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(status: u16, headers: &[(&str, &str)]) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        Self {
            status,
            is_http10: false,
            headers,
        }
    }

    /// The first value of a header, as sent; `name` is lower-case.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_slice())
    }

    /// The first value of a header, if it is text; `name` is lower-case.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All values of a header, as sent; `name` is lower-case.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.headers
            .iter()
            .filter(move |(header, _)| header == name)
            .map(|(_, value)| value.as_slice())
    }

    /// How the body is framed (RFC 9112, section 6.3). Both a length and chunks indicate request smuggling; chunks then
    /// take precedence, as the RFC says, and the connection is not reused.
    pub(crate) fn framing(&self) -> Result<Framing, Failure> {
        if matches!(self.status, 100..=199 | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        let mut codings = self.all("transfer-encoding").peekable();
        if codings.peek().is_some() {
            let is_chunked = codings.all(|coding| coding.eq_ignore_ascii_case(b"chunked"));
            return if is_chunked {
                Ok(Framing::Chunked)
            } else {
                Err(Failure::new(
                    FailureKind::Encoding,
                    "the server uses a transfer coding that is not supported",
                ))
            };
        }
        Ok(self.content_length()?.map_or(Framing::UntilClose, Framing::Length))
    }

    /// The announced length of the body. Repeated equal lengths are allowed, different ones are an error.
    pub(crate) fn content_length(&self) -> Result<Option<u64>, Failure> {
        let mut length = None;
        for value in self
            .all("content-length")
            .flat_map(|value| value.split(|byte| *byte == b','))
        {
            let value = value.trim_ascii();
            let parsed = std::str::from_utf8(value)
                .ok()
                .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|text| text.parse::<u64>().ok())
                .ok_or_else(|| malformed("the Content-Length is not a number of bytes"))?;
            if length.is_some_and(|length| length != parsed) {
                return Err(malformed("the response has two different Content-Lengths"));
            }
            length = Some(parsed);
        }
        Ok(length)
    }

    /// Whether the connection may carry another request after this response.
    pub(crate) fn keeps_alive(&self) -> bool {
        let has = |token: &str| {
            self.all("connection")
                .flat_map(|value| value.split(|byte| *byte == b','))
                .any(|value| value.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
        };
        let is_ambiguous = self.get("transfer-encoding").is_some() && self.get("content-length").is_some();
        !is_ambiguous
            && if self.is_http10 {
                has("keep-alive")
            } else {
                !has("close")
            }
    }

    /// How long the server asks to wait (`Retry-After`, seconds or a date).
    pub(crate) fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        transfer::retry_after(self.text("retry-after")?, now)
    }

    /// The media type without its parameters, lower-case.
    pub(crate) fn media_type(&self) -> Option<String> {
        let value = self.text("content-type")?;
        let essence = value.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        (!essence.is_empty()).then_some(essence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ResponseHead {
        ResponseHead::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn a_head_is_read_up_to_its_empty_line() {
        let text = "HTTP/1.1 206 Partial Content\r\nETag:  \"a\" \r\nX: 1\r\n\r\nbody";
        let (head, length) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((head.status, &text[length..]), (206, "body"));
        assert_eq!(head.text("etag"), Some("\"a\""));
        assert!(ResponseHead::parse(&text.as_bytes()[..20]).unwrap().is_none());
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(ResponseHead::parse(b"<html>hello</html>\r\n\r\n").is_err());
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(MAX_HEAD_BYTES));
        assert!(ResponseHead::parse(endless.as_bytes()).is_err());
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(MAX_HEADERS + 1));
        assert!(ResponseHead::parse(many.as_bytes()).is_err());
    }

    #[test]
    fn lengths_must_be_numbers_and_agree() {
        let framing = |headers: &str| parse(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).framing();
        assert_eq!(framing("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(
            framing("Content-Length: 5, 5\r\nContent-Length: 5\r\n"),
            Ok(Framing::Length(5))
        );
        assert_eq!(framing(""), Ok(Framing::UntilClose));
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\nContent-Length: 3\r\n"),
            Ok(Framing::Chunked)
        );
        for bad in ["-1", "5, 6", "99999999999999999999", "0x10", "", "+5"] {
            assert!(framing(&format!("Content-Length: {bad}\r\n")).is_err(), "{bad}");
        }
        assert!(framing("Transfer-Encoding: gzip, chunked\r\n").is_err());
    }

    #[test]
    fn connections_are_kept_only_when_that_is_clear() {
        let keeps = |text: &str| parse(text).keeps_alive();
        assert!(keeps("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\n\r\n"));
        assert!(keeps("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"));
        assert!(!keeps(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
        ));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let wait = |value: &str| ResponseHead::of(503, &[("retry-after", value)]).retry_after(at);
        assert_eq!(wait("120"), Some(Duration::from_mins(2)));
        let date = httpdate::fmt_http_date(at + Duration::from_secs(30));
        assert_eq!(wait(&date), Some(Duration::from_secs(30)));
        assert_eq!(wait("soon"), None);
    }
}
