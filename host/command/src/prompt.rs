//! Asks for a secret on the terminal, without showing what is typed.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];
const ERASE_LINE: u8 = 0x15;

/// The longest secret, in bytes.
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

/// Asks on the terminal of this process. Ctrl-C ends the process as usual; Ctrl-D is an error.
pub fn ask_secret(question: &str) -> io::Result<String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let mut hidden = Hidden::new(terminal)?;
    hidden.terminal.write_all(question.as_bytes())?;
    let line = read_line(&mut hidden.terminal);
    hidden.terminal.write_all(b"\r\n")?;
    drop(hidden);
    let Some(line) = line? else {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)?;
        return Err(io::ErrorKind::Interrupted.into());
    };
    String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-8"))
}

/// The typed line, with its corrections; `None` after Ctrl-C.
fn read_line(terminal: &mut File) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        if terminal.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match byte[0] {
            b'\r' | b'\n' => return Ok(Some(line)),
            INTERRUPT => return Ok(None),
            END if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            ERASE_LINE => line.clear(),
            byte if BACKSPACE.contains(&byte) => {
                // One character may be several bytes, all but the first of which begin with the bits 10.
                while line.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
            }
            byte if line.len() < MAX_BYTES => line.push(byte),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the text is too long")),
        }
    }
}
