//! The sending half of a connection. Invariant: a reply is sent after the events up to its sequence number, and no
//! event is skipped; a reader that falls behind the ring is closed instead.

use std::{sync::Arc, time::Duration};

use engine::Task;
use futures_util::{Sink, SinkExt as _};
use protocol::close;
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{
    Bytes, Error, Message, Utf8Bytes,
    protocol::{
        CloseFrame,
        frame::{
            Frame,
            coding::{Data, OpCode},
        },
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
    hub::ring::{Gap, Notification, Ring, Streamed},
    view,
};

/// Events per flush.
const BATCH: usize = 64;

/// Tasks encoded at once for a streamed frame: about 100 KiB, so that a snapshot needs no more memory than that.
const TASKS_AT_ONCE: usize = 128;

/// Closes a connection whose socket accepts no bytes at all. A reader that is merely slow gets a gap long before.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A reply; sent after the events up to this sequence number.
    Reply(Utf8Bytes, Option<u64>),
    /// A reply with many tasks in it. With a sequence number it is a snapshot, after which events follow.
    Streamed(Streamed, Option<u64>),
    /// Close code and reason; nothing is sent afterwards.
    Close(u16, &'static str),
}

enum End {
    /// The socket is broken, or was closed with a reason.
    Closed,
    /// The reader fell behind the ring.
    Gap,
}

impl From<Error> for End {
    fn from(_: Error) -> Self {
        Self::Closed
    }
}

impl From<Gap> for End {
    fn from(_: Gap) -> Self {
        Self::Gap
    }
}

impl From<tokio::time::error::Elapsed> for End {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Self::Closed
    }
}

pub(crate) struct Writer<S> {
    pub(crate) sink: S,
    pub(crate) ring: Arc<Ring>,
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
    /// The newest event that the client has; `None` before its first snapshot.
    pub(crate) cursor: Option<u64>,
    /// Cancelled when the service ends.
    pub(crate) stop: CancellationToken,
}

impl<S: Sink<Message, Error = Error> + Unpin> Writer<S> {
    /// Sends until there is nothing more to send, the service ends, or the reader falls behind.
    pub(crate) async fn run(mut self) {
        if let Err(End::Gap) = self.serve().await {
            self.close(close::EVENT_GAP, close::EVENT_GAP_REASON).await;
        }
    }

    async fn serve(&mut self) -> Result<(), End> {
        let mut newest = self.ring.follow();
        let stop = self.stop.clone();
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return self.drain().await,
                next = self.outgoing.recv() => Some(next),
                () = beyond(&mut newest, self.cursor) => None,
            };
            match next {
                Some(None) => return Ok(()),
                Some(Some(outgoing)) => self.send(outgoing).await?,
                None => self.send_events(u64::MAX).await?,
            }
        }
    }

    /// Drains the queued replies, then sends a close frame with the reason.
    async fn drain(&mut self) -> Result<(), End> {
        while let Ok(outgoing) = self.outgoing.try_recv() {
            self.send(outgoing).await?;
        }
        self.close(close::GOING_AWAY, close::SERVICE_QUIT_REASON).await;
        Ok(())
    }

    async fn send(&mut self, outgoing: Outgoing) -> Result<(), End> {
        match outgoing {
            Outgoing::Reply(text, after) => {
                while let (Some(after), Some(cursor)) = (after, self.cursor)
                    && cursor < after
                {
                    self.send_events(after).await?;
                }
                self.feed(Message::Text(text)).await?;
                // One flush for all queued replies.
                if self.outgoing.is_empty() {
                    self.flush().await?;
                }
                Ok(())
            }
            Outgoing::Streamed(streamed, snapshot) => {
                self.stream(&streamed).await?;
                self.flush().await?;
                if let Some(sequence) = snapshot {
                    self.cursor = Some(sequence.max(self.cursor.unwrap_or(0)));
                }
                Ok(())
            }
            Outgoing::Close(code, reason) => {
                self.close(code, reason).await;
                Err(End::Closed)
            }
        }
    }

    /// Sends some events, none after `last`.
    async fn send_events(&mut self, last: u64) -> Result<(), End> {
        let Some(cursor) = self.cursor else { return Ok(()) };
        for (sequence, notification) in self.ring.after(cursor, BATCH)? {
            if sequence > last {
                break;
            }
            match notification {
                Notification::Text(text) => self.feed(Message::Text(text)).await?,
                Notification::Streamed(streamed) => self.stream(&streamed).await?,
            }
            self.cursor = Some(sequence);
        }
        self.flush().await
    }

    /// Sends one message in fragments, encoding as it goes.
    async fn stream(&mut self, streamed: &Streamed) -> Result<(), End> {
        let mut text = streamed.head.clone().into_bytes();
        let mut kind = Data::Text;
        let mut chunks = streamed.tasks.chunks(TASKS_AT_ONCE).peekable();
        while let Some(tasks) = chunks.next() {
            encode(tasks, &mut text);
            if chunks.peek().is_some() {
                text.push(b',');
            }
            self.fragment(std::mem::take(&mut text), kind, false).await?;
            kind = Data::Continue;
        }
        text.extend_from_slice(streamed.tail.as_bytes());
        self.fragment(text, kind, true).await
    }

    async fn fragment(&mut self, text: Vec<u8>, kind: Data, is_last: bool) -> Result<(), End> {
        let frame = Frame::message(Bytes::from(text), OpCode::Data(kind), is_last);
        self.feed(Message::Frame(frame)).await
    }

    async fn feed(&mut self, message: Message) -> Result<(), End> {
        Ok(timeout(SEND_TIMEOUT, self.sink.feed(message)).await??)
    }

    async fn flush(&mut self) -> Result<(), End> {
        Ok(timeout(SEND_TIMEOUT, self.sink.flush()).await??)
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: Utf8Bytes::from_static(reason),
        };
        let closing = self.sink.send(Message::Close(Some(frame)));
        let _gone_anyway = timeout(CLOSE_TIMEOUT, closing).await;
    }
}

/// Resolves once there is an event after the cursor.
async fn beyond(newest: &mut watch::Receiver<u64>, cursor: Option<u64>) {
    let is_beyond = |newest: &u64| cursor.is_some_and(|cursor| cursor < *newest);
    if newest.wait_for(is_beyond).await.is_err() {
        // The ring was dropped: the service is shutting down, which `stop` signals.
        std::future::pending::<()>().await;
    }
}

/// The tasks as items of an array, without its brackets.
fn encode(tasks: &[Arc<Task>], text: &mut Vec<u8>) {
    for (index, task) in tasks.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, &view::task(task)).expect("our records always encode");
    }
}
