//! The addresses that a connection may reach, by who supplied its URL. Pure.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard},
};

use transfer::{GivenBy, source::UserHost};
use url::{Host, Url};

use crate::{address, name};

/// The addresses that a connection may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Any address: the user chose the host.
    Anywhere,
    /// Global addresses and this machine: for redirects from a host on this machine.
    OwnMachine,
    /// Global addresses and private networks, but neither this machine nor link-local addresses: for a page with a
    /// local name that the user visited.
    LocalNetwork,
    /// Global addresses only.
    Global,
}

/// The error for a host or address that the supplier of its URL may not reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is not a public address, and the URL that leads there was not given by the user")]
pub struct Forbidden {
    /// The host as the URL spells it, with the port if that is what is refused.
    pub host: String,
}

impl Forbidden {
    pub(crate) fn new(host: impl Into<String>) -> Self {
        Self { host: host.into() }
    }
}

impl Reach {
    /// Whether a connection may be made to `address`.
    pub fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::OwnMachine => address.to_canonical().is_loopback() || address::is_global(address),
            Self::LocalNetwork => address::is_private(address) || address::is_global(address),
            Self::Global => address::is_global(address),
        }
    }

    /// Checks the spelling of a host, before it is resolved or passed to a proxy.
    pub fn allows_host(self, host: &Host<impl AsRef<str>>) -> bool {
        match host {
            Host::Ipv4(address) => self.allows(IpAddr::V4(*address)),
            Host::Ipv6(address) => self.allows(IpAddr::V6(*address)),
            Host::Domain(name) => {
                let name = name.as_ref();
                match self {
                    Self::Anywhere => true,
                    Self::OwnMachine => name::is_this_machine(name) || !name::is_local(name),
                    Self::LocalNetwork => !name::is_this_machine(name),
                    Self::Global => !name::is_local(name),
                }
            }
        }
    }

    /// Checks what can be known from a URL alone: its host's spelling and its port.
    pub fn check(self, url: &Url) -> Result<(), Forbidden> {
        let host = url.host().ok_or_else(|| Forbidden::new("a URL without a host"))?;
        if !self.allows_host(&host) {
            return Err(Forbidden::new(host.to_string()));
        }
        match url.port() {
            Some(port) if self != Self::Anywhere && is_blocked_port(port) => {
                Err(Forbidden::new(format!("{host} port {port}")))
            }
            _ => Ok(()),
        }
    }
}

/// Ports of protocols that could interpret an HTTP request as commands (the "bad ports" of the Fetch standard, which
/// browsers block, too). Only a URL from the user may have one.
pub fn is_blocked_port(port: u16) -> bool {
    const BLOCKED: [u16; 82] = [
        0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
        109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526,
        530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045,
        4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
    ];
    port == 10080 || BLOCKED.binary_search(&port).is_ok()
}

/// What a request to `url` may reach, for a source supplied by `given_by`. `home` is the source's own URL, which may
/// have redirected to `url`.
pub fn of(given_by: &GivenBy, home: &Url, url: &Url) -> Reach {
    match given_by {
        GivenBy::User => of_user(home, url),
        GivenBy::Other { user_host: None } => Reach::Global,
        GivenBy::Other { user_host: Some(known) } if !covers(known, url) => Reach::Global,
        GivenBy::Other { user_host: Some(known) } if known.is_typed => Reach::Anywhere,
        GivenBy::Other { user_host: Some(_) } => of_visited(url),
    }
}

fn of_user(home: &Url, url: &Url) -> Reach {
    let is_other_port = home.port_or_known_default() != url.port_or_known_default();
    if name::host(home) == name::host(url) {
        if is_other_port && url.port().is_some_and(is_blocked_port) {
            return Reach::Global;
        }
        return Reach::Anywhere;
    }
    if is_on_this_machine(home) {
        Reach::OwnMachine
    } else {
        Reach::Global
    }
}

