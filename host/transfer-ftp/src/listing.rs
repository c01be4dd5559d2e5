//! Lines of a directory's listing: MLSD (RFC 3659), and what servers without it answer to LIST. Pure.

use transfer::run::walk::Kind;

use crate::place::is_sendable;

/// The longest line of a listing: a path of 4 KiB, and what stands before it.
pub const MAX_LINE_BYTES: usize = 8 * 1024;

/// One name in a directory. It is one component: no separator, not `.` and not `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Its size, if the line has one.
    pub size: Option<u64>,
}

/// What a line of a listing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A name in the directory.
    Entry(Entry),
    /// The directory itself, its parent, or no entry at all.
    Nothing,
    /// A name that no file may have.
    Unusable,
}

/// Reads a line of the answer to MLSD: `type=file;size=5; name`.
pub fn machine(line: &[u8]) -> Line {
    let Some(space) = line.iter().position(|byte| *byte == b' ') else {
        return Line::Nothing;
    };
    let (mut kind, mut size) = (None, None);
    for fact in line[..space].split(|byte| *byte == b';') {
        let Some(equals) = fact.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = (&fact[..equals], &fact[equals + 1..]);
        if name.eq_ignore_ascii_case(b"type") {
            kind = Some(value);
        } else if name.eq_ignore_ascii_case(b"size") {
            size = number(value);
        }
    }
    let kind = match kind {
        Some(kind) if kind.eq_ignore_ascii_case(b"file") => Kind::File,
        Some(kind) if kind.eq_ignore_ascii_case(b"dir") => Kind::Directory,
        Some(kind) if kind.eq_ignore_ascii_case(b"cdir") || kind.eq_ignore_ascii_case(b"pdir") => return Line::Nothing,
        Some(_) => Kind::Other,
        None => return Line::Nothing,
    };
    entry(&line[space + 1..], kind, size)
}

/// Reads a line of the answer to LIST, in the form of `ls -l` or of Windows. Other forms are not read.
pub fn long(line: &[u8]) -> Line {
    match line.first() {
        Some(b'0'..=b'9') => windows(line),
        Some(_) => unix(line),
        None => Line::Nothing,
    }
}

/// `-rw-r--r-- 1 owner group 5 Jan 02 03:04 name`. Owner and group may be missing or contain spaces, so that the month is
/// looked for.
fn unix(line: &[u8]) -> Line {
    let kind = match line[0] {
        b'-' => Kind::File,
        b'd' => Kind::Directory,
        b'l' | b'b' | b'c' | b'p' | b's' => Kind::Other,
        _ => return Line::Nothing,
    };
    let words = words(line);
    let month = words.windows(3).enumerate().skip(3).find(|(_, next)| {
        is_month(&line[next[0].clone()]) && is_day(&line[next[1].clone()]) && is_time(&line[next[2].clone()])
    });
    let Some((at, next)) = month else {
        return Line::Nothing;
    };
    let size = number(&line[words[at - 1].clone()]);
    // Exactly one space separates the name, which may begin with others.
    let Some(name) = line.get(next[2].end + 1..) else {
        return Line::Nothing;
    };
    entry(name, kind, size)
}

/// `01-02-26  03:04AM       <DIR> name` or with a size instead of `<DIR>`.
fn windows(line: &[u8]) -> Line {
    let words = words(line);
    let [date, time, what, ..] = words.as_slice() else {
        return Line::Nothing;
    };
    let is_date = line[date.clone()]
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let is_time = line[time.clone()].contains(&b':');
    let start = what.end + line[what.end..].iter().take_while(|byte| **byte == b' ').count();
    let (what, name) = (&line[what.clone()], &line[start..]);
    if !is_date || !is_time {
        return Line::Nothing;
    }
    if what == b"<DIR>" {
        return entry(name, Kind::Directory, None);
    }
    match number(what) {
        Some(size) => entry(name, Kind::File, Some(size)),
        None => Line::Nothing,
    }
}

fn entry(name: &[u8], kind: Kind, size: Option<u64>) -> Line {
    if matches!(name, b"." | b"..") {
        return Line::Nothing;
    }
    if name.is_empty() || name.contains(&b'/') || !is_sendable(name) {
        return Line::Unusable;
    }
    Line::Entry(Entry {
        name: name.to_vec(),
        kind,
        size: size.filter(|_| kind == Kind::File),
    })
}

