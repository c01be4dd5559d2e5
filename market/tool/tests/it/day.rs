//! A maintainer's and an author's days, with the commands that they have.

use std::{fs, os::unix::fs::PermissionsExt as _};

use jiff::SignedDuration;
use market::{AuthorSignature, Consent, Folder, Level, PackageError, VerifyError};
use market_tool::{Fixed, Kind, Package, SigningKey, ToolError, author};

use crate::{
    liar::Liar,
    place::{Place, identity, refresh},
};

const ROOTS: &str = "--root-key KEYS/root-1.key --root-key KEYS/root-2.key";

#[tokio::test]
async fn a_package_goes_from_its_author_to_a_client() {
    let place = Place::new().await;
    place.package("two@acme", "0.1.0", "author");
    place.author("sign TMP/two@acme-0.1.0.zip --key KEYS/author.key");
    let key = place.key("author").public();
    let verified = place.author(&format!("verify TMP/two@acme-0.1.0.zip --key {key}"));
    assert_eq!(verified, format!("two@acme 0.1.0 is signed by {key}.\n"));
    place.author("publish TMP/two@acme-0.1.0.zip --into TMP/incoming");
    place
        .market("add SOURCE TMP/incoming/two@acme-0.1.0.zip --key KEYS/index.key")
        .await;
    let client = place.client().await;
    let before = refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
    assert_eq!(
        before.changes.added,
        [],
        "what is signed is visible only when it is published"
    );
    place.publish().await;
    let server = Liar::honest(&place.source());
    let refreshed = refresh(&client, &server.origin(), place.now).await.unwrap();
    assert_eq!(refreshed.changes.added, [identity("two@acme")]);
    let entry = &refreshed.index.plugin(&identity("two@acme")).unwrap().versions[0];
    assert_eq!(entry.permissions.get(), r#"{"hosts":["https://one.test"]}"#);
    assert_eq!(entry.fixtures, 1);
    assert!(entry.imports_digest.is_some());
    let told = place
        .market(&format!("verify {} --key {}", server.url, place.root_key()))
        .await;
    let line = "main: root 1, index 3, 2 plugins, 2 packages, all as they should be.\n";
    let for_users = told.strip_prefix(line).unwrap();
    assert!(for_users.contains("svc://market?url="), "{for_users}");
    assert!(for_users.contains("the fingerprint: "), "{for_users}");
    assert_eq!(place.market("verify SOURCE").await, line);
}

#[test]
fn the_command_lines_are_well_formed() {
    crate::place::check_command_lines();
}

#[tokio::test]
async fn signing_again_changes_nothing() {
    let place = Place::new().await;
    let path = place.package("two@acme", "0.1.0", "author");
    place.author("sign TMP/two@acme-0.1.0.zip --key KEYS/author.key");
    let once = fs::read(&path).unwrap();
    place.author("sign TMP/two@acme-0.1.0.zip --key KEYS/author.key");
    assert_eq!(fs::read(&path).unwrap(), once);
}

#[tokio::test]
async fn a_package_that_was_changed_after_it_was_signed_is_refused() {
    let place = Place::new().await;
    let path = place.package("two@acme", "0.1.0", "author");
    place.author("sign TMP/two@acme-0.1.0.zip --key KEYS/author.key");
    let signed = Package::read(&path).unwrap();
    assert!(matches!(signed.verify_files(), Ok(AuthorSignature::Signed(_))));
    let change = |change: &dyn Fn(&mut std::collections::BTreeMap<String, bytes::Bytes>)| {
        let mut files = signed.files.clone();
        change(&mut files);
        Package::parse(plugin_package::pack(&files).unwrap().into())
            .unwrap()
            .verify_files()
    };
    let refused = |result: Result<AuthorSignature, ToolError>| match result {
        Err(ToolError::Package(error)) => error,
        other => panic!("{other:?}"),
    };
    let file = |name: &str| PackageError::File(name.to_owned());
    let changed = change(&|files| _ = files.insert("plugin.wasm".to_owned(), "other".into()));
    assert_eq!(refused(changed), file("plugin.wasm"));
    let added = change(&|files| _ = files.insert("more.js".to_owned(), "1".into()));
    assert_eq!(refused(added), file("more.js"));
    let removed = change(&|files| _ = files.remove("fixtures/one.json"));
    assert_eq!(refused(removed), file("fixtures/one.json"));
    let halved = change(&|files| _ = files.remove(market::FILES_SIGNATURE));
    assert_eq!(refused(halved), PackageError::Halved);
    let relisted = change(&|files| {
        files.insert("plugin.wasm".to_owned(), "other".into());
        let list = market::files_list(files);
        files.insert(market::FILES.to_owned(), list.into());
    });
    assert_eq!(refused(relisted), PackageError::Signature);
    let unsigned = change(&|files| files.retain(|name, _| !name.starts_with("META/")));
    assert_eq!(unsigned.unwrap(), AuthorSignature::Unsigned);
    // Other bytes with the same files: the signature beside it is of the whole.
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(author::verify(&path, None).is_err());
}

#[tokio::test]
async fn what_users_would_not_accept_is_not_added() {
    let place = Place::new().await;
    let add = async |name: &str| {
        let line = format!("add SOURCE TMP/{name} --key KEYS/index.key");
        place.try_market(&line).await.unwrap_err().to_string()
    };
    assert_eq!(
        add("one@acme-1.0.0.zip").await,
        "one@acme 1.0.0 is in the index already and cannot be replaced; add a new version"
    );
    place.package("two@acme", "1.0.0", "author");
    assert_eq!(
        add("two@acme-1.0.0.zip").await,
        "the package cannot be used: it is not signed; sign it with svc plugin sign"
    );
    place.author("keygen KEYS/thief.key --unprotected");
    place.package("one@acme", "1.1.0", "thief");
    let sign = place
        .try_author("sign TMP/one@acme-1.1.0.zip --key KEYS/author.key")
        .unwrap_err();
    assert_eq!(sign.kind(), Kind::Usage);
    place.author("sign TMP/one@acme-1.1.0.zip --key KEYS/thief.key");
    assert_eq!(
        add("one@acme-1.1.0.zip").await,
        "one@acme is signed with another key than before: the author hands it over with svc plugin handover (--handover), or, \
         if the old key is lost, svc market vouch sets the new one"
    );
    // A key that may not speak for the index: nothing of what it signs becomes visible.
    place.package("three@acme", "1.0.0", "author");
    place.author("sign TMP/three@acme-1.0.0.zip --key KEYS/author.key");
    let seen = fs::read(place.source().join("timestamp.minisig")).unwrap();
    place
        .market("add SOURCE TMP/three@acme-1.0.0.zip --key KEYS/revocations.key")
        .await;
    let refused = place
        .try_market("publish SOURCE --key KEYS/timestamp.key")
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the index file has 0 of 1 valid signatures"),
        "{refused}"
    );
    assert_eq!(fs::read(place.source().join("timestamp.minisig")).unwrap(), seen);
}

