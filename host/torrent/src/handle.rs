//! What the embedder uses a torrent through.

use std::{net::SocketAddr, sync::Arc};

use admission::{ConnectionSlot, throttle::Source};
use egress::peer::PeerReach;
use metainfo::InfoHash;
use tokio::sync::{mpsc, oneshot, watch};
use transfer::{Failure, FileName, RateLimits};

use crate::{
    config::{Order, PeerSource},
    heart::Priority,
    view::{FileView, PeerView, PiecesView, TorrentView},
    webseed::Webseed,
    wire::{handshake::Handshake, obfuscation::Keys},
};

/// A torrent of a session. Clones are the same torrent.
#[derive(Debug, Clone)]
pub struct Torrent {
    pub(crate) info_hash: InfoHash,
    /// In boxes, because a queue keeps room for all that may wait from its start.
    pub(crate) commands: mpsc::Sender<Box<Command>>,
    pub(crate) view: watch::Receiver<Arc<TorrentView>>,
}

/// A connection that a peer made, after its handshake.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) address: SocketAddr,
    pub(crate) handshake: Handshake,
    pub(crate) keys: Option<Box<Keys>>,
    pub(crate) slot: Arc<ConnectionSlot<Source>>,
}

/// The answer to a command that can fail.
pub(crate) type Reply = oneshot::Sender<Result<(), Failure>>;

#[derive(Debug)]
pub(crate) enum Command {
    Join(Incoming),
    AddPeers(Vec<SocketAddr>, PeerSource, PeerReach),
    AddWebseeds(Vec<Webseed>),
    Select(Vec<Priority>, Reply),
    SetOrder(Order),
    SetUploadSlots(usize),
    SetMaxPeers(usize),
    SetLimits { download: RateLimits, upload: RateLimits },
    SetMostUploaded(Option<u64>),
    Pause(Reply),
    Resume(Reply),
    Recheck(Reply),
    Rename(usize, String, Reply),
    RenameTop(FileName, Reply),
    Close(Reply),
    Remove { deletes_files: bool, reply: Reply },
    Peers(oneshot::Sender<Vec<PeerView>>),
    Files(oneshot::Sender<Vec<FileView>>),
    Pieces(oneshot::Sender<Option<PiecesView>>),
}

/// The torrent was removed, or its session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the torrent is no longer part of the session")]
pub struct Gone;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such torrent any more.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// It could not be done.
    #[error(transparent)]
    Failed(Failure),
}

impl Torrent {
    /// Its hash.
    pub fn info_hash(&self) -> InfoHash {
        self.info_hash
    }

    /// How it is, as of the last second.
    pub fn view(&self) -> Arc<TorrentView> {
        Arc::clone(&self.view.borrow())
    }

    /// Resolves when the view changes.
    pub fn watch(&self) -> watch::Receiver<Arc<TorrentView>> {
        self.view.clone()
    }

    /// Adds addresses of peers. `reach` says whether they may be on this machine: only if the user named them, or a
    /// tracker on this machine.
    pub async fn add_peers(&self, peers: Vec<SocketAddr>, source: PeerSource, reach: PeerReach) -> Result<(), Gone> {
        self.send(Command::AddPeers(peers, source, reach)).await
    }

    /// Adds web servers that have the files.
    pub async fn add_webseeds(&self, webseeds: Vec<Webseed>) -> Result<(), Gone> {
        self.send(Command::AddWebseeds(webseeds)).await
    }

    /// Sets the priority of each file, in the order of [`metainfo::Info::files`]. Files beyond the list are wanted as usual.
    pub async fn select(&self, priorities: Vec<Priority>) -> Result<(), CommandError> {
        self.ask(|reply| Command::Select(priorities, reply)).await
    }

    /// Sets the order of pieces.
    pub async fn set_order(&self, order: Order) -> Result<(), Gone> {
        self.send(Command::SetOrder(order)).await
    }

    /// Replaces its limits. A limiter of them that changes needs no call.
    pub async fn set_limits(&self, download: RateLimits, upload: RateLimits) -> Result<(), Gone> {
        self.send(Command::SetLimits { download, upload }).await
    }

    /// Sets the most that it uploads, as [`crate::TorrentSpec::most_uploaded`].
    pub async fn set_most_uploaded(&self, bytes: Option<u64>) -> Result<(), Gone> {
        self.send(Command::SetMostUploaded(bytes)).await
    }

    /// Sets how many peers are served at once.
    pub async fn set_upload_slots(&self, slots: usize) -> Result<(), Gone> {
        self.send(Command::SetUploadSlots(slots)).await
    }

    /// Sets the most connections.
    pub async fn set_max_peers(&self, peers: usize) -> Result<(), Gone> {
        self.send(Command::SetMaxPeers(peers)).await
    }

    /// Stops it. Its files are synced and its record is written when this returns. It knows the addresses of its peers
    /// until it is resumed.
    pub async fn pause(&self) -> Result<(), CommandError> {
        self.ask(Command::Pause).await
    }

    /// Continues it, also after a failure.
    pub async fn resume(&self) -> Result<(), CommandError> {
        self.ask(Command::Resume).await
    }

    /// Hashes everything that is on the disk.
    pub async fn recheck(&self) -> Result<(), CommandError> {
        self.ask(Command::Recheck).await
    }

    /// Gives a file another path below the torrent's directory (`/` between names), or the only file another name.
    pub async fn rename(&self, file: usize, path: String) -> Result<(), CommandError> {
        self.ask(|reply| Command::Rename(file, path, reply)).await
    }

    /// Gives the directory of files, or the only file, another name. Before the metadata of a magnet link is there, or
    /// while it is paused since then, it is the name that the files will have ([`crate::TorrentSpec::name`]).
    pub async fn rename_top(&self, name: FileName) -> Result<(), CommandError> {
        self.ask(|reply| Command::RenameTop(name, reply)).await
    }

    /// Takes it out of the session. Its files are synced, and its record is kept for a later [`crate::Session::add`].
    pub async fn close(&self) -> Result<(), CommandError> {
        self.ask(Command::Close).await
    }

    /// Takes it out of the session, and removes its record, and its files if they are not to be kept.
    pub async fn remove(&self, deletes_files: bool) -> Result<(), CommandError> {
        self.ask(|reply| Command::Remove { deletes_files, reply }).await
    }

    /// The connected peers.
    pub async fn peers(&self) -> Result<Vec<PeerView>, Gone> {
        self.read(Command::Peers).await
    }

    /// The files; none before the metadata is known.
    pub async fn files(&self) -> Result<Vec<FileView>, Gone> {
        self.read(Command::Files).await
    }

    /// The pieces; `None` before the metadata is known.
    pub async fn pieces(&self) -> Result<Option<PiecesView>, Gone> {
        self.read(Command::Pieces).await
    }

    async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(Box::new(command)).await.map_err(|_| Gone)
    }

    async fn read<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Gone> {
        let (sender, answer) = oneshot::channel();
        self.send(command(sender)).await?;
        answer.await.map_err(|_| Gone)
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), CommandError> {
        self.read(command).await?.map_err(CommandError::Failed)
    }
}
