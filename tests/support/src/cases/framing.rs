//! Origins whose responses do not end where they say, or do not say where they end.

use std::time::Duration;

use super::{FILE_BYTES, KIB, PATH, content, file};
use crate::{
    behaviour::{cut, first, framing, header, ignore_ranges, when},
    case::{Case, Expect::Error, Expect::Identical, Expect::IdenticalOrError, Scene},
    content::Content,
    reply::{Chunks, End, Framing, Head, Piece, Reply},
    resource::{Exchange, Resource},
};

/// What a body that ends too early may be called.
const SHORT: &[&str] = &["network", "size-mismatch"];

/// What broken HTTP may be called.
const MALFORMED: &[&str] = &["malformed-response"];

pub(super) fn cases() -> Vec<Case> {
    [
        lengths(),
        false_lengths(),
        cuts(),
        chunks(),
        chunk_sizes(),
        ends(),
        heads(),
        odd_heads(),
        endless_heads(),
        interim(),
    ]
    .concat()
}

fn lengths() -> Vec<Case> {
    vec![
        Case::new(
            "lengths-differ",
            "Sends two `Content-Length` headers that differ.",
            Error(MALFORMED),
            || {
                file(|r| {
                    r.with(ignore_ranges)
                        .with(|_, reply| two_lengths(reply, FILE_BYTES - 1000))
                })
            },
        ),
        Case::new(
            "lengths-agree",
            "Sends the same `Content-Length` twice.",
            Identical,
            || file(|r| r.with(ignore_ranges).with(|_, reply| two_lengths(reply, FILE_BYTES))),
        ),
        Case::new(
            "length-negative",
            "Sends `Content-Length: -1`.",
            Error(MALFORMED),
            || whole_with_length(b"-1"),
        ),
        Case::new(
            "length-signed",
            "Sends a `Content-Length` with a plus sign.",
            Error(MALFORMED),
            || whole_with_length(b"+3158073"),
        ),
        Case::new(
            "length-overflowing",
            "Sends a `Content-Length` that fits no integer.",
            Error(MALFORMED),
            || whole_with_length(b"99999999999999999999999999"),
        ),
        Case::new(
            "length-garbage",
            "Sends `Content-Length: many`.",
            Error(MALFORMED),
            || whole_with_length(b"many"),
        ),
        Case::new(
            "length-eight-exbibytes",
            "Announces 8 EiB less a byte, sends three MiB and closes.",
            Error(&["network", "size-mismatch", "disk-full", "malformed-response"]),
            || {
                file(|r| {
                    r.with(ignore_ranges)
                        .with(header("Content-Length", b"9223372036854775807"))
                        .with(closes)
                })
            },
        ),
    ]
}

fn false_lengths() -> Vec<Case> {
    vec![
        Case::new(
            "length-zero-then-bytes",
            "Announces an empty file and sends bytes nevertheless.",
            IdenticalOrError(MALFORMED),
            || {
                let resource = Resource::new(PATH, Content::bytes(*b""));
                Scene::new(
                    Content::bytes(*b""),
                    vec![resource.with(|_, reply| reply.epilogue = vec![b'x'; 1000])],
                )
            },
        ),
        Case::new(
            "length-and-chunked",
            "Sends a wrong `Content-Length` beside `Transfer-Encoding: chunked`.",
            IdenticalOrError(MALFORMED),
            || {
                let wrong = header("Content-Length", b"10");
                file(|r| {
                    r.with(ignore_ranges)
                        .with(framing(Framing::Chunked(Chunks::Plain)))
                        .with(wrong)
                        .with(closes)
                })
            },
        ),
    ]
}

