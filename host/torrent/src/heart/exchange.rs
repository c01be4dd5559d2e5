//! Messages of extensions: metadata and addresses of peers. Pure.

use std::{net::SocketAddr, time::Duration};

use super::{CloseReason, Effect, PeerId, State, Violation, metadata::Step};
use crate::wire::extension::{
    self, ExtensionHandshake, Metadata, OUR_DONT_HAVE, OUR_EXCHANGE, OUR_METADATA, decode_dont_have, decode_exchange,
    encode_exchange,
};

/// How often addresses are exchanged with a peer (BEP 11).
const EXCHANGE_EVERY: Duration = Duration::from_mins(1);

/// A peer that sends addresses more often than this floods us.
const EXCHANGE_AT_LEAST: Duration = Duration::from_secs(10);

/// Addresses of one message (BEP 11).
const MAX_EXCHANGED: usize = 50;

impl State {
    pub(super) fn extended(
        &mut self,
        id: PeerId,
        number: u8,
        content: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Result<(), CloseReason> {
        let malformed = |_| CloseReason::Violation(Violation::Extension);
        match number {
            extension::HANDSHAKE => {
                let handshake = ExtensionHandshake::decode(content).map_err(malformed)?;
                self.extensions_known(id, handshake, effects);
                Ok(())
            }
            OUR_METADATA => {
                let message = Metadata::decode(content).map_err(malformed)?;
                self.metadata_message(id, message, effects)
            }
            OUR_EXCHANGE if !self.config.is_private => {
                let addresses = decode_exchange(content).map_err(malformed)?;
                if !self.config.is_exchange_on {
                    // It may have learned our number for this before.
                    return Ok(());
                }
                self.exchanged(id, addresses, effects)
            }
            OUR_DONT_HAVE => {
                let piece = decode_dont_have(content).map_err(malformed)?;
                self.peer_lost(id, piece)
            }
            _ => Err(CloseReason::Violation(Violation::Extension)),
        }
    }

    fn extensions_known(&mut self, id: PeerId, handshake: ExtensionHandshake, effects: &mut Vec<Effect>) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        peer.metadata = handshake.metadata;
        peer.exchange = handshake.exchange;
        peer.dont_have = handshake.dont_have;
        peer.queue = handshake.queue;
        peer.is_upload_only = handshake.is_upload_only;
        peer.client = handshake.client.or(peer.client.take());
        if let Some(port) = handshake.port
            && peer.is_incoming
        {
            peer.listens_on = Some(SocketAddr::new(peer.address.ip(), port));
        }
        if let (Some(fetch), Some(bytes)) = (&mut self.fetch, handshake.metadata_bytes)
            && peer.metadata != 0
        {
            // A size that we do not accept is no reason to part: the peer may have it from another one.
            let _ignored = fetch.claim(id, bytes);
            self.fetch_metadata(effects);
        }
    }

    fn metadata_message(
        &mut self,
        id: PeerId,
        message: Metadata<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CloseReason> {
        match message {
            Metadata::Request(block) => self.metadata_requested(id, block, effects)?,
            Metadata::Data { block, data, .. } => {
                let suspect = self.peers.get(&id).map(super::peer::Peer::suspect);
                if let (Some(fetch), Some(suspect)) = (&mut self.fetch, suspect) {
                    let refused = |_| CloseReason::Violation(Violation::Metadata);
                    fetch.data(id, suspect, block, data).map_err(refused)?;
                }
                self.fetch_metadata(effects);
            }
            Metadata::Reject(block) => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.refused(id, block);
                }
                self.fetch_metadata(effects);
            }
            Metadata::Unknown => {}
        }
        Ok(())
    }

    /// Asks for metadata that is missing.
    pub(super) fn fetch_metadata(&mut self, effects: &mut Vec<Effect>) {
        let Some(fetch) = &mut self.fetch else {
            return;
        };
        for step in fetch.next(self.now) {
            match step {
                Step::Ask(id, block) => {
                    let number = self.peers.get(&id).map_or(0, |peer| peer.metadata);
                    effects.push(Effect::SendExtended(id, number, Metadata::Request(block).encode()));
                }
                Step::Check(data, suspects) => effects.push(Effect::CheckMetadata(data, suspects)),
            }
        }
    }

    fn exchanged(
        &mut self,
        id: PeerId,
        addresses: Vec<SocketAddr>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CloseReason> {
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        let is_flood = peer
            .exchanged
            .is_some_and(|last| self.now.saturating_sub(last) < EXCHANGE_AT_LEAST);
        if is_flood {
            return Err(CloseReason::Violation(Violation::Exchange));
        }
        peer.exchanged = Some(self.now);
        effects.push(Effect::Found(addresses));
        Ok(())
    }

    /// Tells peers about each other.
    pub(super) fn exchange(&mut self, effects: &mut Vec<Effect>) {
        if !self.config.exchanges_peers() {
            return;
        }
        let now = self.now;
        let is_due = |told_at: Duration| now.saturating_sub(told_at) >= EXCHANGE_EVERY;
        if !self
            .peers
            .values()
            .any(|peer| peer.exchange != 0 && is_due(peer.told_at))
        {
            return;
        }
        let known: Vec<_> = self.peers.values().filter_map(|peer| peer.listens_on).collect();
        for (id, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.exchange != 0) {
            if !is_due(peer.told_at) {
                continue;
            }
            peer.told_at = now;
            let is_new = |address: &&SocketAddr| !peer.told.contains(address) && Some(**address) != peer.listens_on;
            let added: Vec<_> = known.iter().filter(is_new).take(MAX_EXCHANGED).copied().collect();
            let is_gone = |address: &&SocketAddr| !known.contains(address);
            let dropped: Vec<_> = peer.told.iter().filter(is_gone).take(MAX_EXCHANGED).copied().collect();
            if added.is_empty() && dropped.is_empty() {
                continue;
            }
            peer.told.retain(|address| !dropped.contains(address));
            peer.told.extend(&added);
            effects.push(Effect::SendExtended(
                *id,
                peer.exchange,
                encode_exchange(&added, &dropped),
            ));
        }
    }
}
