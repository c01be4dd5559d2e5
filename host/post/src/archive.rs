//! Formats of archives: which one a file is, and what each has to offer to be unpacked.

mod rar;
mod seven;
mod tar;
mod zip;

use std::{io::Read, os::fd::OwnedFd};

use transfer::Secret;

use crate::{
    codec::Codec,
    refusal::{Reason, Refusal, Result},
    tree::{Budget, Counts, Report, Tree},
    volumes::Volumes,
};

/// The bytes from which a format is known: a header of tar.
const START_BYTES: usize = 512;

/// What a format unpacks into, and with what.
pub(crate) struct Attempt<'a> {
    pub(crate) tree: &'a mut Tree,
    pub(crate) password: Option<&'a Secret>,
    /// Set by the format when it decrypts something: then damage can mean a wrong password.
    pub(crate) is_encrypted: bool,
}

/// What became of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub(crate) counts: Counts,
    /// The directory that everything is in, if there is one.
    pub(crate) only_directory: Option<String>,
}

/// What the result of an attempt says about passwords.
#[derive(Debug)]
pub(crate) enum Outcome {
    Unpacked(Unpacked),
    /// Another password may help.
    Password(Refusal),
}

/// Unpacks an archive into the empty directory `root` with one password or none.
pub(crate) fn unpack(
    volumes: &Volumes,
    password: Option<&Secret>,
    root: OwnedFd,
    max_bytes: u64,
    report: Report,
) -> Result<Outcome> {
    let budget = Budget {
        max_bytes,
        archive_bytes: volumes.size(),
    };
    let mut tree = Tree::new(root, budget, report);
    let mut attempt = Attempt {
        tree: &mut tree,
        password,
        is_encrypted: false,
    };
    if let Err(refusal) = format(volumes, &mut attempt) {
        let is_noise = attempt.is_encrypted && refusal.reason.may_be_noise();
        if refusal.reason.is_about_password() || is_noise {
            return Ok(Outcome::Password(refusal));
        }
        return Err(refusal);
    }
    let only_directory = tree.names.only_directory().map(ToOwned::to_owned);
    let counts = tree.sync()?;
    Ok(Outcome::Unpacked(Unpacked { counts, only_directory }))
}

fn format(volumes: &Volumes, attempt: &mut Attempt<'_>) -> Result<()> {
    let start = start(volumes.clone())?;
    match start.as_slice() {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => zip::unpack(volumes, attempt),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => seven::unpack(volumes, attempt),
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => rar::unpack(volumes, attempt),
        start if tar::is_header(start) => tar::unpack(&mut volumes.clone(), attempt),
        start => {
            let unknown = || Reason::UnknownFormat.of_archive();
            let codec = Codec::of(start).ok_or_else(unknown)?;
            compressed(codec, volumes, attempt)
        }
    }
}

/// A compressed tar archive.
fn compressed(codec: Codec, volumes: &Volumes, attempt: &mut Attempt<'_>) -> Result<()> {
    let mut decoder = codec.decode(std::io::BufReader::new(volumes.clone()));
    let start = start(&mut decoder)?;
    if !tar::is_header(&start) {
        return Err(Reason::UnknownFormat.of_archive());
    }
    tar::unpack(&mut start.as_slice().chain(decoder), attempt)
}

/// The first bytes of what `input` has, at most [`START_BYTES`].
fn start(input: impl Read) -> Result<Vec<u8>> {
    let mut start = Vec::with_capacity(START_BYTES);
    let read = input.take(START_BYTES as u64).read_to_end(&mut start);
    read.map_err(|error| crate::tree::stream_reason(&error).of_archive())?;
    Ok(start)
}
