//! Origins whose file changes, or seems to, while it is being downloaded.

use super::{FILE_BYTES, KIB, PATH, content, file};
use crate::{
    behaviour::{cut, header, later, other_connections, paced, when, without},
    case::{Case, Expect::Error, Expect::Identical, Expect::IdenticalOrError, Scene},
    content::Content,
    reply::{End, Reply},
    resource::{Asked, Exchange, Resource, Version, Visit, asked, partial, whole},
};

/// Once this much of the first version is out, the second takes its place.
const CHANGES_AFTER: u64 = 1 << 20;

/// Answers of a version that is going to change are cut here, so that none of them is the whole file.
const CUT_AFTER: u64 = 128 * KIB;

/// Slow enough that segments run at the same time.
const PACE: u64 = 2 << 20;

pub(super) fn cases() -> Vec<Case> {
    [changing(), resized(), without_proof(), harmless()].concat()
}

fn changing() -> Vec<Case> {
    vec![
        Case::new(
            "etag-changes-once",
            "The file and its validators change after the first MiB; `If-Range` is honoured.",
            Identical,
            || changes(second(), |version| version, |r| r),
        ),
        Case::new(
            "etag-changes-and-if-range-ignored",
            "The file and its validators change after the first MiB; ranges of the new file are answered whatever `If-Range` says.",
            Identical,
            || changes(second(), |version| version, |r| r.with(ignore_if_range)),
        ),
        Case::new(
            "last-modified-changes-once",
            "The file and its `Last-Modified`, the only validator, change after the first MiB.",
            Identical,
            || changes(second(), Version::without_etag, |r| r),
        ),
        Case::new(
            "last-modified-changes-and-if-range-ignored",
            "As before, and ranges of the new file are answered whatever `If-Range` says.",
            Identical,
            || changes(second(), Version::without_etag, |r| r.with(ignore_if_range)),
        ),
        Case::new(
            "file-changes-for-ever",
            "The file is another one for every request, and no answer is complete.",
            Error(&["changed"]),
            || {
                let version =
                    |visit: &Visit| Version::numbered(Content::seeded(visit.nth as u64, FILE_BYTES), visit.nth);
                Scene::new(
                    content(),
                    vec![Resource::changing(PATH, version).with(cut(CUT_AFTER, End::Close))],
                )
            },
        ),
    ]
}

fn resized() -> Vec<Case> {
    vec![
        Case::new(
            "file-grows",
            "The file grows by 100,000 bytes after the first MiB, as a log does.",
            Identical,
            || changes(Content::seeded(1, FILE_BYTES + 100_000), |version| version, |r| r),
        ),
        Case::new(
            "file-shrinks",
            "The file loses its last 100,000 bytes after the first MiB.",
            Identical,
            || changes(Content::seeded(1, FILE_BYTES - 100_000), |version| version, |r| r),
        ),
        Case::new(
            "file-grows-without-validators",
            "The file changes and grows after the first MiB, and only its size tells.",
            Identical,
            || {
                changes(
                    Content::seeded(2, FILE_BYTES + 100_000),
                    |v| Version::unnamed(v.content),
                    |r| r,
                )
            },
        ),
        Case::new(
            "file-shrinks-without-validators",
            "The file changes and shrinks after the first MiB, and only its size tells.",
            Identical,
            || {
                changes(
                    Content::seeded(2, FILE_BYTES - 100_000),
                    |v| Version::unnamed(v.content),
                    |r| r,
                )
            },
        ),
        Case::new(
            "other-connections-another-file",
            "The first connection serves one file, every other connection another of the same size with another `ETag`.",
            Identical,
            || {
                let version = |visit: &Visit| match visit.connection {
                    0 => Version::numbered(content(), 0),
                    _ => Version::numbered(second(), 1),
                };
                let resource = Resource::changing(PATH, version)
                    .with(paced(PACE))
                    .with(ignore_if_range);
                Scene::new(content(), vec![resource]).truths(vec![content(), second()])
            },
        ),
    ]
}

