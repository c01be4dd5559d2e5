//! Devices nearby: announcing this one and finding others with multicast DNS. [`Snapshot`] is pure, [`Mdns`] drives the
//! library.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    time::Instant,
};

use mdns_sd::{IfKind, Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};
use protocol::{LinkDiscoveredPeer, LinkPeerSource};

use crate::{
    constants::{MAX_DISCOVERED, MAX_PROBES, PROBE_TTL},
    crypto::{identity::Fingerprint, transcript::About},
    device::is_dialled,
    pairing::hello::{check_about, said},
};

const SERVICE: &str = "_svc._tcp.local.";

/// The bridge of container runtimes: no other device is there.
fn is_container_bridge(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [172, 17, ..])
}

/// How well an address is suited; smaller is better, `None` not at all.
fn rank(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(v4) if is_container_bridge(v4) => None,
        _ if !is_dialled(address) => None,
        IpAddr::V4(v4) => Some(match v4.octets() {
            [192, 168, ..] => 0,
            [10, ..] => 1,
            [172, second, ..] if (16..32).contains(&second) => 2,
            _ => 3,
        }),
        IpAddr::V6(_) => Some(4),
    }
}

/// The best of the addresses that a device announces.
pub(crate) fn best(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let ranked = addresses.filter_map(|address| Some((rank(address)?, address)));
    ranked.min().map(|(_, address)| address)
}

/// What a device announces of itself. All of it is unproved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The name of its entry.
    pub(crate) instance: String,
    /// Its fingerprint, if it announces one.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// What it says of itself.
    pub(crate) about: About,
    /// Its best address.
    pub(crate) host: IpAddr,
    /// Its port.
    pub(crate) port: u16,
}

impl Announced {
    fn of(service: &ResolvedService) -> Option<Self> {
        let property = |key: &str| service.get_property_val_str(key).unwrap_or_default().to_owned();
        let about = About {
            name: property("name"),
            platform: property("plat"),
            app_version: property("ver"),
        };
        check_about(&about).ok()?;
        let addresses = service.get_addresses().iter().map(mdns_sd::ScopedIp::to_ip_addr);
        Some(Self {
            instance: service.get_fullname().to_owned(),
            fingerprint: Fingerprint::read(&property("fp")),
            about,
            host: best(addresses)?,
            port: Some(service.get_port()).filter(|port| *port != 0)?,
        })
    }

    /// `host:port`, IPv6 in brackets.
    pub(crate) fn address(&self) -> String {
        std::net::SocketAddr::new(self.host, self.port).to_string()
    }

    fn view(&self) -> LinkDiscoveredPeer {
        LinkDiscoveredPeer {
            fingerprint: self
                .fingerprint
                .as_ref()
                .map(|fingerprint| fingerprint.as_str().to_owned()),
            name: self.about.name.clone(),
            platform: said(&self.about.platform),
            host: self.host.to_string(),
            port: self.port,
            app_version: said(&self.about.app_version),
            source: LinkPeerSource::Mdns,
        }
    }
}

/// What a search has found, and addresses that were asked. Bounded whatever is announced.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    found: Vec<Announced>,
    /// Addresses at which paired devices announce themselves. Dialled after those that worked, and kept only then.
    hints: HashMap<Fingerprint, String>,
    /// Oldest first.
    probes: Vec<(Instant, String, Fingerprint)>,
}

impl Snapshot {
    /// A new search begins.
    pub(crate) fn clear(&mut self) {
        self.found.clear();
    }

    /// A device announces itself. Gives whether the list is another one.
    pub(crate) fn add(
        &mut self,
        announced: Announced,
        own: &Fingerprint,
        is_paired: impl Fn(&Fingerprint) -> bool,
    ) -> bool {
        if announced.fingerprint.as_ref() == Some(own) {
            return false;
        }
        if let Some(fingerprint) = announced
            .fingerprint
            .as_ref()
            .filter(|fingerprint| is_paired(fingerprint))
        {
            if self.hints.len() < MAX_DISCOVERED || self.hints.contains_key(fingerprint) {
                self.hints.insert(fingerprint.clone(), announced.address());
            }
            return false;
        }
        let is_same = |known: &Announced| match (&known.fingerprint, &announced.fingerprint) {
            (Some(known), Some(new)) => known == new,
            _ => known.address() == announced.address(),
        };
        let is_full = self.found.len() >= MAX_DISCOVERED;
        match self.found.iter_mut().find(|known| is_same(known)) {
            Some(known) if *known == announced => false,
            Some(known) => {
                *known = announced;
                true
            }
            None if is_full => false,
            None => {
                self.found.push(announced);
                true
            }
        }
    }

