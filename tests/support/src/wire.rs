//! Putting a reply on the wire, with or without TLS, and ending the connection in every way there is.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{
    reply::{Chunks, End, Framing, Head, Pace, Piece, Reply},
    request::Request,
    server::Stop,
};

/// A block of body goes out at a time; also the size of a chunk.
const BLOCK_BYTES: u64 = 16 * 1024;

/// Bytes of one drop of a dripping body.
const DRIP_BYTES: u64 = 7;

/// With a paced body the send buffer is kept this small, so that what was sent is close to what was received.
const PACED_SEND_BUFFER_BYTES: usize = 32 * 1024;

/// A connection to a client.
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Wire {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }

    pub(crate) fn tls(stream: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, stream))))
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Sends `reply` to `request`. An error means that the peer left early. `meet` is called before what is special about
    /// the reply goes out: its cut or its epilogue, if it has one, or else its head.
    pub(crate) fn send(&mut self, request: &Request, reply: &Reply, stop: &Stop, meet: &dyn Fn()) -> io::Result<End> {
        if let Pace::BytesPerSecond(_) = reply.pace {
            rustix::net::sockopt::set_socket_send_buffer_size(self.socket(), PACED_SEND_BUFFER_BYTES)?;
        }
        if reply.cut.is_none() && reply.epilogue.is_empty() {
            meet();
        }
        self.write_all(&reply.preface)?;
        self.send_head(reply, stop)?;
        if request.method == "HEAD" {
            self.write_all(&reply.epilogue)?;
            return Ok(reply.end);
        }
        let mut body = BodySender {
            wire: self,
            request,
            reply,
            stop,
            meet,
            sent: 0,
            started: Instant::now(),
        };
        if let Some(end) = body.send()? {
            return Ok(end);
        }
        if !reply.epilogue.is_empty() {
            meet();
        }
        self.write_all(&reply.epilogue)?;
        Ok(reply.end)
    }

    fn send_head(&mut self, reply: &Reply, stop: &Stop) -> io::Result<()> {
        if let Head::Endless { opening, line, pause } = reply.head {
            self.write_all(opening.as_bytes())?;
            loop {
                self.write_all(line.as_bytes())?;
                wait(stop, pause)?;
            }
        }
        let head = reply.head_bytes();
        let Some(pause) = reply.head_pause else {
            return self.write_all(&head);
        };
        for byte in head {
            self.write_all(&[byte])?;
            wait(stop, pause)?;
        }
        Ok(())
    }

    /// Ends the connection in this way. The socket itself closes when the last copy of it is dropped.
    pub(crate) fn finish(mut self, end: End) {
        // Whatever fails here, the peer has left before, which is what was wanted.
        let _left_already = match end {
            End::KeepAlive | End::Close => self.close(),
            End::CloseAbruptly => self
                .socket()
                .shutdown(Shutdown::Write)
                .and_then(|()| drain(self.socket())),
            End::Reset => {
                rustix::net::sockopt::set_socket_linger(self.socket(), Some(Duration::ZERO)).map_err(io::Error::from)
            }
            End::Stall => drain(self.socket()),
        };
    }

    fn close(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.socket().shutdown(Shutdown::Write)?;
        drain(self.socket())
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Reads until the peer leaves: closing a socket with unread bytes would reset the connection.
fn drain(mut socket: &TcpStream) -> io::Result<()> {
    let mut sink = [0; 4096];
    while socket.read(&mut sink)? > 0 {}
    Ok(())
}

/// Waits, and is an error once the server ends.
fn wait(stop: &Stop, pause: Duration) -> io::Result<()> {
    if stop.pause(pause) {
        Err(io::ErrorKind::ConnectionAborted.into())
    } else {
        Ok(())
    }
}

/// The body of one response on its way.
struct BodySender<'a> {
    wire: &'a mut Wire,
    request: &'a Request,
    reply: &'a Reply,
    stop: &'a Stop,
    meet: &'a dyn Fn(),
    sent: u64,
    started: Instant,
}

impl BodySender<'_> {
    /// Sends the body; the end, if it is cut.
    fn send(&mut self) -> io::Result<Option<End>> {
        for piece in &self.reply.body {
            let mut offset = 0;
            while offset < piece.len() {
                // Not after the last block: an answer counts as under way until this returns, and its client is done then.
                self.keep_pace()?;
                if let Some(end) = self.is_cut() {
                    self.wire.flush()?;
                    return Ok(Some(end));
                }
                let len = self.next_len(piece.len() - offset);
                self.send_block(&block(piece, offset, len))?;
                offset += len;
            }
        }
        if let Some(end) = self.is_cut() {
            return Ok(Some(end));
        }
        if let Framing::Chunked(chunks) = self.reply.framing {
            let end = if chunks == Chunks::Decorated {
                "0;last\r\nX-Trailer: one\r\n\r\n"
            } else {
                "0\r\n\r\n"
            };
            self.wire.write_all(end.as_bytes())?;
        }
        self.wire.flush()?;
        Ok(None)
    }

    fn is_cut(&self) -> Option<End> {
        let (_, end) = self.reply.cut.filter(|(after, _)| self.sent >= *after)?;
        (self.meet)();
        Some(end)
    }

    fn next_len(&self, left: u64) -> u64 {
        let most = if self.drips() { DRIP_BYTES } else { BLOCK_BYTES };
        let until_cut = self.reply.cut.map_or(u64::MAX, |(after, _)| after - self.sent);
        left.min(most).min(until_cut)
    }

    fn drips(&self) -> bool {
        matches!(self.reply.pace, Pace::Drip { times, .. } if self.sent < u64::from(times) * DRIP_BYTES)
    }

    fn keep_pace(&mut self) -> io::Result<()> {
        match self.reply.pace {
            Pace::Full => Ok(()),
            Pace::Drip { .. } if self.sent == 0 => Ok(()),
            Pace::Drip { pause, .. } if self.drips() => wait(self.stop, pause),
            Pace::Drip { .. } => Ok(()),
            Pace::BytesPerSecond(rate) => {
                let due = Duration::from_nanos(self.sent.saturating_mul(1_000_000_000) / rate.max(1));
                wait(self.stop, due.saturating_sub(self.started.elapsed()))
            }
        }
    }

    fn send_block(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Framing::Chunked(chunks) = self.reply.framing {
            let size = match chunks {
                Chunks::SizeLine { from, text } if self.sent >= from => text.to_owned(),
                Chunks::Decorated => format!("{:x};name=value;quoted=\"a;b\"", bytes.len()),
                _ => format!("{:x}", bytes.len()),
            };
            self.wire.write_all(format!("{size}\r\n").as_bytes())?;
        }
        self.wire.write_all(bytes)?;
        if matches!(self.reply.framing, Framing::Chunked(chunks) if chunks != Chunks::Unterminated) {
            self.wire.write_all(b"\r\n")?;
        }
        self.sent += bytes.len() as u64;
        self.request.count_sent(bytes.len() as u64);
        Ok(())
    }
}

fn block(piece: &Piece, offset: u64, len: u64) -> Vec<u8> {
    match piece {
        Piece::Content { content, start, .. } => content.slice(start + offset..start + offset + len),
        Piece::Bytes(bytes) => {
            let index = |at: u64| usize::try_from(at).expect("a body in memory fits the address space");
            bytes[index(offset)..index(offset + len)].to_vec()
        }
    }
}
