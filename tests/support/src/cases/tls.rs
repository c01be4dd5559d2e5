//! Origins with TLS that cannot be trusted, or that end it early.

use super::{FILE_BYTES, PATH, content};
use crate::{
    behaviour::{cut, framing, ignore_ranges},
    case::{Case, Expect::Error, Expect::Identical, Scene},
    reply::{End, Framing},
    resource::Resource,
    tls::Certificate,
};

pub(super) fn cases() -> Vec<Case> {
    [certificates(), ends()].concat()
}

fn certificates() -> Vec<Case> {
    const REFUSED: &[&str] = &["tls"];
    vec![
        Case::new(
            "tls-trusted",
            "Shows a certificate of a trusted authority.",
            Identical,
            || secure(Certificate::Trusted, |r| r),
        ),
        Case::new(
            "tls-self-signed",
            "Shows a certificate that it signed itself.",
            Error(REFUSED),
            || secure(Certificate::SelfSigned, |r| r),
        ),
        Case::new(
            "tls-expired",
            "Shows a certificate whose time is over.",
            Error(REFUSED),
            || secure(Certificate::Expired, |r| r),
        ),
        Case::new(
            "tls-wrong-name",
            "Shows a certificate for another host.",
            Error(REFUSED),
            || secure(Certificate::WrongName, |r| r),
        ),
        Case::new(
            "tls-self-signed-but-accepted",
            "Shows a certificate that it signed itself to a client that was told to accept any.",
            Identical,
            || secure(Certificate::SelfSigned, |r| r).options(&["--insecure"]),
        ),
        Case::new(
            "tls-expected-but-plain",
            "Speaks plain HTTP where TLS is expected.",
            Error(&["tls", "network"]),
            || {
                let scene = Scene::new(content(), vec![Resource::new(PATH, content())]);
                Scene {
                    url: scene.url.replace("http://", "https://"),
                    ..scene
                }
            },
        ),
    ]
}

fn ends() -> Vec<Case> {
    vec![
        Case::new(
            "tls-body-ends-with-connection",
            "Sends no length and ends the body with TLS's own goodbye.",
            Identical,
            || {
                secure(Certificate::Trusted, |r| {
                    r.with(ignore_ranges).with(framing(Framing::Close))
                })
            },
        ),
        Case::new(
            "tls-truncated",
            "Sends no length and closes in the middle of every body without TLS's goodbye, as an attacker would.",
            Error(&["network", "tls", "size-mismatch"]),
            || {
                secure(Certificate::Trusted, |r| {
                    r.with(ignore_ranges)
                        .with(framing(Framing::Close))
                        .with(cut(FILE_BYTES / 2, End::CloseAbruptly))
                })
            },
        ),
        Case::new(
            "tls-rude-but-complete",
            "Sends the announced length and closes without TLS's goodbye.",
            Identical,
            || {
                secure(Certificate::Trusted, |r| {
                    r.with(|_, reply| reply.end = End::CloseAbruptly)
                })
            },
        ),
    ]
}

fn secure(certificate: Certificate, misserve: impl FnOnce(Resource) -> Resource) -> Scene {
    Scene::tls(content(), certificate, misserve(Resource::new(PATH, content())))
}
