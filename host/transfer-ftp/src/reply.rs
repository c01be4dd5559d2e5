//! Replies of a server (RFC 959, section 4.2): three digits and a text of one or several lines. Pure.

use crate::lines::{Lines, TooLong};

/// The longest line of a reply. Servers write less than a kilobyte; file systems allow paths of 4 KiB in it.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// The longest reply. Welcome texts have a few kilobytes.
const MAX_REPLY_BYTES: usize = 64 * 1024;

/// The most lines of a reply.
const MAX_LINES: usize = 1024;

/// The longest part of a reply that a message repeats, in characters.
const MAX_SHOWN: usize = 200;

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its code, 100 to 599.
    pub code: u16,
    /// The text of its lines. Codes stand before the first and the last one only.
    pub lines: Vec<Box<[u8]>>,
}

/// Why what a server sent is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A line is too long.
    #[error("a line of its reply is longer than {MAX_LINE_BYTES} bytes")]
    LongLine,
    /// The reply is too long.
    #[error("its reply is longer than {MAX_REPLY_BYTES} bytes or {MAX_LINES} lines")]
    LongReply,
    /// The reply does not begin with a code.
    #[error("its reply does not begin with a code of three digits")]
    NoCode,
}

impl Reply {
    /// Whether the code is 2xx.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// The last line that says something, for a message: without control characters, and not too long.
    pub fn shown(&self) -> String {
        let text = self.lines.iter().rev().find(|line| !line.trim_ascii().is_empty());
        let text = String::from_utf8_lossy(text.map_or(&[], |line| line.trim_ascii()));
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect();
        if text.is_empty() {
            self.code.to_string()
        } else {
            format!("{}: {text}", self.code)
        }
    }
}

/// Makes replies of a stream.
#[derive(Debug, Default)]
pub struct Reader {
    stream: Lines,
    /// The code of a reply of several lines that is not complete.
    code: Option<u16>,
    lines: Vec<Box<[u8]>>,
    bytes: usize,
}

impl Reader {
    /// Adds what the server sent. All replies are taken before more is added.
    pub fn push(&mut self, bytes: &[u8]) {
        self.stream.push(bytes);
    }

    /// The next complete reply; `None` if more bytes are needed.
    pub fn take(&mut self) -> Result<Option<Reply>, Malformed> {
        loop {
            let line = match self.stream.take(MAX_LINE_BYTES) {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(TooLong) => return Err(Malformed::LongLine),
            };
            self.bytes += line.len() + 1;
            if self.bytes > MAX_REPLY_BYTES || self.lines.len() >= MAX_LINES {
                return Err(Malformed::LongReply);
            }
            let (code, mark, text) = match (code_of(line), self.code) {
                (None, None) => return Err(Malformed::NoCode),
                // Only the same code, without a hyphen, ends a reply of several lines.
                (Some((code, mark, text)), Some(first)) if code == first && mark != Some(b'-') => (code, mark, text),
                (_, Some(_)) => {
                    self.lines.push(line.into());
                    continue;
                }
                (Some(found), None) => found,
            };
            self.lines.push(text.into());
            if mark == Some(b'-') {
                self.code = Some(code);
                continue;
            }
            (self.code, self.bytes) = (None, 0);
            return Ok(Some(Reply {
                code,
                lines: std::mem::take(&mut self.lines),
            }));
        }
    }

    /// Whether bytes were received that belong to no reply that was taken.
    pub fn has_rest(&self) -> bool {
        self.code.is_some() || !self.stream.rest().is_empty()
    }
}

/// The code at the start of a line, the character after it, and the text after that.
fn code_of(line: &[u8]) -> Option<(u16, Option<u8>, &[u8])> {
    let (digits, rest) = line.split_at_checked(3)?;
    let is_code = (b'1'..=b'5').contains(&digits[0]) && digits.iter().all(u8::is_ascii_digit);
    let mark = rest.first().copied();
    if !is_code || mark.is_some_and(|mark| mark.is_ascii_digit()) {
        return None;
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    Some((code, mark, rest.get(1..).unwrap_or(&[])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u16, Vec<String>)>, Malformed> {
        let mut reader = Reader::default();
        reader.push(bytes);
        let mut replies = Vec::new();
        while let Some(reply) = reader.take()? {
            let lines = reply
                .lines
                .iter()
                .map(|line| String::from_utf8_lossy(line).into_owned());
            replies.push((reply.code, lines.collect()));
        }
        Ok(replies)
    }

    fn check(text: &str, expect: &[(u16, &[&str])]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|(code, lines)| (*code, lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()))
            .collect();
        assert_eq!(read(text.as_bytes()), Ok(expect), "{text:?}");
    }

    #[test]
    fn replies_have_one_or_several_lines() {
        check("220 hello\r\n", &[(220, &["hello"])]);
        check("220\n331 x\r\n", &[(220, &[""]), (331, &["x"])]);
        check(
            "211-Features:\r\n SIZE\r\n211 End\r\n",
            &[(211, &["Features:", " SIZE", "End"])],
        );
        check(
            "230-a\r\n220 not the end\r\n230-b\r\n230 c\r\n",
            &[(230, &["a", "220 not the end", "230-b", "c"])],
        );
        check("230-a\r\n2300 x\r\n230\r\n", &[(230, &["a", "2300 x", ""])]);
        check("220-not complete\r\n", &[]);
        check("220 not comp", &[]);
    }

    #[test]
    fn what_is_no_reply_is_refused_before_much_of_it_is_held() {
        for text in [
            "hello\r\n",
            "22 x\n",
            "\n",
            "999 x\n",
            "099 x\n",
            "2200 x\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(read(text.as_bytes()), Err(Malformed::NoCode), "{text:?}");
        }
        assert_eq!(read(&vec![b'2'; MAX_LINE_BYTES + 1]), Err(Malformed::LongLine));
        let endless = "220-x\r\n".repeat(MAX_LINES + 1);
        assert_eq!(read(endless.as_bytes()), Err(Malformed::LongReply));
        let wide = format!("220-{}\r\n", "x".repeat(4000)).repeat(20);
        assert_eq!(read(wide.as_bytes()), Err(Malformed::LongReply));
    }

    #[test]
    fn a_message_repeats_no_control_characters() {
        let mut reader = Reader::default();
        reader.push(b"550 no\x1b[31m such\x07 file\r\n");
        assert_eq!(reader.take().unwrap().unwrap().shown(), "550: no[31m such file");
    }

    proptest! {
        #[test]
        fn any_stream_is_read_within_the_limits(bytes in "[0-9 \\-a\r\n]{0,80}") {
            if let Ok(replies) = read(bytes.as_bytes()) {
                prop_assert!(replies.iter().all(|(code, lines)| (100..600).contains(code) && !lines.is_empty()));
            }
        }
    }
}
