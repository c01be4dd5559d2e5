//! The work budget of a search: patterns and pages are untrusted, so each search has a limit of steps and can be
//! cancelled.

use std::fmt;

use crate::limit::{MAX_INPUT_BYTES, TextError};

/// The steps of one search. A step is one byte of text examined, or one state of the pattern tried at that byte. The
/// budget reads the longest text 128 times; a pattern that suits its text needs far less.
const MAX_STEPS: u64 = 128 * MAX_INPUT_BYTES as u64;

/// How many steps pass between two calls of `may_continue`: some microseconds, so that cancelling takes effect at once
/// and the calls cost nothing.
const STEPS_BETWEEN_CHECKS: u32 = 4096;

/// The remaining budget of a search. The search fails when the steps are used up, or when its owner cancels it.
pub struct Work<'a> {
    left: u64,
    until_check: u32,
    may_continue: Option<&'a mut dyn FnMut() -> bool>,
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
            until_check: STEPS_BETWEEN_CHECKS,
            may_continue: None,
        }
    }
}

impl<'a> Work<'a> {
    /// A budget of `steps`, at most the usual one.
    pub fn of_steps(steps: u64) -> Self {
        Self {
            left: steps.min(MAX_STEPS),
            ..Self::default()
        }
    }

    /// The usual budget, cancelled once `may_continue` returns `false`; it is called every few thousand steps.
    pub fn while_true(may_continue: &'a mut dyn FnMut() -> bool) -> Self {
        Self {
            may_continue: Some(may_continue),
            ..Self::default()
        }
    }

    /// Charges `steps` to the budget. Call it before the work itself, so that a single expensive step is refused, too.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), TextError> {
        self.left = self.left.checked_sub(steps as u64).ok_or(TextError::TooMuchWork)?;
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.until_check.checked_sub(steps) {
            Some(until_check) => self.until_check = until_check,
            None => self.check_cancelled()?,
        }
        Ok(())
    }

    fn check_cancelled(&mut self) -> Result<(), TextError> {
        self.until_check = STEPS_BETWEEN_CHECKS;
        let continues = self.may_continue.as_mut().is_none_or(|may_continue| may_continue());
        continues.then_some(()).ok_or(TextError::Stopped)
    }
}
