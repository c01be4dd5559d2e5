//! Origins that answer range requests with something else than the range.

use super::{CHECKSUM, KIB, file};
use crate::{
    behaviour::{
        content_range, cut, first, header, ignore_ranges, inner, later, other_connections, other_range, paced, ranged,
        status, when, without,
    },
    case::{Case, Expect::Identical, Expect::IdenticalOrError},
    content::Content,
    reply::{End, Piece, Reply},
    resource::{Asked, Exchange, asked, whole},
};

/// Slow enough that a second connection pays, fast enough that a case takes two seconds on one.
const PACE: u64 = 2 << 20;

pub(super) fn cases() -> Vec<Case> {
    [ignored(), other(), content_range_header(), contradicting()].concat()
}

fn ignored() -> Vec<Case> {
    vec![
        Case::new(
            "range-ignored",
            "Answers every range request with 200 and the whole file.",
            Identical,
            || file(|r| r.with(ignore_ranges)),
        ),
        Case::new(
            "range-ignored-but-advertised",
            "Says `Accept-Ranges: bytes` and answers every range request with 200 and the whole file.",
            Identical,
            || file(|r| r.with(ignore_ranges).with(header("Accept-Ranges", b"bytes"))),
        ),
        Case::new(
            "range-ignored-from-second-connection",
            "Honours ranges on the first connection and answers 200 with the whole file on all others.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(when(other_connections, ignore_ranges))),
        ),
        Case::new(
            "range-ignored-past-the-start",
            "Honours ranges from the first byte and answers all others with 200 and the whole file.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(when(inner, ignore_ranges))),
        ),
        Case::new(
            "range-ignored-when-open-ended",
            "Answers `bytes=0-` with 200 and honours every other range.",
            Identical,
            || file(|r| r.with(when(|x| x.request.range() == Some((0, None)), ignore_ranges))),
        ),
        Case::new(
            "range-ignored-after-a-cut",
            "Cuts the first answer and then answers ranges with 200 and the whole file.",
            Identical,
            || {
                file(|r| {
                    r.with(when(later, ignore_ranges))
                        .with(when(first, cut(700 * KIB, End::Close)))
                })
            },
        ),
        Case::new(
            "accept-ranges-none-but-honours",
            "Says `Accept-Ranges: none` and honours ranges.",
            Identical,
            || file(|r| r.with(header("Accept-Ranges", b"none"))),
        ),
        Case::new(
            "accept-ranges-missing",
            "Honours ranges without saying so.",
            Identical,
            || file(|r| r.with(without(&["Accept-Ranges"]))),
        ),
        Case::new(
            "unsatisfiable-for-valid-ranges",
            "Answers every range request with 416.",
            Identical,
            || file(|r| r.with(when(ranged, unsatisfiable))),
        ),
        Case::new(
            "unsatisfiable-past-the-start",
            "Answers every range that does not begin with the first byte with 416.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(when(inner, unsatisfiable))),
        ),
        Case::new(
            "unsatisfiable-without-total",
            "Answers every range request with 416 and no `Content-Range`.",
            Identical,
            || file(|r| r.with(when(ranged, status(416)))),
        ),
        Case::new(
            "range-refused",
            "Answers every range request with 400.",
            IdenticalOrError(&["unexpected-status"]),
            || file(|r| r.with(when(ranged, status(400)))),
        ),
    ]
}

fn other() -> Vec<Case> {
    vec![
        Case::new(
            "range-starts-elsewhere",
            "Answers ranges past the first byte with a range that starts 1,000 bytes later.",
            Identical,
            || {
                file(|r| {
                    r.with(paced(PACE))
                        .with(when(inner, other_range(|a, b, _| ((a + 1000).min(b), b))))
                })
            },
        ),
        Case::new(
            "range-always-starts-elsewhere",
            "Answers every range with one that starts 1,000 bytes later; only a request without range is honest.",
            Identical,
            || file(|r| r.with(other_range(|a, b, _| ((a + 1000).min(b), b)))),
        ),
        Case::new(
            "range-always-from-zero",
            "Answers every range with 206 and the whole file.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(other_range(|_, _, total| (0, total - 1)))),
        ),
        Case::new(
            "range-ends-early",
            "Answers ranges with at most 256 KiB of what was asked for, and says so.",
            Identical,
            || file(|r| r.with(other_range(|a, b, _| (a, b.min(a + 256 * KIB - 1))))),
        ),
        Case::new(
            "range-ends-late",
            "Answers every range up to the end of the file, and says so.",
            Identical,
            || {
                let late = other_range(|first, _, total| (first, total - 1));
                file(|r| r.with(paced(PACE)).with(late)).in_segments()
            },
        ),
        Case::new(
            "range-body-from-elsewhere",
            "Announces the range that was asked for and sends bytes from 1,000 bytes earlier; a checksum is known.",
            IdenticalOrError(&["checksum-mismatch"]),
            || file(|r| r.with(paced(PACE)).with(when(inner, bytes_from_elsewhere))).options(&CHECKSUM),
        ),
        Case::new(
            "multipart-byteranges",
            "Answers single ranges as `multipart/byteranges`.",
            Identical,
            || file(|r| r.with(when(ranged, multipart))),
        ),
    ]
}

