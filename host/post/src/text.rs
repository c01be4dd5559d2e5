//! Names of entries as text: older archives do not say in which encoding.

use chardetng::EncodingDetector;
use encoding_rs::Encoding;

use crate::refusal::Reason;

/// Decodes names that are not marked as Unicode. One encoding is guessed from all of them together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameDecoder(&'static Encoding);

impl NameDecoder {
    /// Guesses the encoding of `names`.
    pub(crate) fn guess<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut detector = EncodingDetector::new();
        for name in names.filter(|name| std::str::from_utf8(name).is_err()) {
            detector.feed(name, false);
            detector.feed(b"\n", false);
        }
        detector.feed(b"", true);
        Self(detector.guess(None, false))
    }

    /// A name as text: UTF-8 if it is that, else the guessed encoding.
    pub(crate) fn decode(self, name: &[u8]) -> Result<String, Reason> {
        if let Ok(text) = std::str::from_utf8(name) {
            return Ok(text.to_owned());
        }
        let text = self.0.decode_without_bom_handling_and_without_replacement(name);
        text.map(Into::into).ok_or(Reason::NameEncoding)
    }
}
