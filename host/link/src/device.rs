//! The record of a device. Pure.

use std::net::{IpAddr, SocketAddr};

use egress::Reach;
use protocol::{LinkDeviceInfo, LinkDevicePatch};
use serde::{Deserialize, Serialize};

use crate::{
    constants::{DAILY_TASKS, MAX_ADDRESSES},
    crypto::{identity::Fingerprint, read_base64, write_base64},
    message::Info,
    pairing::{NewDevice, hello::said},
};

/// An address at which a device answered, or said that it can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// `host:port`, IPv6 in brackets.
    pub(crate) address: String,
    /// This device's user gave it, so it may be any; others must be private or global.
    #[serde(default)]
    pub(crate) is_given: bool,
}

impl Place {
    /// An address that a device reported, or that was found; `None` if it may not be dialled.
    pub(crate) fn reported(address: &str) -> Option<Self> {
        let parsed: SocketAddr = address.parse().ok()?;
        let may_be_dialled = is_dialled(parsed.ip()) && parsed.port() != 0;
        may_be_dialled.then(|| Self {
            address: address.to_owned(),
            is_given: false,
        })
    }

    /// Its IP address, if it is not a name.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.address.parse::<SocketAddr>().ok().map(|address| address.ip())
    }

    /// What a connection to it may reach.
    pub(crate) fn reach(&self) -> Reach {
        if self.is_given {
            Reach::Anywhere
        } else {
            Reach::LocalNetwork
        }
    }
}

/// Whether an address that the user did not give may be dialled: unicast, private or global.
pub(crate) fn is_dialled(address: IpAddr) -> bool {
    Reach::LocalNetwork.allows(address)
}

/// A paired device, or one that ended the pairing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Device {
    /// The name that it gives itself.
    pub(crate) name: String,
    /// Its platform; empty: unknown.
    pub(crate) platform: String,
    /// Its version; empty: unknown.
    pub(crate) app_version: String,
    /// The link key, in base64.
    key: String,
    /// In Unix seconds.
    pub(crate) paired_at: i64,
    /// In Unix seconds.
    pub(crate) last_seen_at: i64,
    /// Where it can be reached, the last that worked first.
    pub(crate) places: Vec<Place>,
    /// Its default download directory; empty: unknown.
    pub(crate) default_save_dir: String,
    /// `posix` or `windows`; empty: unknown.
    pub(crate) path_style: String,
    /// Whether its downloads are taken.
    pub(crate) accepts_tasks: bool,
    /// Whether its URLs may lead to private addresses.
    pub(crate) allow_private: bool,
    /// How many of its downloads are taken within [`QUOTA_SECS`](crate::constants::QUOTA_SECS).
    #[serde(default = "usual_daily_tasks")]
    pub(crate) daily_tasks: u32,
    /// It ended the pairing. Only a repeated notice of that is answered.
    pub(crate) is_revoked: bool,
}

fn usual_daily_tasks() -> u32 {
    DAILY_TASKS
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.name)
    }
}

impl Device {
    /// The record after a pairing. `reached` is where this device's user found it.
    pub(crate) fn paired(new: &NewDevice, reached: Option<Place>, now: i64) -> Self {
        let mut places: Vec<Place> = reached.into_iter().collect();
        places.extend(new.addresses.iter().filter_map(|address| Place::reported(address)));
        places.truncate(MAX_ADDRESSES);
        Self {
            name: new.about.name.clone(),
            platform: new.about.platform.clone(),
            app_version: new.about.app_version.clone(),
            key: write_base64(&new.link_key),
            paired_at: now,
            last_seen_at: now,
            places,
            default_save_dir: String::new(),
            path_style: String::new(),
            accepts_tasks: true,
            allow_private: false,
            daily_tasks: DAILY_TASKS,
            is_revoked: false,
        }
    }

    /// The link key; `None` if the stored one is damaged.
    pub(crate) fn link_key(&self) -> Option<[u8; 32]> {
        read_base64(&self.key)
    }

