//! Attacks over HTTP with the real client, one test each. What is believed before is believed after, and nothing else.

use std::{fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use market::{
    Digest, Origin, OriginError, PackageError, Role, SourceState, VerifyError, choice,
    fetch::{self, DownloadError, Failures, PlaceError, RefreshError, Source},
    path,
    record::{self, IndexRecord, RootRecord, TimestampRecord},
    signature::Purpose,
};
use market_tool::SigningKey;
use serde::de::DeserializeOwned;

use crate::{
    liar::{Answer, Asked, Liar},
    place::{Place, identity, refresh},
};

/// The only reason why a source that is at one place was refused.
async fn refused(state: &SourceState, liar: &Liar, now: Timestamp) -> RefreshError {
    let before = state.to_stored();
    let Failures(mut reasons) = refresh(state, &liar.origin(), now).await.expect_err("it was believed");
    assert_eq!(state.to_stored(), before);
    assert_eq!(reasons.len(), 1);
    reasons.remove(0)
}

async fn disbelieved(state: &SourceState, liar: &Liar, now: Timestamp) -> VerifyError {
    match refused(state, liar, now).await {
        RefreshError::Verify(error) => error,
        other => panic!("{other:?}"),
    }
}

fn read<T: DeserializeOwned>(folder: &Path, role: Role, seq: u64) -> T {
    serde_json::from_slice(&fs::read(folder.join(path::document(role, seq))).unwrap()).unwrap()
}

/// Writes a file with its signature, as somebody who has the key can.
fn forge(folder: &Path, role: Role, seq: u64, body: &[u8], keys: &[&SigningKey]) {
    let purpose = Purpose::Document {
        role,
        seq,
        sha256: Digest::of(body),
    };
    let signatures: String = keys.iter().map(|key| key.sign(body, purpose)).collect();
    fs::write(folder.join(path::document(role, seq)), body).unwrap();
    fs::write(folder.join(path::signatures(role, seq)), signatures).unwrap();
}

/// A timestamp with the next number, changed.
fn forge_timestamp(folder: &Path, key: &SigningKey, change: impl FnOnce(&mut TimestampRecord)) {
    let signature = fs::read(folder.join(path::TIMESTAMP_SIGNATURE)).unwrap();
    let seq = market::signature::claimed_sequence(&signature, Role::Timestamp).unwrap();
    let mut timestamp: TimestampRecord = read(folder, Role::Timestamp, seq);
    timestamp.seq += 1;
    change(&mut timestamp);
    forge(
        folder,
        Role::Timestamp,
        timestamp.seq,
        &record::to_bytes(&timestamp),
        &[key],
    );
}

/// An index with the next number, changed, and a timestamp that names it: what a thief of both keys can do.
fn forge_index(place: &Place, folder: &Path, change: impl FnOnce(&mut IndexRecord)) {
    let exists = |seq: &u64| folder.join(path::document(Role::Index, *seq)).exists();
    let newest = (1..100).take_while(exists).last().unwrap();
    let mut index: IndexRecord = read(folder, Role::Index, newest);
    index.seq += 1;
    change(&mut index);
    let body = record::to_bytes(&index);
    forge(folder, Role::Index, index.seq, &body, &[&place.key("index")]);
    forge_timestamp(folder, &place.key("timestamp"), |timestamp| {
        timestamp.index.seq = index.seq;
        timestamp.index.sha256 = Digest::of(&body);
        timestamp.index.size = body.len() as u64;
    });
}

#[tokio::test]
async fn rollback() {
    let place = Place::new().await;
    let old = place.copy("old");
    place.release("one@acme", "1.1.0").await;
    let client = place.client().await;
    let error = disbelieved(&client, &Liar::honest(&old), place.now).await;
    assert!(
        matches!(
            error,
            VerifyError::Rollback {
                document: Role::Timestamp,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn freeze() {
    let place = Place::new().await;
    let client = place.client().await;
    let later = place.now + SignedDuration::from_hours(24 * 7);
    let error = disbelieved(&client, &Liar::honest(&place.source()), later).await;
    assert_eq!(error, VerifyError::Expired(Role::Timestamp, later));
    assert_eq!(client.freshness(later), market::Freshness::Stale(later));
}

#[tokio::test]
async fn mix_and_match() {
    let place = Place::new().await;
    let client = place.stranger();
    let old = fs::read(place.source().join("index.2.json")).unwrap();
    place.release("one@acme", "1.1.0").await;
    let liar = Liar::new(&place.source(), move |asked| match asked.path.as_str() {
        "index.3.json" => Answer::Bytes(old.clone()),
        _ => Answer::Truth,
    });
    let error = disbelieved(&client, &liar, place.now).await;
    assert_eq!(error, VerifyError::Mismatch(Role::Index));
}

#[tokio::test]
async fn fast_forward() {
    let place = Place::new().await;
    let client = place.client().await;
    let stolen = place.copy("stolen");
    forge_timestamp(&stolen, &place.key("timestamp"), |timestamp| timestamp.seq = u64::MAX);
    let poisoned = refresh(&client, &Liar::honest(&stolen).origin(), place.now)
        .await
        .unwrap()
        .state;
    let honest = Liar::honest(&place.source());
    let error = disbelieved(&poisoned, &honest, place.now).await;
    assert!(
        matches!(error, VerifyError::Rollback { seen: u64::MAX, .. }),
        "{error:?}"
    );

    let old = place.key("timestamp").public();
    place.market("key KEYS/timestamp-2.key --unprotected").await;
    let rotate = format!(
        "rotate SOURCE timestamp --add KEYS/timestamp-2.key --remove {old} --root-key KEYS/root-2.key --root-key KEYS/root-3.key"
    );
    place.market(&rotate).await;
    assert_eq!(
        refresh(&poisoned, &honest.origin(), place.now)
            .await
            .unwrap()
            .changes
            .root,
        Some(2)
    );
}

#[tokio::test]
async fn wrong_author() {
    let place = Place::new().await;
    let client = place.client().await;
    let forged = place.copy("forged");
    place.author("keygen KEYS/thief.key --unprotected");
    let thief = place.key("thief").public();
    forge_index(&place, &forged, |index| {
        index.plugins.get_mut(&identity("one@acme")).unwrap().author.key = thief;
    });
    let error = disbelieved(&client, &Liar::honest(&forged), place.now).await;
    assert_eq!(error, VerifyError::OtherAuthor(identity("one@acme")));
}

#[tokio::test]
async fn vanished_entry() {
    let place = Place::new().await;
    place.release("two@acme", "1.0.0").await;
    let client = place.client().await;
    let forged = place.copy("forged");
    forge_index(&place, &forged, |index| {
        index.plugins.remove(&identity("one@acme"));
    });
    let error = disbelieved(&client, &Liar::honest(&forged), place.now).await;
    assert_eq!(error, VerifyError::Vanished(identity("one@acme")));
}

#[tokio::test]
async fn a_number_for_another_package() {
    let place = Place::new().await;
    let client = place.client().await;
    let forged = place.copy("forged");
    forge_index(&place, &forged, |index| {
        index.plugins.get_mut(&identity("one@acme")).unwrap().versions[0].sha256 = Digest::of(b"other");
    });
    let error = disbelieved(&client, &Liar::honest(&forged), place.now).await;
    assert_eq!(error, VerifyError::Reused(identity("one@acme"), 1));
}

#[tokio::test]
async fn clock_set_back() {
    let mut place = Place::new().await;
    let old = place.copy("old");
    place.now += SignedDuration::from_hours(24 * 30);
    place.publish().await;
    let client = place.client().await;
    // A thief of the timestamp's key and of the clock brings the old list back to life.
    forge_timestamp(&old, &place.key("timestamp"), |timestamp| timestamp.seq = 1000);
    let past: Timestamp = "2001-01-01T00:00:00Z".parse().unwrap();
    let error = disbelieved(&client, &Liar::honest(&old), past).await;
    assert!(matches!(error, VerifyError::Expired(Role::Timestamp, _)), "{error:?}");
}

#[tokio::test]
async fn hostile_patch() {
    let place = Place::new().await;
    let client = place.client().await;
    place.release("two@acme", "1.0.0").await;
    let patch = fs::read(place.source().join("diff/2-3.json")).unwrap();
    let cut = patch[..patch.len() / 2].to_vec();
    let lies = [
        cut,
        b"{}".to_vec(),
        br#"{"plugins":null}"#.to_vec(),
        br#"{"a":"#.repeat(5000),
        vec![b'['; 700],
    ];
    let answers = lies
        .map(Answer::Bytes)
        .into_iter()
        .chain([Answer::Endless, Answer::Status(500), Answer::Silence]);
    for answer in answers {
        let liar = Liar::new(&place.source(), move |asked| match asked.path.as_str() {
            "diff/2-3.json" => answer.clone(),
            _ => Answer::Truth,
        });
        let refreshed = refresh(&client, &liar.origin(), place.now).await.unwrap();
        assert_eq!(refreshed.changes.added, [identity("two@acme")]);
        let whole = liar.asked().iter().filter(|asked| asked.path == "index.3.json").count();
        assert_eq!(whole, 1, "the whole index was asked for next");
    }
}

#[tokio::test]
async fn signature_of_another_role_or_key() {
    let place = Place::new().await;
    let timestamp = fs::read(place.source().join("timestamp.2.json")).unwrap();
    let purpose = |role, seq| Purpose::Document {
        role,
        seq,
        sha256: Digest::of(&timestamp),
    };
    let right = purpose(Role::Timestamp, 2);
    for signature in [
        place.key("index").sign(&timestamp, right),
        place.key("root-1").sign(&timestamp, right),
        place.key("author").sign(&timestamp, right),
        place.key("timestamp").sign(b"other", right),
        // A comment is signed as well, so it cannot be put in afterwards.
        place
            .key("timestamp")
            .sign(&timestamp, purpose(Role::Index, 2))
            .replace("role=index", "role=timestamp"),
    ] {
        let liar = Liar::new(&place.source(), move |asked| match asked.path.as_str() {
            path::TIMESTAMP_SIGNATURE => Answer::Bytes(signature.clone().into_bytes()),
            _ => Answer::Truth,
        });
        let error = disbelieved(&place.client().await, &liar, place.now).await;
        let none = VerifyError::Signatures {
            document: Role::Timestamp,
            valid: 0,
            threshold: 1,
        };
        assert_eq!(error, none);
    }
    let other = place.key("timestamp").sign(&timestamp, purpose(Role::Revocations, 2));
    let liar = Liar::new(&place.source(), move |_| Answer::Bytes(other.clone().into_bytes()));
    assert_eq!(
        refused(&place.stranger(), &liar, place.now).await,
        RefreshError::NoNumber
    );
}

#[tokio::test]
async fn doubled_keys_in_json() {
    let place = Place::new().await;
    let forged = place.copy("forged");
    let text = fs::read_to_string(forged.join("timestamp.2.json")).unwrap();
    let text = text
        .replacen('{', r#"{"seq":3,"#, 1)
        .replace(r#""seq":2,"spec""#, r#""seq":3,"spec""#);
    forge(&forged, Role::Timestamp, 3, text.as_bytes(), &[&place.key("timestamp")]);
    let error = disbelieved(&place.client().await, &Liar::honest(&forged), place.now).await;
    assert!(matches!(error, VerifyError::Malformed(Role::Timestamp, _)), "{error:?}");
}

#[tokio::test]
async fn threshold_met_by_one_key_twice() {
    let place = Place::new().await;
    let client = place.client().await;
    let forged = place.copy("forged");
    let mut root: RootRecord = read(&forged, Role::Root, 1);
    root.seq = 2;
    let key = place.key("root-1");
    forge(&forged, Role::Root, 2, &record::to_bytes(&root), &[&key, &key]);
    let error = disbelieved(&client, &Liar::honest(&forged), place.now).await;
    assert_eq!(
        error,
        VerifyError::Signatures {
            document: Role::Root,
            valid: 1,
            threshold: 2
        }
    );
}

#[tokio::test]
async fn hidden_root() {
    let place = Place::new().await;
    let client = place.client().await;
    place
        .market("rotate SOURCE root --root-key KEYS/root-1.key --root-key KEYS/root-2.key")
        .await;
    place.publish().await;
    let liar = Liar::new(&place.source(), |asked| match asked.path.as_str() {
        "root.2.json" => Answer::Status(404),
        _ => Answer::Truth,
    });
    let error = disbelieved(&client, &liar, place.now).await;
    assert_eq!(error, VerifyError::RootMissing { known: 1, needed: 2 });
}

#[tokio::test]
async fn endless_data() {
    let place = Place::new().await;
    for name in [
        "root.2.json",
        path::TIMESTAMP_SIGNATURE,
        "timestamp.2.json",
        "index.2.json",
        "revocations.1.json",
    ] {
        let liar = Liar::new(&place.source(), move |asked| {
            if asked.path == name {
                Answer::Endless
            } else {
                Answer::Truth
            }
        });
        let error = refused(&place.stranger(), &liar, place.now).await;
        let is_too_large = matches!(
            error,
            RefreshError::Origin {
                source: OriginError::TooLarge(_),
                ..
            }
        );
        assert!(is_too_large, "{name}: {error:?}");
    }
}

#[tokio::test]
async fn silence() {
    let place = Place::new().await;
    let liar = Liar::new(&place.source(), |_| Answer::Silence);
    let error = refused(&place.stranger(), &liar, place.now).await;
    assert!(
        matches!(
            error,
            RefreshError::Origin {
                source: OriginError::Stalled(_),
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn redirects_into_the_local_network() {
    let place = Place::new().await;
    let inner = Liar::honest(&place.source());
    let port = inner.url.port().unwrap();
    for to in [
        inner.url.to_string(),
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://2130706433:{port}/"),
        "https://192.168.0.1/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://router.local/".to_owned(),
        "https://user:word@example.org/".to_owned(),
        "http://example.org/".to_owned(),
        "ftp://example.org/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let target = to.clone();
        let liar = Liar::new(&place.source(), move |_| Answer::Redirect(target.clone()));
        let error = refused(&place.stranger(), &liar, place.now).await;
        let is_forbidden = matches!(
            error,
            RefreshError::Origin {
                source: OriginError::Forbidden(_),
                ..
            }
        );
        assert!(is_forbidden, "{to}: {error:?}");
    }
    assert_eq!(inner.asked(), []);
}

#[tokio::test]
async fn redirects_at_the_same_server_are_followed_and_circles_are_not() {
    let place = Place::new().await;
    let moved = place.path("moved");
    fs::create_dir(&moved).unwrap();
    fs::rename(place.copy("copy"), moved.join("new")).unwrap();
    let liar = Liar::new(&moved, |asked| match asked.path.strip_prefix("new/") {
        Some(_) => Answer::Truth,
        None => Answer::Redirect(format!("/new/{}", asked.path)),
    });
    refresh(&place.stranger(), &liar.origin(), place.now).await.unwrap();
    let circle = Liar::new(&moved, |asked| Answer::Redirect(format!("/{}", asked.path)));
    let error = refused(&place.stranger(), &circle, place.now).await;
    assert!(
        matches!(
            error,
            RefreshError::Origin {
                source: OriginError::Redirects,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_mirror_that_lies_is_passed_over() {
    let place = Place::new().await;
    let old = place.copy("old");
    place.release("one@acme", "1.1.0").await;
    let client = place.client().await;
    let (stale, silent) = (Liar::honest(&old), Liar::new(&old, |_| Answer::Silence));
    let good = Liar::honest(&place.source());
    let (stale, silent, good) = (stale.origin(), silent.origin(), good.origin());
    let source = Source {
        state: &client,
        origins: &[&stale, &silent, &good],
    };
    fetch::refresh(source, place.now).await.unwrap();
    let Failures(reasons) = fetch::refresh(
        Source {
            origins: &[&stale, &silent],
            ..source
        },
        place.now,
    )
    .await
    .unwrap_err();
    assert_eq!(reasons.len(), 2);
}

#[tokio::test]
async fn one_bad_source_does_not_harm_the_others() {
    let (good, bad) = (Place::new().await, Place::new().await);
    let forged = bad.copy("forged");
    forge_timestamp(&forged, &bad.key("index"), |_| {});
    let (good_server, bad_server) = (Liar::honest(&good.source()), Liar::honest(&forged));
    let (good_origin, bad_origin) = (good_server.origin(), bad_server.origin());
    let (good_state, bad_state) = (good.stranger(), bad.stranger());
    let sources = [
        Source {
            state: &bad_state,
            origins: &[&bad_origin],
        },
        Source {
            state: &good_state,
            origins: &[&good_origin],
        },
    ];
    let refreshed = fetch::refresh_all(&sources, good.now).await;
    assert!(refreshed[0].is_err());
    assert_eq!(refreshed[1].as_ref().unwrap().index.plugins().len(), 1);
}

#[tokio::test]
async fn identity_squatting() {
    let (mine, squatter) = (Place::new().await, Place::new().await);
    squatter.release("one@acme", "9.9.9").await;
    let mut indexes = Vec::new();
    for (name, place) in [("mine", &mine), ("squatter", &squatter)] {
        let server = Liar::honest(&place.source());
        let refreshed = refresh(&place.stranger(), &server.origin(), place.now).await.unwrap();
        indexes.push((name.parse::<market::SourceId>().unwrap(), refreshed.index));
    }
    let sources = || indexes.iter().map(|(source, index)| (source, index));
    let id = identity("one@acme");
    let bound = &indexes[0].0;
    assert_eq!(choice::source_of(&id, sources(), Some(bound)), Ok(bound));
    assert!(matches!(
        choice::source_of(&id, sources(), None),
        Err(choice::NoSource::Ambiguous(..))
    ));
}

/// Downloads `one@acme` 1.0.0 from these places.
async fn download(place: &Place, origins: &[&dyn Origin]) -> Result<(), DownloadError> {
    let client = place.client().await;
    let index = client.index().unwrap().unwrap();
    let id = identity("one@acme");
    let plugin = index.plugin(&id).unwrap();
    let entry = &plugin.versions[0];
    let package = fetch::download(origins, &id, entry, &plugin.author.key).await?;
    assert_eq!(Digest::of(package.bytes()), entry.sha256);
    Ok(())
}

#[tokio::test]
async fn swapped_package() {
    let place = Place::new().await;
    let size = fs::metadata(place.source().join("packages/one@acme-1.0.0.zip"))
        .unwrap()
        .len();
    let other = Liar::new(&place.source(), move |_| {
        Answer::Bytes(vec![0; usize::try_from(size).unwrap()])
    });
    let good = Liar::honest(&place.source());
    download(&place, &[&other.origin(), &good.origin()]).await.unwrap();
    let DownloadError(reasons) = download(&place, &[&other.origin()]).await.unwrap_err();
    let name = "packages/one@acme-1.0.0.zip".to_owned();
    assert_eq!(reasons, [(name, PlaceError::Package(PackageError::Mismatch))]);
}

#[tokio::test]
async fn endless_package() {
    let place = Place::new().await;
    let liar = Liar::new(&place.source(), |_| Answer::Endless);
    let DownloadError(reasons) = download(&place, &[&liar.origin()]).await.unwrap_err();
    assert!(
        matches!(reasons[..], [(_, PlaceError::Origin(OriginError::TooLarge(_)))]),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn a_package_of_another_author() {
    let place = Place::new().await;
    let forged = place.copy("forged");
    place.author("keygen KEYS/thief.key --unprotected");
    let other = fs::read(place.package("one@acme", "1.1.0", "thief")).unwrap();
    let (id, version) = (identity("one@acme"), semver::Version::new(1, 1, 0));
    fs::write(forged.join("packages/one@acme-1.1.0.zip"), &other).unwrap();
    let purpose = Purpose::Package {
        identity: &id,
        version: &version,
        sha256: Digest::of(&other),
    };
    let signature = place.key("thief").sign_compact(&other, purpose);
    forge_index(&place, &forged, |index| {
        let versions = &mut index.plugins.get_mut(&id).unwrap().versions;
        let mut entry = versions[0].clone();
        entry.version = version.clone();
        entry.seq = 2;
        entry.sha256 = Digest::of(&other);
        entry.size = other.len() as u64;
        entry.mirrors = vec!["packages/one@acme-1.1.0.zip".to_owned()];
        entry.signature = signature;
        versions.push(entry);
    });
    let server = Liar::honest(&forged);
    let refreshed = refresh(&place.client().await, &server.origin(), place.now)
        .await
        .unwrap();
    let plugin = refreshed.index.plugin(&id).unwrap();
    let downloaded = fetch::download(&[&server.origin()], &id, &plugin.versions[1], &plugin.author.key).await;
    let DownloadError(reasons) = downloaded.unwrap_err();
    assert!(
        matches!(reasons[..], [(_, PlaceError::Package(PackageError::Signature))]),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn a_cut_package_is_continued_where_it_was_cut() {
    let place = Place::new().await;
    let cutting = Liar::new(&place.source(), |asked: &Asked| match asked.start {
        None | Some(..20_000) => Answer::Cut(10_000),
        Some(_) => Answer::Truth,
    });
    download(&place, &[&cutting.origin()]).await.unwrap();
    let starts: Vec<_> = cutting.asked().into_iter().map(|asked| asked.start).collect();
    assert_eq!(starts, [None, Some(10_000), Some(20_000)]);

    // At the next place it goes on, too; a place that does not know ranges begins anew.
    let dead = Liar::new(&place.source(), |asked| match asked.start {
        None => Answer::Cut(10_000),
        Some(_) => Answer::Status(503),
    });
    let whole = Liar::new(&place.source(), |_| Answer::Whole);
    download(&place, &[&dead.origin(), &whole.origin()]).await.unwrap();
    assert_eq!(whole.asked()[0].start, Some(10_000));
}

#[tokio::test]
async fn the_first_part_of_another_package_does_no_harm() {
    let place = Place::new().await;
    let liar = Liar::new(&place.source(), |asked| match asked.start {
        None => Answer::Bytes(vec![7; 1000]),
        Some(_) => Answer::Status(503),
    });
    // It claims to be whole after a thousand bytes, and later is asked from the start.
    let good = Liar::honest(&place.source());
    download(&place, &[&liar.origin(), &good.origin()]).await.unwrap();
    assert_eq!(good.asked()[0].start, None);
}
