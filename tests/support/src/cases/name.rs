//! Origins that suggest dangerous or broken file names. Whatever they say, the file lands in the directory.

use super::{PATH, content, file};
use crate::{
    behaviour::header,
    case::{Case, Expect::Identical, Scene},
    resource::Resource,
};

pub(super) fn cases() -> Vec<Case> {
    [escaping(), unusable(), encoded(), urls()].concat()
}

fn escaping() -> Vec<Case> {
    vec![
        Case::new(
            "name-traversal",
            "Suggests a name that climbs out of the directory.",
            Identical,
            || suggested(b"attachment; filename=\"../../../escaped.bin\"").named("escaped.bin"),
        ),
        Case::new(
            "name-traversal-encoded",
            "Suggests a name that climbs, percent-encoded.",
            Identical,
            || suggested(b"attachment; filename*=UTF-8''..%2F..%2Fescaped.bin").named("escaped.bin"),
        ),
        Case::new(
            "name-traversal-backslashes",
            "Suggests a name that climbs with backslashes.",
            Identical,
            || suggested(b"attachment; filename=\"..\\\\..\\\\escaped.bin\"").named("escaped.bin"),
        ),
        Case::new("name-absolute", "Suggests an absolute path.", Identical, || {
            suggested(b"attachment; filename=\"/tmp/escaped.bin\"").named("escaped.bin")
        }),
        Case::new(
            "name-with-drive",
            "Suggests a path with a drive letter.",
            Identical,
            || suggested(b"attachment; filename=\"C:\\\\Windows\\\\escaped.bin\"").named("escaped.bin"),
        ),
        Case::new(
            "name-with-nul",
            "Suggests a name with a percent-encoded NUL.",
            Identical,
            || suggested(b"attachment; filename*=UTF-8''a%00b.bin").named("a_b.bin"),
        ),
    ]
}

fn unusable() -> Vec<Case> {
    vec![
        Case::new("name-dots", "Suggests `..` as the name.", Identical, || {
            suggested(b"attachment; filename=\"..\"")
        }),
        Case::new("name-empty", "Suggests an empty name.", Identical, || {
            suggested(b"attachment; filename=\"\"").named("data.bin")
        }),
        Case::new(
            "name-control-characters",
            "Suggests a name with terminal control sequences.",
            Identical,
            || suggested(b"attachment; filename*=UTF-8''%1B%5B31mred%07.bin").named("_[31mred_.bin"),
        ),
        Case::new(
            "name-direction-override",
            "Suggests a name that reads backwards to hide its ending.",
            Identical,
            || suggested(b"attachment; filename*=UTF-8''photo%E2%80%AEgpj.exe").named("photogpj.exe"),
        ),
        Case::new(
            "name-reserved",
            "Suggests a name that Windows reserves for a device.",
            Identical,
            || suggested(b"attachment; filename=\"CON.txt\"").named("_CON.txt"),
        ),
        Case::new(
            "name-of-5000-bytes",
            "Suggests a name of 5,000 bytes.",
            Identical,
            || {
                file(|r| {
                    r.with(|_, reply| {
                        let name = "n".repeat(4996);
                        reply.set("Content-Disposition", format!("attachment; filename=\"{name}.bin\""));
                    })
                })
                // As much of it as leaves room for a number and the endings of part files.
                .named("n".repeat(196) + ".bin")
            },
        ),
        Case::new(
            "name-of-a-part-file",
            "Suggests a name that part files have.",
            Identical,
            || suggested(b"attachment; filename=\"data.svcpart\"").named("data.svcpart_"),
        ),
        Case::new("name-hidden", "Suggests a name that hides the file.", Identical, || {
            suggested(b"attachment; filename=\".bashrc\"").named("bashrc")
        }),
    ]
}

fn encoded() -> Vec<Case> {
    vec![
        Case::new("name-raw-utf-8", "Suggests a name in raw UTF-8.", Identical, || {
            suggested("attachment; filename=\"übergrößen.bin\"".as_bytes()).named("übergrößen.bin")
        }),
        Case::new("name-raw-gbk", "Suggests a name in raw GBK.", Identical, || {
            suggested(b"attachment; filename=\"\xcf\xc2\xd4\xd8.bin\"").named("下载.bin")
        }),
        Case::new(
            "name-raw-shift-jis",
            "Suggests a name in raw Shift-JIS.",
            Identical,
            || suggested(b"attachment; filename=\"\x83_\x83E\x83\x93.bin\"").named("ダウン.bin"),
        ),
        Case::new("name-raw-latin-1", "Suggests a name in raw Latin-1.", Identical, || {
            suggested(b"attachment; filename=\"caf\xe9.bin\"").named("café.bin")
        }),
        Case::new(
            "name-extended",
            "Suggests a name in both forms; the extended one counts.",
            Identical,
            || {
                suggested(b"attachment; filename=\"plain.bin\"; filename*=UTF-8''na%C3%AFve%20plan.bin")
                    .named("naïve plan.bin")
            },
        ),
        Case::new(
            "name-extended-broken",
            "Suggests an extended name with broken percent-encoding beside a plain one.",
            Identical,
            || suggested(b"attachment; filename*=UTF-8''a%zz%4; filename=\"plain.bin\"").named("a%zz%4"),
        ),
        Case::new(
            "name-escaped-quotes",
            "Suggests a name with escaped quotes.",
            Identical,
            || suggested(b"attachment; filename=\"a \\\"b\\\" c.bin\"").named("a _b_ c.bin"),
        ),
        Case::new(
            "name-unterminated",
            "Suggests a name whose quote never ends.",
            Identical,
            || suggested(b"attachment; filename=\"open.bin").named("open.bin"),
        ),
        Case::new(
            "name-header-garbage",
            "Sends a `Content-Disposition` of separators only.",
            Identical,
            || suggested(b";;;=;=\"\";*=").named("data.bin"),
        ),
    ]
}

fn urls() -> Vec<Case> {
    vec![
        Case::new(
            "url-name-traversal",
            "Has its file at a URL with an encoded climb.",
            Identical,
            || {
                Scene::new(
                    content(),
                    vec![Resource::new("/files/..%2F..%2Fescaped.bin", content())],
                )
                .named("_.._escaped.bin")
            },
        ),
        Case::new(
            "url-name-missing",
            "Has its file at a URL that ends in a slash.",
            Identical,
            || Scene::new(content(), vec![Resource::new("/", content())]).named("download.bin"),
        ),
    ]
}

fn suggested(disposition: &'static [u8]) -> Scene {
    Scene::new(
        content(),
        vec![Resource::new(PATH, content()).with(header("Content-Disposition", disposition))],
    )
}
