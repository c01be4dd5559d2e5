//! Where a server waits for the data connection: the replies to EPSV (RFC 2428) and PASV (RFC 959). Pure.

use crate::reply::Reply;

/// The port in a reply to EPSV: `229 … (|||6446|)`, with any separator.
pub fn extended(reply: &Reply) -> Option<u16> {
    let text = text_in_parentheses(reply)?;
    let separator = *text.first()?;
    if separator.is_ascii_digit() {
        return None;
    }
    let mut parts = text.split(|byte| *byte == separator);
    let empty = [parts.next()?, parts.next()?, parts.next()?];
    let port = number(parts.next()?)?;
    let is_whole = empty.iter().all(|part| part.is_empty()) && parts.next() == Some(b"") && parts.next().is_none();
    u16::try_from(port).ok().filter(|port| is_whole && *port > 0)
}

/// The port in a reply to PASV: `227 … (127,0,0,1,200,13)`, with or without parentheses. The address in it is not used: it
/// is often that of another network, and a hostile server could name any host.
pub fn plain(reply: &Reply) -> Option<u16> {
    let line = reply.lines.first()?;
    let start = line.iter().position(u8::is_ascii_digit)?;
    let end = line[start..]
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b',' && *byte != b' ')
        .map_or(line.len(), |length| start + length);
    let numbers: Option<Vec<u32>> = line[start..end]
        .split(|byte| *byte == b',')
        .map(|part| number(part.trim_ascii()))
        .collect();
    let numbers = numbers.filter(|numbers| numbers.len() == 6 && numbers.iter().all(|number| *number < 256))?;
    let port = u16::try_from(numbers[4] * 256 + numbers[5]).ok()?;
    (port > 0).then_some(port)
}

fn text_in_parentheses(reply: &Reply) -> Option<&[u8]> {
    let line = reply.lines.last()?;
    let start = line.iter().position(|byte| *byte == b'(')? + 1;
    let length = line[start..].iter().position(|byte| *byte == b')')?;
    Some(&line[start..start + length])
}

/// A number of at most five digits.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |value, digit| value * 10 + u32::from(digit - b'0')),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        Reply {
            code: 227,
            lines: vec![text.as_bytes().into()],
        }
    }

    #[test]
    fn ports_are_read_from_both_replies() {
        for (text, port) in [
            ("Entering Extended Passive Mode (|||6446|)", Some(6446)),
            ("(!!!1!)", Some(1)),
            ("(|||0|)", None),
            ("(|||65536|)", None),
            ("(|||99999999999|)", None),
            ("(|1|127.0.0.1|6446|)", None),
            ("(|||6446)", None),
            ("(|||6446||)", None),
            ("(1112211)", None),
            ("()", None),
            ("no port", None),
            ("(|||6446|", None),
        ] {
            assert_eq!(extended(&reply(text)), port, "{text}");
        }
        for (text, port) in [
            ("Entering Passive Mode (127,0,0,1,200,13).", Some(51213)),
            ("Entering Passive Mode 10,0,0,1,0,21", Some(21)),
            ("(127, 0, 0, 1, 4, 0)", Some(1024)),
            ("(127,0,0,1,256,0)", None),
            ("(127,0,0,1,0,0)", None),
            ("(127,0,0,1,4)", None),
            ("(127,0,0,1,4,5,6)", None),
            ("none", None),
        ] {
            assert_eq!(plain(&reply(text)), port, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "[(|)0-9, !]{0,40}") {
            let _any = (extended(&reply(&text)), plain(&reply(&text)));
        }
    }
}
