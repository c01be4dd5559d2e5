//! An answer before it is sent: plain data that a behaviour may bend before the wire sees it.

use std::time::Duration;

use crate::content::Content;

/// How a response ends, and with it the connection, unless it is kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection stays for the next request.
    KeepAlive,
    /// An orderly close; over TLS with `close_notify`.
    Close,
    /// The transport is closed without TLS's `close_notify`; without TLS the same as [`End::Close`].
    CloseAbruptly,
    /// A TCP reset.
    Reset,
    /// Nothing more comes, and the connection stays open until the peer leaves.
    Stall,
}

/// What tells the peer where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`, unless a header of that name is already there.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunks),
    /// Only the end of the connection.
    Close,
}

/// How chunks look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// As the standard says.
    Plain,
    /// As the standard says, with chunk extensions and trailer fields.
    Decorated,
    /// From this byte of the body on, the line with the chunk's size reads so instead.
    SizeLine {
        /// The first byte of the body to which it happens.
        from: u64,
        /// The text in place of the size.
        text: &'static str,
    },
    /// The line end after each chunk's data is missing.
    Unterminated,
}

/// What is put on the wire in place of status line and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// What status and headers say.
    Plain,
    /// These bytes.
    Raw(Vec<u8>),
    /// The opening, then the line again and again until the peer leaves.
    Endless {
        /// Sent once.
        opening: &'static str,
        /// Sent for ever.
        line: &'static str,
        /// The pause between lines.
        pause: Duration,
    },
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// `len` bytes of the content from `start` on.
    Content {
        /// Which content.
        content: Content,
        /// First byte.
        start: u64,
        /// Number of bytes.
        len: u64,
    },
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Content { len, .. } => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// How fast a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// As fast as it can.
    #[default]
    Full,
    /// This many bytes per second.
    BytesPerSecond(u64),
    /// `times` times a few bytes and a pause, then as fast as it can.
    Drip {
        /// How often.
        times: u32,
        /// How long each pause is.
        pause: Duration,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Sent before everything else, such as interim responses.
    pub preface: Vec<u8>,
    /// In place of status line and headers.
    pub head: Head,
    /// A pause after each byte of the head, if any.
    pub head_pause: Option<Duration>,
    /// The version in the status line.
    pub version: &'static str,
    /// The status code.
    pub status: u16,
    /// Header fields in order, values as raw bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<Piece>,
    /// What tells where the body ends.
    pub framing: Framing,
    /// How fast the body goes.
    pub pace: Pace,
    /// After this many bytes of the body, the response ends like this instead.
    pub cut: Option<(u64, End)>,
    /// Sent after the body.
    pub epilogue: Vec<u8>,
    /// How the response ends.
    pub end: End,
}

impl Reply {
    /// An answer with this status, no headers and no body.
    pub fn new(status: u16) -> Self {
        Self {
            preface: Vec::new(),
            head: Head::Plain,
            head_pause: None,
            version: "HTTP/1.1",
            status,
            headers: Vec::new(),
            body: Vec::new(),
            framing: Framing::Length,
            pace: Pace::Full,
            cut: None,
            epilogue: Vec::new(),
            end: End::KeepAlive,
        }
    }

    /// An answer with this status and a short text as body.
    pub fn text(status: u16, media_type: &str, text: impl Into<Vec<u8>>) -> Self {
        let mut reply = Self::new(status);
        reply.set("Content-Type", media_type);
        reply.body = vec![Piece::Bytes(text.into())];
        reply
    }

    /// Sets a header field, replacing those of the same name.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Adds a header field after the others.
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
    }

    /// Removes all header fields of this name.
    pub fn remove(&mut self, name: &str) {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
    }

    /// The first header field of this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Length of the body.
    pub fn body_len(&self) -> u64 {
        self.body.iter().map(Piece::len).sum()
    }

    /// Makes the body this stretch of `content`.
    pub fn set_body(&mut self, content: &Content, start: u64, len: u64) {
        self.body = vec![Piece::Content {
            content: content.clone(),
            start,
            len,
        }];
    }

    /// The head as it goes over the wire, empty line included.
    pub(crate) fn head_bytes(&self) -> Vec<u8> {
        if let Head::Raw(bytes) = &self.head {
            return bytes.clone();
        }
        let mut head = format!("{} {} {}\r\n", self.version, self.status, reason(self.status)).into_bytes();
        let mut field = |name: &str, value: &[u8]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        for (name, value) in &self.headers {
            field(name, value);
        }
        match self.framing {
            Framing::Length if self.header("Content-Length").is_none() && !is_bodiless(self.status) => {
                field("Content-Length", self.body_len().to_string().as_bytes());
            }
            Framing::Chunked(_) => field("Transfer-Encoding", b"chunked"),
            Framing::Length | Framing::Close => {}
        }
        if self.end != End::KeepAlive && self.header("Connection").is_none() {
            field("Connection", b"close");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// Statuses whose responses end with their head.
fn is_bodiless(status: u16) -> bool {
    status < 200 || matches!(status, 204 | 304)
}

fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        407 => "Proxy Authentication Required",
        410 => "Gone",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unnamed",
    }
}
