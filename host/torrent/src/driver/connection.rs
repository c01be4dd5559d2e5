//! One connection to a peer, after the handshakes.
//!
//! Two futures share the socket in one task. The reader decodes messages from a small buffer; the data of a block goes from
//! the socket into the buffer of its piece. The writer sends what the state put into the outbox, then blocks.

use std::{future::pending, io, rc::Rc};

use futures_util::future::{Either, select};
use tokio::sync::Notify;

use super::{
    core::{Keep, Shared},
    limits::{TURN_BYTES, UPLOAD_BATCH_BYTES},
    stream::PeerStream,
};
use crate::{
    geometry::{BLOCK_BYTES, Block},
    heart::{CloseReason, Input, Joined, PeerId},
    wire::{
        Malformed,
        message::{self, Message, PIECE_HEADER_BYTES},
    },
};

/// What the buffer for messages holds at first. It grows to the longest message that the peer may send.
const FIRST_INBOX_BYTES: usize = 2048;

/// What is read beyond the end of a block into the buffer for messages: enough for the head of the next one, and little
/// enough that copying its data does not matter.
const LOOK_AHEAD_BYTES: usize = 64;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the connection was closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the peer broke the protocol: {0:?}")]
    Refused(CloseReason),
}

/// Serves a connection until it ends.
pub(super) async fn serve(shared: Shared, stream: PeerStream, joined: Joined) {
    let address = joined.address;
    let (id, wake, closed) = shared.join(joined);
    let ended = {
        let reading = std::pin::pin!(Reader::new(&shared, &stream, id).run());
        let writing = std::pin::pin!(write(&shared, &stream, id, &wake));
        let both = select(reading, writing);
        match select(both, std::pin::pin!(closed.cancelled())).await {
            Either::Left((Either::Left((result, _)) | Either::Right((result, _)), _)) => result,
            Either::Right(_) => Err(Ended::Closed),
        }
    };
    if let Err(ended) = ended {
        tracing::debug!(peer = %address, reason = %ended, "a connection to a peer ended");
    }
    shared.leave(id);
}

struct Reader<'a> {
    shared: &'a Shared,
    stream: &'a PeerStream,
    id: PeerId,
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// Holds a block that is written when it is here, or that nobody needs.
    block: Vec<u8>,
    /// Bytes read since others had a turn.
    turn: usize,
}

impl<'a> Reader<'a> {
    fn new(shared: &'a Shared, stream: &'a PeerStream, id: PeerId) -> Self {
        Self {
            shared,
            stream,
            id,
            inbox: vec![0; FIRST_INBOX_BYTES],
            start: 0,
            end: 0,
            block: Vec::new(),
            turn: 0,
        }
    }

    async fn run(mut self) -> Result<(), Ended> {
        loop {
            let limits = self.shared.with(|core| core.limits());
            let message = message::decode(&self.inbox[self.start..self.end], limits)?;
            match message {
                Some((Message::Piece(block), taken)) => {
                    self.start += taken;
                    self.read_block(block).await?;
                }
                Some((message, taken)) => {
                    self.shared.apply(Input::Said(self.id, message));
                    self.start += taken;
                }
                None => self.read_more(limits.largest()).await?,
            }
        }
    }

    /// Reads more bytes of messages.
    async fn read_more(&mut self, largest: usize) -> Result<(), Ended> {
        self.inbox.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.inbox.len() {
            let grown = (self.inbox.len() * 2).min(largest.max(FIRST_INBOX_BYTES));
            self.inbox.resize(grown, 0);
        }
        let want = self.inbox.len() - self.end;
        let most = self.acquire(want).await;
        let count = loop {
            match self.stream.try_read(&mut self.inbox[self.end..self.end + most]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stream.readable().await?,
                result => break result?,
            }
        };
        self.shared.with(|core| core.down.refund((most - count) as u64));
        if count == 0 {
            return Err(Ended::Closed);
        }
        self.end += count;
        self.take_turn(count).await;
        Ok(())
    }

    /// Lets other connections of the lane have their turn.
    async fn take_turn(&mut self, count: usize) {
        self.turn += count;
        if self.turn >= TURN_BYTES {
            self.turn = 0;
            tokio::task::yield_now().await;
        }
    }

    /// How many bytes may be read now, at most `want`.
    async fn acquire(&self, want: usize) -> usize {
        let limits = self.shared.with(|core| core.down.are_set().then(|| core.down.clone()));
        match limits {
            None => want,
            Some(limits) => usize::try_from(limits.acquire(want as u64).await).unwrap_or(want),
        }
    }

    /// Reads the data of a block.
    async fn read_block(&mut self, block: Block) -> Result<(), Ended> {
        self.wait_for_room().await;
        let keep = self
            .shared
            .with(|core| core.begin_block(self.id, block))
            .map_err(Ended::Refused)?;
        if keep != Keep::Memory && self.block.is_empty() {
            self.block = vec![0; BLOCK_BYTES as usize];
        }
        let length = block.length as usize;
        let mut done = length.min(self.end - self.start);
        let begun = self.start..self.start + done;
        self.start += done;
        self.place(block, keep, 0, |inbox, target| {
            target[..done].copy_from_slice(&inbox[begun]);
        });
        if done < length {
            // Everything in the buffer for messages was used.
            (self.start, self.end) = (0, 0);
        }
        while done < length {
            let most = self.acquire(length - done).await;
            let (count, ahead) = self.read_data(block, keep, done, most).await?;
            done += count;
            self.end = ahead;
            self.shared
                .with(|core| core.down.refund(most.saturating_sub(count + ahead) as u64));
            self.take_turn(count).await;
        }
        if keep == Keep::Disk {
            self.write_block(block);
        }
        if keep != Keep::Nothing {
            self.shared.with(|core| core.note_useful(self.id, block.length));
            self.shared.apply(Input::Arrived(self.id, block));
        }
        Ok(())
    }

