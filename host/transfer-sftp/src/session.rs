//! SFTP over one SSH connection: requests and their replies, with everything bounded that a server sends.

use std::{
    collections::{BTreeSet, VecDeque},
    net::IpAddr,
    time::Duration,
};

use bytes::Bytes;
use egress::Reach;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client::Msg};
use tokio::time::{Instant, timeout_at};
use transfer::{Failure, failure::FailureKind};

use crate::{
    access::Access,
    login::{Login, broken, log_in},
    packet::{self, Attributes, MAX_PACKET_BYTES, Name, Reader, Reply, Request, Status},
    shared::Shared,
};

/// Bytes of one request. OpenSSH and others answer it whole; a server that answers less is asked for less.
pub(crate) const READ_BYTES: u32 = 64 * 1024;

/// The least that is asked for after short answers, except where less is missing.
const MIN_READ_BYTES: u32 = 4 * 1024;

/// Requests that wait for their replies at once: 4 MiB are what a connection of 40 ms needs for 100 MB/s.
pub(crate) const MAX_REQUESTS: usize = 64;

/// Bytes that may wait for being read: the replies to all requests, those that were given up included, and one packet.
const MAX_WAITING_BYTES: usize = 2 * MAX_REQUESTS * (READ_BYTES as usize + 64) + MAX_PACKET_BYTES;

/// Packets in a row that are no bytes of SFTP, such as messages for people, until the connection is closed.
const MAX_OTHER_MESSAGES: usize = 10_000;

/// A login with SFTP.
pub(crate) struct Session {
    login: Login,
    read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    reader: Reader,
    host: String,
    next_id: u32,
    /// Reads that were abandoned: their replies are dropped when they come.
    abandoned: BTreeSet<u32>,
    read_bytes: u32,
    reply_timeout: Duration,
    stall_timeout: Duration,
}

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct Handle(Bytes);

/// A read of a file that waits for its reply.
#[derive(Debug)]
struct Pending {
    id: u32,
    offset: u64,
    length: u32,
    data: Option<Bytes>,
}

/// The reads of one range, in order.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pending: VecDeque<Pending>,
}

impl Session {
    /// Connects, logs in and starts SFTP.
    pub(crate) async fn open(shared: &Shared, access: &Access, reach: Reach) -> Result<Self, Failure> {
        let login = log_in(shared, access, reach).await?;
        let limit = shared.config.reply_timeout;
        let starting = Self::start(shared, access, login);
        let started = tokio::time::timeout(limit, starting).await;
        started.unwrap_or_else(|_| Err(slow(&access.host, limit)))
    }

    async fn start(shared: &Shared, access: &Access, login: Login) -> Result<Self, Failure> {
        let host = access.host.clone();
        let broken = |error| broken(&host, &error);
        let channel = login.handle.channel_open_session().await.map_err(broken)?;
        let (mut read, write) = channel.split();
        write.request_subsystem(true, "sftp").await.map_err(broken)?;
        loop {
            match read.wait().await {
                Some(ChannelMsg::Success) => break,
                Some(ChannelMsg::Failure) => {
                    let why = format!("{host} has no SFTP for {}", access.login.user);
                    return Err(Failure::new(FailureKind::Forbidden, why));
                }
                Some(ChannelMsg::Close | ChannelMsg::Eof) | None => return Err(closed(&host)),
                Some(_) => {}
            }
        }
        let mut session = Self {
            login,
            read,
            write,
            reader: Reader::default(),
            host,
            next_id: 0,
            abandoned: BTreeSet::new(),
            read_bytes: READ_BYTES,
            reply_timeout: shared.config.reply_timeout,
            stall_timeout: shared.config.stall_timeout,
        };
        session.send(packet::hello()).await?;
        let first = session.packet(session.reply_timeout).await?;
        let version = packet::version(first).map_err(|why| session.malformed(&why))?;
        if version < packet::VERSION {
            return Err(session.malformed(&format_args!("version {version} of SFTP, which is older than 3")));
        }
        Ok(session)
    }

