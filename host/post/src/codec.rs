//! Decoders of compressed streams.

use std::io::{self, Read};

use bzip2::read::{BzDecoder, MultiBzDecoder};
use flate2::read::{DeflateDecoder, MultiGzDecoder};
use lzma_rust2::{LzmaReader, XzReader, lzma_get_memory_usage_by_props};
use ruzstd::decoding::FrameDecoder;

/// The largest dictionary or model of a decoder. With it, the unpacker stays below its limit of address space.
pub(crate) const MAX_DICTIONARY_BYTES: u64 = (MAX_DICTIONARY_KIB as u64) << 10;

/// The same in KiB, as the decoders of LZMA and 7z take it.
pub(crate) const MAX_DICTIONARY_KIB: u32 = 768 << 10;

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

impl Codec {
    /// The codec of a stream that begins with `start`.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decodes a file that consists of such streams.
    pub(crate) fn decode<'a>(self, input: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(input)),
            Self::Xz => Box::new(XzReader::new_mem_limit(input, true, MAX_DICTIONARY_KIB)),
            Self::Zstd => Box::new(Zstd::new(input)),
        }
    }
}

/// Decodes an entry of a ZIP archive by its method; `None` if the method is not supported. `size` is that of the
/// decoded bytes.
pub(crate) fn zip_method<'a>(
    method: u16,
    size: u64,
    mut input: impl Read + 'a,
) -> Option<io::Result<Box<dyn Read + 'a>>> {
    let decoder: Box<dyn Read + 'a> = match method {
        0 => Box::new(input),
        8 => Box::new(DeflateDecoder::new(input)),
        12 => Box::new(BzDecoder::new(input)),
        14 => {
            let mut head = [0; 9];
            return Some(input.read_exact(&mut head).and_then(|()| lzma(head, size, input)));
        }
        93 => Box::new(Zstd::new(input)),
        95 => Box::new(XzReader::new_mem_limit(input, false, MAX_DICTIONARY_KIB)),
        _ => return None,
    };
    Some(Ok(decoder))
}

/// LZMA in ZIP: two bytes of version, two of the length of the properties (five), the properties.
fn lzma<'a>(head: [u8; 9], size: u64, input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let [_, _, 5, 0, properties, dictionary @ ..] = head else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its LZMA properties are invalid",
        ));
    };
    let dictionary = u32::from_le_bytes(dictionary);
    if lzma_get_memory_usage_by_props(dictionary, properties)? > MAX_DICTIONARY_KIB {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let decoder = LzmaReader::new_with_props(input, size, properties, dictionary, None)?;
    Ok(Box::new(decoder))
}

/// Frames of Zstandard, one after the other.
struct Zstd<R> {
    input: R,
    frame: FrameDecoder,
    state: Frame,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A frame may begin.
    Between {
        is_first: bool,
    },
    Inside,
    Ended,
}

impl<R: Read> Zstd<R> {
    fn new(input: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MAX_DICTIONARY_BYTES);
        let state = Frame::Between { is_first: true };
        Self { input, frame, state }
    }

    fn begin(&mut self, is_first: bool) -> io::Result<()> {
        let mut magic = [0; 4];
        let mut read = 0;
        while read < magic.len() {
            match self.input.read(&mut magic[read..])? {
                0 => break,
                some => read += some,
            }
        }
        if read == 0 && !is_first {
            self.state = Frame::Ended;
            return Ok(());
        }
        match u32::from_le_bytes(magic) {
            0xfd2f_b528 => {
                let head = magic.as_slice().chain(&mut self.input);
                self.frame.reset(head).map_err(io::Error::other)?;
                self.state = Frame::Inside;
            }
            0x184d_2a50..=0x184d_2a5f => {
                let mut length = [0; 4];
                self.input.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
            }
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a Zstandard frame is damaged",
                ));
            }
        }
        Ok(())
    }

    fn continue_frame(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
        while self.frame.can_collect() == 0 && !self.frame.is_finished() {
            let decoded = self.frame.decode_blocks(&mut self.input, UptoBlocks(1));
            decoded.map_err(io::Error::other)?;
        }
        let read = self.frame.read(buffer)?;
        if self.frame.is_finished() && self.frame.can_collect() == 0 {
            let expected = self.frame.get_checksum_from_data();
            if expected.is_some() && expected != self.frame.get_calculated_checksum() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the checksum of a frame is wrong",
                ));
            }
            self.state = Frame::Between { is_first: false };
        }
        Ok(read)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                Frame::Ended => return Ok(0),
                Frame::Between { is_first } => self.begin(is_first)?,
                Frame::Inside => match self.continue_frame(buffer)? {
                    0 => {}
                    read => return Ok(read),
                },
            }
        }
    }
}
