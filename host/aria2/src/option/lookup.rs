//! Look-up of options by name and letter, and their effect at the start of a program.

use super::{
    row::{Effect, Row, Scope},
    table::{AT_START, LETTERS, ROWS},
};
use crate::vocabulary::fault::Refusal;

impl Row {
    /// Every option.
    pub fn all() -> &'static [Self] {
        ROWS
    }

    /// The option of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// The option of this letter.
    pub fn of_letter(letter: char) -> Option<&'static Self> {
        let (_, name) = LETTERS.iter().find(|(known, _)| *known == letter)?;
        Self::of(name)
    }

    /// Whether it is accepted without any effect.
    pub fn is_inert(&self) -> bool {
        self.reason_of_harmless().is_some()
    }

    /// Why a program that is started with it accepts it without effect.
    pub fn reason_of_harmless(&self) -> Option<&'static str> {
        match self.effect_at_start() {
            Effect::Harmless(reason) => Some(reason),
            Effect::Acts | Effect::Refused(_) => None,
        }
    }

    /// Why a program refuses to start with another value than the default.
    pub fn reason_of_refusal(&self) -> Option<&'static str> {
        match self.effect_at_start() {
            Effect::Refused(reason) => Some(reason),
            Effect::Acts | Effect::Harmless(_) => None,
        }
    }

    /// Whether RPC clients can set it.
    pub fn settable_by_rpc(&self) -> bool {
        self.scope != Scope::Start && !matches!(self.effect, Effect::Refused(_))
    }

    /// Whether a program refuses to start with it.
    pub fn is_refused(&self) -> bool {
        self.reason_of_refusal().is_some()
    }

    pub(super) fn effect_at_start(&self) -> Effect {
        let other = AT_START.iter().find(|(name, _)| *name == self.name);
        other.map_or(self.effect, |(_, effect)| *effect)
    }

    /// Parses the value for a program that is started with it. Unsupported behaviour is refused by name.
    pub fn read_at_start(&self, text: &str) -> Result<String, Refusal> {
        Ok(self.read_for(text, self.effect_at_start())?)
    }
}