fn cuts() -> Vec<Case> {
    vec![
        Case::new(
            "body-cut-once",
            "Closes in the middle of the first body.",
            Identical,
            || file(|r| r.with(when(first, cut(700 * KIB, End::Close)))),
        ),
        Case::new(
            "body-cut-every-64-kib",
            "Closes after 64 KiB of every body.",
            Identical,
            || file(|r| r.with(cut(64 * KIB, End::Close))),
        ),
        Case::new(
            "body-cut-always-without-ranges",
            "Ignores ranges and closes in the middle of every body.",
            Error(SHORT),
            || file(|r| r.with(ignore_ranges).with(cut(FILE_BYTES / 2, End::Close))),
        ),
        Case::new(
            "body-cut-at-last-byte",
            "Ignores ranges and closes before the last byte of every body.",
            Error(SHORT),
            || file(|r| r.with(ignore_ranges).with(cut(FILE_BYTES - 1, End::Close))),
        ),
        Case::new(
            "body-never-comes",
            "Sends every head and closes before the body.",
            Error(SHORT),
            || file(|r| r.with(cut(0, End::Close))),
        ),
        Case::new(
            "body-longer-than-length",
            "Sends 1,000 bytes after the announced end of every body and closes.",
            Identical,
            || file(|r| r.with(|_, reply| reply.epilogue = vec![b'x'; 1000]).with(closes)),
        ),
    ]
}

fn chunks() -> Vec<Case> {
    vec![
        Case::new(
            "chunked",
            "Sends the file in chunks, without length or ranges.",
            Identical,
            || chunked(Chunks::Plain, |r| r),
        ),
        Case::new(
            "chunk-extensions-and-trailers",
            "Sends chunks with extensions, and trailer fields after them.",
            Identical,
            || chunked(Chunks::Decorated, |r| r),
        ),
        Case::new(
            "chunks-cut-once",
            "Closes in the middle of the first chunked body.",
            Identical,
            || chunked(Chunks::Plain, |r| r.with(when(first, cut(FILE_BYTES / 2, End::Close)))),
        ),
        Case::new(
            "chunks-cut-always",
            "Closes in the middle of every chunked body.",
            Error(&["network", "size-mismatch", "malformed-response"]),
            || chunked(Chunks::Plain, |r| r.with(cut(FILE_BYTES / 2, End::Close))),
        ),
        Case::new(
            "chunks-without-last",
            "Sends the whole file in chunks and closes without the last, empty chunk.",
            Error(&["network", "size-mismatch", "malformed-response"]),
            || {
                chunked(Chunks::Plain, |r| {
                    r.with(|_, reply| reply.cut = Some((FILE_BYTES, End::Close)))
                })
            },
        ),
    ]
}

fn chunk_sizes() -> Vec<Case> {
    vec![
        Case::new(
            "chunk-size-garbage",
            "Sends a chunk size that is no number.",
            Error(MALFORMED),
            || {
                chunked(
                    Chunks::SizeLine {
                        from: 128 * KIB,
                        text: "zz",
                    },
                    |r| r,
                )
            },
        ),
        Case::new(
            "chunk-size-negative",
            "Sends a negative chunk size.",
            Error(MALFORMED),
            || {
                chunked(
                    Chunks::SizeLine {
                        from: 128 * KIB,
                        text: "-4000",
                    },
                    |r| r,
                )
            },
        ),
        Case::new(
            "chunk-size-empty",
            "Sends an empty chunk size.",
            Error(MALFORMED),
            || {
                chunked(
                    Chunks::SizeLine {
                        from: 128 * KIB,
                        text: "",
                    },
                    |r| r,
                )
            },
        ),
        Case::new(
            "chunk-size-overflowing",
            "Sends a chunk size that fits no integer.",
            Error(MALFORMED),
            || {
                chunked(
                    Chunks::SizeLine {
                        from: 128 * KIB,
                        text: "fffffffffffffffff1",
                    },
                    |r| r,
                )
            },
        ),
        Case::new(
            "chunk-size-huge",
            "Announces a chunk of 8 EiB, sends the rest of the file and closes.",
            Error(&["network", "size-mismatch", "malformed-response"]),
            || {
                chunked(
                    Chunks::SizeLine {
                        from: 128 * KIB,
                        text: "7fffffffffffffff",
                    },
                    |r| r.with(closes),
                )
            },
        ),
        Case::new(
            "chunk-unterminated",
            "Leaves out the line end after a chunk's data.",
            Error(MALFORMED),
            || chunked(Chunks::Unterminated, |r| r),
        ),
    ]
}

