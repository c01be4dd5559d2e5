//! Files that are joined from segments, against real servers.

use std::{collections::HashMap, fs, path::Path, sync::Arc, time::Duration};

use aes::Aes128;
use cbc::{
    Encryptor,
    cipher::{BlockModeEncrypt as _, KeyIvInit as _, block_padding::Pkcs7},
};
use support::{Chunks, Content, End, Framing, Origin, Resource, Version, behaviour};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use transfer::{
    ByteRange, Checksum, Cipher, ConnectionPlan, FailureKind, FileName, GivenBy, Job, OnConflict, Outcome, RateLimits,
    Reporter, Reports, RetryPolicy, RunEvent, SafeUrl, Secret, Segment, SegmentKey, Source, Target, Transport as _,
};
use transfer_http::{Config, HttpTransport};

const COUNT: usize = 24;

/// The plain bytes of a segment; no two have the same length.
fn plain(index: usize) -> Vec<u8> {
    let seed = u64::try_from(index).unwrap();
    Content::seeded(seed, 40_000 + 7_001 * (seed * 5 % 24)).to_vec()
}

fn whole() -> Vec<u8> {
    (0..COUNT).flat_map(plain).collect()
}

fn url(text: &str) -> SafeUrl {
    SafeUrl::parse(text).unwrap()
}

fn segment(text: &str) -> Segment {
    Segment {
        url: url(text),
        part: None,
        cipher: None,
    }
}

fn path(index: usize) -> String {
    format!("/{index}.ts")
}

fn resources() -> Vec<Resource> {
    (0..COUNT)
        .map(|index| Resource::new(&path(index), Content::bytes(plain(index))))
        .collect()
}

fn segments(origin: &Origin) -> Vec<Segment> {
    (0..COUNT).map(|index| segment(&origin.url(&path(index)))).collect()
}

fn source(origin: &Origin, segments: Vec<Segment>) -> Source {
    Source {
        segments: segments.into(),
        ..Source::new(url(&origin.url("/list.m3u8")))
    }
}

/// A run of the task under test, as a service starts it.
struct TestRun {
    ended: tokio::task::JoinHandle<Outcome>,
    reports: Reports,
    stop: CancellationToken,
}

impl TestRun {
    fn start(source: Source, directory: &TempDir, reserved: bool) -> Self {
        Self::start_with(source, directory, reserved, ConnectionPlan::default())
    }

    fn start_with(source: Source, directory: &TempDir, reserved: bool, connections: ConnectionPlan) -> Self {
        let (reporter, reports) = Reporter::new();
        let stop = CancellationToken::new();
        let job = Job {
            source,
            target: Target {
                directory: directory.path().to_owned(),
                name: Some(FileName::sanitise("film.ts")),
                on_conflict: OnConflict::Rename,
                reserved: reserved.then(|| directory.path().join("film.ts")),
                adopt: false,
                check_integrity: false,
                use_server_time: false,
            },
            connections,
            limits: RateLimits::unlimited(),
            upload_limits: RateLimits::unlimited(),
            purpose: transfer::Purpose::Download,
            uploaded_bytes: 0,
            retry: RetryPolicy {
                base: Duration::from_millis(5),
                ..RetryPolicy::default()
            },
            reporter,
            stop: stop.clone(),
        };
        let run = HttpTransport::new(Config::default()).unwrap().run(job);
        #[expect(clippy::disallowed_methods, reason = "the test awaits the handle")]
        let ended = tokio::spawn(run);
        Self { ended, reports, stop }
    }

    /// Runs to its end; also returns the notices.
    async fn end(mut self) -> (Outcome, Vec<String>) {
        let mut notices = Vec::new();
        while let Some(report) = self.reports.events.recv().await {
            if let RunEvent::Notice(notice) = report.event {
                notices.push(notice);
            }
        }
        (self.ended.await.unwrap(), notices)
    }

    /// Stops after this many bytes.
    async fn stop_at(mut self, bytes: u64) {
        let record = async { while self.reports.events.recv().await.is_some() {} };
        let enough = self.reports.progress.wait_for(|progress| progress.done_bytes >= bytes);
        tokio::select! {
            () = record => panic!("it ended too early"),
            enough = enough => drop(enough.unwrap()),
        }
        self.stop.cancel();
        assert_eq!(self.ended.await.unwrap(), Outcome::Stopped);
    }
}

async fn fetch(source: Source, directory: &TempDir) -> (Outcome, Vec<String>) {
    TestRun::start(source, directory, false).end().await
}

