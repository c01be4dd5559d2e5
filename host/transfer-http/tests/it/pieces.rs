//! Hashes of pieces: what is wrong is found, blamed on the mirror that sent it, and fetched again, and nothing else is.

use std::path::Path;

use transfer::{Checksum, FailureKind, Finished, PieceHashes, checksum::Algorithm};

use super::*;

const PIECE: u64 = 256 * 1024;
const TOTAL: u64 = 4 * 1024 * 1024 + 77;

fn content() -> Content {
    Content::seeded(71, TOTAL)
}

fn hash(bytes: &[u8]) -> Checksum {
    Checksum::compute(Algorithm::Sha256, &mut &*bytes).unwrap()
}

fn pieces() -> PieceHashes {
    let bytes = content().to_vec();
    let digests = bytes
        .chunks(usize::try_from(PIECE).unwrap())
        .flat_map(|piece| hash(piece).digest().to_vec());
    PieceHashes::new(Algorithm::Sha256, PIECE, digests.collect()).unwrap()
}

/// The file with some wrong bytes.
fn damaged(at: &[u64]) -> Content {
    let mut bytes = content().to_vec();
    for at in at {
        let at = usize::try_from(*at).unwrap();
        bytes[at] = !bytes[at];
    }
    Content::bytes(bytes)
}

/// An origin whose validators tell nothing of its bytes.
fn origin(content: Content, number: usize) -> Origin {
    let version = move |_: &support::Visit| Version::numbered(content.clone(), number);
    let resource = Resource::changing(PATH, version);
    Origin::start(vec![resource.with(behaviour::paced(8 * 1024 * 1024))])
}

struct Fetched {
    outcome: Outcome,
    notices: Vec<String>,
}

async fn fetch(origins: &[&Origin], directory: &Path, change: impl FnOnce(&mut Source)) -> Fetched {
    let (reporter, mut reports) = Reporter::new();
    let mut source = Source::new(SafeUrl::parse(&origins[0].url(PATH)).unwrap());
    let mirrors = origins[1..]
        .iter()
        .map(|origin| SafeUrl::parse(&origin.url(PATH)).unwrap());
    source.urls.extend(mirrors);
    source.pieces = Some(pieces().into());
    change(&mut source);
    let job = Job {
        source,
        target: Target {
            directory: directory.to_owned(),
            name: None,
            on_conflict: OnConflict::Rename,
            reserved: None,
            adopt: true,
            check_integrity: false,
            use_server_time: false,
        },
        connections: ConnectionPlan {
            segments: 4,
            min_split_bytes: 64 * 1024,
            ..ConnectionPlan::default()
        },
        limits: RateLimits::new([RateLimiter::new(0)]),
        upload_limits: RateLimits::unlimited(),
        purpose: transfer::Purpose::Download,
        uploaded_bytes: 0,
        retry: RetryPolicy {
            base: Duration::from_millis(10),
            ..RetryPolicy::default()
        },
        reporter,
        stop: CancellationToken::new(),
    };
    let run = HttpTransport::new(Config::default()).unwrap().run(job);
    #[expect(clippy::disallowed_methods, reason = "the test awaits the handle")]
    let run = tokio::spawn(run);
    let mut notices = Vec::new();
    while let Some(report) = reports.events.recv().await {
        match report.event {
            RunEvent::Notice(notice) => notices.push(notice),
            RunEvent::SourceFailed(source) => {
                assert_eq!(source.failure.kind, FailureKind::ChecksumMismatch);
                notices.push(source.to_string());
            }
            _ => {}
        }
    }
    Fetched {
        outcome: run.await.unwrap(),
        notices,
    }
}

#[track_caller]
fn assert_there(fetched: &Fetched) {
    let Outcome::Finished(Finished { path, .. }) = &fetched.outcome else {
        panic!("{:?} after {:?}", fetched.outcome, fetched.notices)
    };
    assert_eq!(content().difference(path).unwrap(), None);
}

