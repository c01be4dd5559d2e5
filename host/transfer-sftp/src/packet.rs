//! The packets of SFTP, version 3 (draft-ietf-secsh-filexfer-02), as far as a client that reads needs them. Pure.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use transfer::run::walk::Kind;

/// The version of the protocol. Servers of later versions speak it too.
pub const VERSION: u32 = 3;

/// The longest packet that is accepted: what OpenSSH accepts. A longer one is an error before it has been received.
pub const MAX_PACKET_BYTES: usize = 256 * 1024;

/// The most names in one reply; OpenSSH sends 100.
pub const MAX_NAMES: usize = 4096;

/// The longest name of a file; file systems have up to 255 bytes.
pub const MAX_NAME_BYTES: usize = 4096;

/// The longest handle (section 3).
pub const MAX_HANDLE_BYTES: usize = 256;

/// The longest part of a server's message that is shown.
const MAX_MESSAGE_BYTES: usize = 300;

/// What is wrong with the bytes of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Longer than [`MAX_PACKET_BYTES`].
    #[error("a packet of {0} bytes; the limit is {MAX_PACKET_BYTES}")]
    TooLong(usize),
    /// It ends in the middle of a field.
    #[error("a packet that ends within a field")]
    Cut,
    /// A type that is no reply to a client.
    #[error("a packet of type {0}, which is no reply")]
    Type(u8),
    /// More of something than there can be.
    #[error("{0}")]
    TooMuch(&'static str),
}

/// Splits the bytes of a server into packets.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: BytesMut,
}