    /// Takes what it says of itself. Addresses that worked before stay, those that it says follow.
    pub(crate) fn learn(&mut self, info: &Info) {
        for (own, reported) in [
            (&mut self.name, &info.name),
            (&mut self.platform, &info.platform),
            (&mut self.app_version, &info.app_version),
            (&mut self.default_save_dir, &info.default_save_dir),
            (&mut self.path_style, &info.path_style),
        ] {
            if !reported.is_empty() {
                own.clone_from(reported);
            }
        }
        let reported: Vec<Place> = info
            .addresses
            .iter()
            .filter_map(|address| Place::reported(address))
            .collect();
        let mut places: Vec<Place> = self.places.iter().take(1).cloned().collect();
        let older: Vec<Place> = self.places.drain(..).skip(1).collect();
        for place in reported.into_iter().chain(older) {
            if !places.iter().any(|known| known.address == place.address) {
                places.push(place);
            }
        }
        places.truncate(MAX_ADDRESSES);
        self.places = places;
    }

    /// It answered, authenticated, at this place.
    pub(crate) fn answered_at(&mut self, place: &Place) {
        let is_given = place.is_given
            || self
                .places
                .iter()
                .any(|known| known.address == place.address && known.is_given);
        self.places.retain(|known| known.address != place.address);
        let address = place.address.clone();
        self.places.insert(0, Place { address, is_given });
        self.places.truncate(MAX_ADDRESSES);
    }

    /// Takes a change of the user.
    pub(crate) fn patch(&mut self, patch: &LinkDevicePatch) {
        self.accepts_tasks = patch.accepts_tasks.unwrap_or(self.accepts_tasks);
        self.allow_private = patch.allow_private.unwrap_or(self.allow_private);
        self.daily_tasks = patch.daily_tasks.unwrap_or(self.daily_tasks);
    }

    /// As its owner sees it. `queued` downloads wait for it, `received` ones of it were taken lately.
    pub(crate) fn view(
        &self,
        fingerprint: &Fingerprint,
        online: bool,
        queued: usize,
        received: usize,
    ) -> LinkDeviceInfo {
        LinkDeviceInfo {
            fingerprint: fingerprint.as_str().to_owned(),
            name: self.name.clone(),
            platform: said(&self.platform),
            app_version: said(&self.app_version),
            online,
            paired_at: self.paired_at,
            last_seen_at: self.last_seen_at,
            default_save_dir: said(&self.default_save_dir),
            path_style: said(&self.path_style),
            accepts_tasks: self.accepts_tasks,
            allow_private: self.allow_private,
            daily_tasks: self.daily_tasks,
            tasks_today: u32::try_from(received).unwrap_or(u32::MAX),
            queued: u32::try_from(queued).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::transcript::About;

    #[test]
    fn addresses_that_a_device_tells_are_private_or_global_ones() {
        for address in [
            "10.0.0.1:1",
            "192.168.1.9:17800",
            "100.64.0.1:1",
            "[fd00::1]:1",
            "1.1.1.1:443",
        ] {
            assert!(Place::reported(address).is_some(), "{address}");
        }
        for address in [
            "127.0.0.1:1",
            "169.254.1.1:1",
            "224.0.0.251:1",
            "255.255.255.255:1",
            "0.0.0.0:1",
            "[::1]:1",
            "[fe80::1]:1",
            "[ff02::fb]:1",
            "[::ffff:127.0.0.1]:1",
            "10.0.0.1:0",
            "host:1",
        ] {
            assert!(Place::reported(address).is_none(), "{address}");
        }
    }

    #[test]
    fn what_worked_comes_first_and_at_most_four_addresses_are_kept() {
        let new = NewDevice {
            fingerprint: Fingerprint::read(&"0".repeat(64)).unwrap(),
            about: About::default(),
            addresses: vec!["10.0.0.1:1".to_owned()],
            link_key: [7; 32],
        };
        let given = Place {
            address: "127.0.0.1:9".to_owned(),
            is_given: true,
        };
        let mut device = Device::paired(&new, Some(given.clone()), 5);
        let addresses = (2..9).map(|last| format!("10.0.0.{last}:1")).take(4).collect();
        let info = Info {
            v: 2,
            addresses,
            ..Info::default()
        };
        device.learn(&info);
        assert_eq!(device.places.len(), MAX_ADDRESSES);
        assert_eq!(device.places[0], given);
        device.answered_at(&Place::reported("10.0.0.3:1").unwrap());
        assert_eq!(device.places[0].address, "10.0.0.3:1");
        assert_eq!(device.link_key(), Some([7; 32]));
    }
}