/// The host that a page claims to be from: allowed only if its spelling proves that it is private.
fn of_visited(url: &Url) -> Reach {
    match name::host(url) {
        // An address cannot change.
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => Reach::Anywhere,
        Some(Host::Domain(name)) if name::is_this_machine(&name) => Reach::OwnMachine,
        Some(Host::Domain(name)) if name::is_local(&name) => Reach::LocalNetwork,
        Some(Host::Domain(_)) | None => Reach::Global,
    }
}

/// Whether `url` stays on `known`: the same host and, if that is known, the same port or the same host over HTTPS.
fn covers(known: &UserHost, url: &Url) -> bool {
    let is_same_host = || {
        let known = Url::parse(&format!("http://{}/", known.host)).ok();
        known.is_some_and(|known| name::host(&known) == name::host(url))
    };
    let port = url.port_or_known_default();
    let is_same_port = known.port.is_none() && !url.port().is_some_and(is_blocked_port)
        || known.port.is_some() && known.port == port
        || url.scheme() == "https" && port == Some(443);
    is_same_port && is_same_host()
}

fn is_on_this_machine(url: &Url) -> bool {
    match name::host(url) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name::is_this_machine(&name),
        None => false,
    }
}

/// Public names that had a global address in this run or call. From then on other addresses are refused: the owner of a
/// name could point it at this machine between two requests (DNS rebinding).
#[derive(Debug, Default)]
pub struct Pins(Mutex<HashMap<String, bool>>);

impl Pins {
    /// Narrows `reach` for a request to `url` by the recorded address of its name.
    #[must_use]
    pub fn narrow(&self, url: &Url, reach: Reach) -> Reach {
        match public_name(url) {
            Some(name) if reach == Reach::Anywhere && self.known().get(&name) == Some(&true) => Reach::Global,
            _ => reach,
        }
    }