fn ends() -> Vec<Case> {
    vec![
        Case::new(
            "ends-with-connection",
            "Sends no length and closes at the end of the file.",
            Identical,
            || file(|r| r.with(ignore_ranges).with(framing(Framing::Close))),
        ),
        Case::new(
            "http-1-0",
            "Speaks HTTP/1.0 and closes after each response.",
            Identical,
            || {
                file(|r| {
                    r.with(ignore_ranges).with(closes).with(|_, reply| {
                        reply.version = "HTTP/1.0";
                        reply.framing = Framing::Close;
                    })
                })
            },
        ),
        Case::new(
            "http-1-0-with-ranges",
            "Speaks HTTP/1.0, closes after each response and honours ranges.",
            Identical,
            || file(|r| r.with(closes).with(|_, reply| reply.version = "HTTP/1.0")),
        ),
        Case::new(
            "reset-ends-the-body-once",
            "Sends no length and resets in the middle, once.",
            Identical,
            || {
                file(|r| {
                    r.with(ignore_ranges)
                        .with(framing(Framing::Close))
                        .with(when(first, cut(FILE_BYTES / 2, End::Reset)))
                })
            },
        ),
        Case::new(
            "reset-ends-the-body",
            "Sends no length and resets in the middle of every body.",
            Error(&["network"]),
            || {
                file(|r| {
                    r.with(ignore_ranges)
                        .with(framing(Framing::Close))
                        .with(cut(FILE_BYTES / 2, End::Reset))
                })
            },
        ),
    ]
}

