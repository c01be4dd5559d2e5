//! Decodes a content coding that the server applied although none was requested.

use std::io::Write;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use transfer::{Failure, failure::FailureKind};

/// An incremental decoder.
pub(crate) enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// `deflate` means zlib, but some servers send raw deflate; the first byte decides.
    Deflate(Option<ZlibOrBare>),
}

/// The two formats called `deflate`.
pub(crate) enum ZlibOrBare {
    Zlib(ZlibDecoder<Vec<u8>>),
    Bare(DeflateDecoder<Vec<u8>>),
}

fn failed(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        FailureKind::Encoding,
        format!("the server's compressed body is broken: {why}"),
    )
}

impl Decoder {
    /// A decoder for `coding`, or why there is none.
    pub(crate) fn new(coding: &str) -> Result<Self, Failure> {
        match coding {
            "gzip" | "x-gzip" => Ok(Self::Gzip(MultiGzDecoder::new(Vec::new()))),
            "deflate" => Ok(Self::Deflate(None)),
            _ => Err(Failure::new(
                FailureKind::Encoding,
                format!("the server sent the file in the encoding {coding:?} although none was asked for"),
            )),
        }
    }

    /// Decodes `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let (Some(first), Self::Deflate(none @ None)) = (bytes.first(), &mut *self) else {
            return self.push_on(bytes);
        };
        // A zlib stream starts with its method, 8, in the low bits (RFC 1950).
        *none = Some(if first & 0x0f == 8 {
            ZlibOrBare::Zlib(ZlibDecoder::new(Vec::new()))
        } else {
            ZlibOrBare::Bare(DeflateDecoder::new(Vec::new()))
        });
        self.push_on(bytes)
    }

    fn push_on(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Gzip(decoder) => decoder.write_all(bytes).map(|()| std::mem::take(decoder.get_mut())),
            Self::Deflate(Some(ZlibOrBare::Zlib(decoder))) => {
                decoder.write_all(bytes).map(|()| std::mem::take(decoder.get_mut()))
            }
            Self::Deflate(Some(ZlibOrBare::Bare(decoder))) => {
                decoder.write_all(bytes).map(|()| std::mem::take(decoder.get_mut()))
            }
            Self::Deflate(None) => Ok(Vec::new()),
        }
        .map_err(|error| failed(&error))
    }

    /// The last bytes of the decoded file. Fails if the body ended before its coding did.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Gzip(decoder) => decoder.finish(),
            Self::Deflate(Some(ZlibOrBare::Zlib(decoder))) => decoder.finish(),
            Self::Deflate(Some(ZlibOrBare::Bare(decoder))) => decoder.finish(),
            Self::Deflate(None) => Ok(Vec::new()),
        }
        .map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::*;

    fn decode(coding: &str, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut decoder = Decoder::new(coding)?;
        let mut decoded = Vec::new();
        for chunk in bytes.chunks(7) {
            decoded.extend(decoder.push(chunk)?);
        }
        decoded.extend(decoder.finish()?);
        Ok(decoded)
    }

    #[test]
    fn codings_are_undone_whole() {
        let text = b"the same words over and over, the same words over and over".repeat(100);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(&text).unwrap();
        assert_eq!(decode("gzip", &gzip).unwrap(), text);
        assert_eq!(decode("deflate", &zlib.finish().unwrap()).unwrap(), text);
        assert_eq!(decode("deflate", &bare.finish().unwrap()).unwrap(), text);
        assert!(
            decode("gzip", &gzip[..gzip.len() - 9]).is_err(),
            "a cut body is not a whole one"
        );
        let mut damaged = gzip.clone();
        damaged[20] ^= 0xff;
        assert!(decode("gzip", &damaged).is_err());
    }

    #[test]
    fn unknown_codings_are_refused_by_name() {
        let Err(failure) = Decoder::new("br") else {
            panic!("br is not supported")
        };
        assert!(failure.message.contains("br"));
    }
}
