//! Whoever reads while something is published sees the source before or after it.

use std::sync::atomic::{AtomicUsize, Ordering};

use market::{Folder, Origin, Reading, SourceState};

use crate::place::{Place, copy, refresh};

/// A folder that changes to another one before a certain file is read.
#[derive(Debug)]
struct Moment {
    before: Folder,
    after: Folder,
    at: usize,
    reads: AtomicUsize,
}

impl Origin for Moment {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        let has_changed = self.reads.fetch_add(1, Ordering::Relaxed) >= self.at;
        let folder = if has_changed { &self.after } else { &self.before };
        folder.read(place, limit, into)
    }
}

/// Does `lines` and looks, for every moment of a refresh, whether it is believed if they are done just then.
async fn check(place: &mut Place, lines: &[&str]) {
    let before = place.copy("before");
    let states = [place.stranger(), place.client().await];
    place.now += jiff::SignedDuration::from_hours(1);
    for line in lines {
        place.market(line).await;
    }
    let after = place.copy("after");
    for state in &states {
        for at in 0..16 {
            let moment = Moment {
                before: Folder::new(&before),
                after: Folder::new(&after),
                at,
                reads: AtomicUsize::new(0),
            };
            let refreshed = refresh(state, &moment, place.now).await;
            refreshed.unwrap_or_else(|error| panic!("{lines:?} before read {at}: {error:?}"));
        }
    }
    std::fs::remove_dir_all(before).unwrap();
    std::fs::remove_dir_all(after).unwrap();
}

const PUBLISH: &str = "publish SOURCE --key KEYS/timestamp.key";

#[tokio::test]
async fn readers_never_see_a_mixture() {
    let mut place = Place::new().await;
    place.package("one@acme", "1.1.0", "author");
    place.author("sign TMP/one@acme-1.1.0.zip --key KEYS/author.key");
    check(&mut place, &[PUBLISH]).await;
    check(&mut place, &["add SOURCE TMP/one@acme-1.1.0.zip --key KEYS/index.key"]).await;
    check(&mut place, &[PUBLISH]).await;
    check(&mut place, &["add SOURCE --key KEYS/index.key", PUBLISH]).await;
    let revoke = "revoke SOURCE one@acme --before 1.1.0 --level malicious --reason bad --key KEYS/revocations.key";
    check(&mut place, &[revoke, PUBLISH]).await;
    for role in ["index", "revocations", "timestamp", "root"] {
        place.market(&format!("key KEYS/{role}-new.key --unprotected")).await;
        let old = if role == "root" { "root-3" } else { role };
        let old = place.key(old).public();
        let rotate = format!(
            "rotate SOURCE {role} --add KEYS/{role}-new.key --remove {old} --root-key KEYS/root-1.key --root-key KEYS/root-2.key"
        );
        check(&mut place, &[&rotate]).await;
        let publish = if role == "timestamp" {
            "publish SOURCE --key KEYS/timestamp-new.key"
        } else {
            PUBLISH
        };
        if role != "root" {
            check(&mut place, &[publish]).await;
        }
    }
}

#[tokio::test]
async fn every_step_of_publishing_leaves_a_source_that_is_believed() {
    let place = Place::new().await;
    let client = place.client().await;
    let before = place.copy("before");
    place.release("one@acme", "1.1.0").await;
    // The new files appear one after another, in any order, and the signature of the timestamp last.
    let mixed = place.path("mixed");
    copy(&before, &mixed);
    let mut new: Vec<_> = files(&place.source())
        .into_iter()
        .filter(|name| !files(&before).contains(name))
        .collect();
    new.sort();
    assert!(new.len() >= 4, "{new:?}");
    for name in new
        .iter()
        .map(String::as_str)
        .chain([market::path::TIMESTAMP_SIGNATURE])
    {
        let target = mixed.join(name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(place.source().join(name), target).unwrap();
        let states: [&SourceState; 2] = [&client, &place.stranger()];
        for state in states {
            refresh(state, &Folder::new(&mixed), place.now)
                .await
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
    }
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for inner in ["", "diff", "packages"] {
        for entry in std::fs::read_dir(folder.join(inner)).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_file() && !name.starts_with('.') {
                names.push(if inner.is_empty() {
                    name
                } else {
                    format!("{inner}/{name}")
                });
            }
        }
    }
    names
}