impl Reader {
    /// Adds bytes of the server.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole packet without its length.
    pub fn take(&mut self) -> Result<Option<Bytes>, Malformed> {
        let Some(head) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length > MAX_PACKET_BYTES {
            return Err(Malformed::TooLong(length));
        }
        if length == 0 {
            return Err(Malformed::Cut);
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

/// Attributes of a file; what a server leaves out is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The size in bytes.
    pub size: Option<u64>,
    /// Type and permissions, as POSIX has them.
    pub mode: Option<u32>,
    /// When it was changed, in seconds since 1970.
    pub modified: Option<u32>,
}

impl Attributes {
    /// What the file is, if the server tells it.
    pub fn kind(&self) -> Option<Kind> {
        match self.mode? & 0o170_000 {
            0 => None,
            0o100_000 => Some(Kind::File),
            0o040_000 => Some(Kind::Directory),
            _ => Some(Kind::Other),
        }
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its attributes; of a link, those of the link.
    pub attributes: Attributes,
}

/// The code of a reply that is only a status (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It worked.
    Ok,
    /// There is no more.
    Eof,
    /// There is no such file.
    NotFound,
    /// It may not be read.
    Denied,
    /// Any other failure.
    Failure(u32),
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status, with the server's message.
    Status(Status, String),
    /// The handle of a file or directory.
    Handle(Bytes),
    /// Bytes of a file.
    Data(Bytes),
    /// Names of a directory.
    Names(Vec<Name>),
    /// Attributes of a file.
    Attributes(Attributes),
}

/// Reads the version of a server from its first packet.
pub fn version(mut packet: Bytes) -> Result<u32, Malformed> {
    match byte(&mut packet)? {
        2 => number(&mut packet),
        other => Err(Malformed::Type(other)),
    }
}

/// Reads a reply and the number of the request that it belongs to.
pub fn reply(mut packet: Bytes) -> Result<(u32, Reply), Malformed> {
    let kind = byte(&mut packet)?;
    if !matches!(kind, 101..=105) {
        return Err(Malformed::Type(kind));
    }
    let id = number(&mut packet)?;
    let reply = match kind {
        101 => status(&mut packet)?,
        102 => Reply::Handle(handle(&mut packet)?),
        103 => Reply::Data(string(&mut packet)?),
        104 => Reply::Names(names(&mut packet)?),
        _ => Reply::Attributes(attributes(&mut packet)?),
    };
    Ok((id, reply))
}

fn status(packet: &mut Bytes) -> Result<Reply, Malformed> {
    let status = match number(packet)? {
        0 => Status::Ok,
        1 => Status::Eof,
        2 => Status::NotFound,
        3 => Status::Denied,
        code => Status::Failure(code),
    };
    // Servers that follow an early draft send no message.
    let message = if packet.is_empty() {
        Bytes::new()
    } else {
        string(packet)?
    };
    let shown = String::from_utf8_lossy(&message[..message.len().min(MAX_MESSAGE_BYTES)]);
    Ok(Reply::Status(status, shown.replace(char::is_control, " ")))
}

fn handle(packet: &mut Bytes) -> Result<Bytes, Malformed> {
    let handle = string(packet)?;
    if handle.len() > MAX_HANDLE_BYTES {
        return Err(Malformed::TooMuch("a handle of more than 256 bytes"));
    }
    Ok(handle)
}

fn names(packet: &mut Bytes) -> Result<Vec<Name>, Malformed> {
    let count = usize::try_from(number(packet)?).unwrap_or(usize::MAX);
    if count > MAX_NAMES {
        return Err(Malformed::TooMuch("a reply with more than 4096 names"));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let bytes = string(packet)?;
        let _long_form_for_people = string(packet)?;
        let attributes = attributes(packet)?;
        if bytes.len() > MAX_NAME_BYTES {
            return Err(Malformed::TooMuch("a name of more than 4096 bytes"));
        }
        names.push(Name { bytes, attributes });
    }
    Ok(names)
}

fn attributes(packet: &mut Bytes) -> Result<Attributes, Malformed> {
    let flags = number(packet)?;
    let mut found = Attributes::default();
    if flags & 1 != 0 {
        found.size = Some(packet.try_get_u64().map_err(|_| Malformed::Cut)?);
    }
    if flags & 2 != 0 {
        let (_user, _group) = (number(packet)?, number(packet)?);
    }
    if flags & 4 != 0 {
        found.mode = Some(number(packet)?);
    }
    if flags & 8 != 0 {
        let _accessed = number(packet)?;
        found.modified = Some(number(packet)?);
    }
    if flags & 0x8000_0000 != 0 {
        for _ in 0..number(packet)? {
            // Each takes at least eight bytes of the packet, which ends the loop.
            let (_name, _value) = (string(packet)?, string(packet)?);
        }
    }
    Ok(found)
}

fn byte(packet: &mut Bytes) -> Result<u8, Malformed> {
    packet.try_get_u8().map_err(|_| Malformed::Cut)
}

fn number(packet: &mut Bytes) -> Result<u32, Malformed> {
    packet.try_get_u32().map_err(|_| Malformed::Cut)
}

fn string(packet: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = usize::try_from(number(packet)?).unwrap_or(usize::MAX);
    if length > packet.len() {
        return Err(Malformed::Cut);
    }
    Ok(packet.split_to(length))
}

/// A request, without its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// Opens a file for reading.
    Open(&'a [u8]),
    /// Reads so many bytes of a file from an offset.
    Read(&'a [u8], u64, u32),
    /// Closes a handle.
    Close(&'a [u8]),
    /// Attributes of an open file.
    FileAttributes(&'a [u8]),
    /// Attributes of what a path leads to, through links.
    PathAttributes(&'a [u8]),
    /// Attributes of a path itself.
    LinkAttributes(&'a [u8]),
    /// Opens a directory.
    OpenDirectory(&'a [u8]),
    /// The next names of a directory.
    ReadDirectory(&'a [u8]),
}

/// The first packet of a client.
pub fn hello() -> Bytes {
    let mut packet = BytesMut::new();
    packet.put_u32(5);
    packet.put_u8(1);
    packet.put_u32(VERSION);
    packet.freeze()
}

impl Request<'_> {
    /// The packet of the request with the number `id`.
    pub fn packet(&self, id: u32) -> Bytes {
        let (kind, text) = match self {
            Self::Open(path) => (3, path),
            Self::Close(handle) => (4, handle),
            Self::Read(handle, ..) => (5, handle),
            Self::LinkAttributes(path) => (7, path),
            Self::FileAttributes(handle) => (8, handle),
            Self::OpenDirectory(path) => (11, path),
            Self::ReadDirectory(handle) => (12, handle),
            Self::PathAttributes(path) => (17, path),
        };
        let mut packet = BytesMut::with_capacity(text.len() + 32);
        packet.put_u32(0);
        packet.put_u8(kind);
        packet.put_u32(id);
        packet.put_u32(u32::try_from(text.len()).expect("URLs are shorter than 4 GiB"));
        packet.put_slice(text);
        match self {
            Self::Open(_) => {
                // For reading, and no attributes.
                packet.put_u32(1);
                packet.put_u32(0);
            }
            Self::Read(_, offset, length) => {
                packet.put_u64(*offset);
                packet.put_u32(*length);
            }
            _ => {}
        }
        let length = u32::try_from(packet.len() - 4).expect("URLs are shorter than 4 GiB");
        packet[..4].copy_from_slice(&length.to_be_bytes());
        packet.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(parts: &[&[u8]]) -> Bytes {
        Bytes::from(parts.concat())
    }

    fn text(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&length[..], text].concat()
    }

    #[test]
    fn packets_are_split_wherever_the_bytes_are_cut() {
        let sent = [&hello()[..], &Request::Open(b"/a").packet(7)].concat();
        for at in 0..sent.len() {
            let mut reader = Reader::default();
            let mut found = Vec::new();
            for part in [&sent[..at], &sent[at..]] {
                reader.push(part);
                while let Some(packet) = reader.take().unwrap() {
                    found.push(packet);
                }
            }
            assert_eq!(found.len(), 2, "cut at {at}");
            assert_eq!(found[1][0], 3);
        }
    }

    #[test]
    fn lengths_are_limited_before_their_bytes_come() {
        let mut reader = Reader::default();
        reader.push(&(256_u32 * 1024 + 1).to_be_bytes());
        assert_eq!(reader.take(), Err(Malformed::TooLong(256 * 1024 + 1)));
        let mut reader = Reader::default();
        reader.push(&[0; 4]);
        assert_eq!(reader.take(), Err(Malformed::Cut));
    }

    #[test]
    fn replies_are_read() {
        let id = 9_u32.to_be_bytes();
        let status = packet(&[&[101], &id, &[0, 0, 0, 2], &text(b"no\nsuch"), &text(b"")]);
        let expect = Reply::Status(Status::NotFound, "no such".to_owned());
        assert_eq!(reply(status), Ok((9, expect)));
        let attributes = packet(&[
            &[105],
            &id,
            &0x8000_000f_u32.to_be_bytes(),
            &7_u64.to_be_bytes(),
            &[0; 8],
            &0o100_644_u32.to_be_bytes(),
            &[0; 4],
            &1_000_000_u32.to_be_bytes(),
            &1_u32.to_be_bytes(),
            &text(b"name"),
            &text(b"value"),
        ]);
        let Ok((9, Reply::Attributes(found))) = reply(attributes) else {
            panic!("no attributes");
        };
        assert_eq!((found.size, found.modified), (Some(7), Some(1_000_000)));
        assert_eq!(found.kind(), Some(Kind::File));
        let names = packet(&[&[104], &id, &1_u32.to_be_bytes(), &text(b"a"), &text(b"-rw a"), &[0; 4]]);
        let Ok((_, Reply::Names(names))) = reply(names) else {
            panic!("no names");
        };
        assert_eq!(&names[0].bytes[..], b"a");
        assert_eq!(names[0].attributes.kind(), None);
    }

    #[test]
    fn what_is_counted_is_limited() {
        let id = 9_u32.to_be_bytes();
        let many = packet(&[&[104], &id, &u32::MAX.to_be_bytes()]);
        assert!(matches!(reply(many), Err(Malformed::TooMuch(_))));
        let extended = packet(&[&[105], &id, &0x8000_0000_u32.to_be_bytes(), &u32::MAX.to_be_bytes()]);
        assert_eq!(reply(extended), Err(Malformed::Cut));
        let handle = packet(&[&[102], &id, &text(&[0; 257])]);
        assert!(matches!(reply(handle), Err(Malformed::TooMuch(_))));
        assert_eq!(reply(packet(&[&[200], &id])), Err(Malformed::Type(200)));
        let long = packet(&[&[103], &id, &u32::MAX.to_be_bytes(), b"x"]);
        assert_eq!(reply(long), Err(Malformed::Cut));
    }
}