fn words(line: &[u8]) -> Vec<std::ops::Range<usize>> {
    /// Later words belong to the name.
    const MOST: usize = 24;
    let mut words = Vec::new();
    let mut at = 0;
    while words.len() < MOST {
        let Some(start) = line[at..].iter().position(|byte| *byte != b' ').map(|skip| at + skip) else {
            break;
        };
        let length = line[start..].iter().position(|byte| *byte == b' ');
        let end = length.map_or(line.len(), |length| start + length);
        words.push(start..end);
        at = end;
    }
    words
}

fn is_month(word: &[u8]) -> bool {
    const MONTHS: [&[u8]; 12] = [
        b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
    ];
    MONTHS.iter().any(|month| word.eq_ignore_ascii_case(month))
}

fn is_day(word: &[u8]) -> bool {
    number(word).is_some_and(|day| (1..=31).contains(&day))
}

/// `03:04` or a year.
fn is_time(word: &[u8]) -> bool {
    matches!(word.len(), 4 | 5) && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(name: &[u8], kind: Kind, size: Option<u64>) -> Line {
        Line::Entry(Entry {
            name: name.to_vec(),
            kind,
            size,
        })
    }

    #[test]
    fn lines_for_machines_are_read() {
        for (line, expect) in [
            (
                &b"type=file;size=5;modify=20260102030405; a b.txt"[..],
                found(b"a b.txt", Kind::File, Some(5)),
            ),
            (b"Type=DIR;perm=el; sub", found(b"sub", Kind::Directory, None)),
            (b"size=5;type=file;  lead", found(b" lead", Kind::File, Some(5))),
            (b"type=cdir; .", Line::Nothing),
            (b"type=pdir; /up", Line::Nothing),
            (b"type=OS.unix=slink:/etc; link", found(b"link", Kind::Other, None)),
            (b"type=file;size=99999999999999999999; f", found(b"f", Kind::File, None)),
            (b"type=file; \xd6\xd0", found(b"\xd6\xd0", Kind::File, None)),
            (b"type=file; ../up", Line::Unusable),
            (b"type=file; a\0b", Line::Unusable),
            (b"type=file; a\rDELE", Line::Unusable),
            (b"type=file; ", Line::Unusable),
            (b"type=dir; ..", Line::Nothing),
            (b"type=file;", Line::Nothing),
            (b"size=5; unknown", Line::Nothing),
            (b"", Line::Nothing),
        ] {
            assert_eq!(machine(line), expect, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn lines_for_people_are_read_in_two_forms() {
        for (line, expect) in [
            (
                &b"-rw-r--r--   1 ftp  ftp    12345 Jan  2 03:04 a b.txt"[..],
                found(b"a b.txt", Kind::File, Some(12345)),
            ),
            (b"-rw-r--r-- 1 0 7 Dec 31 2025 old", found(b"old", Kind::File, Some(7))),
            (
                b"-rw-r--r-- 1 us er gr oup 7 Dec 31 2025  two",
                found(b" two", Kind::File, Some(7)),
            ),
            (
                b"drwxr-xr-x 2 0 0 4096 Feb 29 2024 Mar 1 2025",
                found(b"Mar 1 2025", Kind::Directory, None),
            ),
            (
                b"lrwxrwxrwx 1 0 0 4 Jan 1 2026 l -> etc",
                found(b"l -> etc", Kind::Other, None),
            ),
            (b"drwxr-xr-x 2 0 0 4096 Feb 29 2024 .", Line::Nothing),
            (b"-rw-r--r-- 1 0 0 7 Dec 31 2025 a/b", Line::Unusable),
            (b"total 123", Line::Nothing),
            (b"-rw", Line::Nothing),
            (b"-", Line::Nothing),
            (
                b"01-02-26  03:04AM       <DIR>          sub dir",
                found(b"sub dir", Kind::Directory, None),
            ),
            (
                b"01-02-2026  03:04PM             1234 f.txt",
                found(b"f.txt", Kind::File, Some(1234)),
            ),
            (b"1234 f.txt", Line::Nothing),
            (b"", Line::Nothing),
        ] {
            assert_eq!(long(line), expect, "{}", line.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_line_names_more_than_one_component(
            bytes in "(type=file; |-rw 1 0 0 5 Jan 1 2026 |01-02-26  03:04AM 5 )?[a./\\\\\r\0 0-9:]{0,30}",
        ) {
            for line in [machine(bytes.as_bytes()), long(bytes.as_bytes())] {
                if let Line::Entry(Entry { name, .. }) = line {
                    prop_assert!(!name.is_empty() && name != b"." && name != b"..");
                    prop_assert!(!name.contains(&b'/') && is_sendable(&name));
                }
            }
        }
    }
}