    /// Where it is connected; unknown behind a proxy.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.login.address
    }

    /// Says goodbye and waits for the end of the connection.
    pub(crate) async fn close(self) {
        let Self { login, read, write, .. } = self;
        drop((read, write));
        login.close().await;
    }

    /// Opens a file for reading.
    pub(crate) async fn open_file(&mut self, path: &[u8]) -> Result<Handle, Failure> {
        let reply = self.call(&Request::Open(path)).await?;
        self.handle("to open the file", reply)
    }

    /// The attributes of an open file.
    pub(crate) async fn file_attributes(&mut self, handle: &Handle) -> Result<Attributes, Failure> {
        let reply = self.call(&Request::FileAttributes(&handle.0)).await?;
        self.attributes("the attributes of the file", reply)
    }

    /// The attributes of what `path` leads to.
    pub(crate) async fn path_attributes(&mut self, path: &[u8]) -> Result<Attributes, Failure> {
        let reply = self.call(&Request::PathAttributes(path)).await?;
        self.attributes("the attributes of the path", reply)
    }

    /// The attributes of `path` itself, which may be a link.
    pub(crate) async fn link_attributes(&mut self, path: &[u8]) -> Result<Attributes, Failure> {
        let reply = self.call(&Request::LinkAttributes(path)).await?;
        self.attributes("the attributes of a name", reply)
    }

    /// Opens a directory.
    pub(crate) async fn open_directory(&mut self, path: &[u8]) -> Result<Handle, Failure> {
        let reply = self.call(&Request::OpenDirectory(path)).await?;
        self.handle("to list the directory", reply)
    }

    /// The next names of a directory; `None` after the last.
    pub(crate) async fn read_directory(&mut self, handle: &Handle) -> Result<Option<Vec<Name>>, Failure> {
        match self.call(&Request::ReadDirectory(&handle.0)).await? {
            Reply::Names(names) => Ok(Some(names)),
            Reply::Status(Status::Eof, _) => Ok(None),
            other => Err(self.refusal("to list the directory", &other)),
        }
    }

    /// Closes a handle.
    pub(crate) async fn close_handle(&mut self, handle: Handle) -> Result<(), Failure> {
        match self.call(&Request::Close(&handle.0)).await? {
            Reply::Status(..) => Ok(()),
            other => Err(self.refusal("to close a handle", &other)),
        }
    }

    /// Sends a request and waits for its reply.
    async fn call(&mut self, request: &Request<'_>) -> Result<Reply, Failure> {
        let id = self.request(request).await?;
        loop {
            let packet = self.packet(self.reply_timeout).await?;
            let (of, reply) = packet::reply(packet).map_err(|why| self.malformed(&why))?;
            if of == id {
                return Ok(reply);
            }
            self.pass_over(of)?;
        }
    }

    /// Notes the reply to a read that was given up; any other is an error.
    fn pass_over(&mut self, id: u32) -> Result<(), Failure> {
        if self.abandoned.remove(&id) {
            return Ok(());
        }
        Err(self.malformed(&format_args!(
            "a reply to request {id}, which was not made or has been answered"
        )))
    }

    async fn request(&mut self, request: &Request<'_>) -> Result<u32, Failure> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.send(request.packet(id)).await?;
        Ok(id)
    }

    /// Sends a packet. What the server sends meanwhile is read, since it may wait for that.
    async fn send(&mut self, packet: Bytes) -> Result<(), Failure> {
        let deadline = Instant::now() + self.stall_timeout;
        let Self {
            write,
            read,
            reader,
            host,
            ..
        } = self;
        let sending = write.data_bytes(packet);
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return sent.map_err(|error| broken(host, &error)),
                message = read.wait() => {
                    take(host, reader, message)?;
                }
                () = tokio::time::sleep_until(deadline) => return Err(slow(host, self.stall_timeout)),
            }
        }
    }

    /// The next packet. `limit` begins again with every byte of SFTP.
    async fn packet(&mut self, limit: Duration) -> Result<Bytes, Failure> {
        let mut deadline = Instant::now() + limit;
        let mut others = 0;
        loop {
            if let Some(packet) = self.reader.take().map_err(|why| self.malformed(&why))? {
                return Ok(packet);
            }
            let message = timeout_at(deadline, self.read.wait()).await;
            let message = message.map_err(|_| slow(&self.host, limit))?;
            if take(&self.host, &mut self.reader, message)? {
                deadline = Instant::now() + limit;
                continue;
            }
            others += 1;
            if others > MAX_OTHER_MESSAGES {
                return Err(self.malformed(&"messages without end in place of a reply"));
            }
        }
    }

    /// Whether another read may be sent.
    pub(crate) fn has_room(&self, reads: &Reads) -> bool {
        reads.pending.len() < MAX_REQUESTS && reads.pending.len() + self.abandoned.len() < 2 * MAX_REQUESTS
    }

    /// Waits for replies to reads that were given up, if there are so many that no other can be sent.
    pub(crate) async fn make_room(&mut self) -> Result<(), Failure> {
        while self.abandoned.len() > MAX_REQUESTS {
            let packet = self.packet(self.stall_timeout).await?;
            let (id, _) = packet::reply(packet).map_err(|why| self.malformed(&why))?;
            self.pass_over(id)?;
        }
        Ok(())
    }

    /// Whether the file has a byte at `offset`.
    pub(crate) async fn has_byte(&mut self, handle: &Handle, offset: u64) -> Result<bool, Failure> {
        self.read_all(handle, offset, &mut [0]).await
    }

    /// How many bytes the next read asks for, of `missing`.
    pub(crate) fn read_length(&self, missing: u64) -> u32 {
        u32::try_from(missing).unwrap_or(u32::MAX).min(self.read_bytes)
    }

    /// Asks for `length` bytes at `offset`, which is where the last read of `reads` ends.
    pub(crate) async fn ask(
        &mut self,
        handle: &Handle,
        reads: &mut Reads,
        (offset, length): (u64, u32),
    ) -> Result<(), Failure> {
        let id = self.request(&Request::Read(&handle.0, offset, length)).await?;
        reads.pending.push_back(Pending {
            id,
            offset,
            length,
            data: None,
        });
        Ok(())
    }

    /// Waits for a reply to one of `reads`, and asks again for what a short reply left out. Returns how many bytes came.
    pub(crate) async fn receive(&mut self, handle: &Handle, reads: &mut Reads) -> Result<usize, Failure> {
        loop {
            let packet = self.packet(self.stall_timeout).await?;
            let (id, reply) = packet::reply(packet).map_err(|why| self.malformed(&why))?;
            let is_asked = |read: &Pending| read.id == id && read.data.is_none();
            let Some(place) = reads.pending.iter().position(is_asked) else {
                self.pass_over(id)?;
                continue;
            };
            let Pending { offset, length, .. } = reads.pending[place];
            let data = match reply {
                Reply::Data(data) => data,
                other => {
                    // It is answered: a second reply is an error, even after the others are given up.
                    reads.pending.remove(place);
                    if let Reply::Status(Status::Eof, _) = other {
                        let why = format!("{} says that the file ends at byte {offset}", self.host);
                        return Err(Failure::new(FailureKind::SizeMismatch, why));
                    }
                    return Err(self.refusal("to read the file", &other));
                }
            };
            let came = u32::try_from(data.len()).unwrap_or(u32::MAX);
            if came == 0 || came > length {
                let why = format!("{came} bytes where {length} were asked for");
                return Err(self.malformed(&why));
            }
            if came < length {
                self.read_bytes = came.clamp(MIN_READ_BYTES, self.read_bytes);
                let rest = (offset + u64::from(came), length - came);
                let id = self.request(&Request::Read(&handle.0, rest.0, rest.1)).await?;
                let rest = Pending {
                    id,
                    offset: rest.0,
                    length: rest.1,
                    data: None,
                };
                reads.pending.insert(place + 1, rest);
                reads.pending[place].length = came;
            }
            let count = data.len();
            reads.pending[place].data = Some(data);
            return Ok(count);
        }
    }

    /// Gives `reads` up.
    pub(crate) fn abandon(&mut self, reads: &mut Reads) {
        let unanswered = reads.pending.drain(..).filter(|read| read.data.is_none());
        self.abandoned.extend(unanswered.map(|read| read.id));
    }

    /// Fills `buffer` from `offset`; returns whether the file has so many bytes.
    pub(crate) async fn read_all(&mut self, handle: &Handle, offset: u64, buffer: &mut [u8]) -> Result<bool, Failure> {
        let mut reads = Reads::default();
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            if reads.pending.is_empty() {
                let length = self.read_length((buffer.len() - filled) as u64);
                self.ask(handle, &mut reads, (at, length)).await?;
            }
            match self.receive(handle, &mut reads).await {
                Ok(_) => {}
                Err(failure) if failure.kind == FailureKind::SizeMismatch => return Ok(false),
                Err(failure) => return Err(failure),
            }
            while let Some((_, data)) = reads.next() {
                buffer[filled..filled + data.len()].copy_from_slice(&data);
                filled += data.len();
            }
        }
        Ok(true)
    }

    fn handle(&self, what: &str, reply: Reply) -> Result<Handle, Failure> {
        match reply {
            Reply::Handle(handle) => Ok(Handle(handle)),
            other => Err(self.refusal(what, &other)),
        }
    }

    fn attributes(&self, what: &str, reply: Reply) -> Result<Attributes, Failure> {
        match reply {
            Reply::Attributes(attributes) => Ok(attributes),
            other => Err(self.refusal(what, &other)),
        }
    }

    /// The failure for a reply that is not the wanted one.
    fn refusal(&self, what: &str, reply: &Reply) -> Failure {
        let host = &self.host;
        let Reply::Status(status, message) = reply else {
            return self.malformed(&format_args!("another reply than one {what}"));
        };
        let kind = match status {
            Status::NotFound => FailureKind::NotFound,
            Status::Denied => FailureKind::Forbidden,
            Status::Failure(4) => FailureKind::ServerError,
            Status::Failure(6 | 7) => FailureKind::Network,
            Status::Ok | Status::Eof => FailureKind::MalformedResponse,
            Status::Failure(_) => FailureKind::UnexpectedStatus,
        };
        let said = match status {
            Status::Failure(code) => format!("status {code}: {message}"),
            _ => message.clone(),
        };
        Failure::new(kind, format!("{host} refuses {what}: {said}"))
    }

    fn malformed(&self, what: &dyn std::fmt::Display) -> Failure {
        let why = format!("{} sent {what}", self.host);
        Failure::new(FailureKind::MalformedResponse, why)
    }
}

