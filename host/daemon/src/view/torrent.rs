//! Maps what is known of torrents to the protocol's records.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Instant,
};

use data_encoding::HEXLOWER;
use metainfo::{Info, Magnet, Metainfo};
use protocol::{
    DhtNodeDto, PortMappingDto, TorrentDto, TorrentFileDto, TorrentPeerDto, TorrentPieces, TorrentSessionDto,
    TorrentTrackerDto, TrackerListDto, TrackerListsRefreshed,
};
use transfer::SafeUrl;
use transfer_torrent::{
    FileView, ListView, Live, MappingStatus, PeerSource, PeerView, PiecesView, Priority, SessionView, TrackerSource,
    TrackerStatus, TrackerView,
};

/// The longest bitfield of a peer that is shown, in bytes: two hundred peers may have one each.
const MAX_BITFIELD: usize = 8 * 1024;

/// Why no list of trackers was read.
const NO_LIST: &str = "no list of trackers is set: see bt_tracker_sub_urls";

/// What a metainfo file says, or put together from a magnet link's metadata.
pub(crate) fn of_metainfo(metainfo: &Metainfo) -> TorrentDto {
    let Metainfo {
        info,
        trackers,
        webseeds,
        // Peers of the first minute, for programs.
        nodes: _,
        comment,
        created_by,
        created_at,
    } = metainfo;
    let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or_default().to_owned();
    TorrentDto {
        info_hash: info.hash().to_string(),
        name: info.name().as_str().to_owned(),
        has_metadata: true,
        is_multi_file: !info.is_single_file(),
        is_private: info.is_private(),
        total_bytes: info.files().iter().map(metainfo::File::length).sum(),
        file_count: info.files().len(),
        piece_bytes: info.piece_length(),
        pieces: info.piece_count(),
        comment: text(comment),
        created_by: text(created_by),
        created_at: *created_at,
        trackers: trackers
            .iter()
            .map(|tier| tier.iter().map(SafeUrl::shown).collect())
            .collect(),
        webseeds: webseeds.iter().map(SafeUrl::shown).collect(),
        magnet: magnet(metainfo.magnet()),
        ..TorrentDto::default()
    }
}

/// What a magnet link says, while nothing else is known.
pub(crate) fn of_magnet(link: Magnet) -> TorrentDto {
    TorrentDto {
        info_hash: link.info_hash.to_string(),
        name: link.name.clone().unwrap_or_default(),
        trackers: link.trackers.iter().map(|tracker| vec![tracker.shown()]).collect(),
        webseeds: link.webseeds.iter().map(SafeUrl::shown).collect(),
        magnet: magnet(link),
        ..TorrentDto::default()
    }
}

/// A link without the passwords of trackers and web servers.
fn magnet(link: Magnet) -> String {
    let masked = |urls: Vec<SafeUrl>| {
        let masked = urls.iter().filter_map(|url| SafeUrl::parse(&url.shown()).ok());
        masked.collect()
    };
    Magnet {
        trackers: masked(link.trackers),
        webseeds: masked(link.webseeds),
        ..link
    }
    .to_string()
}

pub(crate) fn add_live(torrent: &mut TorrentDto, live: Live) {
    let Live {
        peers,
        seeds,
        wasted_bytes,
        pieces_have,
        is_without_metadata: _,
        is_seeding,
    } = live;
    torrent.is_running = true;
    torrent.is_seeding = is_seeding;
    torrent.peers = peers;
    torrent.seeds = seeds;
    torrent.wasted_bytes = wasted_bytes;
    torrent.pieces_have = pieces_have;
}

/// A file at its place in the torrent, of whose files `chosen` are to be downloaded, or all.
/// A file of a torrent that is stored in `directory`.
pub(crate) fn file(info: &Info, directory: &Path, (place, view): (usize, &FileView), chosen: &[u32]) -> TorrentFileDto {
    let path = match info.files().get(place) {
        Some(file) if !info.is_single_file() => file.shown(),
        _ => info.name().as_str(),
    };
    let below = view.path.strip_prefix(directory).unwrap_or(&view.path);
    let below = below.iter().skip(usize::from(!info.is_single_file()));
    let below = below.collect::<PathBuf>().display().to_string();
    let index = u32::try_from(place).unwrap_or(u32::MAX);
    TorrentFileDto {
        index,
        path: path.to_owned(),
        renamed: (below != path).then_some(below),
        file_path: view.path.display().to_string(),
        size_bytes: view.length,
        done_bytes: view.done_bytes,
        // A task that has not run yet has only its options.
        wanted: if chosen.is_empty() {
            view.priority != Priority::Skip
        } else {
            chosen.contains(&index)
        },
    }
}