#[tokio::test]
async fn a_revocation_needs_no_other_key_and_reaches_users_at_once() {
    let place = Place::new().await;
    let client = place.client().await;
    let line = "revoke SOURCE one@acme --from 1.0.0 --before 1.1.0 --level malicious --reason steals --key KEYS/revocations.key";
    place.market(line).await;
    place.publish().await;
    let refreshed = refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
    let [revocation] = &refreshed.changes.revoked[..] else {
        panic!("{:?}", refreshed.changes)
    };
    assert_eq!(
        (revocation.level, revocation.reason.as_str()),
        (Level::Malicious, "steals")
    );
    place.market("pardon SOURCE one@acme --key KEYS/revocations.key").await;
    place.publish().await;
    let refreshed = refresh(&refreshed.state, &Folder::new(place.source()), place.now)
        .await
        .unwrap();
    assert!(refreshed.revocations.items().is_empty());
    place
        .market("withdraw SOURCE one@acme 1.0.0 --reason breaks --key KEYS/index.key")
        .await;
    place.publish().await;
    let refreshed = refresh(&refreshed.state, &Folder::new(place.source()), place.now)
        .await
        .unwrap();
    let entry = &refreshed.index.plugin(&identity("one@acme")).unwrap().versions[0];
    assert_eq!(entry.yanked.as_deref(), Some("breaks"));
}

