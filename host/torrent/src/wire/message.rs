//! Messages after the handshake.

use super::Malformed;
use crate::{
    bitfield::bytes_of,
    geometry::{BLOCK_BYTES, Block},
};

/// The most bytes of an extension's message: a block of metadata with its dictionary is the largest that is needed, and
/// the lists of peer exchange are shorter.
pub(crate) const MAX_EXTENDED_BYTES: u32 = 24 * 1024;

/// The most bytes of a bitfield while the number of pieces is unknown: 512 Ki pieces.
const MAX_UNKNOWN_BITFIELD_BYTES: u32 = 64 * 1024;

/// Bytes of a `piece` message before its data: length, id, piece and offset.
pub(crate) const PIECE_HEADER_BYTES: usize = 13;

const CHOKE: u8 = 0;
const UNCHOKE: u8 = 1;
const INTERESTED: u8 = 2;
const NOT_INTERESTED: u8 = 3;
const HAVE: u8 = 4;
const BITFIELD: u8 = 5;
const REQUEST: u8 = 6;
const PIECE: u8 = 7;
const CANCEL: u8 = 8;
const PORT: u8 = 9;
const SUGGEST: u8 = 13;
const HAVE_ALL: u8 = 14;
const HAVE_NONE: u8 = 15;
const REJECT: u8 = 16;
const ALLOWED_FAST: u8 = 17;
const EXTENDED: u8 = 20;

/// One message. Data of a `piece` message is no part of it: it follows on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    KeepAlive,
    Choke,
    Unchoke,
    Interested,
    NotInterested,
    Have(u32),
    Bitfield(&'a [u8]),
    Request(Block),
    /// The bytes of the block follow.
    Piece(Block),
    Cancel(Block),
    /// Port of the peer's DHT node.
    Port(u16),
    Suggest(u32),
    HaveAll,
    HaveNone,
    Reject(Block),
    AllowedFast(u32),
    /// A message of an extension: its number by the agreement of BEP 10, and its content.
    Extended(u8, &'a [u8]),
    /// A message that no supported document defines; BEP 3 is silent about these, and other clients ignore them.
    Unknown,
}

/// What the sizes of messages depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The number of pieces, once it is known.
    pub(crate) pieces: Option<u32>,
}

impl Limits {
    /// The most bytes that a message of this id may have, including the id.
    fn of(self, id: u8) -> u32 {
        match id {
            BITFIELD => {
                1 + self.pieces.map_or(MAX_UNKNOWN_BITFIELD_BYTES, |pieces| {
                    u32::try_from(bytes_of(pieces)).expect("an eighth of a 32-bit number")
                })
            }
            PIECE => 9 + BLOCK_BYTES,
            EXTENDED => 2 + MAX_EXTENDED_BYTES,
            // Clients that announce a DHT node on IPv6 have sent longer ones; none of the others is longer than this.
            _ => 64,
        }
    }

    /// The most bytes that must be kept to decode any message, but for the data of pieces.
    pub(crate) fn largest(self) -> usize {
        4 + self.of(BITFIELD).max(self.of(EXTENDED)) as usize
    }
}

/// Decodes the message at the start of `bytes`, and says how many of them it took; `None` if it is not complete yet.
pub(crate) fn decode(bytes: &[u8], limits: Limits) -> Result<Option<(Message<'_>, usize)>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    if length == 0 {
        return Ok(Some((Message::KeepAlive, 4)));
    }
    let Some(&id) = rest.first() else {
        return Ok(None);
    };
    let limit = limits.of(id);
    if length > limit {
        return Err(Malformed::Long { id, length, limit });
    }
    let wrong = Err(Malformed::Length { id, length });
    if id == PIECE {
        if length < 10 {
            return wrong;
        }
        let Some((at, _)) = rest[1..].split_first_chunk::<8>() else {
            return Ok(None);
        };
        let block = Block {
            piece: number(&at[..4]),
            begin: number(&at[4..]),
            length: length - 9,
        };
        return Ok(Some((Message::Piece(block), PIECE_HEADER_BYTES)));
    }
    let Some(message) = rest.get(..length as usize) else {
        return Ok(None);
    };
    let Some(message) = body(id, &message[1..]) else {
        return wrong;
    };
    Ok(Some((message, 4 + length as usize)))
}

