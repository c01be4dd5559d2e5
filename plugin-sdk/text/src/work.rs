//! What a search may cost.

use std::fmt;

use crate::limit::{MAX_INPUT_BYTES, TextError};

/// The steps of one search: a step is a byte of text that is looked at, or a place of the pattern that is tried there. It
/// is the longest text read over a hundred times, far more than a pattern that fits its text needs.
const MAX_STEPS: u64 = 128 * MAX_INPUT_BYTES as u64;

/// After how many steps the owner of a search is asked whether it goes on: some microseconds.
const STEPS_BETWEEN_QUESTIONS: u32 = 4096;

/// What a search may still cost. It ends with its steps, and when its owner says so.
pub struct Work<'a> {
    left: u64,
    until_asked: u32,
    may_go_on: Option<&'a mut dyn FnMut() -> bool>,
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Default for Work<'_> {
    fn default() -> Self {
        Self {
            left: MAX_STEPS,
            until_asked: STEPS_BETWEEN_QUESTIONS,
            may_go_on: None,
        }
    }
}

impl<'a> Work<'a> {
    /// No more than this, which is less than what searches otherwise may cost.
    pub fn of_steps(steps: u64) -> Self {
        Self {
            left: steps.min(MAX_STEPS),
            ..Self::default()
        }
    }

    /// As much as searches may cost, and only while `may_go_on` answers with `true`. It is asked again and again.
    pub fn while_true(may_go_on: &'a mut dyn FnMut() -> bool) -> Self {
        Self {
            may_go_on: Some(may_go_on),
            ..Self::default()
        }
    }

    /// Takes steps that are about to be made.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), TextError> {
        self.left = self.left.checked_sub(steps as u64).ok_or(TextError::TooMuchWork)?;
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.until_asked.checked_sub(steps) {
            Some(until_asked) => self.until_asked = until_asked,
            None => self.ask()?,
        }
        Ok(())
    }

    fn ask(&mut self) -> Result<(), TextError> {
        self.until_asked = STEPS_BETWEEN_QUESTIONS;
        let goes_on = self.may_go_on.as_mut().is_none_or(|may_go_on| may_go_on());
        goes_on.then_some(()).ok_or(TextError::Stopped)
    }
}
