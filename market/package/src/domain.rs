//! Owners of domain names, by the Public Suffix List (publicsuffix.org): the names below which anybody may register a name.

use std::cmp::Ordering;

/// The rules of the list, sorted, each with its labels from right to left: `uk.co`, `ck.*`, `ck.!www`. Looked up where they
/// are: as code, which the crate `psl` makes of them, they take five times as much of the executable. Written by `suffixes`.
static RULES: &str = include_str!("domain/rules.txt");

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

/// The part of `name` below which its owners register names: `co.uk` of `www.acme.co.uk`. The longest rule decides, unless
/// an exception does; where no rule matches, it is the last label. `None` of what is no name.
fn suffix(name: &str) -> Option<&str> {
    let (mut reversed, mut found, mut start) = (String::with_capacity(name.len()), None, name.len() + 1);
    for label in name.rsplit('.') {
        if label.is_empty() {
            return None;
        }
        start -= label.len() + 1;
        if reversed.is_empty() {
            reversed.push_str(label);
            found = Some(start);
            continue;
        }
        if has(&format!("{reversed}.!{label}")) {
            found = Some(start + label.len() + 1);
            break;
        }
        let is_any = has(&format!("{reversed}.*"));
        reversed.push('.');
        reversed.push_str(label);
        if is_any || has(&reversed) {
            found = Some(start);
        }
    }
    found.map(|start| &name[start..])
}

/// Whether `rule` is one of the list, found by halving it.
fn has(rule: &str) -> bool {
    // Both are at the beginning of a line.
    let (mut low, mut high) = (0, RULES.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        let start = RULES[..middle].rfind('\n').map_or(0, |at| at + 1);
        let end = RULES[start..].find('\n').map_or(RULES.len(), |at| start + at);
        match RULES[start..end].cmp(rule) {
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = start,
            Ordering::Equal => return true,
        }
    }
    false
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
            ("www.ck", Some("www.ck")),
            ("a.www.ck", Some("www.ck")),
            ("a.b.ck", Some("a.b.ck")),
            ("", None),
            ("acme..com", None),
            ("com.", None),
        ] {
            assert_eq!(registrable(name), expected, "{name}");
        }
        assert!(is_public_suffix("com") && is_public_suffix("co.uk"));
        assert!(!is_public_suffix("acme.com") && !is_public_suffix("acme.co.uk"));
    }

    #[test]
    fn every_rule_means_what_it_means_to_another_reader_of_the_list() {
        assert!(RULES.is_ascii() && RULES.lines().is_sorted());
        let mut count = 0;
        for rule in RULES.lines() {
            let mut labels: Vec<_> = rule.split('.').map(|label| label.trim_start_matches('!')).collect();
            labels.reverse();
            let name = labels.join(".").replace('*', "any");
            for below in ["", "acme.", "www.acme."] {
                let name = format!("{below}{name}");
                assert_eq!(suffix(&name), psl::suffix_str(&name), "{name} by {rule}");
                assert_eq!(registrable(&name), psl::domain_str(&name), "{name} by {rule}");
            }
            // And what is not in the list beside it.
            let beside = format!("x{name}");
            assert_eq!(suffix(&beside), psl::suffix_str(&beside), "{beside} beside {rule}");
            count += 1;
        }
        assert!(count > 9000, "{count}");
    }
}
