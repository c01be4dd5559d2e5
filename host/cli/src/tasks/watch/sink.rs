//! Buffered output of a command that follows a service: the first write error is kept until the output is flushed.

use std::io::{self, BufWriter, Write};

#[derive(Debug)]
pub(crate) struct Sink<W: Write> {
    out: BufWriter<W>,
    /// The first write error; afterwards nothing is written.
    failure: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    pub(crate) fn new(out: W) -> Self {
        let (out, failure) = (BufWriter::new(out), None);
        Self { out, failure }
    }

    pub(crate) fn line(&mut self, text: &[u8]) {
        if self.failure.is_none() {
            let written = self.out.write_all(text).and_then(|()| self.out.write_all(b"\n"));
            self.failure = written.err();
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.failure.take().map_or_else(|| self.out.flush(), Err)
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.out.into_parts().0
    }
}