    /// Gives `action` the buffer for messages, and where the data of the block from `done` on goes.
    fn place<T>(&mut self, block: Block, keep: Keep, done: usize, action: impl FnOnce(&mut [u8], &mut [u8]) -> T) -> T {
        let length = block.length as usize;
        let (inbox, own) = (&mut self.inbox, &mut self.block);
        if keep != Keep::Memory {
            return action(inbox, &mut own[done..length]);
        }
        let id = self.id;
        self.shared.with(|core| {
            if let Some(target) = core.memory(id, block) {
                return action(inbox, &mut target[done..]);
            }
            // The block is asked of others now, or no longer wanted: these bytes go nowhere.
            own.resize(BLOCK_BYTES as usize, 0);
            action(inbox, &mut own[done..length])
        })
    }

    /// Reads data of the block, and the beginning of what follows into the buffer for messages. Returns how much of each.
    async fn read_data(&mut self, block: Block, keep: Keep, done: usize, most: usize) -> Result<(usize, usize), Ended> {
        let rest = block.length as usize - done;
        loop {
            let stream = self.stream;
            let result = self.place(block, keep, done, |inbox, target| {
                let limit = most.min(rest);
                let ahead = if limit == rest { LOOK_AHEAD_BYTES } else { 0 };
                let mut buffers = [
                    io::IoSliceMut::new(&mut target[..limit]),
                    io::IoSliceMut::new(&mut inbox[..ahead]),
                ];
                stream
                    .try_read_vectored(&mut buffers)
                    .map(|count| (count.min(limit), count.saturating_sub(limit)))
            });
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stream.readable().await?,
                Ok((0, _)) => return Err(Ended::Closed),
                result => return Ok(result?),
            }
        }
    }

    fn write_block(&self, block: Block) {
        let disk = self.shared.with(|core| core.disk.clone());
        let Some(disk) = disk else { return };
        let offset = disk.storage.geometry().offset(block.piece) + u64::from(block.begin);
        // A lane may block on its disk: that slows down the sockets that feed it.
        if let Err(failure) = disk.storage.write(offset, &self.block[..block.length as usize]) {
            self.shared.report(super::core::Report::Failed(failure));
        }
    }

    /// Waits while too many pieces wait for the disk.
    async fn wait_for_room(&self) {
        loop {
            let room = self.shared.with(|core| {
                let is_full = core.jobs > 0 && core.budget.used() * 4 > super::limits::MAX_BUFFERED_BYTES * 3;
                is_full.then(|| Rc::clone(&core.room))
            });
            let Some(room) = room else { return };
            room.notified().await;
        }
    }
}

/// Sends messages and blocks.
async fn write(shared: &Shared, stream: &PeerStream, id: PeerId, wake: &Notify) -> Result<(), Ended> {
    let mut out = Vec::new();
    loop {
        out.clear();
        let is_idle = shared.with(|core| {
            let link = core.links.get_mut(&id)?;
            std::mem::swap(&mut out, &mut link.outbox);
            Some(out.is_empty() && !core.state.has_uploads(id))
        });
        match is_idle {
            None => return pending().await,
            Some(true) => {
                // An idle connection keeps no memory.
                out = Vec::new();
                wake.notified().await;
                continue;
            }
            Some(false) => {}
        }
        if out.is_empty() {
            add_blocks(shared, id, &mut out).await?;
        }
        stream.encrypt(&mut out);
        stream.write_all(&out).await?;
    }
}

/// Reads blocks that the peer waits for.
async fn add_blocks(shared: &Shared, id: PeerId, out: &mut Vec<u8>) -> Result<(), Ended> {
    let (disk, limits) = shared.with(|core| (core.disk.clone(), core.up.clone()));
    let Some(disk) = disk else { return Ok(()) };
    while out.len() < UPLOAD_BATCH_BYTES {
        let Some(block) = shared.with(|core| core.state.next_upload(id)) else {
            return Ok(());
        };
        let are_limited = limits.are_set();
        let mut granted = 0;
        while are_limited && granted < u64::from(block.length) {
            granted += limits.acquire(u64::from(block.length) - granted).await;
        }
        message::encode(Message::Piece(block), out);
        let begin = out.len();
        out.resize(begin + block.length as usize, 0);
        let offset = disk.storage.geometry().offset(block.piece) + u64::from(block.begin);
        match disk.storage.read(offset, &mut out[begin..]) {
            Ok(true) => {
                shared.uploaded(id, block.length);
            }
            // The user's files changed under us: this is a failure of the torrent.
            Ok(false) => {
                out.truncate(begin - PIECE_HEADER_BYTES);
                let failure = disk.storage.why_missing(offset, u64::from(block.length));
                shared.report(super::core::Report::Failed(failure));
                return Ok(());
            }
            Err(failure) => {
                out.truncate(begin - PIECE_HEADER_BYTES);
                shared.report(super::core::Report::Failed(failure));
                return Ok(());
            }
        }
        if are_limited {
            return Ok(());
        }
    }
    Ok(())
}
