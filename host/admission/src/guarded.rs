//! A byte stream whose reader may not stall for ever, and whose sender is limited until it has authenticated.

use std::{
    hash::Hash,
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::ConnectionSlot;

/// How long a client may take for the next [`STEP_BYTES`] of a response, which stays in memory until then.
pub const STALL_TIME: Duration = Duration::from_secs(30);

/// The least that counts as progress: a client that reads single bytes now and then counts as stalled.
const STEP_BYTES: usize = 64 * 1024;

/// A guarded byte stream.
#[derive(Debug)]
pub struct Guarded<S, K: Copy + Eq + Hash> {
    stream: S,
    slot: Arc<ConnectionSlot<K>>,
    /// Created by the first write that waits, then reused.
    timer: Option<Pin<Box<Sleep>>>,
    /// `Some` while a write waits: the bytes written since the timer was set.
    waiting: Option<usize>,
}

impl<S, K: Copy + Eq + Hash> Guarded<S, K> {
    /// Guards a stream.
    pub fn new(stream: S, slot: Arc<ConnectionSlot<K>>) -> Self {
        Self {
            stream,
            slot,
            timer: None,
            waiting: None,
        }
    }

    /// Updates the timer after a write of `wanted` bytes.
    fn after(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
        wanted: usize,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(written)) => {
                self.waiting = match self.waiting {
                    Some(before) if written < wanted && before + written < STEP_BYTES => Some(before + written),
                    _ => None,
                };
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(STALL_TIME)));
                if self.waiting.is_none() {
                    self.waiting = Some(0);
                    timer.as_mut().reset(Instant::now() + STALL_TIME);
                }
                ready!(timer.as_mut().poll(cx));
                let message = "the client did not read its answer in time";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin, K: Copy + Eq + Hash> AsyncRead for Guarded<S, K> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.slot.read(buf.filled().len() - before) {
            return Poll::Ready(Ok(()));
        }
        let message = "the client sent too much before it authenticated";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::PermissionDenied, message)))
    }
}

impl<S: AsyncWrite + Unpin, K: Copy + Eq + Hash> AsyncWrite for Guarded<S, K> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.after(cx, polled, buf.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        self.after(cx, polled, wanted)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;
    use crate::{ConnectionSlots, Limits};

    fn guarded(buffer: usize) -> (Guarded<DuplexStream, u8>, DuplexStream, Arc<ConnectionSlot<u8>>) {
        let limits = Limits {
            total: 1,
            unauthenticated: 1,
            unauthenticated_per_source: 1,
        };
        let slot = ConnectionSlots::new(limits).take(None).unwrap();
        let (near, far) = duplex(buffer);
        (Guarded::new(near, Arc::clone(&slot)), far, slot)
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_reads_nothing_is_given_up() {
        let (mut near, far, _seat) = guarded(1024);
        let began = Instant::now();
        let error = near.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, STALL_TIME));
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_reads_a_byte_now_and_then_is_given_up() {
        let (mut near, mut far, _seat) = guarded(1024);
        let reading = async {
            loop {
                sleep(STALL_TIME / 2).await;
                far.read_u8().await.unwrap();
            }
        };
        tokio::select! {
            written = near.write_all(&[0; 8192]) => assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut),
            () = reading => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_everything_and_may_pause_between_answers() {
        let (mut near, mut far, _seat) = guarded(STEP_BYTES);
        let (mut got, sent) = (vec![0; STEP_BYTES], vec![7; 4 * STEP_BYTES]);
        for _ in 0..3 {
            let reading = async {
                for _ in 0..4 {
                    sleep(STALL_TIME / 2).await;
                    far.read_exact(&mut got).await.unwrap();
                }
            };
            let (written, ()) = tokio::join!(near.write_all(&sent), reading);
            written.unwrap();
            sleep(STALL_TIME * 3).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_too_much_before_it_authenticates_is_cut_off() {
        let (mut near, mut far, slot) = guarded(1024);
        slot.limit_reading(4);
        far.write_all(b"12345678").await.unwrap();
        let error = near.read_u8().await.and(near.read_u64().await).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        slot.authenticate();
        far.write_all(b"9").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'9');
    }
}