fn content_range_header() -> Vec<Case> {
    vec![
        Case::new(
            "content-range-missing",
            "Answers ranges with 206 and no `Content-Range`.",
            Identical,
            || file(|r| r.with(without(&["Content-Range"]))),
        ),
        Case::new(
            "content-range-unparsable",
            "Answers ranges with 206 and a `Content-Range` that is no range.",
            Identical,
            || file(|r| r.with(content_range("bytes from here to there"))),
        ),
        Case::new(
            "content-range-of-another-unit",
            "Answers ranges with 206 and a `Content-Range` in items.",
            Identical,
            || file(|r| r.with(content_range("items {first}-{last}/{total}"))),
        ),
        Case::new(
            "content-range-backwards",
            "Answers ranges with 206 and a `Content-Range` whose end is before its start.",
            Identical,
            || {
                let backwards = content_range("bytes {last}-{first}/{total}");
                file(|r| r.with(paced(PACE)).with(when(inner, backwards)))
            },
        ),
        Case::new(
            "content-range-overflowing",
            "Answers ranges with 206 and a `Content-Range` of numbers that fit no integer.",
            Identical,
            || file(|r| r.with(content_range("bytes {first}-{last}/99999999999999999999999999"))),
        ),
        Case::new(
            "content-range-total-unknown",
            "Answers ranges correctly, with `*` for the file's size.",
            Identical,
            || file(|r| r.with(content_range("bytes {first}-{last}/*"))),
        ),
        Case::new(
            "content-range-total-below-end",
            "Answers ranges with a total that is smaller than the range's end.",
            Identical,
            || file(|r| r.with(content_range("bytes {first}-{last}/7"))),
        ),
    ]
}

fn contradicting() -> Vec<Case> {
    vec![
        Case::new(
            "totals-contradict",
            "Gives another total in every second partial answer; a request without range is honest.",
            Identical,
            || {
                let lie = content_range("bytes {first}-{last}/{total+1000}");
                file(|r| r.with(paced(PACE)).with(when(|x| x.visit.nth % 2 == 1, lie)))
            },
        ),
        Case::new(
            "range-body-longer-than-announced",
            "Sends 5,000 bytes more than the `Content-Range` of a partial answer says, and counts them in `Content-Length`.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(when(inner, longer_body))),
        ),
        Case::new(
            "range-body-shorter-than-announced",
            "Sends half of what the `Content-Range` of a partial answer says, and counts half in `Content-Length`.",
            IdenticalOrError(&["range-mismatch", "size-mismatch", "malformed-response"]),
            || file(|r| r.with(when(ranged, shorter_body))),
        ),
    ]
}

fn unsatisfiable(exchange: &Exchange, reply: &mut Reply) {
    status(416)(exchange, reply);
    reply.set("Content-Range", format!("bytes */{}", exchange.version.content.len()));
}

fn bytes_from_elsewhere(exchange: &Exchange, reply: &mut Reply) {
    if let (206, Some((start, _))) = (reply.status, exchange.request.range()) {
        let len = reply.body_len();
        reply.set_body(&exchange.version.content, start.saturating_sub(1000), len);
    }
}

fn multipart(exchange: &Exchange, reply: &mut Reply) {
    let content = &exchange.version.content;
    if let Asked::Range { first, last } = asked(&exchange.request, content.len()) {
        *reply = whole(&exchange.version, "multipart/byteranges; boundary=CUT");
        reply.status = 206;
        let opening = format!("--CUT\r\nContent-Range: bytes {first}-{last}/{}\r\n\r\n", content.len());
        reply.body = vec![
            Piece::Bytes(opening.into_bytes()),
            Piece::Content {
                content: content.clone(),
                start: first,
                len: last - first + 1,
            },
            Piece::Bytes(b"\r\n--CUT--\r\n".to_vec()),
        ];
    }
}

fn longer_body(_: &Exchange, reply: &mut Reply) {
    if reply.status == 206 {
        reply.body.push(Piece::Content {
            content: Content::seeded(9, 5000),
            start: 0,
            len: 5000,
        });
    }
}

fn shorter_body(_: &Exchange, reply: &mut Reply) {
    if let Some(Piece::Content { len, .. }) = reply.body.first_mut() {
        *len = len.div_ceil(2);
    }
}