fn assert_is(outcome: &Outcome, directory: &TempDir, bytes: &[u8]) {
    let path = directory.path().join("film.ts");
    assert!(
        matches!(outcome, Outcome::Finished(finished) if finished.path == path && finished.size_bytes == bytes.len() as u64),
        "{outcome:?}"
    );
    assert!(fs::read(&path).unwrap() == bytes, "the bytes are other ones");
    assert_eq!(names(directory.path()), ["film.ts"], "nothing else stays");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Runs to its failure, which leaves nothing that looks finished.
async fn kind(source: Source) -> FailureKind {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, _) = fetch(source, &directory).await;
    let Outcome::Failed(failure) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(!names(directory.path()).contains(&"film.ts".to_owned()));
    assert!(failure.message.contains("segment"), "{failure}");
    failure.kind
}

#[tokio::test]
async fn segments_parts_and_keys_become_one_file() {
    let keys: [[u8; 16]; 3] = [[1; 16], [2; 16], [3; 16]];
    let mut served = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        served.push(Resource::new(&format!("/key{number}"), Content::bytes(*key)));
    }
    // The first eight are parts of one resource, the others encrypted with keys that change.
    let parts: Vec<u8> = (0..8).flat_map(plain).collect();
    served.push(Resource::new("/parts.ts", Content::bytes(parts)));
    let encrypted = |index: usize| {
        let iv = u128::try_from(index).unwrap().to_be_bytes();
        let cipher = Encryptor::<Aes128>::new(&keys[index % 3].into(), &iv.into());
        (cipher.encrypt_padded_vec::<Pkcs7>(&plain(index)), iv)
    };
    served.extend((8..COUNT).map(|index| Resource::new(&path(index), Content::bytes(encrypted(index).0))));
    let origin = Origin::start(served);
    let mut list = Vec::new();
    let mut start = 0;
    for index in 0..8 {
        let end = start + plain(index).len() as u64;
        let part = Some(ByteRange::new(start, end));
        list.push(Segment {
            part,
            ..segment(&origin.url("/parts.ts"))
        });
        start = end;
    }
    for index in 8..COUNT {
        let key = match index % 3 {
            2 => SegmentKey::Bytes(keys[2]),
            other => SegmentKey::At(url(&origin.url(&format!("/key{other}")))),
        };
        list.push(Segment {
            cipher: Some(Cipher {
                key: Arc::new(key),
                iv: encrypted(index).1,
            }),
            ..segment(&origin.url(&path(index)))
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let checksum = Some(Checksum::compute(transfer::checksum::Algorithm::Sha256, &mut whole().as_slice()).unwrap());
    let source = Source {
        checksum,
        ..source(&origin, list)
    };
    let (outcome, _) = fetch(source, &directory).await;
    assert_is(&outcome, &directory, &whole());
    let mut asked = HashMap::<_, u32>::new();
    for request in origin.requests() {
        *asked.entry(request.path().to_owned()).or_default() += 1;
    }
    assert_eq!((asked["/key0"], asked["/key1"]), (1, 1), "a key is fetched once");
    assert_eq!(asked.get("/key2"), None);
    assert!(origin.max_connections_seen() > 2, "several at once");
}

#[tokio::test]
async fn a_slow_head_holds_nobody_up_and_breaks_no_order() {
    let mut served = resources();
    served[0] = Resource::new(&path(0), Content::bytes(plain(0))).with(behaviour::paced(200_000));
    let origin = Origin::start(served);
    let directory = tempfile::tempdir().unwrap();
    let (outcome, _) = fetch(source(&origin, segments(&origin)), &directory).await;
    assert_is(&outcome, &directory, &whole());
}

fn paced() -> Origin {
    Origin::start(
        resources()
            .into_iter()
            .map(|resource| resource.with(behaviour::paced(2_000_000)))
            .collect(),
    )
}

#[tokio::test]
async fn a_later_run_goes_on_behind_the_last_whole_segment_also_at_a_fresh_link() {
    let directory = tempfile::tempdir().unwrap();
    let first = paced();
    let third = whole().len() as u64 / 3;
    TestRun::start(source(&first, segments(&first)), &directory, false)
        .stop_at(third)
        .await;
    assert_eq!(names(directory.path()).len(), 2, "part file and journal");
    let second = Origin::start(resources());
    let fresh = segments(&second)
        .iter()
        .map(|it| segment(&format!("{}?signed=again", it.url.expose())))
        .collect();
    let (outcome, notices) = TestRun::start(source(&second, fresh), &directory, true).end().await;
    assert_is(&outcome, &directory, &whole());
    assert_eq!(notices, [""; 0]);
    let asked: Vec<_> = second
        .requests()
        .iter()
        .map(|request| request.path().to_owned())
        .collect();
    let there = COUNT - asked.len();
    assert!(there > 3, "{there} of {COUNT} were there");
    assert!((0..there).all(|index| !asked.contains(&path(index))), "{asked:?}");
}

#[tokio::test]
async fn another_list_is_another_file() {
    let directory = tempfile::tempdir().unwrap();
    let origin = paced();
    TestRun::start(source(&origin, segments(&origin)), &directory, false)
        .stop_at(200_000)
        .await;
    let mut other = segments(&origin);
    other.remove(0);
    let (outcome, notices) = TestRun::start(source(&origin, other), &directory, true).end().await;
    assert_is(&outcome, &directory, &whole()[plain(0).len()..]);
    assert_eq!(notices.len(), 1);
}

#[tokio::test]
async fn what_passes_is_tried_again_wherever_it_happens() {
    let mut served = resources();
    let bent = |index: usize| Resource::new(&path(index), Content::bytes(plain(index)));
    served[0] = bent(0).with(behaviour::when(behaviour::first, behaviour::status(502)));
    served[5] = bent(5).with(behaviour::when(behaviour::first, behaviour::cut(10_000, End::Close)));
    served[6] = bent(6).with(behaviour::when(behaviour::first, behaviour::busy(503, "1")));
    served[9] = bent(9).with(behaviour::when(behaviour::first, behaviour::silent(End::Reset)));
    let origin = Origin::start(served);
    let directory = tempfile::tempdir().unwrap();
    let (outcome, _) = fetch(source(&origin, segments(&origin)), &directory).await;
    assert_is(&outcome, &directory, &whole());
}

#[tokio::test]
async fn what_is_not_the_segment_is_a_failure_and_no_file() {
    let with = |bend: fn(Resource) -> Resource| {
        let mut served = resources();
        served[7] = bend(Resource::new(&path(7), Content::bytes(plain(7))));
        let origin = Origin::start(served);
        let list = segments(&origin);
        (origin, list)
    };
    for (bend, expected) in [
        (
            (|it| it.with(behaviour::status(404))) as fn(Resource) -> Resource,
            FailureKind::NotFound,
        ),
        (|it| it.with(behaviour::status(403)), FailureKind::Forbidden),
        (|it| it.with(behaviour::login_page), FailureKind::NotTheFile),
        (|it| it.with(behaviour::cut(100, End::Close)), FailureKind::Network),
        (
            |it| it.with(behaviour::header("Content-Length", b"1x")),
            FailureKind::MalformedResponse,
        ),
        (
            |it| it.with(behaviour::header("Content-Encoding", b"br")),
            FailureKind::Encoding,
        ),
    ] {
        let (origin, list) = with(bend);
        assert_eq!(kind(source(&origin, list)).await, expected);
    }

    let (origin, mut list) = with(|it| it.with(behaviour::ignore_ranges));
    list[7].part = Some(ByteRange::new(100, 200));
    assert_eq!(kind(source(&origin, list)).await, FailureKind::RangeMismatch);

    let (origin, mut list) = with(|it| it);
    list[7].part = Some(ByteRange::new(100, 1_000_000));
    assert_eq!(kind(source(&origin, list)).await, FailureKind::RangeMismatch);

    // Whatever the bytes are, they are not encrypted with this key; the last block gives it away in 255 of 256 cases.
    let (origin, mut list) = with(|it| it.with(|_, reply| reply.set_body(&Content::bytes([9; 160]), 0, 160)));
    list[7].cipher = Some(Cipher {
        key: Arc::new(SegmentKey::Bytes([1; 16])),
        iv: [0; 16],
    });
    assert_eq!(kind(source(&origin, list)).await, FailureKind::Encoding);

    let (origin, mut list) = with(|it| it);
    list[7].cipher = Some(Cipher {
        key: Arc::new(SegmentKey::At(list[8].url.clone())),
        iv: [0; 16],
    });
    assert_eq!(kind(source(&origin, list)).await, FailureKind::NotTheFile);
}

#[tokio::test]
async fn a_link_that_ended_keeps_what_was_whole_before() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = resources();
    for (index, resource) in served.iter_mut().enumerate().skip(6) {
        *resource = Resource::new(&path(index), Content::bytes(plain(index))).with(behaviour::status(403));
    }
    let origin = Origin::start(served);
    let (outcome, _) = fetch(source(&origin, segments(&origin)), &directory).await;
    let Outcome::Failed(failure) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failure.kind, FailureKind::Forbidden);
    let fresh = Origin::start(resources());
    let (outcome, _) = TestRun::start(source(&fresh, segments(&fresh)), &directory, true)
        .end()
        .await;
    assert_is(&outcome, &directory, &whole());
    assert_eq!(fresh.requests().len(), COUNT - 6, "the first six were kept");
}

