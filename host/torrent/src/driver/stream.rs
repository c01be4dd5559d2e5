//! The bytes of a connection to a peer, obfuscated if both sides agreed on that.

use std::{
    cell::RefCell,
    io::{self, IoSliceMut},
};

use tokio::net::TcpStream;

use crate::wire::obfuscation::{Keys, Rc4};

/// A connection. Reading and writing share it in one task.
#[derive(Debug)]
pub(super) struct PeerStream {
    tcp: TcpStream,
    ciphers: Option<Ciphers>,
}

#[derive(Debug)]
struct Ciphers {
    reading: RefCell<Rc4>,
    writing: RefCell<Rc4>,
}

impl PeerStream {
    pub(super) fn new(tcp: TcpStream, keys: Option<Box<Keys>>, is_incoming: bool) -> Self {
        let ciphers = keys.map(|keys| {
            let (reading, writing) = if is_incoming {
                (keys.connecting, keys.accepting)
            } else {
                (keys.accepting, keys.connecting)
            };
            Ciphers {
                reading: RefCell::new(reading),
                writing: RefCell::new(writing),
            }
        });
        Self { tcp, ciphers }
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.tcp.readable().await
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.tcp.writable().await
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.tcp.try_read(buffer)?;
        self.decrypt(&mut buffer[..count]);
        Ok(count)
    }

    pub(super) fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = self.tcp.try_read_vectored(buffers)?;
        let mut rest = count;
        for buffer in buffers {
            let filled = rest.min(buffer.len());
            self.decrypt(&mut buffer[..filled]);
            rest -= filled;
        }
        Ok(count)
    }

    fn decrypt(&self, bytes: &mut [u8]) {
        if let Some(ciphers) = &self.ciphers {
            ciphers.reading.borrow_mut().apply(bytes);
        }
    }

    /// Makes bytes ready to be sent. Each byte of the stream goes through here once, in order.
    pub(super) fn encrypt(&self, bytes: &mut [u8]) {
        if let Some(ciphers) = &self.ciphers {
            ciphers.writing.borrow_mut().apply(bytes);
        }
    }

    /// Sends bytes that are ready.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.try_write(bytes)
    }

    /// Sends all of it.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                result => bytes = &bytes[result?..],
            }
        }
        Ok(())
    }
}
