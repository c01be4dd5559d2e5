//! Owners of domain names, by the Public Suffix List: the names below which anybody may register a name.
//!
//! The crate of the list compiles the whole list into each of its functions that is called, so only one of them is.

/// The part of `name` below which its owners register names: `co.uk` of `www.acme.co.uk`.
fn suffix(name: &str) -> Option<&str> {
    psl::suffix_str(name)
}

/// Whether anybody may register names right below this domain, so that its names have many owners.
pub fn is_public_suffix(domain: &str) -> bool {
    suffix(domain) == Some(domain)
}

/// The name that its owner registered: `acme.co.uk` of `www.acme.co.uk`. `None` for a public suffix.
pub fn registrable(name: &str) -> Option<&str> {
    let below = name.len().checked_sub(suffix(name)?.len() + 1)?;
    let start = name[..below].rfind('.').map_or(0, |dot| dot + 1);
    Some(&name[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registrable_name_is_one_label_above_its_public_suffix() {
        for (name, expected) in [
            ("acme.com", Some("acme.com")),
            ("www.acme.com", Some("acme.com")),
            ("a.b.acme.co.uk", Some("acme.co.uk")),
            ("me.github.io", Some("me.github.io")),
            ("com", None),
            ("co.uk", None),
            ("github.io", None),
            ("host.localdomain", Some("host.localdomain")),
            ("localhost", None),
        ] {
            assert_eq!(registrable(name), expected, "{name}");
            assert_eq!(registrable(name), psl::domain_str(name), "{name}");
        }
        assert!(is_public_suffix("com") && is_public_suffix("co.uk"));
        assert!(!is_public_suffix("acme.com") && !is_public_suffix("acme.co.uk"));
    }
}
