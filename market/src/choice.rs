//! Which version of a plugin is offered, from which source, and when it may be installed automatically. Pure.

use jiff::{SignedDuration, Timestamp};
use semver::Version;

use crate::{
    Abi, Digest, Entry, Freshness, Identity, Index, Level, Plugin, Revocation, Revocations, SourceId, SourceState,
};

/// Delay of automatic updates: the time in which a stolen key can be noticed.
pub const COOL_DOWN: SignedDuration = SignedDuration::from_hours(24);

/// The versions of the service that runs plugins.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its version.
    pub version: Version,
    /// The newest supported plugin interface of each major version.
    pub abis: Vec<Abi>,
}

/// A version that is installed.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Which plugin.
    pub identity: Identity,
    /// The version.
    pub version: Version,
    /// The package.
    pub sha256: Digest,
}

/// Why a version is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is no such version.
    #[error("the plugin has no version")]
    None,
    /// Its publisher withdrew it.
    #[error("version {0} was withdrawn: {1}")]
    Yanked(Version, String),
    /// It is revoked.
    #[error("version {} is {}: {}", .0, .1.level.name(), .1.reason)]
    Revoked(Version, Box<Revocation>),
    /// The host is too old.
    #[error("version {0} needs host {1} or newer")]
    Host(Version, Version),
    /// The host does not have the interface.
    #[error("version {0} needs plugin interface {1}")]
    Abi(Version, Abi),
    /// It is signed with a key that the author no longer uses.
    #[error("version {0} is signed with a key that its author no longer uses")]
    OldKey(Version),
}

/// Whether `entry` can be installed at all.
pub fn check(
    identity: &Identity,
    plugin: &Plugin,
    entry: &Entry,
    revocations: &Revocations,
    host: &Host,
) -> Result<(), Unfit> {
    let version = || entry.version.clone();
    let revocation = revocations.of(identity, &entry.version, &entry.sha256);
    if let Some(revocation) = revocation.filter(|revocation| !revocation.level.allows_install()) {
        return Err(Unfit::Revoked(version(), Box::new(revocation.clone())));
    }
    if let Some(reason) = &entry.yanked {
        return Err(Unfit::Yanked(version(), reason.clone()));
    }
    if let Some(oldest) = entry.min_host.as_ref().filter(|oldest| **oldest > host.version) {
        return Err(Unfit::Host(version(), oldest.clone()));
    }
    if !host.abis.iter().any(|abi| abi.runs(entry.abi)) {
        return Err(Unfit::Abi(version(), entry.abi));
    }
    if entry.signature.key_id() != plugin.author.key.id() {
        return Err(Unfit::OldKey(version()));
    }
    Ok(())
}

/// The highest version that can be installed; a pre-release only if there is nothing else. If none can, why the highest
/// cannot.
pub fn newest<'p>(
    identity: &Identity,
    plugin: &'p Plugin,
    revocations: &Revocations,
    host: &Host,
) -> Result<&'p Entry, Unfit> {
    let mut entries: Vec<_> = plugin.versions.iter().collect();
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.version.pre.is_empty(), &entry.version)));
    let mut first_reason = Unfit::None;
    for entry in entries {
        match check(identity, plugin, entry, revocations, host) {
            Ok(()) => return Ok(entry),
            Err(reason) if first_reason == Unfit::None => first_reason = reason,
            Err(_) => {}
        }
    }
    Err(first_reason)
}

/// What to do about an installed version.
#[derive(Debug, Clone)]
pub enum Update<'p> {
    /// There is none.
    None,
    /// This one is installed automatically then; the user may install it now.
    At(Timestamp, &'p Entry),
    /// This one may be installed automatically now.
    Now(&'p Entry),
    /// The state of the source has expired.
    Stale,
}

/// Whether there is an update for `installed`, and when it may be installed automatically. The delay starts when it was
/// published or first seen here, whichever is later, because a thief of the index key can forge the date; there is no
/// delay if the installed version is dangerous. The installer checks permissions and fixtures.
pub fn update<'p>(
    state: &SourceState,
    index: &'p Index,
    revocations: &Revocations,
    installed: &Installed,
    host: &Host,
    now: Timestamp,
) -> Update<'p> {
    if !matches!(state.freshness(now), Freshness::Fresh(_)) {
        return Update::Stale;
    }
    let identity = &installed.identity;
    let (Some(plugin), Some(pin)) = (index.plugin(identity), state.pinned(identity)) else {
        return Update::None;
    };
    let Ok(entry) = newest(identity, plugin, revocations, host) else {
        return Update::None;
    };
    if entry.version <= installed.version || entry.seq <= pin.seq {
        return Update::None;
    }
    let revoked = revocations.of(identity, &installed.version, &installed.sha256);
    if revoked.is_some_and(|revocation| revocation.level >= Level::Vulnerable) {
        return Update::Now(entry);
    }
    let time = state.time(now);
    let seen = pin.seen.get(&entry.seq).copied().unwrap_or(time);
    match entry.published.max(seen).checked_add(COOL_DOWN) {
        Ok(due) if due > time => Update::At(due, entry),
        Ok(_) => Update::Now(entry),
        // The date is not representable: never.
        Err(_) => Update::None,
    }
}

/// Why no source was found for a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSource {
    /// No source has it.
    #[error("no source has plugin {0}")]
    Unknown(Identity),
    /// Several sources have it; the user must choose.
    #[error("several sources have plugin {0}")]
    Ambiguous(Identity, Vec<SourceId>),
    /// It was installed from another source, and only that one may update it.
    #[error("plugin {0} was installed from {1}")]
    Bound(Identity, SourceId),
}

/// The source of a plugin: the one that it is bound to or that the user chose, or else the only one that has it. A
/// source can never take over a plugin of another one.
pub fn source_of<'a>(
    identity: &Identity,
    sources: impl IntoIterator<Item = (&'a SourceId, &'a Index)>,
    bound: Option<&SourceId>,
) -> Result<&'a SourceId, NoSource> {
    let having = sources
        .into_iter()
        .filter(|(_, index)| index.plugin(identity).is_some());
    let having: Vec<_> = having.map(|(source, _)| source).collect();
    match (bound, having.as_slice()) {
        (_, []) => Err(NoSource::Unknown(identity.clone())),
        (Some(bound), having) => {
            let found = having.iter().find(|source| **source == bound);
            found
                .copied()
                .ok_or_else(|| NoSource::Bound(identity.clone(), bound.clone()))
        }
        (None, [only]) => Ok(only),
        (None, several) => {
            let several = several.iter().map(|source| (*source).clone()).collect();
            Err(NoSource::Ambiguous(identity.clone(), several))
        }
    }
}

#[cfg(test)]
mod tests;
