//! What a URL of the site means. Names of repositories and pages of the site itself share one place, so what is no
//! repository must be known.

use svc_plugin::{Error, Result, text::Url};

/// Pages of the site that look like an owner of repositories.
const PAGES: [&str; 20] = [
    "api",
    "blog",
    "chat",
    "collections",
    "docs",
    "enterprise",
    "join",
    "kernels",
    "learn",
    "login",
    "models",
    "organizations",
    "papers",
    "posts",
    "pricing",
    "search",
    "settings",
    "storage",
    "tasks",
    "inference",
];

/// What sort of repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Dataset,
    Space,
}

impl Kind {
    /// Where the site tells about such repositories.
    pub(crate) fn api(self) -> &'static str {
        match self {
            Self::Model => "https://huggingface.co/api/models",
            Self::Dataset => "https://huggingface.co/api/datasets",
            Self::Space => "https://huggingface.co/api/spaces",
        }
    }

    /// Where their files are.
    pub(crate) fn site(self) -> &'static str {
        match self {
            Self::Model => "https://huggingface.co",
            Self::Dataset => "https://huggingface.co/datasets",
            Self::Space => "https://huggingface.co/spaces",
        }
    }
}

/// A file or folder of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// `owner/name`; the oldest have no owner.
    pub(crate) name: String,
    /// A branch, a tag or a commit.
    pub(crate) revision: String,
    /// Empty for all of it.
    pub(crate) path: String,
    pub(crate) is_file: bool,
}

impl Target {
    pub(crate) fn of(url: &Url) -> Result<Self> {
        let segments: Vec<_> = url
            .path()
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let (kind, rest) = match segments.as_slice() {
            ["datasets", rest @ ..] => (Kind::Dataset, rest),
            ["spaces", rest @ ..] => (Kind::Space, rest),
            [page, ..] if PAGES.contains(page) => return Err(Error::NotMatched),
            rest => (Kind::Model, rest),
        };
        let is_view = |segment: &str| matches!(segment, "tree" | "blob" | "resolve");
        let (name, view) = match rest {
            [name, view, _, ..] if is_view(view) => (&rest[..1], &rest[1..]),
            [_, _, ..] => rest.split_at(2),
            // Models without an owner look like any page of the site.
            [_] if kind == Kind::Dataset => (rest, &rest[1..]),
            _ => return Err(Error::NotMatched),
        };
        let (revision, path, is_file) = match view {
            [] => ("main", &[][..], false),
            ["tree", revision, path @ ..] => (*revision, path, false),
            ["blob" | "resolve", revision, path @ ..] if !path.is_empty() => (*revision, path, true),
            _ => return Err(Error::NotMatched),
        };
        if !name.iter().all(|part| is_name(part)) {
            return Err(Error::NotMatched);
        }
        Ok(Self {
            kind,
            name: name.join("/"),
            revision: revision.to_owned(),
            path: path.join("/"),
            is_file,
        })
    }
}

/// Whether a text can be the name of an owner or of a repository.
pub(crate) fn is_name(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.bytes().all(is_known) && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use svc_plugin::test::Host;

    use super::*;

    fn target(path: &str) -> Result<Target> {
        Host::new().run(|| Target::of(&Url::parse(format!("https://huggingface.co{path}"))?))
    }

    #[track_caller]
    fn check(path: &str, kind: Kind, expect: [&str; 3], is_file: bool) {
        let expect = Target {
            kind,
            name: expect[0].to_owned(),
            revision: expect[1].to_owned(),
            path: expect[2].to_owned(),
            is_file,
        };
        assert_eq!(target(path), Ok(expect));
    }

    #[test]
    fn urls_mean_a_repository_a_folder_or_a_file() {
        check("/acme/tiny", Kind::Model, ["acme/tiny", "main", ""], false);
        check("/acme/tiny/", Kind::Model, ["acme/tiny", "main", ""], false);
        check("/acme/tiny/tree/v1.0", Kind::Model, ["acme/tiny", "v1.0", ""], false);
        check(
            "/acme/tiny/tree/refs%2Fpr%2F1/a%20b/c",
            Kind::Model,
            ["acme/tiny", "refs/pr/1", "a b/c"],
            false,
        );
        check(
            "/acme/tiny/blob/main/a/b.bin",
            Kind::Model,
            ["acme/tiny", "main", "a/b.bin"],
            true,
        );
        check(
            "/gpt2/resolve/main/config.json?download=true",
            Kind::Model,
            ["gpt2", "main", "config.json"],
            true,
        );
        check("/datasets/acme/rows", Kind::Dataset, ["acme/rows", "main", ""], false);
        check("/datasets/squad", Kind::Dataset, ["squad", "main", ""], false);
        check(
            "/datasets/squad/tree/main/plain",
            Kind::Dataset,
            ["squad", "main", "plain"],
            false,
        );
        check(
            "/spaces/acme/demo/tree/main",
            Kind::Space,
            ["acme/demo", "main", ""],
            false,
        );
    }

    #[test]
    fn pages_of_the_site_are_left_to_others() {
        for path in [
            "/",
            "/acme",
            "/docs/hub",
            "/api/models/acme/tiny",
            "/papers/2401.00001",
            "/spaces/acme",
            "/datasets",
            "/acme/tiny/discussions",
            "/acme/tiny/commit/abc",
            "/acme/tiny/blob/main",
            "/acme/ti%20ny",
            "/../..",
            "/acme/tiny/raw/main/a",
            "/collections/acme/x",
        ] {
            assert_eq!(target(path), Err(Error::NotMatched), "{path}");
        }
    }
}
