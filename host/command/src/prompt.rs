//! Asks on the terminal, with or without showing what is typed, and reads the answers of scripts from standard input.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::fd::AsFd as _,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};
use unicode_width::UnicodeWidthStr as _;

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];
const ERASE_LINE: u8 = 0x15;

/// The longest answer, in bytes.
const MAX_BYTES: usize = 4096;

/// A terminal that shows nothing of what is typed, until it is dropped.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn new(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        // Single characters, and Ctrl-C among them: a signal would end the process before the terminal shows again what
        // is typed.
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before the question may have been shown, so it is no secret.
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _terminal_is_gone = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Asks for a secret on the terminal of this process. Ctrl-C is the signal of that name: it ends the process, or if the
/// process handles it, the question with [`io::ErrorKind::Interrupted`], as other handled signals do. Ctrl-D is an error.
pub fn ask_secret(question: &str) -> io::Result<String> {
    ask_with(question, false)
}

/// As [`ask_secret`], and shows what is typed.
pub fn ask(question: &str) -> io::Result<String> {
    ask_with(question, true)
}

fn ask_with(question: &str, is_shown: bool) -> io::Result<String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let mut hidden = Hidden::new(terminal)?;
    hidden.terminal.write_all(question.as_bytes())?;
    let line = type_line(&mut hidden.terminal, is_shown);
    hidden.terminal.write_all(b"\r\n")?;
    drop(hidden);
    let Some(line) = line? else {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)?;
        return Err(io::ErrorKind::Interrupted.into());
    };
    text(line)
}

/// The next line of standard input, without its end; `None` after the last one. A handled signal ends it with
/// [`io::ErrorKind::Interrupted`]. Reads no byte beyond the line.
pub fn next_line() -> io::Result<Option<String>> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    loop {
        match next_byte(&mut input)? {
            None if line.is_empty() => return Ok(None),
            None | Some(b'\n') => break,
            Some(byte) => push(&mut line, byte)?,
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    text(line).map(Some)
}

/// The typed line, with its corrections; `None` after Ctrl-C.
fn type_line(terminal: &mut File, is_shown: bool) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let byte = next_byte(terminal)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let echo = match byte {
            b'\r' | b'\n' => return Ok(Some(line)),
            INTERRUPT => return Ok(None),
            END if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            ERASE_LINE => erasure(&std::mem::take(&mut line)),
            byte if BACKSPACE.contains(&byte) => erasure(&pop(&mut line)),
            // Keys such as arrows are no part of a text that is shown.
            byte if is_shown && byte.is_ascii_control() => Vec::new(),
            byte => {
                push(&mut line, byte)?;
                vec![byte]
            }
        };
        if is_shown {
            terminal.write_all(&echo)?;
        }
    }
}

fn next_byte(input: &mut File) -> io::Result<Option<u8>> {
    // A signal interrupts this wait, while a read would go on after it.
    poll(&mut [PollFd::new(input, PollFlags::IN)], None)?;
    let mut byte = [0];
    Ok((input.read(&mut byte)? > 0).then_some(byte[0]))
}

fn push(line: &mut Vec<u8>, byte: u8) -> io::Result<()> {
    if line.len() >= MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the text is too long"));
    }
    line.push(byte);
    Ok(())
}

/// Removes the last character, of which all bytes but the first begin with the bits 10.
fn pop(line: &mut Vec<u8>) -> Vec<u8> {
    let first = line.iter().rposition(|byte| byte & 0xC0 != 0x80);
    line.split_off(first.unwrap_or(0))
}

/// What removes a text from the terminal's present line.
fn erasure(text: &[u8]) -> Vec<u8> {
    b"\x08 \x08".repeat(String::from_utf8_lossy(text).width())
}

fn text(line: Vec<u8>) -> io::Result<String> {
    String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_erased_as_a_whole() {
        let mut line = "aü日".as_bytes().to_vec();
        for (removed, columns) in [("日", 2), ("ü", 1), ("a", 1), ("", 0)] {
            let popped = pop(&mut line);
            assert_eq!(popped, removed.as_bytes());
            assert_eq!(erasure(&popped).len(), 3 * columns, "{removed}");
        }
        assert!(line.is_empty());
    }
}
