//! One row of the table of hostile origins, and the scene that it sets up.

use crate::{content::Content, origin::Origin, resource::Resource, tls::Certificate};

/// What a very careful downloader does with an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It ends with a file that is identical to the origin's.
    Identical,
    /// It fails with one of these codes, and nothing that looks like a finished file is left.
    Error(&'static [&'static str]),
    /// Either; the origin gives too little to insist on one.
    IdenticalOrError(&'static [&'static str]),
}

/// A way in which an origin misbehaves.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What the origin does, in one sentence.
    pub what: &'static str,
    /// What a downloader must make of it.
    pub expect: Expect,
    stage: fn() -> Scene,
}

impl Case {
    pub(crate) const fn new(name: &'static str, what: &'static str, expect: Expect, stage: fn() -> Scene) -> Self {
        Self {
            name,
            what,
            expect,
            stage,
        }
    }

    /// Starts the origins.
    pub fn stage(&self) -> Scene {
        (self.stage)()
    }
}

/// Something that must hold at the origins after the run.
pub type Check = fn(&[Origin]) -> Result<(), String>;

/// The origins of a case at work, and what a downloader needs to know of them.
#[derive(Debug)]
pub struct Scene {
    /// The origins. They end when the scene is dropped.
    pub origins: Vec<Origin>,
    /// What to download.
    pub url: String,
    /// What the file may be: one of these as a whole.
    pub truths: Vec<Content>,
    /// The name the file must get.
    pub file_name: String,
    /// Options that the downloader is given.
    pub options: Vec<String>,
    /// Whether the downloader trusts the first origin's authority.
    pub trusts_authority: bool,
    /// Something that must hold at the origins after the run.
    pub check: Option<Check>,
    pub(crate) meets: Meets,
}

/// How much of what the origins do wrong a downloader meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meets {
    All,
    /// It gives up before it has met the rest.
    Some,
    /// All, if it was told to use several connections; else perhaps.
    AllInSegments,
}

impl Scene {
    /// One origin whose file is at the path of the first resource.
    pub(crate) fn new(truth: Content, resources: Vec<Resource>) -> Self {
        let path = resources[0].path().to_owned();
        Self::of(truth, vec![Origin::start(resources)], &path)
    }

    /// One origin with TLS.
    pub(crate) fn tls(truth: Content, certificate: Certificate, resource: Resource) -> Self {
        let path = resource.path().to_owned();
        let trusts_authority = certificate != Certificate::SelfSigned;
        Self {
            trusts_authority,
            ..Self::of(truth, vec![Origin::start_tls(vec![resource], certificate)], &path)
        }
    }

    /// Several origins; the file is at `path` of the first.
    pub(crate) fn of(truth: Content, origins: Vec<Origin>, path: &str) -> Self {
        Self {
            url: origins[0].url(path),
            origins,
            truths: vec![truth],
            file_name: "data.bin".to_owned(),
            options: Vec::new(),
            trusts_authority: false,
            check: None,
            meets: Meets::All,
        }
    }

    /// A downloader gives up before it has met everything.
    pub(crate) fn meets_some(self) -> Self {
        Self {
            meets: Meets::Some,
            ..self
        }
    }

    /// Only a downloader that was told to use several connections is sure to meet it.
    pub(crate) fn in_segments(self) -> Self {
        Self {
            meets: Meets::AllInSegments,
            ..self
        }
    }

    /// What the origins would have done and a downloader never came to, if the case needs that. A downloader that never
    /// met what a case is about has not shown anything. `is_segmented`: it was told to use several connections.
    pub fn not_met(&self, is_segmented: bool) -> Option<String> {
        if self
            .origins
            .first()
            .is_some_and(|origin| origin.max_connections_seen() == 0)
        {
            return Some("nobody came".to_owned());
        }
        self.origins.iter().find_map(|origin| {
            let (met, all) = origin.behaviours_met();
            let needed = match self.meets {
                Meets::All => all,
                Meets::AllInSegments if is_segmented => all,
                Meets::AllInSegments | Meets::Some => all.min(1),
            };
            (met < needed).then(|| format!("{:?} were never met", origin.behaviours_not_met()))
        })
    }

    pub(crate) fn named(self, file_name: impl Into<String>) -> Self {
        Self {
            file_name: file_name.into(),
            ..self
        }
    }

    pub(crate) fn truths(self, truths: Vec<Content>) -> Self {
        Self { truths, ..self }
    }

    pub(crate) fn options(self, options: &[&str]) -> Self {
        Self {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..self
        }
    }

    pub(crate) fn check(self, check: Check) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }
}
