//! Where peers and bytes of a torrent come from.

use egress::{address, name};
use metainfo::{Info, Magnet, Metainfo};
use transfer::SafeUrl;
use url::{Host, Url};

/// Where peers and bytes of a torrent come from.
pub(super) struct Sources {
    pub(super) trackers: Vec<Vec<SafeUrl>>,
    pub(super) webseeds: Vec<SafeUrl>,
    pub(super) nodes: Vec<(String, u16)>,
    pub(super) is_private: bool,
}

impl Sources {
    pub(super) fn of(metainfo: &Metainfo) -> Self {
        Self {
            trackers: metainfo
                .trackers
                .iter()
                .map(|tier| harmless(tier, is_tracker))
                .collect(),
            webseeds: harmless(&metainfo.webseeds, is_webseed),
            nodes: metainfo.nodes.clone(),
            is_private: metainfo.info.is_private(),
        }
    }

    pub(super) fn of_magnet(magnet: &Magnet) -> Self {
        Self {
            trackers: harmless(&magnet.trackers, is_tracker)
                .into_iter()
                .map(|url| vec![url])
                .collect(),
            webseeds: harmless(&magnet.webseeds, is_webseed),
            nodes: Vec::new(),
            is_private: false,
        }
    }

    pub(super) fn describe(self, info: Info) -> Metainfo {
        Metainfo {
            trackers: self.trackers,
            webseeds: self.webseeds,
            nodes: self.nodes,
            ..Metainfo::of_info(info)
        }
    }
}

/// Those of `urls` that cannot be commands to something else in the user's networks. People add torrents that strangers made,
/// and a request to a device at home may change it. As libtorrent does (`ssrf_mitigation`).
fn harmless(urls: &[SafeUrl], is_usual: fn(&Url) -> bool) -> Vec<SafeUrl> {
    let is_harmless = |url: &&SafeUrl| {
        let is_harmless = !is_local(url.as_url()) || is_usual(url.as_url());
        if !is_harmless {
            tracing::warn!(%url, "a torrent names a URL in a local network that is not one of a torrent's server: not used");
        }
        is_harmless
    };
    urls.iter().filter(is_harmless).cloned().collect()
}

/// Whether the host is spelled as one in a local network.
fn is_local(url: &Url) -> bool {
    match name::host(url) {
        Some(Host::Domain(domain)) => name::is_this_machine(&domain) || name::is_local(&domain),
        Some(Host::Ipv4(ip)) => address::is_here(ip.into()),
        Some(Host::Ipv6(ip)) => address::is_here(ip.into()),
        None => false,
    }
}

/// The path of a tracker over HTTP ends with `announce`, or a program of that name.
fn is_tracker(url: &Url) -> bool {
    let last = url.path_segments().and_then(|mut segments| segments.next_back());
    url.scheme() == "udp" || last.is_some_and(|last| last.starts_with("announce"))
}

/// The URL of a web server that has the files is a path.
fn is_webseed(url: &Url) -> bool {
    url.query().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_urls_that_are_no_trackers_or_files_are_left_out() {
        let urls = |texts: &[&str]| -> Vec<_> { texts.iter().map(|text| SafeUrl::parse(text).unwrap()).collect() };
        let shown = |urls: Vec<SafeUrl>| urls.iter().map(|url| url.expose().to_owned()).collect::<Vec<_>>();
        let trackers = urls(&[
            "http://192.168.1.1/reboot",
            "http://localhost:9200/_shutdown?announce",
            "http://127.0.0.1:6969/announce",
            "http://nas/key/announce.php?x=1",
            "udp://127.0.0.1:6969/",
            "http://tracker.example.org/x",
        ]);
        let kept = shown(harmless(&trackers, is_tracker));
        assert_eq!(kept, shown(trackers[2..].to_vec()));
        let webseeds = urls(&[
            "http://10.0.0.1/set?on=1",
            "http://10.0.0.1/files/",
            "https://example.org/get?id=1",
        ]);
        assert_eq!(shown(harmless(&webseeds, is_webseed)), shown(webseeds[1..].to_vec()));
    }
}