    /// A device left. Gives whether the list is another one.
    pub(crate) fn remove(&mut self, instance: &str) -> bool {
        let before = self.found.len();
        self.found.retain(|known| known.instance != instance);
        self.found.len() != before
    }

    /// A device was paired, and is no longer listed.
    pub(crate) fn paired(&mut self, device: &Fingerprint) -> bool {
        let before = self.found.len();
        self.found.retain(|known| known.fingerprint.as_ref() != Some(device));
        self.found.len() != before
    }

    /// The list.
    pub(crate) fn view(&self) -> Vec<LinkDiscoveredPeer> {
        self.found.iter().map(Announced::view).collect()
    }

    /// Where a paired device announces itself.
    pub(crate) fn hint(&self, device: &Fingerprint) -> Option<&String> {
        self.hints.get(device)
    }

    /// A user's address was asked, and this device answered.
    pub(crate) fn probed(&mut self, address: String, device: Fingerprint, now: Instant) {
        self.probes.retain(|(_, known, _)| *known != address);
        if self.probes.len() >= MAX_PROBES {
            self.probes.remove(0);
        }
        self.probes.push((now, address, device));
    }

    /// The devices that are known at an address.
    pub(crate) fn expected(&self, host: &str, port: u16, address: &str, now: Instant) -> Vec<Fingerprint> {
        let of_search = self
            .found
            .iter()
            .filter(|known| known.host.to_string() == host && known.port == port);
        let of_search = of_search.filter_map(|known| known.fingerprint.clone());
        let is_fresh = |at: &Instant| now.saturating_duration_since(*at) < PROBE_TTL;
        let probes = self
            .probes
            .iter()
            .filter(|(at, known, _)| known == address && is_fresh(at));
        of_search.chain(probes.map(|(_, _, device)| device.clone())).collect()
    }

    /// Forgets old probes.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.probes
            .retain(|(at, _, _)| now.saturating_duration_since(*at) < PROBE_TTL);
    }
}

/// Multicast DNS does not work here.
#[derive(Debug, thiserror::Error)]
#[error("multicast DNS cannot be used: {0}")]
pub(crate) struct MdnsError(#[from] mdns_sd::Error);

/// The library with its thread, which runs only while it announces or searches.
#[derive(Default)]
pub(crate) struct Mdns {
    daemon: Option<ServiceDaemon>,
    /// The full name of this device's entry, while it is announced.
    announced: Option<String>,
    is_searching: bool,
}

impl std::fmt::Debug for Mdns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mdns")
            .field("announced", &self.announced)
            .finish_non_exhaustive()
    }
}

impl Mdns {
    /// On these interfaces; empty: on all. They are chosen when the thread begins.
    fn daemon(&mut self, interfaces: Vec<String>) -> Result<ServiceDaemon, MdnsError> {
        if let Some(daemon) = &self.daemon {
            return Ok(daemon.clone());
        }
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        if !interfaces.is_empty() {
            daemon.disable_interface(IfKind::All)?;
            let named: Vec<IfKind> = interfaces.into_iter().map(IfKind::Name).collect();
            daemon.enable_interface(named)?;
        }
        self.daemon = Some(daemon.clone());
        Ok(daemon)
    }

    /// Announces this device, or announces it again with other values: with `address`, or with those of the interfaces
    /// while they change.
    pub(crate) fn announce(
        &mut self,
        device: &Fingerprint,
        about: &About,
        address: Option<IpAddr>,
        port: u16,
        interfaces: Vec<String>,
    ) -> Result<(), MdnsError> {
        let daemon = self.daemon(interfaces)?;
        let short = device.short();
        let properties = [
            ("fp", device.as_str()),
            ("name", &about.name),
            ("plat", &about.platform),
            ("ver", &about.app_version),
        ];
        let host = format!("{short}.local.");
        let info = match address {
            Some(only) => ServiceInfo::new(SERVICE, short, &host, only, port, &properties[..])?,
            None => ServiceInfo::new(SERVICE, short, &host, "", port, &properties[..])?.enable_addr_auto(),
        };
        let name = info.get_fullname().to_owned();
        daemon.register(info)?;
        self.announced = Some(name);
        Ok(())
    }

