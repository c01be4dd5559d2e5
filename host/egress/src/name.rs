//! Host names that always mean this machine or a local network.

use std::net::IpAddr;

use url::{Host, Url};

/// Top-level names for a local network or this machine: RFC 6761 (`localhost`), RFC 6762 (`local` and its appendix G),
/// RFC 8375 (`home.arpa`, matched as a whole), ICANN's `internal`, and what routers and distributions use.
const LOCAL_ENDINGS: [&str; 11] = [
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localdomain6",
    "localhost",
    "private",
];

/// Normalises `name` for comparisons: lower case, without a trailing dot.
pub fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether `name` means the machine that resolves it.
pub fn is_this_machine(name: &str) -> bool {
    ends_with(&normal(name), "localhost")
}

/// Whether `host`, a name or an address with or without brackets, is spelled as this machine.
pub fn is_here(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.parse::<IpAddr>().map_or_else(
        |_| is_this_machine(host),
        |address| address.to_canonical().is_loopback(),
    )
}

/// Whether `name` means this machine or something in a local network: it has a single label, or one of the endings that
/// are no public domains. The operator of that network controls its addresses, not a third party.
pub fn is_local(name: &str) -> bool {
    let name = normal(name);
    !name.contains('.') || LOCAL_ENDINGS.iter().any(|ending| ends_with(&name, ending))
}

fn ends_with(name: &str, ending: &str) -> bool {
    name.strip_suffix(ending)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The normalised host of `url`.
pub fn host(url: &Url) -> Option<Host<String>> {
    Some(match url.host()? {
        Host::Domain(name) => Host::Domain(normal(name)),
        Host::Ipv4(address) => Host::Ipv4(address),
        Host::Ipv6(address) => address.to_ipv4_mapped().map_or(Host::Ipv6(address), Host::Ipv4),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn local_names_are_known_by_their_spelling() {
        for name in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "router",
            "router.",
            "nas.local",
            "db.internal",
            "x.lan",
            "host.docker.internal",
            "printer.home.arpa",
            "localhost.localdomain",
            "wiki.corp",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in [
            "example.org",
            "local.example.org",
            "plugins.svc.test",
            "notlocal.example",
            "mylocalhost.org",
            "nothome.arpa",
        ] {
            assert!(!is_local(name), "{name}");
        }
        assert!(is_this_machine("x.LocalHost.") && !is_this_machine("nas.local") && !is_this_machine("xlocalhost"));
    }

    #[test]
    fn one_host_has_one_form() {
        let host = |url: &str| host(&Url::parse(url).unwrap());
        for (one, other) in [
            ("http://NAS.test./", "http://nas.test/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://0177.0.0.1/", "http://127.0.0.1/"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://１２７.０.０.１/", "http://127.0.0.1/"),
            ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
            ("http://[::ffff:7f00:1]/", "http://127.0.0.1/"),
        ] {
            assert_eq!(host(one), host(other), "{one}");
        }
        assert_ne!(host("http://a.test/"), host("http://b.test/"));
    }

    proptest! {
        #[test]
        fn case_and_a_dot_at_the_end_change_nothing(name in "[a-z0-9-]{1,8}(\\.[a-z0-9-]{1,8}){0,3}") {
            for other in [name.to_ascii_uppercase(), format!("{name}.")] {
                prop_assert_eq!(is_local(&name), is_local(&other));
                prop_assert_eq!(is_this_machine(&name), is_this_machine(&other));
            }
        }

        #[test]
        fn names_below_a_local_name_are_local(label in "[a-z0-9]{1,8}", ending in prop::sample::select(&LOCAL_ENDINGS[..])) {
            let below = format!("{label}.{ending}");
            let beside = format!("{below}.example");
            prop_assert!(is_local(&below));
            prop_assert!(!is_local(&beside));
        }
    }
}
