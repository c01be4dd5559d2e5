//! How long texts, patterns and answers may be, and the error where one is longer.

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
    /// The search needs more steps than [`Work`](crate::Work) has.
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
    pub(crate) fn invalid(what: &'static str, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Invalid { what, reason }
    }
}

pub(crate) fn check_input(text: &str) -> Result<(), TextError> {
    if text.len() > MAX_INPUT_BYTES {
        return Err(TextError::InputTooLong);
    }
    Ok(())
}

pub(crate) fn check_pattern(pattern: &str, limit: usize) -> Result<(), TextError> {
    if pattern.len() > limit {
        return Err(TextError::PatternTooLong(pattern.len(), limit));
    }
    Ok(())
}

/// What is left of [`MAX_OUTPUT_BYTES`] while an answer is put together.
pub(crate) struct Allowance(usize);

impl Default for Allowance {
    fn default() -> Self {
        Self(MAX_OUTPUT_BYTES)
    }
}

impl Allowance {
    /// What an entry of a list costs by itself, so that many empty answers are counted, too.
    const ENTRY_BYTES: usize = 24;

    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), TextError> {
        self.0 = self
            .0
            .checked_sub(bytes + Self::ENTRY_BYTES)
            .ok_or(TextError::OutputTooLong)?;
        Ok(())
    }
}