#[tokio::test]
async fn a_promised_size_must_be_kept() {
    let origin = Origin::start(resources());
    let source = Source {
        promised_size: Some(5),
        ..source(&origin, segments(&origin))
    };
    assert_eq!(kind(source).await, FailureKind::NotTheFile);
}

#[tokio::test]
async fn an_answer_of_unknown_length_that_is_cut_off_is_not_the_file() {
    for framing in [Framing::Close, Framing::Chunked(Chunks::Plain)] {
        let short = Resource::new("/list.m3u8", Content::seeded(1, 1000)).with(behaviour::framing(framing));
        let origin = Origin::start(vec![short]);
        let source = Source {
            promised_size: Some(5000),
            ..source(&origin, Vec::new())
        };
        let directory = tempfile::tempdir().unwrap();
        let (outcome, _) = fetch(source, &directory).await;
        let Outcome::Failed(failure) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(failure.kind, FailureKind::NotTheFile);
        assert!(!names(directory.path()).contains(&"film.ts".to_owned()));
    }
}

#[tokio::test]
async fn secrets_go_to_the_links_own_origin_and_strangers_reach_no_private_address() {
    let (own, other) = (Origin::start(resources()), Origin::start(resources()));
    let mut list = segments(&own);
    list[3] = segment(&other.url(&path(3)));
    let mut source = source(&own, list);
    source.request.headers = vec![
        ("X-Ticket".into(), Secret::new("t")),
        ("Referer".into(), Secret::new("http://a.test/")),
    ];
    source.request.cookies = Secret::new("session=1");
    let directory = tempfile::tempdir().unwrap();
    let (outcome, _) = fetch(source.clone(), &directory).await;
    assert_is(&outcome, &directory, &whole());
    assert!(
        own.requests()
            .iter()
            .all(|request| request.header("x-ticket") == Some("t"))
    );
    let strange = &other.requests()[0];
    assert_eq!((strange.header("x-ticket"), strange.header("cookie")), (None, None));
    assert_eq!(strange.header("referer"), Some("http://a.test/"));

    source.given_by = GivenBy::Other { user_host: None };
    assert_eq!(kind(source).await, FailureKind::ForbiddenRedirect);
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn the_size_is_known_beforehand_if_every_part_says_its_length() {
    let version = |_: &_| Version::unnamed(Content::bytes(whole()));
    let origin = Origin::start(vec![Resource::changing("/all.ts", version)]);
    let size = whole().len() as u64;
    let part = |start, end| Segment {
        part: Some(ByteRange::new(start, end)),
        ..segment(&origin.url("/all.ts"))
    };
    let directory = tempfile::tempdir().unwrap();
    let mut run = TestRun::start(
        source(&origin, vec![part(0, 100_000), part(100_000, size)]),
        &directory,
        false,
    );
    let report = run.reports.events.recv().await.unwrap();
    assert!(
        matches!(report.event, RunEvent::Reserved { total_bytes, .. } if total_bytes == Some(size)),
        "{report:?}"
    );
    drop(report.receipt);
    assert_is(&run.end().await.0, &directory, &whole());
}

/// Joins 40 files of `bytes`, whose server sends as `pace` says, where 100 KB a second are the least.
async fn fetch_at_least(bytes: u64, per_host: u16, pace: impl Fn(usize, Resource) -> Resource) -> Outcome {
    const FILES: usize = 40;
    let file = |index: usize| {
        let resource = Resource::new(&path(index), Content::seeded(index as u64, bytes));
        pace(index, resource)
    };
    let origin = Origin::start((0..FILES).map(file).collect());
    let list = (0..FILES).map(|index| segment(&origin.url(&path(index)))).collect();
    let directory = tempfile::tempdir().unwrap();
    let connections = ConnectionPlan {
        per_host,
        lowest_bytes_per_second: 100_000,
        ..ConnectionPlan::default()
    };
    let run = TestRun::start_with(source(&origin, list), &directory, false, connections);
    run.end().await.0
}

#[tokio::test]
async fn a_run_ends_when_no_connection_is_faster_than_the_lowest_speed() {
    let assert_too_slow = |outcome: Outcome| {
        let Outcome::Failed(failure) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(failure.kind, FailureKind::TooSlow, "{failure}");
        assert!(failure.message.contains("the lowest speed is 100000"), "{failure}");
    };
    let (large, small, one) = tokio::join!(
        // A minute for each file, and 3 s, less than a speed is measured over.
        fetch_at_least(1_000_000, 1, |_, file| file.with(behaviour::paced(16_000))),
        fetch_at_least(48_000, 1, |_, file| file.with(behaviour::paced(16_000))),
        // The other connections have long ended when the slow one is closed.
        fetch_at_least(300_000, 8, |index, file| match index {
            3 => file.with(behaviour::when(behaviour::first, behaviour::paced(16_000))),
            _ => file,
        })
    );
    assert_too_slow(large);
    assert_too_slow(small);
    assert!(matches!(one, Outcome::Finished(_)), "{one:?}");
}
