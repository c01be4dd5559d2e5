//! Peers in the local network (BEP 14): multicast messages that name info hashes.

mod message;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use egress::udp::Datagrams;
use metainfo::InfoHash;
use tokio::time::{Instant, sleep_until};

use crate::{
    client::random,
    peer::{self, Found, Origin},
    session::Shared,
};

/// The group of the standard.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 152, 143), 6771);

/// Between two announces of a torrent.
const INTERVAL: Duration = Duration::from_mins(5);

/// Between two messages of ours.
const GAP: Duration = Duration::from_secs(1);

/// A torrent that is announced by another host is announced again by us, at most this often: both find each other at once.
const ANSWER_AFTER: Duration = Duration::from_mins(1);

/// After a socket that could not be opened or has failed.
const RETRY: Duration = Duration::from_mins(5);

/// Announces of others that are looked at in [`GAP`]; a local network has no more, and a flood costs no more.
const MAX_RECEIVED: u32 = 100;

/// Which torrents are announced when. Pure.
#[derive(Debug, Default)]
struct Announces {
    due: BTreeMap<InfoHash, Instant>,
    last: BTreeMap<InfoHash, Instant>,
}

impl Announces {
    /// Makes the torrents those of `wanted`; new ones are due now.
    fn set(&mut self, wanted: &BTreeSet<InfoHash>, now: Instant) {
        self.due.retain(|info_hash, _| wanted.contains(info_hash));
        self.last.retain(|info_hash, _| wanted.contains(info_hash));
        for info_hash in wanted {
            self.due.entry(*info_hash).or_insert(now);
        }
    }