fn without_proof() -> Vec<Case> {
    vec![
        Case::new(
            "etag-differs-per-answer",
            "Every answer has another `ETag` and date although the file stays the same, as behind careless load balancers.",
            Identical,
            || {
                let version = |visit: &Visit| Version::numbered(content(), visit.nth);
                Scene::new(content(), vec![Resource::changing(PATH, version).with(paced(PACE))])
            },
        ),
        Case::new(
            "validators-vanish",
            "Only the first answer has validators; the file stays the same.",
            IdenticalOrError(&["changed"]),
            || {
                file(|r| {
                    r.with(paced(PACE))
                        .with(when(later, without(&["ETag", "Last-Modified"])))
                })
            },
        ),
        Case::new(
            "validators-vanish-from-a-changed-file",
            "The file changes after the first MiB, keeps its size, and has no validators from then on.",
            IdenticalOrError(&["changed"]),
            || {
                let version = |visit: &Visit| match visit.served {
                    0..CHANGES_AFTER => Version::numbered(content(), 0),
                    _ => Version::unnamed(second()),
                };
                let resource = Resource::changing(PATH, version)
                    .with(ignore_if_range)
                    .with(when(|x| x.version.etag.is_some(), cut(CUT_AFTER, End::Close)));
                Scene::new(second(), vec![resource])
            },
        ),
        Case::new(
            "file-changes-silently-but-checksum-known",
            "The file changes after the first MiB, keeps its size, and has no validators; the old file's checksum is known.",
            Error(&["checksum-mismatch"]),
            || {
                changes(second(), |version| Version::unnamed(version.content), |r| r)
                    .truths(vec![content()])
                    .options(&super::CHECKSUM)
            },
        ),
    ]
}

fn harmless() -> Vec<Case> {
    vec![
        Case::new(
            "last-modified-left-out-of-partial-answers",
            "Leaves `Last-Modified` out of partial answers to `If-Range`, as the standard advises.",
            Identical,
            || {
                file(|r| {
                    r.with(paced(PACE))
                        .with(when(has_if_range, without(&["Last-Modified"])))
                })
            },
        ),
        Case::new("etag-weak", "Has only a weak `ETag`.", Identical, || {
            file(|r| {
                r.with(paced(PACE))
                    .with(without(&["Last-Modified"]))
                    .with(header("ETag", b"W/\"weak\""))
            })
        }),
        Case::new("etag-unquoted", "Has an `ETag` without quotes.", Identical, || {
            file(|r| r.with(paced(PACE)).with(header("ETag", b"0123abc")))
        }),
        Case::new(
            "etag-becomes-weak",
            "Weakens its `ETag` on all connections but the first.",
            Identical,
            || {
                file(|r| {
                    r.with(paced(PACE))
                        .with(when(other_connections, header("ETag", b"W/\"version-0\"")))
                })
            },
        ),
        Case::new("validators-missing", "Has no validators at all.", Identical, || {
            file(|r| r.with(paced(PACE)).with(without(&["ETag", "Last-Modified"])))
        }),
        Case::new(
            "last-modified-unparsable",
            "Has a `Last-Modified` that is no date, and no `ETag`.",
            Identical,
            || {
                file(|r| {
                    r.with(paced(PACE))
                        .with(without(&["ETag"]))
                        .with(header("Last-Modified", b"yesterday"))
                })
            },
        ),
    ]
}

/// The file that takes the place of the usual one.
fn second() -> Content {
    Content::seeded(2, FILE_BYTES)
}

/// The usual file until a MiB of it is out, and never in one answer; from then on `after`.
fn changes(after: Content, shape: fn(Version) -> Version, misserve: fn(Resource) -> Resource) -> Scene {
    let truth = after.clone();
    let version = move |visit: &Visit| match visit.served {
        0..CHANGES_AFTER => shape(Version::numbered(content(), 0)),
        _ => shape(Version::numbered(after.clone(), 1)),
    };
    let resource = Resource::changing(PATH, version);
    let is_before = |x: &Exchange| x.visit.served < CHANGES_AFTER;
    Scene::new(
        truth,
        vec![misserve(resource).with(when(is_before, cut(CUT_AFTER, End::Close)))],
    )
}

fn has_if_range(exchange: &Exchange) -> bool {
    exchange.request.header("if-range").is_some()
}

/// Answers the range although the validator in `If-Range` is another's.
fn ignore_if_range(exchange: &Exchange, reply: &mut Reply) {
    let content = &exchange.version.content;
    if let (200, Asked::Range { first, last }) = (reply.status, asked(&exchange.request, content.len())) {
        let etag = reply.header("ETag").map(<[u8]>::to_vec);
        *reply = Reply {
            pace: reply.pace,
            ..whole(&exchange.version, "application/octet-stream")
        };
        partial(reply, content, first, last);
        if let Some(etag) = etag {
            reply.set("ETag", etag);
        }
    }
}