    /// Records that a connection for `url` was made to `address`. Only the first counts: a name that was local first
    /// belongs to that network.
    pub fn note(&self, url: &Url, address: IpAddr) {
        if let Some(name) = public_name(url) {
            self.known().entry(name).or_insert_with(|| address::is_global(address));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.lock().expect("no code panics while it holds the pins")
    }
}

/// The host name of a URL, if it is a public name.
fn public_name(url: &Url) -> Option<String> {
    match name::host(url) {
        Some(Host::Domain(name)) if !name::is_local(&name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn by_user(home: &str, to: &str) -> Reach {
        of(&GivenBy::User, &url(home), &url(to))
    }

    fn visited(host: &str, to: &str) -> Reach {
        let user_host = UserHost::visited(host);
        of(&GivenBy::Other { user_host }, &url(to), &url(to))
    }

    fn typed(given: &str, to: &str) -> Reach {
        let user_host = UserHost::typed(&url(given));
        of(&GivenBy::Other { user_host }, &url(to), &url(to))
    }

    #[test]
    fn a_redirect_stays_on_the_host_of_the_user_or_goes_to_the_internet() {
        assert_eq!(by_user("http://a.test/x", "http://a.test/y"), Reach::Anywhere);
        assert_eq!(by_user("http://nas:5000/", "https://nas:5001/"), Reach::Anywhere);
        assert_eq!(
            by_user("http://192.168.1.5:8080/", "http://3232235781/"),
            Reach::Anywhere
        );
        assert_eq!(
            by_user("http://192.168.1.5:8080/", "http://192.168.1.5:22/"),
            Reach::Global
        );
        assert_eq!(
            by_user("http://192.168.1.5:22/", "http://192.168.1.5:22/x"),
            Reach::Anywhere
        );
        assert_eq!(by_user("http://192.168.1.5/", "http://192.168.1.6/"), Reach::Global);
        assert_eq!(by_user("http://a.test/", "http://127.0.0.1/"), Reach::Global);
        assert_eq!(
            by_user("http://localhost:1/", "http://127.0.0.1:8080/"),
            Reach::OwnMachine
        );
    }

    #[test]
    fn the_host_of_a_page_counts_only_if_its_spelling_is_private() {
        assert_eq!(visited("evil.example", "http://evil.example:2375/"), Reach::Global);
        assert_eq!(visited("", "http://127.0.0.1/"), Reach::Global);
        assert_eq!(visited("192.168.1.5", "http://192.168.1.5/f"), Reach::Anywhere);
        assert_eq!(visited("192.168.1.5", "http://192.168.1.6/f"), Reach::Global);
        assert_eq!(
            visited("192.168.1.5:8080", "http://192.168.1.5:8080/f"),
            Reach::Anywhere
        );
        assert_eq!(visited("192.168.1.5:8080", "http://192.168.1.5:2375/f"), Reach::Global);
        assert_eq!(visited("192.168.1.5", "http://192.168.1.5:22/f"), Reach::Global);
        assert_eq!(visited("[fd00::1]:81", "http://[fd00::1]:81/f"), Reach::Anywhere);
        assert_eq!(visited("NAS.local.", "http://nas.local/f"), Reach::LocalNetwork);
        assert_eq!(visited("localhost", "http://localhost:3000/f"), Reach::OwnMachine);
    }

    #[test]
    fn what_a_plugin_makes_of_a_url_stays_on_its_host_or_goes_to_the_internet() {
        for (to, reach) in [
            ("http://192.168.1.5:8000/f", Reach::Anywhere),
            ("https://192.168.1.5/f", Reach::Anywhere),
            ("http://192.168.1.5:8001/f", Reach::Anywhere),
            ("http://192.168.1.5:22/f", Reach::Global),
            ("http://192.168.1.6:8000/f", Reach::Global),
            ("http://localhost:8000/f", Reach::Global),
        ] {
            assert_eq!(typed("http://192.168.1.5:8000/d/", to), reach, "{to}");
        }
        assert_eq!(typed("http://nas.example/d/", "http://nas.example/f"), Reach::Anywhere);
        assert_eq!(typed("http://localhost:8000/", "http://127.0.0.1:8000/"), Reach::Global);
    }

    #[test]
    fn spelling_and_port_are_judged_without_a_lookup() {
        for refused in [
            "http://localhost/",
            "http://router/",
            "http://x.local/",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:0:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://169.254.169.254/",
            "http://example.org:25/",
        ] {
            assert!(Reach::Global.check(&url(refused)).is_err(), "{refused}");
            assert!(Reach::Anywhere.check(&url(refused)).is_ok(), "{refused}");
        }
        assert_eq!(Reach::Global.check(&url("http://example.org:8080/")), Ok(()));
        assert!(Reach::OwnMachine.check(&url("http://localhost/")).is_ok());
        assert!(Reach::OwnMachine.check(&url("http://nas.local/")).is_err());
        assert!(Reach::LocalNetwork.check(&url("http://nas.local/")).is_ok());
        assert!(Reach::LocalNetwork.check(&url("http://localhost/")).is_err());
    }

    #[test]
    fn a_name_of_a_local_network_leads_neither_here_nor_to_metadata() {
        let allows = |address: &str| Reach::LocalNetwork.allows(address.parse().unwrap());
        assert!(allows("192.168.1.5") && allows("fd00::1") && allows("100.64.1.1") && allows("1.1.1.1"));
        assert!(!allows("127.0.0.1") && !allows("169.254.169.254") && !allows("0.0.0.0") && !allows("fe80::1"));
    }

    #[test]
    fn a_public_name_that_was_global_stays_so() {
        let pins = Pins::default();
        let (one, other) = (url("http://evil.example/x"), url("http://EVIL.example.:2375/"));
        assert_eq!(pins.narrow(&one, Reach::Anywhere), Reach::Anywhere);
        pins.note(&one, "93.184.216.34".parse().unwrap());
        pins.note(&one, "127.0.0.1".parse().unwrap());
        assert_eq!(pins.narrow(&other, Reach::Anywhere), Reach::Global);

        let nas = url("http://nas.example/");
        pins.note(&nas, "192.168.1.5".parse().unwrap());
        pins.note(&nas, "93.184.216.34".parse().unwrap());
        assert_eq!(pins.narrow(&nas, Reach::Anywhere), Reach::Anywhere);

        let local = url("http://nas/");
        pins.note(&local, "93.184.216.34".parse().unwrap());
        assert_eq!(pins.narrow(&local, Reach::Anywhere), Reach::Anywhere);
    }

    fn any_host() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u32>().prop_map(|bits| std::net::Ipv4Addr::from(bits).to_string()),
            any::<u128>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from(bits))),
            prop::sample::select(
                &[
                    "127.0.0.1",
                    "[::1]",
                    "localhost",
                    "nas",
                    "nas.local",
                    "evil.example",
                    "10.0.0.1"
                ][..]
            )
            .prop_map(str::to_owned),
            "[a-z]{1,6}\\.(example|local|org)",
        ]
    }

    proptest! {
        #[test]
        fn a_stranger_without_a_host_reaches_global_addresses_only(host in any_host(), address in any::<u32>()) {
            let to = url(&format!("http://{host}/"));
            let reach = of(&GivenBy::Other { user_host: None }, &to, &to);
            let address = IpAddr::V4(address.into());
            prop_assert_eq!(reach.allows(address), address::is_global(address));
        }

        #[test]
        fn no_page_opens_another_host(page in any_host(), host in any_host(), port in 1_u16..) {
            let to = url(&format!("http://{host}:{port}/"));
            prop_assume!(name::host(&to) != name::host(&url(&format!("http://{page}/"))));
            prop_assert_eq!(visited(&page, to.as_str()), Reach::Global);
        }

        #[test]
        fn no_page_with_a_public_name_opens_anything(label in "[a-z]{1,8}", port in 1_u16..) {
            let page = format!("{label}.example");
            prop_assert_eq!(visited(&page, &format!("http://{page}:{port}/")), Reach::Global);
        }

        #[test]
        fn no_redirect_opens_another_private_host(home in any_host(), host in any_host(), address in any::<u32>()) {
            let (home, to) = (url(&format!("http://{home}/")), url(&format!("http://{host}/")));
            let address = IpAddr::V4(address.into());
            let is_elsewhere = name::host(&home) != name::host(&to);
            if is_elsewhere && of(&GivenBy::User, &home, &to).allows(address) {
                let is_here = is_on_this_machine(&home) && address.is_loopback();
                prop_assert!(address::is_global(address) || is_here);
            }
        }

        #[test]
        fn a_literal_is_judged_as_its_address(bits in any::<u128>(), reach in prop::sample::select(&[
            Reach::Anywhere, Reach::OwnMachine, Reach::LocalNetwork, Reach::Global,
        ][..])) {
            let address = std::net::Ipv6Addr::from(bits);
            let to = url(&format!("http://[{address}]/"));
            prop_assert_eq!(reach.check(&to).is_ok(), reach.allows(IpAddr::V6(address)));
        }

        #[test]
        fn every_way_to_write_an_ipv4_address_is_judged_alike(bits in any::<u32>()) {
            let [a, b, c, d] = bits.to_be_bytes();
            let plain = Reach::Global.check(&url(&format!("http://{a}.{b}.{c}.{d}/"))).is_ok();
            let low = u32::from_be_bytes([0, b, c, d]);
            for host in [
                format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}"), format!("{a:#x}.{low}"),
                format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"), format!("{a}.{b}.{c}.{d}."),
                format!("[::ffff:{a}.{b}.{c}.{d}]"), format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
            ] {
                let checked = Reach::Global.check(&url(&format!("http://{host}/"))).is_ok();
                prop_assert_eq!(checked, plain, "{}", host);
            }
        }
    }
}
