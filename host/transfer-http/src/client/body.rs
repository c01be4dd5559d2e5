//! The body of a response without its framing. A connection that breaks before the end of the body is a failure, never
//! an end.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
};

use bytes::Buf as _;
use egress::route::Stream;
use tokio::time::{Duration, timeout};
use transfer::{Failure, failure::FailureKind};

use crate::{
    client::connection::{Connection, broken, poll_read},
    client::head::Framing,
};

/// The longest chunk-size line, extensions included.
const MAX_CHUNK_LINE_BYTES: usize = 4 * 1024;

/// Limit of the trailers after the last chunk.
const MAX_TRAILER_BYTES: usize = 64 * 1024;

/// Read size while parsing chunk sizes.
const CHUNK_READ_BYTES: usize = 16 * 1024;

/// An unread rest of at most this size is read to its end, so that the connection can be reused.
const DRAIN_BYTES: u64 = 64 * 1024;

/// Limit for draining a body; a new connection costs less than waiting longer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A response's body. Reading it to its end returns its connection to the pool.
pub(crate) struct Body {
    connection: Option<Connection>,
    state: State,
    keeps_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// This many bytes follow.
    Length(u64),
    /// At the line with the next chunk's size; the flag says that the line end of the previous chunk comes first.
    ChunkLine {
        after_chunk: bool,
    },
    /// This many bytes of a chunk follow.
    Chunk(u64),
    /// After the last chunk; this many bytes of trailers read.
    Trailers(usize),
    UntilClose,
    Ended,
}

impl Body {
    pub(crate) fn new(connection: Connection, framing: Framing, keeps_alive: bool) -> Self {
        let state = match framing {
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkLine { after_chunk: false },
            Framing::UntilClose => State::UntilClose,
        };
        let mut body = Self {
            connection: Some(connection),
            state,
            keeps_alive,
        };
        if state == State::Length(0) {
            body.end();
        }
        body
    }

