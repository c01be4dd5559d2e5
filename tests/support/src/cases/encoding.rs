//! Origins that encode bodies although the identity was asked for.

use std::sync::OnceLock;

use super::{FILE_BYTES, PATH, content, file};
use crate::{
    behaviour::{compressed, cut, gzip, header, ignore_ranges},
    case::{Case, Expect::Error, Expect::Identical, Expect::IdenticalOrError, Scene},
    content::Content,
    reply::{End, Piece, Reply},
    resource::{Exchange, Resource},
};

const ENCODING: &[&str] = &["encoding"];

pub(super) fn cases() -> Vec<Case> {
    [gzipped(), unknown(), archives()].concat()
}

fn gzipped() -> Vec<Case> {
    vec![
        Case::new(
            "gzip-unasked",
            "Sends the whole file gzip-compressed.",
            Identical,
            || file(|r| r.with(gzip(gzipped_content()))),
        ),
        Case::new(
            "gzip-broken",
            "Sends a gzip-compressed body with a broken byte in the middle.",
            Error(ENCODING),
            || {
                file(|r| {
                    r.with(gzip(gzipped_content()))
                        .with(|_, reply| edit_body(reply, |body| break_middle(body.as_mut_slice())))
                })
            },
        ),
        Case::new(
            "gzip-short",
            "Sends a complete response with only the first half of a gzip stream.",
            Error(ENCODING),
            || {
                file(|r| {
                    r.with(gzip(gzipped_content()))
                        .with(|_, reply| edit_body(reply, |body| body.truncate(body.len() / 2)))
                })
            },
        ),
        Case::new(
            "gzip-cut",
            "Closes in the middle of every gzip-compressed body.",
            Error(&["network", "size-mismatch", "encoding"]),
            || file(|r| r.with(gzip(gzipped_content())).with(cut(FILE_BYTES / 2, End::Close))),
        ),
        Case::new(
            "gzip-not-at-all",
            "Says `gzip` and sends the file as it is.",
            Error(ENCODING),
            || file(|r| r.with(ignore_ranges).with(header("Content-Encoding", b"gzip"))),
        ),
        Case::new(
            "gzip-with-garbage-after",
            "Sends garbage after the end of the gzip stream, within the announced length.",
            IdenticalOrError(ENCODING),
            || {
                file(|r| {
                    r.with(gzip(gzipped_content()))
                        .with(|_, reply| edit_body(reply, |body| body.extend([0x55; 100])))
                })
            },
        ),
        Case::new(
            "gzip-on-ranges",
            "Answers ranges with stretches of the gzip-compressed file, and requests without range with all of it.",
            IdenticalOrError(ENCODING),
            || {
                let content = Content::bytes(gzipped_content());
                let resource = Resource::new(PATH, content).with(header("Content-Encoding", b"gzip"));
                Scene::new(super::content(), vec![resource])
            },
        ),
        Case::new(
            "gzip-twice",
            "Sends the file compressed twice, and says so.",
            IdenticalOrError(ENCODING),
            || {
                let twice = compressed(&gzipped_content());
                file(|r| r.with(gzip(twice)).with(header("Content-Encoding", b"gzip, gzip")))
            },
        ),
    ]
}

fn unknown() -> Vec<Case> {
    vec![
        Case::new("encoding-br", "Says `br` and sends bytes.", Error(ENCODING), || {
            encoded_as(b"br")
        }),
        Case::new(
            "encoding-foo",
            "Says `foo`, which is no encoding.",
            Error(ENCODING),
            || encoded_as(b"foo"),
        ),
        Case::new(
            "encoding-identity",
            "Says `identity` and honours ranges.",
            Identical,
            || file(|r| r.with(header("Content-Encoding", b"identity"))),
        ),
        Case::new(
            "encoding-none",
            "Says `none`, which is no encoding.",
            IdenticalOrError(ENCODING),
            || encoded_as(b"none"),
        ),
        Case::new(
            "encoding-empty",
            "Has a `Content-Encoding` without a value.",
            IdenticalOrError(ENCODING),
            || encoded_as(b""),
        ),
    ]
}

fn archives() -> Vec<Case> {
    vec![
        Case::new(
            "tar-gz-labelled-gzip",
            "Serves a `.tar.gz` and labels it `Content-Encoding: gzip`; the archive itself is wanted, as browsers do.",
            Identical,
            || archive("/pack.tar.gz", "application/x-gzip").named("pack.tar.gz"),
        ),
        Case::new(
            "tgz-labelled-gzip",
            "Serves a `.tgz` of no particular type and labels it `Content-Encoding: gzip`.",
            Identical,
            || archive("/pack.tgz", "application/octet-stream").named("pack.tgz"),
        ),
    ]
}

/// The usual file, compressed once for all cases: unoptimised, that takes a second.
fn gzipped_content() -> Vec<u8> {
    static GZIPPED: OnceLock<Vec<u8>> = OnceLock::new();
    GZIPPED.get_or_init(|| compressed(&content().to_vec())).clone()
}

fn encoded_as(encoding: &'static [u8]) -> Scene {
    file(|r| r.with(ignore_ranges).with(header("Content-Encoding", encoding)))
}

fn archive(path: &str, media_type: &'static str) -> Scene {
    let archive = Content::bytes(gzipped_content());
    let labelled = |_: &Exchange, reply: &mut Reply| reply.set("Content-Encoding", "gzip");
    Scene::new(
        archive.clone(),
        vec![Resource::new(path, archive).media_type(media_type).with(labelled)],
    )
}

fn edit_body(reply: &mut Reply, edit: impl Fn(&mut Vec<u8>)) {
    for piece in &mut reply.body {
        if let Piece::Bytes(bytes) = piece {
            edit(bytes);
        }
    }
}

/// Breaks a stretch, since a single byte of a stored block could pass until the check sum at the end.
fn break_middle(body: &mut [u8]) {
    let middle = body.len() / 2;
    body[middle..middle + 64].fill(0xff);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_within_the_compressed_file() {
        assert!(gzipped_content().len() as u64 > FILE_BYTES / 2);
    }
}
