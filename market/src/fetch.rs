//! Refreshes sources and downloads packages: feeds [`verify`] from [`Origin`]s. Verifying the largest index blocks for
//! about a tenth of a second within one poll: refresh in a task of its own.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;

use crate::{
    Entry, Identity, MAX_INDEX_BYTES, MAX_ROOT_BYTES, MAX_SIGNATURES_BYTES, MAX_TIMESTAMP_BYTES, Origin, OriginError,
    PackageError, PublicKey, Refreshed, Role, SourceState, VerifiedPackage, VerifyError,
    format::{path, signature},
    verify::{self, Heads, IndexPart, Parts, Signed, Wanted},
};

/// The most roots of one refresh: a year of weekly key changes.
const MAX_ROOTS: usize = 64;

/// A patch longer than this fraction of the index is not worth its risk.
const PATCH_SHARE: u64 = 2;

/// Sources that are refreshed at the same time.
const SIDE_BY_SIDE: usize = 4;

/// The most requests for a package at one mirror, while each makes progress.
const ATTEMPTS: usize = 4;

/// A source to refresh.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its last verified state.
    pub state: &'a SourceState,
    /// Its mirrors, the best first. All have the same content; the first that passes verification is used.
    pub origins: &'a [&'a dyn Origin],
}

/// Why a refresh from one mirror failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefreshError {
    /// A file could not be fetched.
    #[error("cannot get {place}")]
    Origin {
        /// The path of the file at the source.
        place: String,
        /// The reason.
        #[source]
        source: OriginError,
    },
    /// Verification failed.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The timestamp's signature does not name its number.
    #[error("{} does not name the number of the timestamp", path::TIMESTAMP_SIGNATURE)]
    NoNumber,
}

/// The errors of all mirrors. The state of the source is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no mirror of the source gave a valid list")]
pub struct Failures(pub Vec<RefreshError>);