    /// The remaining bytes, if known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Ended => Some(0),
            _ => None,
        }
    }

    /// The socket, if the kernel may read the next bytes from it directly: plain TCP, a known length, and nothing of
    /// the body in our buffer.
    pub(crate) fn raw_socket(&self) -> Option<&tokio::net::TcpStream> {
        match (self.state, self.connection.as_ref()) {
            (
                State::Length(_),
                Some(Connection {
                    stream: Stream::Tcp(tcp),
                    received,
                    ..
                }),
            ) if received.is_empty() => Some(tcp),
            _ => None,
        }
    }

    /// Accounts for `taken` bytes that the kernel read; 0 means that the stream ended.
    pub(crate) fn took(&mut self, taken: u64) -> Result<(), Failure> {
        // `raw_socket` is `None` for any other state, so the body has ended already.
        let State::Length(left) = self.state else {
            return Err(self.cut_off());
        };
        if taken == 0 {
            return Err(self.cut_off());
        }
        self.advance_length(left, taken);
        Ok(())
    }

    /// Reads bytes of the body into `bytes`. Returns how many, 0 at the body's end. A connection that breaks before the
    /// end is a failure.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<Result<usize, Failure>> {
        loop {
            match self.state {
                State::Ended => return Poll::Ready(Ok(0)),
                State::Length(left) => {
                    let read = ready!(self.poll_some(cx, bytes, left))?;
                    if read == 0 {
                        return Poll::Ready(Err(self.cut_off()));
                    }
                    self.advance_length(left, read as u64);
                    return Poll::Ready(Ok(read));
                }
                State::Chunk(left) => {
                    let read = ready!(self.poll_some(cx, bytes, left))?;
                    if read == 0 {
                        return Poll::Ready(Err(self.cut_off()));
                    }
                    let left = left - read as u64;
                    self.state = if left == 0 {
                        State::ChunkLine { after_chunk: true }
                    } else {
                        State::Chunk(left)
                    };
                    return Poll::Ready(Ok(read));
                }
                State::UntilClose => {
                    let read = ready!(self.poll_some(cx, bytes, u64::MAX))?;
                    if read == 0 {
                        self.keeps_alive = false;
                        self.end();
                    }
                    return Poll::Ready(Ok(read));
                }
                State::ChunkLine { after_chunk } => ready!(self.poll_chunk_line(cx, after_chunk))?,
                State::Trailers(seen) => ready!(self.poll_trailer(cx, seen))?,
            }
        }
    }

    /// Reads the next bytes; fails after `stall` without any.
    pub(crate) async fn read(&mut self, bytes: &mut [u8], stall: Duration) -> Result<usize, Failure> {
        let host = self.host();
        timeout(stall, poll_fn(|cx| self.poll_read(cx, bytes)))
            .await
            .unwrap_or_else(|_| Err(stalled(&host, stall)))
    }

    /// Reads the rest, if it is small, so that the connection can be reused; drops the connection otherwise.
    pub(crate) async fn drain(mut self) {
        let left = self.remaining().unwrap_or(u64::MAX);
        if left == 0 || left > DRAIN_BYTES || !self.keeps_alive {
            return;
        }
        let mut scrap = vec![0; usize::try_from(left).unwrap_or(usize::MAX)];
        let _unread = timeout(DRAIN_TIMEOUT, async {
            while poll_fn(|cx| self.poll_read(cx, &mut scrap))
                .await
                .is_ok_and(|read| read > 0)
            {}
        })
        .await;
    }

    pub(crate) fn host(&self) -> String {
        self.connection
            .as_ref()
            .map_or_else(String::new, |connection| connection.key.host.clone())
    }

    /// Buffered bytes first, then directly from the stream into the caller's buffer.
    fn poll_some(&mut self, cx: &mut Context<'_>, bytes: &mut [u8], limit: u64) -> Poll<Result<usize, Failure>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Ok(0));
        };
        let room = bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        if !connection.received.is_empty() {
            let taken = room.min(connection.received.len());
            connection.received.copy_to_slice(&mut bytes[..taken]);
            return Poll::Ready(Ok(taken));
        }
        let read = ready!(poll_read(&mut connection.stream, cx, &mut bytes[..room]));
        Poll::Ready(read.map_err(|error| broken(&connection.key.host, &error)))
    }

    fn advance_length(&mut self, left: u64, by: u64) {
        self.state = State::Length(left - by);
        if left == by {
            self.end();
        }
    }

    fn end(&mut self) {
        self.state = State::Ended;
        if let Some(connection) = self.connection.take().filter(|_| self.keeps_alive) {
            connection.keep();
        }
    }

    fn cut_off(&self) -> Failure {
        let host = self.host();
        match self.state {
            State::Length(left) => Failure::new(
                FailureKind::Network,
                format!("{host} closed the connection {left} bytes before the announced end"),
            ),
            _ => broken(&host, &io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn poll_chunk_line(&mut self, cx: &mut Context<'_>, after_chunk: bool) -> Poll<Result<(), Failure>> {
        let line = ready!(self.poll_line(cx, MAX_CHUNK_LINE_BYTES))?;
        self.state = match (after_chunk, line.as_slice()) {
            (true, b"") => State::ChunkLine { after_chunk: false },
            (true, _) => return Poll::Ready(Err(malformed("a chunk is longer than its size says"))),
            (false, line) => match chunk_size(line) {
                Some(0) => State::Trailers(0),
                Some(size) => State::Chunk(size),
                None => return Poll::Ready(Err(malformed("a chunk has no valid size"))),
            },
        };
        Poll::Ready(Ok(()))
    }

    fn poll_trailer(&mut self, cx: &mut Context<'_>, seen: usize) -> Poll<Result<(), Failure>> {
        let line = ready!(self.poll_line(cx, MAX_CHUNK_LINE_BYTES))?;
        if line.is_empty() {
            self.end();
        } else if seen + line.len() > MAX_TRAILER_BYTES {
            return Poll::Ready(Err(malformed("the trailers never end")));
        } else {
            self.state = State::Trailers(seen + line.len());
        }
        Poll::Ready(Ok(()))
    }

    /// The next line, without its end.
    fn poll_line(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<Result<Vec<u8>, Failure>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(Err(malformed("the body has ended")));
            };
            if let Some(end) = connection.received.iter().position(|byte| *byte == b'\n') {
                let mut line = connection.received.split_to(end + 1).to_vec();
                line.truncate(end);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Poll::Ready(Ok(line));
            }
            if connection.received.len() > limit {
                return Poll::Ready(Err(malformed("a line between chunks never ends")));
            }
            match ready!(connection.poll_receive(cx, CHUNK_READ_BYTES)) {
                Ok(0) => return Poll::Ready(Err(self.cut_off())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(broken(&self.host(), &error))),
            }
        }
    }
}

/// A chunk's size: hexadecimal digits, then nothing or extensions (RFC 9112, section 7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or(line).trim_ascii();
    let text = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` accepts a leading sign, the protocol does not.
    text.bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u64::from_str_radix(text, 16).ok())?
}

fn malformed(why: &str) -> Failure {
    Failure::new(
        FailureKind::MalformedResponse,
        format!("the response is malformed: {why}"),
    )
}

/// The failure of a body without bytes for `after`.
pub(crate) fn stalled(host: &str, after: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("{host} sent nothing for {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_hexadecimal_and_fit() {
        assert_eq!(chunk_size(b"1aF"), Some(0x1af));
        assert_eq!(chunk_size(b"10 ; name=value"), Some(16));
        assert_eq!(chunk_size(b"0"), Some(0));
        for bad in [&b""[..], b"-1", b"+1", b"0x10", b"fffffffffffffffff", b"g"] {
            assert_eq!(chunk_size(bad), None, "{bad:?}");
        }
    }
}
