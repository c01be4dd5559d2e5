//! Origins that break, stall, ration or muddle connections.

use std::time::Duration;

use super::{FILE_BYTES, KIB, PATH, content, file};
use crate::{
    behaviour::{beyond, busy, cut, first, ignore_ranges, later, other_range, paced, silent, status, when},
    case::{Case, Expect::Error, Expect::Identical, Scene},
    reply::{End, Pace, Reply},
    resource::{Exchange, Resource, partial, whole},
};

/// Slow enough that answers overlap.
const PACE: u64 = 1 << 20;

pub(super) fn cases() -> Vec<Case> {
    [broken(), stalled(), rationed(), kept_alive()].concat()
}

fn broken() -> Vec<Case> {
    vec![
        Case::new(
            "reset-once",
            "Resets the connection in the middle of the first body.",
            Identical,
            || file(|r| r.with(when(first, cut(700 * KIB, End::Reset)))),
        ),
        Case::new(
            "reset-every-100-kb",
            "Resets the connection after 100 KB of every body.",
            Identical,
            || file(|r| r.with(paced(4 << 20)).with(cut(100_000, End::Reset))),
        ),
        Case::new(
            "reset-before-the-answer-once",
            "Resets the connection instead of the first answer.",
            Identical,
            || file(|r| r.with(when(first, silent(End::Reset)))),
        ),
        Case::new(
            "reset-before-the-answer",
            "Resets the connection instead of every answer.",
            Error(&["network"]),
            || file(|r| r.with(silent(End::Reset))),
        ),
        Case::new(
            "closes-before-the-answer",
            "Closes the connection instead of every answer.",
            Error(&["network", "malformed-response"]),
            || file(|r| r.with(silent(End::Close))),
        ),
        Case::new(
            "closes-every-second-time",
            "Closes the connection instead of every second answer, the first one included.",
            Identical,
            || {
                file(|r| {
                    r.with(paced(2 << 20))
                        .with(when(|x| x.visit.nth % 2 == 0, silent(End::Close)))
                })
            },
        ),
        Case::new("nobody-listens", "Refuses connections.", Error(&["connect"]), || {
            let mut scene = file(|r| r);
            // The scene's own origin ends; its port is most likely not taken again by then.
            scene.origins.clear();
            scene
        }),
    ]
}

fn stalled() -> Vec<Case> {
    vec![
        Case::new(
            "stall-once",
            "Stops sending in the middle of the first body and leaves the connection open.",
            Identical,
            || file(|r| r.with(when(first, cut(700 * KIB, End::Stall)))),
        ),
        Case::new(
            "stall-every-512-kib",
            "Stops sending after 512 KiB of every body and leaves the connection open.",
            Identical,
            || file(|r| r.with(cut(512 * KIB, End::Stall))),
        ),
        Case::new(
            "stall-always-without-ranges",
            "Ignores ranges and stops sending in the middle of every body.",
            Error(&["timeout"]),
            || file(|r| r.with(ignore_ranges).with(cut(FILE_BYTES / 2, End::Stall))),
        ),
        Case::new(
            "stall-before-the-body",
            "Sends every head and then nothing.",
            Error(&["timeout"]),
            || file(|r| r.with(cut(0, End::Stall))),
        ),
        Case::new(
            "stall-before-the-answer",
            "Takes every request and answers nothing.",
            Error(&["timeout"]),
            || file(|r| r.with(silent(End::Stall))),
        ),
        Case::new(
            "stall-before-the-first-answer",
            "Takes the first request and answers nothing.",
            Identical,
            || file(|r| r.with(when(first, silent(End::Stall)))),
        ),
        Case::new(
            "body-dripping",
            "Sends a few bytes every 300 ms for three seconds, which is slow but no stall, and then the rest.",
            Identical,
            || {
                let drip = Pace::Drip {
                    times: 10,
                    pause: Duration::from_millis(300),
                };
                file(|r| r.with(move |_, reply| reply.pace = drip))
            },
        ),
    ]
}

fn rationed() -> Vec<Case> {
    vec![
        Case::new(
            "one-connection-429",
            "Answers 429 to every request beyond one at a time.",
            Identical,
            || rationed_to(1, busy(429, "1")),
        ),
        Case::new(
            "two-connections-503",
            "Answers 503 to every request beyond two at a time.",
            Identical,
            || rationed_to(2, busy(503, "1")),
        ),
        Case::new(
            "three-connections-429-without-advice",
            "Answers 429 without `Retry-After` to every request beyond three at a time.",
            Identical,
            || rationed_to(3, status(429)),
        ),
        Case::new(
            "one-connection-403",
            "Answers 403 to every request beyond one at a time.",
            Identical,
            || rationed_to(1, status(403)),
        ),
        Case::new(
            "one-connection-reset",
            "Resets every connection beyond one at a time.",
            Identical,
            || rationed_to(1, silent(End::Reset)),
        ),
        Case::new(
            "one-connection-stall",
            "Lets every request beyond one at a time wait for ever.",
            Identical,
            || rationed_to(1, silent(End::Stall)),
        ),
        Case::new(
            "one-request-only-503",
            "Serves the first request and answers 503 to every later one.",
            Identical,
            || file(|r| r.with(paced(PACE)).with(when(later, busy(503, "1")))),
        ),
    ]
}

fn kept_alive() -> Vec<Case> {
    vec![
        Case::new(
            "keep-alive-closed-silently",
            "Promises to keep connections open and closes each after its response.",
            Identical,
            || {
                file(|r| {
                    r.with(|_, reply| {
                        reply.set("Connection", "keep-alive");
                        reply.end = End::Close;
                    })
                })
            },
        ),
        Case::new(
            "keep-alive-reset-on-second-request",
            "Resets a connection when a second request comes over it.",
            Identical,
            || {
                // In many answers, so that there is a second request.
                let pieces = other_range(|first, last, _| (first, last.min(first + 256 * KIB - 1)));
                file(|r| {
                    r.with(pieces)
                        .with(when(|x| x.visit.nth_on_connection > 0, silent(End::Reset)))
                })
            },
        ),
        Case::new(
            "garbage-after-the-body",
            "Sends garbage after every body and keeps the connection open.",
            Identical,
            || file(|r| r.with(|_, reply| reply.epilogue = b"\0\0garbage\r\n\r\n".to_vec())),
        ),
        Case::new(
            "answer-to-another-request",
            "Sends an answer that nobody asked for after every response, as if requests had been mixed up.",
            Identical,
            || file(|r| r.with(|x, reply| reply.epilogue = stale_answer(x))),
        ),
        Case::new(
            "half-closed",
            "Closes its sending side after every response and goes on reading.",
            Identical,
            || {
                Scene::new(
                    content(),
                    vec![Resource::new(PATH, content()).with(|_, reply| {
                        reply.set("Connection", "keep-alive");
                        reply.end = End::CloseAbruptly;
                    })],
                )
            },
        ),
    ]
}

fn rationed_to(n: usize, refuse: impl Fn(&Exchange, &mut Reply) + Send + Sync + 'static) -> Scene {
    file(|r| r.with(paced(PACE)).with(when(beyond(n), refuse)))
}

/// A complete partial answer with bytes of another file under the same validators.
fn stale_answer(exchange: &Exchange) -> Vec<u8> {
    let mut reply = whole(&exchange.version, "application/octet-stream");
    partial(&mut reply, &exchange.version.content, 0, 999);
    let mut bytes = reply.head_bytes();
    bytes.extend([b'x'; 1000]);
    bytes
}