#[tokio::test]
async fn a_mirror_with_wrong_pieces_is_dropped_and_only_they_are_fetched_again() {
    // Wrong in every piece, at first or second place: the first source is not believed more than others.
    let places: Vec<u64> = (0..TOTAL / PIECE).map(|piece| piece * PIECE + 9).collect();
    for is_first in [true, false] {
        let (good, bad) = (origin(content(), 0), origin(damaged(&places), 1));
        let directory = tempfile::tempdir().unwrap();
        let order = if is_first { [&bad, &good] } else { [&good, &bad] };
        let fetched = fetch(&order, directory.path(), |_| ()).await;
        assert_there(&fetched);
        assert!(bad.bytes_sent() > 0, "the test shows nothing");
        let told = fetched.notices.iter().find(|notice| notice.contains("no longer used"));
        let told = told.unwrap_or_else(|| panic!("{:?}", fetched.notices));
        assert!(
            told.starts_with(&bad.url(PATH)) && told.contains("do not have their sha-256"),
            "{told}"
        );
        let sent = good.bytes_sent() + bad.bytes_sent();
        let most = TOTAL + bad.bytes_sent() + 2 * PIECE;
        assert!(sent <= most + 4 * PIECE, "{sent} bytes were sent for {TOTAL}");
    }
}

#[tokio::test]
async fn a_byte_that_was_wrong_once_costs_its_piece_and_not_the_file() {
    let version = |visit: &support::Visit| {
        let is_wrong = visit.nth < 4;
        Version::numbered(if is_wrong { damaged(&[2 * PIECE + 5]) } else { content() }, 0)
    };
    let origin = Origin::start(vec![
        Resource::changing(PATH, version).with(behaviour::paced(8 * 1024 * 1024)),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let whole = hash(&content().to_vec());
    let fetched = fetch(&[&origin], directory.path(), |source| source.checksum = Some(whole)).await;
    assert_there(&fetched);
    assert!(fetched.notices[0].contains("1 of 17 pieces"), "{:?}", fetched.notices);
    assert!(origin.bytes_sent() <= TOTAL + 6 * PIECE, "{}", origin.bytes_sent());
}

#[tokio::test]
async fn a_server_that_is_always_wrong_fails_the_run_after_a_few_repairs() {
    let origin = origin(damaged(&[0, TOTAL - 1]), 0);
    let directory = tempfile::tempdir().unwrap();
    let fetched = fetch(&[&origin], directory.path(), |_| ()).await;
    let Outcome::Failed(failure) = &fetched.outcome else {
        panic!("{:?}", fetched.outcome)
    };
    assert_eq!(failure.kind, FailureKind::ChecksumMismatch, "{failure}");
    assert!(failure.message.contains("2 of 17 pieces"), "{failure}");
    assert_eq!(fetched.notices.len(), 2, "{:?}", fetched.notices);
    assert!(origin.bytes_sent() <= TOTAL + 12 * PIECE, "{}", origin.bytes_sent());
    assert!(!directory.path().join("file.bin").exists());
}

#[tokio::test]
async fn two_mirrors_that_are_both_wrong_in_one_place_do_not_go_on_for_ever() {
    let (one, two) = (origin(damaged(&[PIECE]), 0), origin(damaged(&[PIECE, 9 * PIECE]), 1));
    let directory = tempfile::tempdir().unwrap();
    let fetched = fetch(&[&one, &two], directory.path(), |_| ()).await;
    let Outcome::Failed(failure) = &fetched.outcome else {
        panic!("{:?}", fetched.outcome)
    };
    assert_eq!(failure.kind, FailureKind::ChecksumMismatch, "{failure}");
    assert!(one.bytes_sent() + two.bytes_sent() <= 3 * TOTAL);
}

#[tokio::test]
async fn hashes_that_contradict_the_file_or_each_other_fail_the_run() {
    let origin = origin(content(), 0);
    let directory = tempfile::tempdir().unwrap();
    let few = PieceHashes::new(Algorithm::Sha256, PIECE, vec![0; 64]).unwrap();
    let fetched = fetch(&[&origin], directory.path(), |source| source.pieces = Some(few.into())).await;
    let Outcome::Failed(failure) = fetched.outcome else {
        panic!("{:?}", fetched.outcome)
    };
    assert_eq!(failure.kind, FailureKind::NotTheFile);
    assert!(failure.message.contains("2 pieces of 262144 bytes"), "{failure}");
    let other = hash(b"another file");
    let fetched = fetch(&[&origin], directory.path(), |source| source.checksum = Some(other)).await;
    let Outcome::Failed(failure) = fetched.outcome else {
        panic!("{:?}", fetched.outcome)
    };
    assert_eq!(failure.kind, FailureKind::ChecksumMismatch);
}