fn heads() -> Vec<Case> {
    vec![
        Case::new(
            "status-line-garbage",
            "Answers with a line that is no status line.",
            Error(MALFORMED),
            || raw("HELLO WORLD\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        Case::new(
            "status-code-garbage",
            "Answers with a status that is no number.",
            Error(MALFORMED),
            || raw("HTTP/1.1 2OO OK\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        Case::new(
            "status-out-of-range",
            "Answers with status 999.",
            Error(&["unexpected-status", "malformed-response"]),
            || raw("HTTP/1.1 999 Later\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        Case::new(
            "http-0-9",
            "Answers with a bare body, as HTTP/0.9 did.",
            Error(MALFORMED),
            || raw("these are the bytes of the file, without a head, for as long as they last\r\n\r\n"),
        ),
    ]
}

fn odd_heads() -> Vec<Case> {
    vec![
        Case::new(
            "status-without-reason",
            "Leaves the reason out of the status line.",
            Identical,
            || edited(|head| head.replace("200 OK", "200").replace("206 Partial Content", "206")),
        ),
        Case::new(
            "header-without-colon",
            "Sends a header line without a colon.",
            IdenticalOrError(MALFORMED),
            || edited(|head| head.replacen("\r\n", "\r\nno colon here\r\n", 1)),
        ),
        Case::new(
            "header-with-nul",
            "Sends a header with a NUL in its value.",
            IdenticalOrError(MALFORMED),
            || edited(|head| head.replacen("\r\n", "\r\nX-Nul: a\0b\r\n", 1)),
        ),
        Case::new(
            "header-folded",
            "Folds a header over two lines.",
            IdenticalOrError(MALFORMED),
            || edited(|head| head.replacen("\r\n", "\r\nX-Folded: one\r\n two\r\n", 1)),
        ),
        Case::new(
            "header-lines-with-bare-lf",
            "Ends header lines with LF alone.",
            IdenticalOrError(MALFORMED),
            || edited(|head| head.replace("\r\n", "\n")),
        ),
        Case::new(
            "header-of-100-kb",
            "Sends a header line of 100 KB.",
            IdenticalOrError(MALFORMED),
            || file(|r| r.with(|_, reply| reply.set("X-Long", vec![b'x'; 100_000]))),
        ),
        Case::new(
            "headers-by-the-hundred",
            "Sends 300 header lines.",
            IdenticalOrError(MALFORMED),
            || file(|r| r.with(|_, reply| (0..300).for_each(|n| reply.add(&format!("X-Many-{n}"), "1")))),
        ),
        Case::new(
            "head-dripping",
            "Sends the head byte by byte, a millisecond apart.",
            Identical,
            || file(|r| r.with(|_, reply| reply.head_pause = Some(Duration::from_millis(1)))),
        ),
    ]
}

fn endless_heads() -> Vec<Case> {
    vec![
        Case::new(
            "headers-endless",
            "Sends header lines for ever, as fast as it can.",
            Error(MALFORMED),
            || endless("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n", Duration::ZERO),
        ),
        Case::new(
            "header-line-endless",
            "Sends one header line that never ends.",
            Error(MALFORMED),
            || endless("HTTP/1.1 200 OK\r\nX-Long: ", "and on and on ", Duration::ZERO),
        ),
        Case::new(
            "headers-dripping-for-ever",
            "Sends a byte of header every 200 ms, for ever.",
            Error(&["timeout", "malformed-response"]),
            || endless("HTTP/1.1 200 OK\r\nX-Slow: ", "x", Duration::from_millis(200)),
        ),
        Case::new(
            "interim-responses-endless",
            "Sends `100 Continue` for ever.",
            Error(&["timeout", "malformed-response"]),
            || endless("", "HTTP/1.1 100 Continue\r\n\r\n", Duration::ZERO),
        ),
    ]
}

fn interim() -> Vec<Case> {
    vec![
        Case::new(
            "continue-before-the-answer",
            "Sends `100 Continue` before every answer.",
            Identical,
            || prefaced("HTTP/1.1 100 Continue\r\n\r\n"),
        ),
        Case::new(
            "early-hints",
            "Sends `103 Early Hints` with headers before every answer.",
            Identical,
            || prefaced("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nContent-Length: 3\r\n\r\n"),
        ),
        Case::new(
            "switching-protocols",
            "Answers 101 without having been asked.",
            Error(&["unexpected-status", "malformed-response"]),
            || raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade\r\n\r\n"),
        ),
    ]
}

fn closes(_: &Exchange, reply: &mut Reply) {
    reply.end = End::Close;
}

fn two_lengths(reply: &mut Reply, second: u64) {
    reply.add("Content-Length", reply.body_len().to_string());
    reply.add("Content-Length", second.to_string());
}

fn whole_with_length(length: &'static [u8]) -> Scene {
    file(|r| {
        r.with(ignore_ranges)
            .with(header("Content-Length", length))
            .with(closes)
    })
}

fn chunked(chunks: Chunks, misserve: impl FnOnce(Resource) -> Resource) -> Scene {
    file(|r| misserve(r.with(ignore_ranges).with(framing(Framing::Chunked(chunks)))))
}

/// Answers everything with exactly these bytes and closes.
fn raw(answer: &'static str) -> Scene {
    file(|r| {
        r.with(closes).with(|_, reply| {
            reply.head = Head::Raw(answer.as_bytes().to_vec());
            reply.body = Vec::<Piece>::new();
        })
    })
}

/// Edits the head of every answer.
fn edited(edit: fn(&str) -> String) -> Scene {
    file(|r| {
        r.with(move |_, reply| {
            let head = String::from_utf8(reply.head_bytes()).expect("honest heads are ASCII");
            reply.head = Head::Raw(edit(&head).into_bytes());
        })
    })
}

fn endless(opening: &'static str, line: &'static str, pause: Duration) -> Scene {
    file(|r| r.with(move |_, reply| reply.head = Head::Endless { opening, line, pause }))
}

fn prefaced(preface: &'static str) -> Scene {
    Scene::new(
        content(),
        vec![Resource::new(PATH, content()).with(|_, reply| reply.preface = preface.as_bytes().to_vec())],
    )
}