    /// Whether this device is announced.
    pub(crate) fn is_announced(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether a search runs.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Stops announcing.
    pub(crate) fn withdraw(&mut self) {
        if let (Some(daemon), Some(name)) = (&self.daemon, self.announced.take())
            && let Err(error) = daemon.unregister(&name)
        {
            tracing::debug!(%error, "the device may be listed elsewhere until its entry expires");
        }
        self.rest();
    }

    /// Searches; `None` if a search runs already.
    pub(crate) fn search(&mut self, interfaces: Vec<String>) -> Result<Option<Receiver<ServiceEvent>>, MdnsError> {
        if self.is_searching {
            return Ok(None);
        }
        let events = self.daemon(interfaces)?.browse(SERVICE)?;
        self.is_searching = true;
        Ok(Some(events))
    }

    /// Ends the search.
    pub(crate) fn stop_search(&mut self) {
        if let Some(daemon) = self.daemon.as_ref().filter(|_| self.is_searching)
            && let Err(error) = daemon.stop_browse(SERVICE)
        {
            tracing::debug!(%error, "the search may go on");
        }
        self.is_searching = false;
        self.rest();
    }

    /// Ends the thread if nothing needs it.
    fn rest(&mut self) {
        if self.announced.is_none() && !self.is_searching {
            self.stop();
        }
    }

    /// Ends announcing, searching and the thread.
    pub(crate) fn stop(&mut self) {
        self.announced = None;
        self.is_searching = false;
        if let Some(daemon) = self.daemon.take()
            && let Err(error) = daemon.shutdown()
        {
            tracing::debug!(%error, "multicast DNS did not end");
        }
    }
}

/// An event of a search.
#[derive(Debug)]
pub(crate) enum SearchEvent {
    /// A device announces itself.
    Added(Announced),
    /// An entry is gone.
    Removed(String),
    /// Of no interest.
    Ignored,
    /// The search is over.
    Ended,
}

/// Reads an event of the library.
pub(crate) fn search_event(event: Option<ServiceEvent>) -> SearchEvent {
    match event {
        Some(ServiceEvent::ServiceResolved(service)) => {
            Announced::of(&service).map_or(SearchEvent::Ignored, SearchEvent::Added)
        }
        Some(ServiceEvent::ServiceRemoved(_, name)) => SearchEvent::Removed(name),
        Some(ServiceEvent::SearchStopped(_)) | None => SearchEvent::Ended,
        Some(_) => SearchEvent::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(number: u16, fingerprint: Option<u8>) -> Announced {
        Announced {
            instance: format!("{number}"),
            fingerprint: fingerprint.map(|byte| Fingerprint::read(&format!("{byte:064x}")).unwrap()),
            about: About::default(),
            host: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1)),
            port: number,
        }
    }

    #[test]
    fn addresses_are_ranked_and_those_of_this_machine_are_left_out() {
        let best = |addresses: &[&str]| best(addresses.iter().map(|address| address.parse().unwrap()));
        assert_eq!(
            best(&["127.0.0.1", "169.254.3.4", "172.17.0.2", "fe80::1", "::1", "224.0.0.1"]),
            None
        );
        let found = best(&["8.8.8.8", "172.16.0.1", "10.0.0.1", "192.168.0.1", "fd00::1"]);
        assert_eq!(found, Some("192.168.0.1".parse().unwrap()));
        assert_eq!(best(&["fe80::1", "fd00::1"]), Some("fd00::1".parse().unwrap()));
    }

    #[test]
    fn own_and_paired_devices_are_not_listed_and_the_list_is_bounded() {
        let own = Fingerprint::read(&"0".repeat(64)).unwrap();
        let mut snapshot = Snapshot::default();
        assert!(!snapshot.add(announced(1, Some(0)), &own, |_| false));
        assert!(!snapshot.add(announced(2, Some(1)), &own, |_| true));
        assert!(snapshot.view().is_empty());
        assert!(
            snapshot
                .hint(&Fingerprint::read(&format!("{:064x}", 1)).unwrap())
                .is_some()
        );
        for number in 1..1000 {
            snapshot.add(announced(number, None), &own, |_| false);
        }
        assert_eq!(snapshot.view().len(), MAX_DISCOVERED);
        assert!(snapshot.remove("5"));
    }

    #[test]
    fn a_probe_binds_its_address_for_ten_minutes() {
        let mut snapshot = Snapshot::default();
        let (start, device) = (Instant::now(), Fingerprint::read(&"1".repeat(64)).unwrap());
        for number in 0..200 {
            snapshot.probed(format!("h:{number}"), device.clone(), start);
        }
        assert_eq!(snapshot.probes.len(), MAX_PROBES);
        assert_eq!(snapshot.expected("h", 199, "h:199", start), [device]);
        assert!(snapshot.expected("h", 1, "h:1", start).is_empty());
        assert!(snapshot.expected("h", 199, "h:199", start + PROBE_TTL).is_empty());
    }
}
