//! Origins that answer with another status than the file deserves, and with pages in place of files.

use super::{KIB, PATH, content, file};
use crate::{
    behaviour::{basic_auth, busy, cut, first, framing, login_page, other_connections, paced, status, when},
    case::{Case, Expect, Expect::Error, Expect::Identical, Expect::IdenticalOrError, Scene},
    content::Content,
    reply::{End, Framing, Reply},
    resource::Resource,
};

/// Slow enough that answers overlap.
const PACE: u64 = 2 << 20;

/// A file whose name promises something else than a page.
const ARCHIVE: &str = "/files/archive.zip";

pub(super) fn cases() -> Vec<Case> {
    [once(), advised(), always(), odd(), empty(), pages()].concat()
}

fn once() -> Vec<Case> {
    vec![
        Case::new(
            "status-401-once",
            "Answers 401 once.",
            IdenticalOrError(&["unauthorized"]),
            || once_then_honest(401),
        ),
        Case::new(
            "status-403-once",
            "Answers 403 once.",
            IdenticalOrError(&["forbidden"]),
            || once_then_honest(403),
        ),
        Case::new(
            "status-404-once",
            "Answers 404 once.",
            IdenticalOrError(&["not-found"]),
            || once_then_honest(404),
        ),
        Case::new(
            "status-410-once",
            "Answers 410 once.",
            IdenticalOrError(&["gone"]),
            || once_then_honest(410),
        ),
        Case::new(
            "status-429-once",
            "Answers 429 once and asks to wait a second.",
            Identical,
            || file(|r| r.with(when(first, busy(429, "1")))),
        ),
        Case::new("status-500-once", "Answers 500 once.", Identical, || {
            once_then_honest(500)
        }),
        Case::new(
            "status-503-once",
            "Answers 503 once and asks to wait a second.",
            Identical,
            || file(|r| r.with(when(first, busy(503, "1")))),
        ),
        Case::new(
            "status-408-once",
            "Answers 408 once.",
            IdenticalOrError(&["timeout"]),
            || once_then_honest(408),
        ),
    ]
}

fn advised() -> Vec<Case> {
    vec![
        Case::new(
            "retry-after-a-past-date",
            "Answers 503 once, with a date of the past to wait for.",
            Identical,
            || file(|r| r.with(when(first, busy(503, "Wed, 21 Oct 2015 07:28:00 GMT")))),
        ),
        Case::new(
            "retry-after-garbage",
            "Answers 503 once and asks to wait `soon`.",
            Identical,
            || file(|r| r.with(when(first, busy(503, "soon")))),
        ),
        Case::new(
            "retry-after-overflowing",
            "Answers 503 and asks to wait longer than any integer.",
            Error(&["busy"]),
            || file(|r| r.with(busy(503, "99999999999999999999999999"))),
        ),
        Case::new(
            "retry-after-a-day",
            "Answers 503 and asks to wait for a day.",
            Error(&["busy"]),
            || file(|r| r.with(busy(503, "86400"))),
        ),
        Case::new(
            "link-expires-midway",
            "Cuts every answer after 512 KiB and answers 403 once a MiB is out, as expired links do.",
            Error(&["forbidden"]),
            || {
                let expired = when(|x| x.visit.served >= 1024 * KIB, status(403));
                file(|r| r.with(cut(512 * KIB, End::Close)).with(expired))
            },
        ),
    ]
}

fn always() -> Vec<Case> {
    vec![
        Case::new(
            "status-401",
            "Answers 401 to everything.",
            Error(&["unauthorized"]),
            || always_status(401),
        ),
        Case::new(
            "status-403",
            "Answers 403 to everything.",
            Error(&["forbidden"]),
            || always_status(403),
        ),
        Case::new(
            "status-404",
            "Answers 404 to everything.",
            Error(&["not-found"]),
            || always_status(404),
        ),
        Case::new("status-410", "Answers 410 to everything.", Error(&["gone"]), || {
            always_status(410)
        }),
        Case::new(
            "status-418",
            "Answers 418 to everything.",
            Error(&["unexpected-status"]),
            || always_status(418),
        ),
        Case::new("status-429", "Answers 429 to everything.", Error(&["busy"]), || {
            always_status(429)
        }),
        Case::new(
            "status-500",
            "Answers 500 to everything.",
            Error(&["server-error"]),
            || always_status(500),
        ),
        Case::new("status-503", "Answers 503 to everything.", Error(&["busy"]), || {
            always_status(503)
        }),
        Case::new(
            "wrong-password",
            "Answers 401 to the credentials that are given.",
            Error(&["unauthorized"]),
            || file(|r| r.with(basic_auth("me", "right"))).options(&["--http-user", "me", "--http-password", "wrong"]),
        ),
    ]
}