/// `pieces` is the number of them in the torrent; 0: unknown.
pub(crate) fn peer(view: &PeerView, pieces: u32) -> TorrentPeerDto {
    let address: SocketAddr = view.address;
    TorrentPeerDto {
        ip: address.ip().to_canonical().to_string(),
        port: address.port(),
        peer_id: HEXLOWER.encode(&view.peer_id),
        client: view.client.clone().unwrap_or_default(),
        source: match view.source {
            PeerSource::User => "user",
            PeerSource::Tracker => "tracker",
            PeerSource::LocalNetwork => "lan",
            PeerSource::Dht => "dht",
            PeerSource::Exchange => "exchange",
            PeerSource::Incoming => "incoming",
        }
        .to_owned(),
        pieces: view.pieces,
        bitfield: if view.have.len() <= MAX_BITFIELD {
            HEXLOWER.encode(&view.have)
        } else {
            String::new()
        },
        is_seed: pieces > 0 && view.pieces == pieces,
        download_bps: view.download_rate,
        upload_bps: view.upload_rate,
        downloaded_bytes: view.downloaded,
        uploaded_bytes: view.uploaded,
        peer_choking: view.is_choking_us,
        peer_interested: view.is_interested,
        am_choking: view.is_choked,
        am_interested: view.is_interesting,
        snubbed: view.is_snubbing,
        incoming: view.is_incoming,
    }
}

pub(crate) fn tracker(view: &TrackerView, now: Instant) -> TorrentTrackerDto {
    TorrentTrackerDto {
        url: view.url.shown(),
        tier: view.tier,
        source: match view.source {
            TrackerSource::Torrent => "torrent",
            TrackerSource::Custom => "custom",
            TrackerSource::List => "list",
        }
        .to_owned(),
        status: match view.status {
            TrackerStatus::NotContacted => "waiting",
            TrackerStatus::Announcing => "announcing",
            TrackerStatus::Working => "working",
            TrackerStatus::Failed => "failed",
            TrackerStatus::Disabled => "disabled",
        }
        .to_owned(),
        peers: view.peers,
        seeds: view.seeds,
        leechers: view.leechers,
        downloads: view.downloads,
        next_announce_secs: view.next_announce.map(|at| at.saturating_duration_since(now).as_secs()),
        message: view.message.clone().unwrap_or_default(),
    }
}

/// The page of `availability` from `offset` on.
pub(crate) fn pieces(info: &Info, view: &PiecesView, offset: usize, limit: usize) -> TorrentPieces {
    let end = offset.saturating_add(limit).min(view.availability.len());
    TorrentPieces {
        piece_bytes: info.piece_length(),
        pieces: info.piece_count(),
        pieces_have: count(view),
        bitfield: if view.have.len() <= MAX_BITFIELD {
            HEXLOWER.encode(&view.have)
        } else {
            String::new()
        },
        offset,
        availability: view.availability.get(offset..end).unwrap_or_default().to_vec(),
        next_offset: (end < view.availability.len() && offset < end).then_some(end),
    }
}

/// How many pieces are there.
pub(crate) fn count(view: &PiecesView) -> u32 {
    view.have.iter().map(|byte| byte.count_ones()).sum()
}

/// `None`: it has not begun.
pub(crate) fn session(view: Option<SessionView>) -> TorrentSessionDto {
    let Some(SessionView {
        port,
        dht,
        lsd_error,
        mapping,
    }) = view
    else {
        return TorrentSessionDto::default();
    };
    let node = |address: SocketAddr, nodes| DhtNodeDto {
        address: address.to_string(),
        nodes,
    };
    TorrentSessionDto {
        is_running: true,
        port,
        dht_v4: dht.v4.map(|of| node(of.address, of.nodes)),
        dht_v6: dht.v6.map(|of| node(of.address, of.nodes)),
        lan_error: lsd_error.unwrap_or_default(),
        port_mapping: (mapping != MappingStatus::default()).then(|| PortMappingDto {
            external_port: mapping.external_port,
            external_address: mapping
                .external_address
                .map(|address| address.to_string())
                .unwrap_or_default(),
            error: mapping.error.unwrap_or_default(),
        }),
    }
}

/// `updated_at` is in Unix seconds.
pub(crate) fn lists(lists: Vec<ListView>, updated_at: i64) -> TrackerListsRefreshed {
    let lists: Vec<_> = lists
        .into_iter()
        .map(|list| TrackerListDto {
            url: list.url.shown(),
            tracker_count: *list.trackers.as_ref().unwrap_or(&0),
            error: list.trackers.err().unwrap_or_default(),
        })
        .collect();
    let ok_sources = lists.iter().filter(|list| list.error.is_empty()).count();
    let failed = lists.iter().find(|list| !list.error.is_empty());
    let none = lists.is_empty().then_some(NO_LIST);
    TrackerListsRefreshed {
        success: ok_sources == lists.len() && !lists.is_empty(),
        tracker_count: lists.iter().map(|list| list.tracker_count).sum(),
        ok_sources,
        total_sources: lists.len(),
        updated_at,
        error: failed
            .map(|list| format!("{}: {}", list.url, list.error))
            .or(none.map(str::to_owned))
            .unwrap_or_default(),
        lists,
    }
}