    /// Another host announced one of them.
    fn heard(&mut self, info_hash: InfoHash, now: Instant) {
        let last = self.last.get(&info_hash);
        let is_old = last.is_none_or(|last| now.duration_since(*last) >= ANSWER_AFTER);
        if let Some(due) = self.due.get_mut(&info_hash).filter(|_| is_old) {
            *due = now.min(*due);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// The torrents for one message, and when they are due again.
    fn take(&mut self, now: Instant) -> Vec<InfoHash> {
        let due = self.due.iter().filter(|(_, at)| **at <= now);
        let due: Vec<_> = due.map(|(info_hash, _)| *info_hash).take(message::MAX_HASHES).collect();
        for info_hash in &due {
            self.due.insert(*info_hash, now + INTERVAL);
            self.last.insert(*info_hash, now);
        }
        due
    }
}

enum Happened {
    Changed,
    Received(usize, SocketAddr),
    Failed,
    Due,
    Stop,
}

/// Runs until the session stops.
pub(crate) async fn run(mut shared: Shared) {
    // Tells our own messages from those of others, which come on the same address.
    let cookie = format!("svc-{:08x}", random());
    loop {
        let is_on = shared.settings.borrow_and_update().lsd();
        if is_on {
            match Datagrams::join(GROUP) {
                Ok(socket) => {
                    report(&shared, None);
                    if serve(&socket, &cookie, &mut shared).await.is_break() {
                        return;
                    }
                }
                Err(error) => report(&shared, Some(error.to_string())),
            }
        } else {
            report(&shared, None);
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            changed = shared.settings.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY), if is_on => {}
        }
    }
}

fn report(shared: &Shared, error: Option<String>) {
    shared.status.send_if_modified(|status| {
        let is_new = status.lsd_error != error;
        status.lsd_error = error;
        is_new
    });
}

/// Announces and listens until it is switched off or fails; breaks when the session stops.
async fn serve(socket: &Datagrams, cookie: &str, shared: &mut Shared) -> std::ops::ControlFlow<()> {
    let mut announces = Announces::default();
    let mut may_send = Instant::now();
    let (mut received, mut since) = (0, Instant::now());
    let mut buffer = [0; message::MAX_BYTES];
    shared.wanted.mark_changed();
    loop {
        let due = announces.next().map(|at| at.max(may_send));
        let happened = tokio::select! {
            biased;
            () = shared.stop.cancelled() => Happened::Stop,
            changed = shared.settings.changed() => if changed.is_ok() { Happened::Changed } else { Happened::Stop },
            changed = shared.wanted.changed() => if changed.is_ok() { Happened::Changed } else { Happened::Stop },
            got = socket.receive(&mut buffer) => match got {
                Ok((length, from)) => Happened::Received(length, from),
                Err(_) => Happened::Failed,
            },
            () = sleep_until(due.unwrap_or(may_send)), if due.is_some() => Happened::Due,
        };
        let now = Instant::now();
        match happened {
            Happened::Stop => return std::ops::ControlFlow::Break(()),
            Happened::Failed => return std::ops::ControlFlow::Continue(()),
            Happened::Changed => {
                if !shared.settings.borrow_and_update().lsd() {
                    shared.settings.mark_changed();
                    return std::ops::ControlFlow::Continue(());
                }
                let wanted = shared.wanted.borrow_and_update().clone();
                announces.set(&wanted.iter().map(|wanted| wanted.info_hash).collect(), now);
            }
            Happened::Received(length, from) => {
                if now.duration_since(since) >= GAP {
                    (received, since) = (0, now);
                }
                received += 1;
                if received <= MAX_RECEIVED {
                    hear(&buffer[..length], from, cookie, (&mut announces, now), shared).await;
                }
            }
            Happened::Due => {
                let hashes = announces.take(now);
                may_send = now + GAP;
                let message = message::write(GROUP, shared.port, &hashes, cookie);
                // Without a network there is nobody to find; it is announced again.
                let _no_network = socket.send_to_group(message.as_bytes(), GROUP).await;
            }
        }
    }
}

async fn hear(
    datagram: &[u8],
    from: SocketAddr,
    cookie: &str,
    (announces, now): (&mut Announces, Instant),
    shared: &Shared,
) {
    let Some(heard) = message::read(datagram).filter(|heard| heard.cookie.as_deref() != Some(cookie)) else {
        return;
    };
    // A datagram of the group does not leave its network, so that any sender is in ours, whatever its address.
    let peer = peer::canonical(SocketAddr::new(from.ip(), heard.port));
    if !peer::is_usable(peer, false) {
        return;
    }
    for info_hash in heard.info_hashes {
        if announces.due.contains_key(&info_hash) {
            announces.heard(info_hash, now);
            let found = Found {
                origin: Origin::Lsd,
                peers: vec![peer],
            };
            // The loop that takes it ends after this source.
            let _ended = shared.found.send((info_hash, found)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> InfoHash {
        InfoHash([number; 20])
    }

    #[test]
    fn many_torrents_share_messages_and_each_has_its_interval() {
        let now = Instant::now();
        let mut announces = Announces::default();
        announces.set(&(0..250).map(hash).collect(), now);
        let mut sent = BTreeSet::new();
        while announces.next() == Some(now) {
            let hashes = announces.take(now);
            assert!(!hashes.is_empty() && hashes.len() <= message::MAX_HASHES);
            sent.extend(hashes);
        }
        assert_eq!(sent.len(), 250);
        assert_eq!(announces.next(), Some(now + INTERVAL));
        announces.set(&[hash(1)].into(), now);
        assert_eq!((announces.due.len(), announces.last.len()), (1, 1));
    }

    #[test]
    fn another_host_is_answered_but_not_at_its_pace() {
        let now = Instant::now();
        let mut announces = Announces::default();
        announces.set(&[hash(1)].into(), now);
        announces.take(now);
        announces.heard(hash(1), now + Duration::from_secs(1));
        assert_eq!(announces.next(), Some(now + INTERVAL));
        let later = now + ANSWER_AFTER;
        announces.heard(hash(1), later);
        announces.heard(hash(2), later);
        assert_eq!(announces.next(), Some(later));
        assert_eq!(announces.due.len(), 1);
    }
}
