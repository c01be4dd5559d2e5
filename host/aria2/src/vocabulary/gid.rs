//! GIDs: aria2's names of tasks. The first half of the task id, so they need no table and survive restarts.

use std::fmt;

const DIGITS: usize = 16;

/// The second half of the id of a task with a client-chosen GID. Constant, so that a GID cannot be used twice.
const CHOSEN: u64 = 0x8000_6172_6961_3200;

/// The first 64 bits of a task's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Gid(u64);

impl Gid {
    /// Every task of the daemon has a GID.
    pub(crate) fn of_task(id: &str) -> Option<Self> {
        let (high, _) = uuid::Uuid::try_parse(id).ok()?.as_u64_pair();
        Some(Self(high))
    }

    /// A client-chosen GID: sixteen digits, not zero.
    pub(crate) fn chosen(text: &str) -> Option<Self> {
        let digits = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok()?;
        (digits && number != 0).then_some(Self(number))
    }

    /// The id of a task with this chosen GID.
    pub(crate) fn task_id(self) -> String {
        uuid::Uuid::from_u64_pair(self.0, CHOSEN).to_string()
    }

    /// The first and last GID with this prefix.
    pub(crate) fn range(text: &str) -> Option<(Self, Self)> {
        let is_prefix = (1..=DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_prefix)?;
        let open_bits = u32::try_from(DIGITS - text.len()).ok()? * 4;
        let rest = u64::MAX.checked_shr(u64::BITS - open_bits).unwrap_or(0);
        let first = number.checked_shl(open_bits).unwrap_or(0);
        Some((Self(first), Self(first | rest)))
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gid_is_the_first_half_of_the_tasks_id() {
        let gid = Gid::of_task("0123abcd-4567-4def-8000-000000000000").unwrap();
        assert_eq!(gid.to_string(), "0123abcd45674def");
        let chosen = Gid::chosen("00000000000000A1").unwrap();
        assert_eq!(Gid::of_task(&chosen.task_id()), Some(chosen));
        assert_eq!(chosen.to_string(), "00000000000000a1");
        for bad in [
            "",
            "12",
            "zz",
            "0000000000000000",
            "+000000000000001",
            "00000000000000a11",
        ] {
            assert_eq!(Gid::chosen(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_beginning_names_all_that_begin_like_it() {
        let check = |text: &str, expect: Option<(u64, u64)>| {
            assert_eq!(
                Gid::range(text),
                expect.map(|(first, last)| (Gid(first), Gid(last))),
                "{text}"
            );
        };
        check("1", Some((0x1000_0000_0000_0000, 0x1fff_ffff_ffff_ffff)));
        check("0123456789abcdef", Some((0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef)));
        check("ABCDEF012345678", Some((0xabcd_ef01_2345_6780, 0xabcd_ef01_2345_678f)));
        check("", None);
        check("+1", None);
        check("0123456789abcdef0", None);
    }
}
