//! Origins that send their clients elsewhere.

use super::{FILE_BYTES, KIB, PATH, content};
use crate::{
    behaviour::{cookie_gate, cut, paced, redirect, status, when},
    case::{Case, Expect::Error, Expect::Identical, Expect::IdenticalOrError, Scene},
    content::Content,
    origin::Origin,
    reply::{End, Piece},
    resource::Resource,
    tls::Certificate,
};

/// Where redirects start.
const START: &str = "/start";

/// What a `Location` that cannot be followed may be called.
const NOWHERE: &[&str] = &["unexpected-status", "malformed-response", "forbidden-redirect"];

pub(super) fn cases() -> Vec<Case> {
    [many(), forms(), schemes(), elsewhere(), gates()].concat()
}

fn many() -> Vec<Case> {
    vec![
        Case::new(
            "redirect-loop",
            "Redirects in a circle.",
            Error(&["too-many-redirects"]),
            || {
                let resources = vec![hop(START, "/back"), hop("/back", START)];
                Scene::new(content(), resources)
            },
        ),
        Case::new(
            "redirect-fifty",
            "Redirects fifty times.",
            Error(&["too-many-redirects"]),
            || hops(50).meets_some(),
        ),
        Case::new("redirect-five", "Redirects five times.", Identical, || hops(5)),
    ]
}

fn forms() -> Vec<Case> {
    vec![
        Case::new(
            "redirect-relative",
            "Redirects to a relative reference.",
            Identical,
            || redirected("files/data.bin"),
        ),
        Case::new(
            "redirect-dotted",
            "Redirects to a reference with dot segments.",
            Identical,
            || redirected("/a/../files/./data.bin"),
        ),
        Case::new(
            "redirect-with-fragment",
            "Redirects to a URL with a fragment.",
            Identical,
            || redirected("/files/data.bin#page"),
        ),
        Case::new(
            "redirect-without-location",
            "Redirects without saying where to.",
            Error(NOWHERE),
            || {
                let resource = Resource::new(START, content()).with(status(302));
                Scene::new(content(), vec![resource])
            },
        ),
        Case::new(
            "redirect-unparsable",
            "Redirects to something that is no URL.",
            Error(NOWHERE),
            || redirected("http://[broken"),
        ),
        Case::new(
            "redirect-with-a-large-body",
            "Redirects with a body of a megabyte.",
            Identical,
            || {
                let start = hop(START, PATH).with(|_, reply| reply.body = vec![Piece::Bytes(vec![b'x'; 1 << 20])]);
                Scene::new(content(), vec![start, Resource::new(PATH, content())])
            },
        ),
        Case::new("redirect-308", "Redirects for good with 308.", Identical, || {
            let start = Resource::new(START, content()).with(redirect(308, PATH));
            Scene::new(content(), vec![start, Resource::new(PATH, content())])
        }),
    ]
}

fn schemes() -> Vec<Case> {
    const FORBIDDEN: &[&str] = &["forbidden-redirect"];
    vec![
        Case::new(
            "redirect-to-file",
            "Redirects to a file of the local machine.",
            Error(FORBIDDEN),
            || redirected("file:///etc/passwd"),
        ),
        Case::new("redirect-to-ftp", "Redirects to FTP.", Error(FORBIDDEN), || {
            redirected("ftp://127.0.0.1:9/data.bin")
        }),
        Case::new(
            "redirect-to-javascript",
            "Redirects to a script.",
            Error(FORBIDDEN),
            || redirected("javascript:alert(1)"),
        ),
        Case::new(
            "redirect-to-data",
            "Redirects to a `data:` URL.",
            Error(FORBIDDEN),
            || redirected("data:application/octet-stream,hello"),
        ),
        Case::new(
            "redirect-from-https-to-http",
            "Redirects from TLS to plain HTTP.",
            Error(FORBIDDEN),
            || {
                let plain = Origin::start(vec![Resource::new(PATH, content())]);
                let start = Resource::new(START, content()).with(redirect(302, &plain.url(PATH)));
                let secure = Origin::start_tls(vec![start], Certificate::Trusted);
                Scene {
                    trusts_authority: true,
                    ..Scene::of(content(), vec![secure, plain], START)
                }
            },
        ),
    ]
}