fn odd() -> Vec<Case> {
    const ODD: Expect = Error(&["unexpected-status", "not-the-file"]);
    vec![
        Case::new("status-204", "Answers 204 without a body.", ODD, || bare(204)),
        Case::new("status-304", "Answers 304 although nothing was known.", ODD, || {
            bare(304)
        }),
        Case::new(
            "status-202",
            "Answers 202 and a note that the file is being prepared.",
            ODD,
            || always_status(202),
        ),
        Case::new("status-300", "Answers 300 with a list of choices.", ODD, || {
            always_status(300)
        }),
        Case::new(
            "status-203",
            "Answers 203 with the whole file, as transforming proxies do.",
            IdenticalOrError(&["unexpected-status"]),
            || {
                file(|r| {
                    r.with(crate::behaviour::ignore_ranges)
                        .with(|_, reply| reply.status = 203)
                })
            },
        ),
    ]
}

fn empty() -> Vec<Case> {
    vec![
        Case::new(
            "empty-file",
            "Serves an empty file with 200, also to range requests.",
            Identical,
            || empty_file(|r| r.with(crate::behaviour::ignore_ranges)),
        ),
        Case::new(
            "empty-file-416",
            "Serves an empty file, and answers range requests with 416.",
            Identical,
            || empty_file(|r| r),
        ),
        Case::new(
            "empty-file-chunked",
            "Serves an empty file as a chunked body.",
            Identical,
            || {
                let chunked = framing(Framing::Chunked(crate::reply::Chunks::Plain));
                empty_file(|r| r.with(crate::behaviour::ignore_ranges).with(chunked))
            },
        ),
        Case::new("one-byte-file", "Serves a file of one byte.", Identical, || {
            let content = Content::seeded(5, 1);
            Scene::new(content.clone(), vec![Resource::new(PATH, content)])
        }),
    ]
}

fn pages() -> Vec<Case> {
    vec![
        Case::new(
            "login-page",
            "Answers requests for an archive with 200 and a sign-in page.",
            Error(&["not-the-file"]),
            || archive(|r| r.with(login_page)),
        ),
        Case::new(
            "login-page-from-second-connection",
            "Serves the first connection and answers all others with 200 and a sign-in page.",
            Identical,
            || archive(|r| r.with(paced(PACE)).with(when(other_connections, login_page))),
        ),
        Case::new(
            "login-page-after-a-cut",
            "Cuts the first answer and answers later requests with 200 and a sign-in page, as expired sessions do.",
            Error(&["not-the-file", "changed"]),
            || {
                archive(|r| {
                    r.with(when(|x| x.visit.nth > 0, login_page))
                        .with(when(first, cut(700 * KIB, End::Close)))
                })
            },
        ),
        Case::new(
            "error-page-without-length",
            "Answers requests for an archive with 200 and an error page of no announced length.",
            Error(&["not-the-file"]),
            || archive(|r| r.with(login_page).with(framing(Framing::Close))),
        ),
        Case::new(
            "page-wanted",
            "Serves a page whose name is a page's.",
            Identical,
            || {
                let page = Content::bytes(*b"<!DOCTYPE html><title>A page</title>");
                Scene::new(
                    page.clone(),
                    vec![Resource::new("/index.html", page).media_type("text/html")],
                )
                .named("index.html")
            },
        ),
    ]
}

fn once_then_honest(code: u16) -> Scene {
    file(|r| r.with(when(first, status(code))))
}

fn always_status(code: u16) -> Scene {
    file(|r| r.with(status(code)))
}

fn bare(code: u16) -> Scene {
    file(|r| r.with(move |_, reply| *reply = Reply::new(code)))
}

fn empty_file(misserve: impl FnOnce(Resource) -> Resource) -> Scene {
    let nothing = Content::bytes(*b"");
    Scene::new(nothing.clone(), vec![misserve(Resource::new(PATH, nothing))])
}

fn archive(misserve: impl FnOnce(Resource) -> Resource) -> Scene {
    Scene::new(
        content(),
        vec![misserve(
            Resource::new(ARCHIVE, content()).media_type("application/zip"),
        )],
    )
    .named("archive.zip")
}
