//! Connections of a torrent: those that we make, and those that peers made.

use std::{net::SocketAddr, sync::Arc};

use super::Torrent;
use crate::{
    config::{Encryption, PeerSource},
    driver::{
        connection,
        core::Shared,
        introduction,
        limits::{CONNECT_TIME, HANDSHAKE_TIME},
        stream::PeerStream,
        webseed,
    },
    handle::Incoming,
    heart::Joined,
    view::Status,
    webseed::Webseed,
    wire::handshake::Handshake,
};
use egress::{
    Names,
    peer::{self, PeerReach},
};
use tokio::{net::TcpStream, time::timeout};
use transfer::SafeUrl;

impl Torrent {
    pub(super) fn add_peers(&mut self, peers: &[SocketAddr], source: PeerSource, reach: PeerReach) {
        self.shared.with(|core| {
            for address in peers.iter().filter(|address| self.session.allows(address.ip())) {
                core.candidates.add(*address, source, reach);
            }
        });
        if self.is_active() {
            self.dial();
        }
    }

    /// Serves a peer that connected to us.
    pub(super) fn accept(&mut self, incoming: Incoming) {
        let is_full = self.shared.with(|core| core.links.len()) >= self.most_peers();
        if self.proxy.is_some() {
            return;
        }
        let permit = self.session.connections.take();
        let (false, true, Some(permit)) = (is_full, self.is_active(), permit) else {
            return;
        };
        let Ok(stream) = TcpStream::from_std(incoming.stream) else {
            return;
        };
        let _unsupported = stream.set_nodelay(true);
        let stream = PeerStream::new(stream, incoming.keys, true);
        self.note_exchange();
        let ours = Handshake::new(self.info_hash, self.session.peer_id);
        let (shared, run) = (self.shared.clone(), self.run.clone());
        let joined = Joined {
            address: incoming.address,
            is_incoming: true,
            peer_id: incoming.handshake.peer_id,
            features: incoming.handshake.features,
        };
        let slot = incoming.slot;
        self.shared.with(|core| core.tasks.clone()).spawn_local(async move {
            let _held = (permit, slot);
            // `run_until_cancelled` has room for what it runs twice: in a box, a connection takes a third.
            let serving = Box::pin(async {
                let mut ours = ours.encode();
                stream.encrypt(&mut ours);
                if timeout(HANDSHAKE_TIME, stream.write_all(&ours))
                    .await
                    .is_ok_and(|sent| sent.is_ok())
                {
                    connection::serve(shared.clone(), stream, joined).await;
                }
            });
            run.run_until_cancelled(serving).await;
        });
    }

    /// Connects to as many peers as there is room for.
    pub(super) fn dial(&mut self) {
        // Also to upload: behind a router that forwards nothing, peers cannot connect to us.
        let (is_wanted, is_seeding) = (self.is_active(), self.status == Status::Seeding);
        self.dialing = self.shared.with(|core| core.dialing.get());
        while is_wanted && self.shared.with(|core| core.links.len()) + self.dialing < self.most_peers() {
            let (Some(half_open), Some(permit)) = (self.session.half_open.take(), self.session.connections.take())
            else {
                return;
            };
            let next = self.shared.with(|core| {
                let now = core.now();
                core.candidates.next(now, is_seeding)
            });
            let Some((address, reach)) = next else {
                return;
            };
            if !self.session.allows(address.ip()) {
                self.shared.with(|core| core.candidates.remove(address));
                continue;
            }
            self.dialing += 1;
            let count = self.shared.with(|core| std::rc::Rc::clone(&core.dialing));
            count.set(self.dialing);
            let ours = Handshake::new(self.info_hash, self.session.peer_id);
            let (shared, run) = (self.shared.clone(), self.run.clone());
            let encryption = self.session.encryption();
            let (proxy, names) = (self.proxy.clone(), self.session.names.clone());
            self.shared.with(|core| core.tasks.clone()).spawn_local(async move {
                let connecting = connect((address, reach), (proxy.as_deref(), &names), &ours, encryption);
                let connecting = run.run_until_cancelled(Box::pin(connecting)).await;
                drop(half_open);
                count.set(count.get().saturating_sub(1));
                match connecting {
                    Some(Some((stream, theirs))) => {
                        let joined = Joined {
                            address,
                            is_incoming: false,
                            peer_id: theirs.peer_id,
                            features: theirs.features,
                        };
                        serve(&shared, stream, joined, &run).await;
                    }
                    Some(None) => shared.with(|core| {
                        let now = core.now();
                        core.candidates.ended(address, false, now);
                        core.reported.notify_one();
                    }),
                    // The torrent stops; the address is tried again when it continues.
                    None => {}
                }
                drop(permit);
            });
        }
    }

    pub(super) fn add_webseeds(&mut self, webseeds: Vec<Webseed>) {
        let known = |webseed: &Webseed| self.webseeds.iter().any(|known| known.url == webseed.url);
        let new: Vec<_> = webseeds.into_iter().filter(|webseed| !known(webseed)).collect();
        let first = self.webseeds.len();
        self.webseeds.extend(new);
        if self.status == Status::Downloading {
            self.start_webseeds(first);
        }
    }

    /// Starts using the web servers from the `first` one on.
    pub(super) fn start_webseeds(&self, first: usize) {
        let Some(client) = &self.session.webseeds else {
            return;
        };
        for (number, webseed) in self.webseeds.iter().enumerate().take(webseed::MAX_WEBSEEDS).skip(first) {
            let (shared, run) = (self.shared.clone(), self.run.clone());
            let source = webseed::WebServer {
                client: Arc::clone(client),
                webseed: webseed.clone(),
                pins: Arc::clone(&self.pins),
                proxy: self.proxy.clone(),
            };
            self.shared.with(|core| core.tasks.clone()).spawn_local(async move {
                run.run_until_cancelled(Box::pin(webseed::serve(shared, source, number)))
                    .await;
            });
        }
    }
}

async fn serve(shared: &Shared, stream: PeerStream, joined: Joined, run: &tokio_util::sync::CancellationToken) {
    run.run_until_cancelled(Box::pin(connection::serve(shared.clone(), stream, joined)))
        .await;
}

/// Connects to a peer and exchanges handshakes. One that wants obfuscation closes a connection in clear.
async fn connect(
    (address, reach): (SocketAddr, PeerReach),
    through: (Option<&SafeUrl>, &Names),
    ours: &Handshake,
    encryption: Encryption,
) -> Option<(PeerStream, Handshake)> {
    let dialing = || peer::connect(address, reach, through, CONNECT_TIME);
    if encryption != Encryption::Forced {
        let mut stream = dialing().await.ok()?;
        let introduced = timeout(HANDSHAKE_TIME, introduction::plainly(&mut stream, ours)).await;
        match introduced.ok()? {
            Ok((theirs, keys)) => return Some((PeerStream::new(stream, keys, false), theirs)),
            Err(_) if encryption == Encryption::Disabled => return None,
            Err(_) => {}
        }
    }
    let mut stream = dialing().await.ok()?;
    let introducing = introduction::secretly(&mut stream, ours, encryption);
    let (theirs, keys) = timeout(HANDSHAKE_TIME, introducing).await.ok()?.ok()?;
    Some((PeerStream::new(stream, keys, false), theirs))
}