fn elsewhere() -> Vec<Case> {
    vec![
        Case::new(
            "redirect-takes-no-credentials-along",
            "Redirects to another origin, which must see neither the password nor the cookies that the first one was sent.",
            Identical,
            || {
                let other = Origin::start(vec![Resource::new(PATH, content())]);
                let to_other = redirect(302, &other.url(PATH));
                let start = Resource::new(START, content()).with(to_other);
                let options = [
                    "--http-user",
                    "me",
                    "--http-password",
                    "secret",
                    "--cookie",
                    "session=secret",
                ];
                Scene::of(content(), vec![Origin::start(vec![start]), other], START)
                    .options(&options)
                    .check(kept_secret)
            },
        ),
        Case::new(
            "redirect-takes-no-authorization-header-along",
            "Redirects to another origin, which must not see an `Authorization` header that the user set.",
            Identical,
            || {
                let other = Origin::start(vec![Resource::new(PATH, content())]);
                let start = Resource::new(START, content()).with(redirect(307, &other.url(PATH)));
                let options = [
                    "--header",
                    "Authorization: Bearer secret",
                    "--header",
                    "Cookie: session=secret",
                ];
                Scene::of(content(), vec![Origin::start(vec![start]), other], START)
                    .options(&options)
                    .check(kept_secret)
            },
        ),
        Case::new(
            "redirect-drifts-to-another-file",
            "Redirects the first request to one file and later ones to another of the same size; every answer is cut.",
            IdenticalOrError(&["changed"]),
            || {
                let other = Content::seeded(2, FILE_BYTES);
                let start = Resource::new(START, content())
                    .with(redirect(302, "/other"))
                    .with(when(|x| x.visit.nth == 0, redirect(302, PATH)));
                let one = Resource::new(PATH, content()).with(cut(700 * KIB, End::Close));
                let version = other.clone();
                let two = Resource::changing("/other", move |_| crate::Version::numbered(version.clone(), 1));
                Scene::new(content(), vec![start, one, two]).truths(vec![content(), other])
            },
        ),
    ]
}

fn gates() -> Vec<Case> {
    vec![
        Case::new(
            "redirect-to-itself-with-cookie",
            "Redirects to the same URL with a cookie, and serves only those who bring it back.",
            Identical,
            || Scene::new(content(), vec![Resource::new(PATH, content()).with(cookie_gate)]),
        ),
        Case::new(
            "redirect-to-links-that-work-once",
            "Redirects to a signed link that answers once and then 403; every request at the start gets a fresh one.",
            Identical,
            || {
                let start = Resource::new(START, content()).with(|x, reply| {
                    redirect(302, &format!("/signed?{}", x.visit.nth))(x, reply);
                });
                let used = std::sync::Mutex::new(std::collections::HashSet::new());
                let signed = Resource::new("/signed", content())
                    .with(paced(4 << 20))
                    .with(move |x, reply| {
                        if x.request.method != "HEAD" && !crate::server::lock(&used).insert(x.request.target.clone()) {
                            status(403)(x, reply);
                        }
                    });
                Scene::new(
                    content(),
                    vec![
                        start,
                        signed.with(when(|x| x.visit.nth == 0, cut(700 * KIB, End::Close))),
                    ],
                )
                .named("signed")
            },
        ),
    ]
}

fn hop(from: &str, to: &str) -> Resource {
    Resource::new(from, content()).with(redirect(302, to))
}

/// `n` redirects and then the file.
fn hops(n: usize) -> Scene {
    let path = |i: usize| if i == n { PATH.to_owned() } else { format!("/hop/{i}") };
    let mut resources: Vec<Resource> = (0..n).map(|i| hop(&path(i), &path(i + 1))).collect();
    resources.push(Resource::new(PATH, content()));
    Scene::new(content(), resources)
}

/// One redirect to `location`; the file is where most cases have it.
fn redirected(location: &str) -> Scene {
    Scene::new(content(), vec![hop(START, location), Resource::new(PATH, content())])
}

fn kept_secret(origins: &[Origin]) -> Result<(), String> {
    let is_sent = |name| {
        origins[0]
            .requests()
            .iter()
            .any(|request| request.header(name).is_some())
    };
    if !is_sent("authorization") || !is_sent("cookie") {
        return Err("the first origin was not sent what the other one must not see".to_owned());
    }
    let leaked = origins[1].requests().into_iter().find_map(|request| {
        ["authorization", "cookie"]
            .into_iter()
            .find_map(|name| request.header(name).map(str::to_owned))
    });
    leaked.map_or(Ok(()), |value| Err(format!("the other origin saw {value:?}")))
}