impl Reads {
    /// Where the next read begins, if one is pending.
    pub(crate) fn end(&self) -> Option<u64> {
        self.pending.back().map(|read| read.offset + u64::from(read.length))
    }

    /// Where the first read begins, if one is pending.
    pub(crate) fn start(&self) -> Option<u64> {
        self.pending.front().map(|read| read.offset)
    }

    /// How many reads are pending.
    pub(crate) fn count(&self) -> usize {
        self.pending.len()
    }

    /// The next bytes in order, if they are there, and their offset.
    pub(crate) fn next(&mut self) -> Option<(u64, Bytes)> {
        let data = self.pending.front_mut()?.data.take()?;
        let read = self.pending.pop_front()?;
        Some((read.offset, data))
    }
}

/// Takes a message of the server; returns whether it had bytes of SFTP.
fn take(host: &str, reader: &mut Reader, message: Option<ChannelMsg>) -> Result<bool, Failure> {
    match message {
        Some(ChannelMsg::Data { data }) => {
            if reader.waiting() + data.len() > MAX_WAITING_BYTES {
                let why = format!("{host} sends more than it was asked for");
                return Err(Failure::new(FailureKind::MalformedResponse, why));
            }
            reader.push(&data);
            Ok(!data.is_empty())
        }
        Some(ChannelMsg::Eof | ChannelMsg::Close) | None => Err(closed(host)),
        Some(_) => Ok(false),
    }
}

fn closed(host: &str) -> Failure {
    let why = format!("{host} closed the SFTP connection");
    Failure::new(FailureKind::Network, why)
}

fn slow(host: &str, limit: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("{host} did not reply within {limit:?}"))
}