#[tokio::test]
async fn a_lost_root_key_is_replaced_with_the_other_two() {
    let mut place = Place::new().await;
    let client = place.client().await;
    let lost = place.key("root-3").public();
    fs::remove_file(place.path("keys/root-3.key")).unwrap();
    place.market("key KEYS/root-4.key --unprotected").await;
    let alone = format!("rotate SOURCE root --add KEYS/root-4.key --remove {lost} --root-key KEYS/root-1.key");
    place.try_market(&alone).await.unwrap_err();
    place
        .market(&format!(
            "rotate SOURCE root --add KEYS/root-4.key --remove {lost} {ROOTS}"
        ))
        .await;
    // The new one counts from now on.
    place.now += SignedDuration::from_hours(1);
    place
        .market("rotate SOURCE root --root-key KEYS/root-4.key --root-key KEYS/root-2.key")
        .await;
    let refreshed = refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
    assert_eq!(refreshed.changes.root, Some(3));
    let keys = refreshed.state.root().unwrap().role(market::Role::Root);
    assert!(!keys.keys.contains(&lost) && keys.threshold == 2);
}

#[tokio::test]
async fn an_author_hands_over_to_another_key() {
    let place = Place::new().await;
    let client = place.client().await;
    let old = place.key("author").public();
    let new = place.author("keygen KEYS/second.key --unprotected");
    place.author(&format!(
        "handover one@acme --key KEYS/author.key --to {} --output TMP/handover.json",
        new.trim()
    ));
    place.package("one@acme", "1.1.0", "second");
    place.author("sign TMP/one@acme-1.1.0.zip --key KEYS/second.key");
    place
        .market("add SOURCE TMP/one@acme-1.1.0.zip --handover TMP/handover.json --key KEYS/index.key")
        .await;
    place.publish().await;
    let refreshed = refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
    let [change] = &refreshed.changes.authors[..] else {
        panic!("{:?}", refreshed.changes)
    };
    assert_eq!(
        (change.from, change.to.to_string(), &change.by),
        (old, new.trim().to_owned(), &Consent::Author)
    );
}

#[tokio::test]
async fn the_root_vouches_for_an_author_whose_key_is_lost() {
    let place = Place::new().await;
    let client = place.client().await;
    fs::remove_file(place.path("keys/author.key")).unwrap();
    let new = place.author("keygen KEYS/second.key --unprotected");
    place
        .market(&format!("vouch SOURCE one@acme {} --reason stolen {ROOTS}", new.trim()))
        .await;
    place.package("one@acme", "1.1.0", "second");
    place.author("sign TMP/one@acme-1.1.0.zip --key KEYS/second.key");
    place
        .market("add SOURCE TMP/one@acme-1.1.0.zip --key KEYS/index.key")
        .await;
    place.publish().await;
    let refreshed = refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
    let [change] = &refreshed.changes.authors[..] else {
        panic!("{:?}", refreshed.changes)
    };
    assert_eq!(change.by, Consent::Root("stolen".to_owned()));
}

#[tokio::test]
async fn a_copy_of_a_source_is_as_good_as_the_source() {
    let mut place = Place::new().await;
    let client = place.client().await;
    place.now += SignedDuration::from_hours(1);
    place.market(&format!("rotate SOURCE root {ROOTS}")).await;
    place.release("one@acme", "1.1.0").await;
    let server = Liar::honest(&place.source());
    place
        .market(&format!("mirror {} TMP/mirror --key {}", server.url, place.root_key()))
        .await;
    let mirror = Folder::new(place.path("mirror"));
    assert_eq!(
        refresh(&client, &mirror, place.now).await.unwrap().changes.root,
        Some(2)
    );
    let line = format!("verify TMP/mirror --key {}", place.root_key());
    assert_eq!(
        place.market(&line).await,
        "main: root 2, index 3, 1 plugins, 2 packages, all as they should be.\n"
    );
    let stranger = place.key("author").public();
    place
        .try_market(&format!("mirror {} TMP/other --key {stranger}", server.url))
        .await
        .unwrap_err();
    assert!(!place.path("other/timestamp.minisig").exists());
}

