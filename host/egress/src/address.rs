//! Which addresses belong to the public Internet, and which to the user's own networks. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address` may be reached for a URL that the user did not supply: not loopback, private, link-local, shared,
/// reserved, documentation or multicast, nor an IPv6 form that leads to such an IPv4 address. Follows the IANA
/// special-purpose registries (RFC 6890 and its updates).
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

/// Whether `address` belongs to a private network: RFC 1918, shared (RFC 6598, as VPNs use it) or unique local
/// (RFC 4193), also in an IPv6 form that leads to such an IPv4 address. Neither loopback nor link-local.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || is_shared(v4),
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => v4.is_private() || is_shared(v4),
            None => v6.is_unique_local(),
        },
    }
}

/// Whether a connection to `address` ends on this machine or in one of its networks: loopback, unspecified, private or
/// link-local. Narrower than "not global": resolvers of some proxies invent addresses of the benchmarking range.
pub fn is_here(address: IpAddr) -> bool {
    let v4 = match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(v6) => embedded_v4(v6),
    };
    let is_link = match (v4, address) {
        (Some(v4), _) => v4.is_loopback() || v4.is_link_local() || v4.octets()[0] == 0,
        (None, IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
        (None, IpAddr::V4(_)) => false,
    };
    is_link || is_private(address)
}

fn is_shared(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    a == 100 && (64..128).contains(&b)
}

fn is_global_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    !(a == 0
        || v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || is_shared(v4)
        || (a == 192 && b == 0 && c == 0) // protocol assignments
        || (a == 192 && b == 88 && c == 99) // 6to4 relays, RFC 7526
        || (a == 198 && (18..20).contains(&b)) // benchmarks, RFC 2544
        || v4.is_documentation()
        || a >= 224)
}

fn is_global_v6(v6: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(v6) {
        return is_global_v4(inner);
    }
    let segments = v6.segments();
    // Only 2000::/3 is handed out; within it, protocol assignments with Teredo (2001::/23) and documentation are not.
    (segments[0] & 0xe000) == 0x2000
        && !(segments[0] == 0x2001 && segments[1] < 0x0200)
        && !(segments[0] == 0x2001 && segments[1] == 0x0db8)
        && !(segments[0] == 0x3fff && segments[1] < 0x1000)
}

/// The IPv4 address that an IPv6 address stands for: mapped, translated (RFC 6052) or 6to4 (RFC 3056).
fn embedded_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = v6.octets();
    let at = |index: usize| Ipv4Addr::new(octets[index], octets[index + 1], octets[index + 2], octets[index + 3]);
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(at(12)),
        [0x2002, ..] => Some(at(2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_here_is_global(bits in any::<u128>(), v4 in any::<u32>()) {
            for address in [IpAddr::V6(bits.into()), IpAddr::V4(v4.into())] {
                prop_assert!(!(is_here(address) && is_global(address)), "{}", address);
                prop_assert!(!is_private(address) || is_here(address), "{}", address);
            }
        }

        #[test]
        fn forms_of_ipv6_are_judged_by_the_address_they_lead_to(v4 in any::<u32>(), rest in any::<u128>()) {
            let plain = is_global(IpAddr::V4(v4.into()));
            let low = u128::from(v4);
            let forms = [
                (0xffff_u128 << 32) | low,
                (0x0064_ff9b_u128 << 96) | low,
                (0x2002_u128 << 112) | (low << 80) | (rest & ((1 << 80) - 1)),
            ];
            for form in forms {
                prop_assert_eq!(is_global(IpAddr::V6(form.into())), plain);
            }
            // Teredo wraps the address of its server and, inverted, of its client: none of it is reached.
            let teredo = (0x2001_u128 << 112) | (rest & ((1 << 96) - 1));
            prop_assert!(!is_global(IpAddr::V6(teredo.into())));
        }
    }

    #[test]
    fn only_public_addresses_are_global() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_global(text.parse().unwrap()), "{text}");
        }
        let not_global = "0.0.0.0 127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 198.18.0.1 \
            192.0.0.1 192.0.2.1 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fc00::1 ff02::1 \
            2001:db8::1 2001::1 ::ffff:127.0.0.1 ::ffff:10.1.2.3 64:ff9b::a00:1 2002:7f00:1::1";
        for text in not_global.split_whitespace() {
            assert!(!is_global(text.parse().unwrap()), "{text}");
        }
    }
}
