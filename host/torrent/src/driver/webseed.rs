//! Web servers as peers (BEP 19): to the state, one is a peer that has everything and never chokes. Its requests are joined
//! into ranges of files.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use egress::Pins;
use transfer::SafeUrl;

use super::core::{Keep, Report, Shared};
use crate::{
    geometry::Block,
    heart::{Input, Joined, PeerId},
    storage::{Storage, layout::Extent},
    webseed::{Webseed, WebseedClient, WebseedError, WebseedRequest},
    wire::{handshake::Features, message::Message},
};

/// Web servers that a torrent uses; further ones are ignored.
pub(super) const MAX_WEBSEEDS: usize = 16;

/// The first pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Failures in a row after which a server is left alone.
const MAX_FAILURES: u32 = 6;

/// A web server, and what is needed to ask it.
#[derive(Debug)]
pub(super) struct WebServer {
    pub(super) client: Arc<dyn WebseedClient>,
    pub(super) webseed: Webseed,
    pub(super) pins: Arc<Pins>,
    pub(super) proxy: Option<Arc<SafeUrl>>,
}

/// Uses a web server until it fails for good.
pub(super) async fn serve(shared: Shared, source: WebServer, number: usize) {
    let mut failures = 0;
    while failures < MAX_FAILURES {
        let mut peer_id = *b"-WEBSEED-----------0";
        peer_id[19] = b'0' + u8::try_from(number % 64).unwrap_or(0);
        let joined = Joined {
            // Told apart by the port; an address that no peer can have.
            address: SocketAddr::new(
                Ipv4Addr::UNSPECIFIED.into(),
                u16::try_from(number + 1).unwrap_or(u16::MAX),
            ),
            is_incoming: true,
            peer_id,
            features: Features {
                fast: true,
                extended: false,
            },
        };
        let (id, wake, closed) = shared.join_web(joined);
        shared.apply(Input::Said(id, Message::HaveAll));
        shared.apply(Input::Said(id, Message::Unchoke));
        let mut server = Server {
            shared: &shared,
            source: &source,
            id,
        };
        let mut delivered = false;
        let result = closed.run_until_cancelled(server.run(&wake, &mut delivered)).await;
        shared.leave(id);
        match result {
            // We closed it: it sent wrong pieces, or is not needed.
            None | Some(Err(WebseedError::Refused)) => return,
            Some(Err(WebseedError::Unavailable) | Ok(())) => {}
        }
        failures = if delivered { 1 } else { failures + 1 };
        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(failures.min(MAX_FAILURES))).await;
    }
}

struct Server<'a> {
    shared: &'a Shared,
    source: &'a WebServer,
    id: PeerId,
}

impl Server<'_> {
    async fn run(&mut self, wake: &Rc<tokio::sync::Notify>, delivered: &mut bool) -> Result<(), WebseedError> {
        loop {
            let blocks = self.shared.with(|core| core.take_web_requests(self.id));
            if blocks.is_empty() {
                wake.notified().await;
                continue;
            }
            let Some(disk) = self.shared.with(|core| core.disk.clone()) else {
                return Ok(());
            };
            self.fetch(&disk.storage, blocks, delivered).await?;
        }
    }

    /// Fetches blocks that follow each other.
    async fn fetch(
        &self,
        storage: &Storage,
        blocks: VecDeque<Block>,
        delivered: &mut bool,
    ) -> Result<(), WebseedError> {
        let (Some(first), Some(last)) = (blocks.front(), blocks.back()) else {
            return Ok(());
        };
        let geometry = storage.geometry();
        let start = geometry.offset(first.piece) + u64::from(first.begin);
        let end = geometry.offset(last.piece) + u64::from(last.begin) + u64::from(last.length);
        let mut filling = Filling {
            shared: self.shared,
            id: self.id,
            blocks,
            current: None,
            done: 0,
            own: Vec::new(),
            at: start,
        };
        for extent in storage.layout.extents(start, end - start) {
            // Padding lies between files, and is zeros.
            filling.zeros(extent.torrent_offset, storage);
            self.fetch_extent(storage, extent, &mut filling).await?;
            *delivered = true;
        }
        filling.zeros(end, storage);
        Ok(())
    }

    async fn fetch_extent(
        &self,
        storage: &Storage,
        extent: Extent,
        filling: &mut Filling<'_>,
    ) -> Result<(), WebseedError> {
        let url = file_url(&self.source.webseed.url, &storage.info, extent.file).ok_or(WebseedError::Refused)?;
        let limits = self.shared.with(|core| core.down.clone());
        let request = WebseedRequest {
            webseed: &self.source.webseed,
            url: &url,
            offset: extent.file_offset,
            length: extent.length,
            pins: &self.source.pins,
            proxy: self.source.proxy.as_deref(),
        };
        let mut body = self.source.client.fetch(request).await?;
        let mut rest = extent.length;
        while rest > 0 {
            let chunk = body.chunk().await?.ok_or(WebseedError::Unavailable)?;
            if chunk.len() as u64 > rest {
                return Err(WebseedError::Refused);
            }
            rest -= chunk.len() as u64;
            let mut granted = 0;
            while limits.are_set() && granted < chunk.len() as u64 {
                granted += limits.acquire(chunk.len() as u64 - granted).await;
            }
            filling.add(&chunk, storage);
        }
        Ok(())
    }
}