#[tokio::test]
async fn old_files_are_kept_for_a_while_and_then_taken_away() {
    let mut place = Place::new().await;
    let client = place.client().await;
    for _ in 0..12 {
        place.now += SignedDuration::from_hours(1);
        place.market("add SOURCE --key KEYS/index.key").await;
        place.publish().await;
    }
    let exists = |name: &str| place.source().join(name).exists();
    assert!(exists("index.14.json") && exists("index.6.json") && !exists("index.5.json"));
    assert!(exists("diff/6-14.json") && !exists("diff/4-5.json") && !exists("index.5.json.minisig"));
    assert!(exists("timestamp.14.json") && !exists("timestamp.2.json"));
    refresh(&client, &Folder::new(place.source()), place.now).await.unwrap();
}

#[tokio::test]
async fn a_source_that_nobody_stamps_is_no_longer_published_as_it_was() {
    let mut place = Place::new().await;
    place.now += SignedDuration::from_hours(24 * 91);
    let refused = place
        .try_market("publish SOURCE --key KEYS/timestamp.key")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("the index file expired"), "{refused}");
    let ToolError::Refresh(failures) = refused else {
        panic!("{refused:?}")
    };
    assert!(matches!(
        failures.0[..],
        [market::fetch::RefreshError::Verify(VerifyError::Expired(
            market::Role::Index,
            _
        ))]
    ));
    place.market("add SOURCE --key KEYS/index.key").await;
    place.publish().await;
}

#[tokio::test]
async fn keys_are_for_their_owner_only_and_nothing_is_overwritten() {
    let place = Place::new().await;
    let key = place.path("keys/index.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    place.try_author("keygen KEYS/index.key --unprotected").unwrap_err();
    let again = place
        .try_market("init SOURCE --id main --name Main --keys KEYS --unprotected")
        .await
        .unwrap_err();
    assert!(again.to_string().starts_with("there is a source in "), "{again}");
    let debug = format!("{:?}", place.key("index"));
    let secret = fs::read_to_string(&key).unwrap();
    assert!(!secret.contains(debug.trim_start_matches("SigningKey(").trim_end_matches(')')));
}

#[tokio::test]
async fn a_key_with_a_passphrase_opens_with_it_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.key");
    let made = SigningKey::generate(&path, Some("correct horse")).unwrap();
    let read = SigningKey::read(&path, &Fixed(Some("correct horse".to_owned()))).unwrap();
    assert_eq!(read.public(), made.public());
    assert!(matches!(
        SigningKey::read(&path, &Fixed(Some("wrong".to_owned()))),
        Err(ToolError::Key { .. })
    ));
    assert!(matches!(
        SigningKey::read(&path, &Fixed(None)),
        Err(ToolError::Passphrase(_))
    ));
}

#[tokio::test]
async fn the_folder_can_be_tried_over_http() {
    let place = Place::new().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let (ready, address) = tokio::sync::oneshot::channel();
    let folder = Folder::new(place.source());
    let serving = market_tool::serve(folder, "127.0.0.1:0".parse().unwrap(), &stop, |address| {
        _ = ready.send(address);
    });
    let reading = async {
        let url = format!("http://{}/", address.await.unwrap());
        let line = place.market(&format!("verify {url} --key {}", place.root_key())).await;
        assert!(line.starts_with("main: "), "{line}");
        let origin = crate::place::web().at(url.parse().unwrap()).unwrap();
        let mut part = b"{".to_vec();
        market::Origin::read(&origin, "root.1.json", 16_384, &mut part)
            .await
            .unwrap();
        assert_eq!(part, fs::read(place.source().join("root.1.json")).unwrap());
        stop.cancel();
    };
    let (served, ()) = tokio::join!(serving, reading);
    served.unwrap();
}
