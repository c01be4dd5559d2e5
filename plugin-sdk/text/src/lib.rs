//! What a plugin may ask its host to do with text: JSON pointers, CSS selectors, regular expressions, decoding.
//!
//! *Owns* these functions and their bounds. The host runs them for sandboxed plugins, and the guest SDK runs the same
//! code natively, so a plugin's tests see exactly what the host will answer. Texts, patterns and selectors come from
//! strangers: every function takes memory at most linear in its (bounded) input, and time as well, or as long as the
//! [`Work`] lasts that it is given.
//!
//! *Never* keeps state, reads a clock or does I/O.
//!
//! Start reading at [`select`] and [`json_at`].

mod decode;
mod html;
mod json;
mod pattern;
mod url;
mod work;

pub use decode::{aes_decrypt_cbc, base64_decode, digest};
pub use html::{Node, select};
pub use json::json_at;
pub use pattern::{captures, group, is_match};
pub use url::{UrlParts, form, join_url, parse_url, with_query};
pub use work::Work;

/// The longest text that is searched. A page with ten thousand files has about 2 MiB.
pub const MAX_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// The most bytes that one search may give back: matches can overlap, so they can be many times their source.
pub const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// Why a text could not be searched or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The pattern or selector is longer than anybody needs.
    #[error("the pattern has {0} bytes; the limit is {1}")]
    PatternTooLong(usize, usize),
    /// The text is longer than [`MAX_INPUT_BYTES`].
    #[error("the text is longer than {} MiB", MAX_INPUT_BYTES >> 20)]
    InputTooLong,
    /// The answer is longer than [`MAX_OUTPUT_BYTES`].
    #[error("the answer is longer than {} MiB", MAX_OUTPUT_BYTES >> 20)]
    OutputTooLong,
    /// The search needs more steps than [`Work`] has.
    #[error(
        "the search takes too long: its pattern reads most of the text again for each match; make it say more exactly \
         what a match begins and ends with, or search a shorter text"
    )]
    TooMuchWork,
    /// Its owner ended it.
    #[error("the search was ended")]
    Stopped,
    /// The pattern, selector or pointer is not one.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// What was expected.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl TextError {
    #[expect(clippy::needless_pass_by_value, reason = "errors come by value, texts by reference")]
    fn invalid(what: &'static str, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Invalid { what, reason }
    }
}

fn check_input(text: &str) -> Result<(), TextError> {
    if text.len() > MAX_INPUT_BYTES {
        return Err(TextError::InputTooLong);
    }
    Ok(())
}

fn check_pattern(pattern: &str, limit: usize) -> Result<(), TextError> {
    if pattern.len() > limit {
        return Err(TextError::PatternTooLong(pattern.len(), limit));
    }
    Ok(())
}

/// What is left of [`MAX_OUTPUT_BYTES`] while an answer is put together.
struct Allowance(usize);

impl Default for Allowance {
    fn default() -> Self {
        Self(MAX_OUTPUT_BYTES)
    }
}

impl Allowance {
    /// What an entry of a list costs by itself, so that many empty answers are counted, too.
    const ENTRY_BYTES: usize = 24;

    fn take(&mut self, bytes: usize) -> Result<(), TextError> {
        self.0 = self
            .0
            .checked_sub(bytes + Self::ENTRY_BYTES)
            .ok_or(TextError::OutputTooLong)?;
        Ok(())
    }
}