/// Puts a stream of bytes into blocks.
struct Filling<'a> {
    shared: &'a Shared,
    id: PeerId,
    blocks: VecDeque<Block>,
    current: Option<(Block, Keep)>,
    done: usize,
    own: Vec<u8>,
    /// Where the next byte belongs in the torrent.
    at: u64,
}

impl Filling<'_> {
    fn zeros(&mut self, until: u64, storage: &Storage) {
        const ZEROS: [u8; 1024] = [0; 1024];
        while self.at < until {
            let count = usize::try_from(until - self.at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.add(&ZEROS[..count], storage);
        }
    }

    fn add(&mut self, mut bytes: &[u8], storage: &Storage) {
        while !bytes.is_empty() {
            let Some((block, keep)) = self.current.or_else(|| self.begin()) else {
                return;
            };
            self.current = Some((block, keep));
            let length = block.length as usize;
            let count = bytes.len().min(length - self.done);
            self.own[self.done..self.done + count].copy_from_slice(&bytes[..count]);
            self.done += count;
            self.at += count as u64;
            bytes = &bytes[count..];
            if self.done == length {
                self.current = None;
                self.deliver(block, keep, storage);
            }
        }
    }

    /// Begins the next block.
    fn begin(&mut self) -> Option<(Block, Keep)> {
        let block = self.blocks.pop_front()?;
        let begun = self.shared.with(|core| core.begin_block(self.id, block));
        self.own.resize(block.length as usize, 0);
        self.done = 0;
        Some((block, begun.unwrap_or(Keep::Nothing)))
    }

    fn deliver(&self, block: Block, keep: Keep, storage: &Storage) {
        let offset = storage.geometry().offset(block.piece) + u64::from(block.begin);
        match keep {
            Keep::Nothing => return,
            Keep::Disk => {
                if let Err(failure) = storage.write(offset, &self.own) {
                    self.shared.report(Report::Failed(failure));
                }
            }
            Keep::Memory => self.shared.with(|core| {
                if let Some(target) = core.memory(self.id, block) {
                    target.copy_from_slice(&self.own);
                }
            }),
        }
        self.shared.with(|core| core.note_useful(self.id, block.length));
        self.shared.apply(Input::Arrived(self.id, block));
    }
}

/// Where the server has a file: the URL itself for a single file, unless it ends like a directory.
fn file_url(url: &SafeUrl, info: &metainfo::Info, file: usize) -> Option<SafeUrl> {
    let text = url.as_url().as_str();
    if info.is_single_file() && !text.ends_with('/') {
        return Some(url.clone());
    }
    let mut joined = url.as_url().clone();
    {
        let mut segments = joined.path_segments_mut().ok()?;
        segments.pop_if_empty().push(info.name().as_str());
        for name in info.files().get(file)?.path() {
            segments.push(name);
        }
    }
    SafeUrl::parse(joined.as_str()).ok()
}
