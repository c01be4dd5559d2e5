//! What a server says about a file: its size and the time of its last change. Pure.

use std::time::{Duration, SystemTime};

use crate::packet::Attributes;

/// The facts of a file, by which a later run recognises it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its size in bytes.
    pub(crate) size: Option<u64>,
    /// When it was changed, in seconds since 1970.
    pub(crate) modified: Option<u32>,
}

impl Facts {
    pub(crate) fn of(attributes: Attributes) -> Self {
        Self {
            size: attributes.size,
            modified: attributes.modified,
        }
    }

    /// What proves that the file is another one than that of `earlier` facts. What one of them does not have proves nothing.
    pub(crate) fn contradiction(self, earlier: Self) -> Option<String> {
        match (earlier.size, self.size) {
            (Some(before), Some(now)) if before != now => {
                return Some(format!("it had {before} bytes, and has {now} now"));
            }
            _ => {}
        }
        match (earlier.modified, self.modified) {
            (Some(before), Some(now)) if before != now => Some(format!(
                "it was changed at {now}, before at {before} (seconds since 1970)"
            )),
            _ => None,
        }
    }

    /// When the file was changed.
    pub(crate) fn changed_at(self) -> Option<SystemTime> {
        let seconds = Duration::from_secs(self.modified?.into());
        Some(SystemTime::UNIX_EPOCH + seconds)
    }

    /// The time as the journal of a part file has it.
    pub(crate) fn journal_time(self) -> Option<String> {
        self.modified.map(|modified| modified.to_string())
    }

    /// The facts that the journal of a part file has.
    pub(crate) fn of_journal(size: Option<u64>, time: Option<&str>) -> Self {
        Self {
            size,
            modified: time.and_then(|text| text.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_have_can_contradict() {
        let facts = |size, modified| Facts { size, modified };
        assert_eq!(facts(Some(1), Some(2)).contradiction(facts(Some(1), None)), None);
        assert_eq!(facts(Some(1), None).contradiction(facts(None, Some(2))), None);
        assert!(facts(Some(2), None).contradiction(facts(Some(1), None)).is_some());
        let later = facts(Some(1), Some(3)).contradiction(facts(Some(1), Some(2)));
        assert!(later.is_some_and(|why| why.contains("at 3") && why.contains("at 2")));
        let journal = facts(Some(5), Some(7)).journal_time();
        assert_eq!(Facts::of_journal(Some(5), journal.as_deref()), facts(Some(5), Some(7)));
    }
}