/// Refreshes sources concurrently and independently; the results are in their order.
pub async fn refresh_all(sources: &[Source<'_>], now: Timestamp) -> Vec<Result<Refreshed, Failures>> {
    let refreshes = sources.iter().map(|source| refresh(*source, now));
    stream::iter(refreshes).buffered(SIDE_BY_SIDE).collect().await
}

/// Refreshes one source, from the first mirror that passes verification.
pub async fn refresh(source: Source<'_>, now: Timestamp) -> Result<Refreshed, Failures> {
    let mut failures = Vec::new();
    for origin in source.origins {
        let mut refreshed = refresh_from(source.state, *origin, now).await;
        if refreshed.as_ref().is_err_and(may_have_moved_on) {
            refreshed = refresh_from(source.state, *origin, now).await;
        }
        match refreshed {
            Ok(refreshed) => return Ok(refreshed),
            Err(error) => failures.push(error),
        }
    }
    Err(Failures(failures))
}

/// Whether the source may have published between two of our requests.
fn may_have_moved_on(error: &RefreshError) -> bool {
    match error {
        RefreshError::Origin { source, .. } => *source == OriginError::NotFound,
        RefreshError::Verify(error) => matches!(error, VerifyError::RootMissing { .. }),
        RefreshError::NoNumber => false,
    }
}

async fn refresh_from(state: &SourceState, origin: &dyn Origin, now: Timestamp) -> Result<Refreshed, RefreshError> {
    let first = match state.root() {
        Some(root) => root.seq().saturating_add(1),
        None => verify::claimed_root(&timestamp(origin).await?.body)?,
    };
    let roots = roots(origin, first).await?;
    // After the roots: a root that was replaced meanwhile may still have signed the timestamp.
    let timestamp = timestamp(origin).await?;
    let heads = verify::heads(state, &roots, &timestamp, now)?;
    complete(&heads, origin).await
}

async fn roots(origin: &dyn Origin, first: u64) -> Result<Vec<Signed>, RefreshError> {
    let mut roots = Vec::new();
    for seq in (first..=u64::MAX).take(MAX_ROOTS) {
        match signed(origin, Role::Root, seq, MAX_ROOT_BYTES).await {
            Ok(root) => roots.push(root),
            Err(RefreshError::Origin {
                source: OriginError::NotFound,
                ..
            }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(roots)
}

/// The signature first: it names the number of the timestamp.
async fn timestamp(origin: &dyn Origin) -> Result<Signed, RefreshError> {
    let signatures = read(origin, path::TIMESTAMP_SIGNATURE, MAX_SIGNATURES_BYTES).await?;
    let seq = signature::claimed_sequence(&signatures, Role::Timestamp).ok_or(RefreshError::NoNumber)?;
    let body = read(origin, &path::document(Role::Timestamp, seq), MAX_TIMESTAMP_BYTES).await?;
    Ok(Signed { body, signatures })
}

async fn complete(heads: &Heads<'_>, origin: &dyn Origin) -> Result<Refreshed, RefreshError> {
    let Wanted { index, revocations } = heads.wanted();
    let mut parts = Parts::default();
    if let Some(file) = revocations {
        parts.revocations = Some(signed(origin, Role::Revocations, file.seq, file.size).await?);
    }
    let Some((file, held)) = index else {
        return Ok(heads.complete(&parts)?);
    };
    let signatures = read(origin, &path::signatures(Role::Index, file.seq), MAX_SIGNATURES_BYTES).await?;
    if let Some(held) = held.filter(|held| *held < file.seq) {
        let limit = MAX_INDEX_BYTES.min(file.size / PATCH_SHARE);
        // If a patch fails in any way, the whole index is fetched.
        if let Ok(patch) = read(origin, &path::diff(held, file.seq), limit).await {
            let signatures = signatures.clone();
            parts.index = Some(IndexPart::Patch(Signed {
                body: patch,
                signatures,
            }));
            match heads.complete(&parts) {
                Err(VerifyError::Patch) => {}
                done => return Ok(done?),
            }
        }
    }
    let body = read(origin, &path::document(Role::Index, file.seq), file.size).await?;
    parts.index = Some(IndexPart::Whole(Signed { body, signatures }));
    Ok(heads.complete(&parts)?)
}

async fn signed(origin: &dyn Origin, role: Role, seq: u64, limit: u64) -> Result<Signed, RefreshError> {
    let body = read(origin, &path::document(role, seq), limit).await?;
    let signatures = read(origin, &path::signatures(role, seq), MAX_SIGNATURES_BYTES).await?;
    Ok(Signed { body, signatures })
}

async fn read(origin: &dyn Origin, place: &str, limit: u64) -> Result<Bytes, RefreshError> {
    let mut bytes = Vec::new();
    let read = origin.read(place, limit, &mut bytes).await;
    read.map_err(|source| RefreshError::Origin {
        place: place.to_owned(),
        source,
    })?;
    Ok(bytes.into())
}

/// Why a package was not downloaded: the error of every mirror, in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no mirror gave the package")]
pub struct DownloadError(pub Vec<(String, PlaceError)>);

/// Why a mirror failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It could not be fetched.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// It failed verification.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// Downloads a version from its mirrors in order, each at every origin of the source. A partial download is continued
/// at the next one; the digest detects parts that do not match.
pub async fn download(
    origins: &[&dyn Origin],
    identity: &Identity,
    entry: &Entry,
    author: &PublicKey,
) -> Result<VerifiedPackage, DownloadError> {
    let mut failures = Vec::new();
    let mut bytes = Vec::new();
    let places: Vec<_> = entry
        .mirrors
        .iter()
        .flat_map(|mirror| origins.iter().map(move |origin| (origin, mirror)))
        .collect();
    for (origin, mirror) in places {
        for _ in 0..ATTEMPTS {
            let had = bytes.len();
            let error: PlaceError = match origin.read(mirror, entry.size, &mut bytes).await {
                Ok(()) => match VerifiedPackage::new(std::mem::take(&mut bytes).into(), identity, entry, author) {
                    Ok(package) => return Ok(package),
                    Err(error) => error.into(),
                },
                Err(error) => error.into(),
            };
            let is_worth_it = match &error {
                // The part from an earlier mirror may be wrong.
                PlaceError::Package(_) => had > 0,
                PlaceError::Origin(error) => (error.may_pass() && bytes.len() > had) || bytes.len() < had,
            };
            failures.push((mirror.clone(), error));
            if !is_worth_it {
                break;
            }
        }
    }
    Err(DownloadError(failures))
}
