//! Decides whether two lists of segments are the same file, so that a later run may resume.

use sha2::{Digest as _, Sha256};
use transfer::Segment;

/// For each segment, a hash of the list up to and including it. A renewed URL of the same list must give the same
/// hashes: signatures are in the query and servers in the host, so only path and byte range count. Only if the path
/// equals the neighbour's, the query counts too.
pub(crate) fn names(segments: &[Segment]) -> Box<[u64]> {
    let mut name = [0; 32];
    let mut before: Option<&Segment> = None;
    let chain = segments.iter().map(|segment| {
        let url = segment.url.as_url();
        let is_told_by_path =
            segment.part.is_some() || before.is_none_or(|before| before.url.as_url().path() != url.path());
        let query = url.query().filter(|_| !is_told_by_path).unwrap_or_default();
        let part = segment.part.map_or((0, u64::MAX), |part| (part.start, part.end));
        let mut hasher = Sha256::new();
        hasher.update(name);
        for text in [url.path(), query] {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        hasher.update(part.0.to_le_bytes());
        hasher.update(part.1.to_le_bytes());
        hasher.update([u8::from(segment.cipher.is_some())]);
        name = hasher.finalize().into();
        before = Some(segment);
        u64::from_le_bytes(*name.first_chunk().expect("a digest is longer"))
    });
    chain.collect()
}

#[cfg(test)]
mod tests {
    use transfer::{ByteRange, SafeUrl};

    use super::*;

    fn segments(urls: &[&str]) -> Vec<Segment> {
        let segment = |url: &&str| Segment {
            url: SafeUrl::parse(url).unwrap(),
            part: None,
            cipher: None,
        };
        urls.iter().map(segment).collect()
    }

    #[test]
    fn a_fresh_signature_or_another_host_is_no_change() {
        let one = names(&segments(&["http://a.test/1.ts?sig=x", "http://a.test/2.ts?sig=x"]));
        let other = names(&segments(&[
            "http://b.test/1.ts?sig=y",
            "http://b.test/2.ts?sig=y",
            "http://b.test/3.ts",
        ]));
        assert_eq!(one[..], other[..2]);
    }

    #[test]
    fn other_paths_parts_orders_and_told_apart_queries_are() {
        let check = |one: &[Segment], other: &[Segment]| assert_ne!(names(one).last(), names(other).last());
        let (a, b) = ("http://a.test/1.ts", "http://a.test/2.ts");
        check(&segments(&[a, b]), &segments(&[b, a]));
        check(&segments(&[a, b]), &segments(&[a, "http://a.test/3.ts"]));
        check(
            &segments(&["http://a.test/s?n=1", "http://a.test/s?n=2"]),
            &segments(&["http://a.test/s?n=1", "http://a.test/s?n=3"]),
        );
        let mut parts = segments(&[a, a]);
        let whole = parts.clone();
        parts[1].part = Some(ByteRange::new(0, 5));
        check(&parts, &whole);
    }
}