/// The message of this id; `None` if it cannot have this length.
fn body(id: u8, body: &[u8]) -> Option<Message<'_>> {
    let piece = || (body.len() == 4).then(|| number(body));
    let block = || {
        (body.len() == 12).then(|| Block {
            piece: number(&body[..4]),
            begin: number(&body[4..8]),
            length: number(&body[8..]),
        })
    };
    let alone = |message| body.is_empty().then_some(message);
    match id {
        CHOKE => alone(Message::Choke),
        UNCHOKE => alone(Message::Unchoke),
        INTERESTED => alone(Message::Interested),
        NOT_INTERESTED => alone(Message::NotInterested),
        HAVE => piece().map(Message::Have),
        BITFIELD => Some(Message::Bitfield(body)),
        REQUEST => block().map(Message::Request),
        CANCEL => block().map(Message::Cancel),
        PORT => (body.len() == 2).then(|| Message::Port(u16::from_be_bytes([body[0], body[1]]))),
        SUGGEST => piece().map(Message::Suggest),
        HAVE_ALL => alone(Message::HaveAll),
        HAVE_NONE => alone(Message::HaveNone),
        REJECT => block().map(Message::Reject),
        ALLOWED_FAST => piece().map(Message::AllowedFast),
        EXTENDED => body.split_first().map(|(id, rest)| Message::Extended(*id, rest)),
        _ => Some(Message::Unknown),
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// Appends `message`. Of a `piece` message only what precedes the data.
pub(crate) fn encode(message: Message<'_>, into: &mut Vec<u8>) {
    match message {
        Message::KeepAlive => into.extend_from_slice(&[0; 4]),
        Message::Choke => alone(CHOKE, into),
        Message::Unchoke => alone(UNCHOKE, into),
        Message::Interested => alone(INTERESTED, into),
        Message::NotInterested => alone(NOT_INTERESTED, into),
        Message::Have(piece) => numbers(HAVE, &[piece], into),
        Message::Bitfield(bits) => {
            head(BITFIELD, bits.len(), into);
            into.extend_from_slice(bits);
        }
        Message::Request(block) => of_block(REQUEST, block, into),
        Message::Piece(block) => {
            head(PIECE, 8 + block.length as usize, into);
            into.extend_from_slice(&block.piece.to_be_bytes());
            into.extend_from_slice(&block.begin.to_be_bytes());
        }
        Message::Cancel(block) => of_block(CANCEL, block, into),
        Message::Port(port) => {
            head(PORT, 2, into);
            into.extend_from_slice(&port.to_be_bytes());
        }
        Message::Suggest(piece) => numbers(SUGGEST, &[piece], into),
        Message::HaveAll => alone(HAVE_ALL, into),
        Message::HaveNone => alone(HAVE_NONE, into),
        Message::Reject(block) => of_block(REJECT, block, into),
        Message::AllowedFast(piece) => numbers(ALLOWED_FAST, &[piece], into),
        Message::Extended(id, content) => {
            head(EXTENDED, 1 + content.len(), into);
            into.push(id);
            into.extend_from_slice(content);
        }
        // There is nothing to say.
        Message::Unknown => {}
    }
}

fn head(id: u8, body_bytes: usize, into: &mut Vec<u8>) {
    let length = u32::try_from(1 + body_bytes).expect("our messages are short");
    into.extend_from_slice(&length.to_be_bytes());
    into.push(id);
}

fn alone(id: u8, into: &mut Vec<u8>) {
    head(id, 0, into);
}

fn numbers(id: u8, numbers: &[u32], into: &mut Vec<u8>) {
    head(id, 4 * numbers.len(), into);
    for number in numbers {
        into.extend_from_slice(&number.to_be_bytes());
    }
}

fn of_block(id: u8, block: Block, into: &mut Vec<u8>) {
    numbers(id, &[block.piece, block.begin, block.length], into);
}

#[cfg(test)]
mod tests;
