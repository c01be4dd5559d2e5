//! Attacks on a source, one test each, and what an honest one may do. Signatures are made with minisign's own code.

use jiff::{SignedDuration, ToSpan as _};
use minisign::KeyPair;
use proptest::prelude::*;

use super::*;
use crate::{
    Author, Entry, Freshness, Plugin, StoredState, VerifiedPackage, VersionRange,
    format::{
        record::{
            self, FileRecord, NumberRecord, OverrideRecord, RoleRecord, RolesRecord, RotationRecord, SPEC, SourceRecord,
        },
        signature::Compact,
    },
};

/// A key pair, made for a test.
#[derive(Clone)]
pub(crate) struct Pair(KeyPair);

impl Pair {
    pub(crate) fn new() -> Self {
        Self(KeyPair::generate_unencrypted_keypair().unwrap())
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.0.pk.to_base64().parse().unwrap()
    }

    pub(crate) fn sign(&self, message: &[u8], purpose: Purpose<'_>) -> String {
        self.sign_comment(message, &purpose.to_string())
    }

    fn sign_comment(&self, message: &[u8], comment: &str) -> String {
        let signature = minisign::sign(None, &self.0.sk, message, Some(comment), Some("test"));
        signature.unwrap().to_string()
    }

    pub(crate) fn sign_compact(&self, message: &[u8], purpose: Purpose<'_>) -> Compact {
        Compact::from_file(&self.sign(message, purpose)).unwrap()
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn days(days: i64) -> Timestamp {
    now() + SignedDuration::from_hours(24 * days)
}

pub(crate) fn identity(text: &str) -> Identity {
    text.parse().unwrap()
}

/// A source and the keys that speak for it.
#[derive(Clone)]
pub(crate) struct World {
    root_keys: Vec<Pair>,
    timestamp_key: Pair,
    index_key: Pair,
    revocations_key: Pair,
    pub(crate) author: Pair,
    root: RootRecord,
    timestamp: TimestampRecord,
    pub(crate) index: IndexRecord,
    pub(crate) revocations: RevocationsRecord,
}

fn role(keys: &[&Pair], threshold: usize) -> RoleRecord {
    RoleRecord {
        keys: keys.iter().map(|key| key.public()).collect(),
        threshold,
    }
}

impl World {
    /// A source with one plugin of one version.
    pub(crate) fn new() -> Self {
        let root_keys: Vec<_> = (0..3).map(|_| Pair::new()).collect();
        let [timestamp_key, index_key, revocations_key, author] = [(); 4].map(|()| Pair::new());
        let root = RootRecord {
            spec: SPEC.to_owned(),
            seq: 1,
            expires: days(365),
            source: SourceRecord {
                id: "main".parse().unwrap(),
                name: "Main".to_owned(),
            },
            roles: RolesRecord {
                root: role(&root_keys.iter().collect::<Vec<_>>(), 2),
                timestamp: role(&[&timestamp_key], 1),
                index: role(&[&index_key], 1),
                revocations: role(&[&revocations_key], 1),
            },
            authors: std::collections::BTreeMap::new(),
        };
        let nothing = FileRecord::of(1, b"");
        let mut world = Self {
            root,
            timestamp: TimestampRecord {
                spec: SPEC.to_owned(),
                seq: 1,
                issued: now(),
                expires: days(7),
                root: NumberRecord { seq: 1 },
                index: nothing,
                revocations: nothing,
            },
            index: IndexRecord {
                spec: SPEC.to_owned(),
                seq: 1,
                expires: days(90),
                plugins: std::collections::BTreeMap::new(),
            },
            revocations: RevocationsRecord {
                spec: SPEC.to_owned(),
                seq: 1,
                items: Vec::new(),
            },
            root_keys,
            timestamp_key,
            index_key,
            revocations_key,
            author,
        };
        world.add("one@acme", "1.0.0");
        world.stamp();
        world
    }

    /// Adds a version; its package is its name.
    pub(crate) fn add(&mut self, name: &str, version: &str) -> &mut Entry {
        let (id, author) = (identity(name), self.author.clone());
        let plugin = self.index.plugins.entry(id.clone()).or_insert_with(|| Plugin {
            name: name.to_owned(),
            description: String::new(),
            homepage: None,
            tags: Vec::new(),
            author: Author {
                name: "Acme".to_owned(),
                key: author.public(),
                rotations: Vec::new(),
            },
            versions: Vec::new(),
        });
        let version: Version = version.parse().unwrap();
        let bytes = format!("{name} {version}");
        let sha256 = Digest::of(bytes.as_bytes());
        let purpose = Purpose::Package {
            identity: &id,
            version: &version,
            sha256,
        };
        plugin.versions.push(Entry {
            seq: plugin.versions.len() as u64 + 1,
            sha256,
            size: bytes.len() as u64,
            mirrors: vec![crate::format::path::package(&id, &version)],
            min_host: None,
            abi: "0.1".parse().unwrap(),
            permissions: serde_json::value::to_raw_value(&serde_json::json!({ "hosts": [] })).unwrap(),
            imports_digest: None,
            published: now(),
            signature: author.sign_compact(bytes.as_bytes(), purpose),
            fixtures: 0,
            yanked: None,
            version,
        });
        plugin.versions.last_mut().unwrap()
    }

    /// The newest package of a plugin, as a client gets it.
    pub(crate) fn downloaded(&self, name: &str) -> VerifiedPackage {
        let id = identity(name);
        let index = Index::try_from(self.index.clone()).unwrap();
        let plugin = index.plugin(&id).unwrap();
        let entry = plugin.versions.last().unwrap();
        let bytes = format!("{name} {}", entry.version);
        VerifiedPackage::new(bytes.into(), &id, entry, &plugin.author.key).unwrap()
    }

    fn plugin(&mut self, name: &str) -> &mut Plugin {
        self.index.plugins.get_mut(&identity(name)).unwrap()
    }

    fn revoke(&mut self, name: &str, versions: VersionRange, level: crate::Level) {
        self.revocations.items.push(Revocation {
            identity: identity(name),
            versions,
            sha256: None,
            level,
            reason: "test".to_owned(),
            since: now(),
        });
    }

    /// Makes the timestamp name the present files.
    fn stamp(&mut self) {
        self.timestamp.index = FileRecord::of(self.index.seq, &record::to_bytes(&self.index));
        self.timestamp.revocations = FileRecord::of(self.revocations.seq, &record::to_bytes(&self.revocations));
        self.timestamp.root.seq = self.root.seq;
    }

    /// The next version of everything, a day later.
    fn publish(&mut self) {
        self.index.seq += 1;
        self.revocations.seq += 1;
        self.timestamp.seq += 1;
        self.timestamp.issued += 24.hours();
        self.timestamp.expires += 24.hours();
        self.stamp();
    }

    fn sign_root(&self, keys: &[&Pair]) -> Signed {
        signed(Role::Root, self.root.seq, record::to_bytes(&self.root), keys)
    }

    fn first_root(&self) -> Vec<u8> {
        record::to_bytes(&self.root)
    }

    fn signed_timestamp(&self) -> Signed {
        let body = record::to_bytes(&self.timestamp);
        signed(Role::Timestamp, self.timestamp.seq, body, &[&self.timestamp_key])
    }

    fn parts(&self) -> Parts {
        let index = signed(
            Role::Index,
            self.index.seq,
            record::to_bytes(&self.index),
            &[&self.index_key],
        );
        let body = record::to_bytes(&self.revocations);
        Parts {
            index: Some(IndexPart::Whole(index)),
            revocations: Some(signed(
                Role::Revocations,
                self.revocations.seq,
                body,
                &[&self.revocations_key],
            )),
        }
    }

    fn offer(&self, state: &SourceState) -> Result<Refreshed, VerifyError> {
        self.offer_at(state, &[], now())
    }

    fn offer_at(&self, state: &SourceState, roots: &[Signed], now: Timestamp) -> Result<Refreshed, VerifyError> {
        heads(state, roots, &self.signed_timestamp(), now)?.complete(&self.parts())
    }

    /// A client that believes in this source and has seen what it has now.
    pub(crate) fn client(&self) -> SourceState {
        let state = SourceState::with_root(&self.first_root()).unwrap();
        self.offer(&state).unwrap().state
    }

    pub(crate) fn refresh(&mut self, state: &SourceState) -> Refreshed {
        self.publish();
        self.offer_at(state, &[], self.timestamp.issued).unwrap()
    }
}

fn signed(role: Role, seq: u64, body: Vec<u8>, keys: &[&Pair]) -> Signed {
    let purpose = Purpose::Document {
        role,
        seq,
        sha256: Digest::of(&body),
    };
    let signatures: String = keys.iter().map(|key| key.sign(&body, purpose)).collect();
    Signed {
        body: body.into(),
        signatures: signatures.into(),
    }
}

fn refused(result: Result<Refreshed, VerifyError>) -> VerifyError {
    result.expect_err("it was believed")
}

fn unsigned(document: Document, threshold: usize) -> VerifyError {
    VerifyError::Signatures {
        document,
        valid: 0,
        threshold,
    }
}

#[test]
fn an_honest_source_is_believed_and_tells_what_is_new() {
    let mut world = World::new();
    let client = world.client();
    assert_eq!(client.freshness(now()), Freshness::Fresh(days(7)));
    world.add("one@acme", "1.1.0");
    world.add("two@acme", "0.1.0");
    world.revoke("one@acme", VersionRange::default(), crate::Level::Deprecated);
    let changes = world.refresh(&client).changes;
    assert_eq!(changes.added, [identity("two@acme")]);
    assert_eq!(changes.versions, [(identity("one@acme"), Version::new(1, 1, 0))]);
    assert_eq!(changes.revoked.len(), 1);
    assert_eq!(
        (changes.removed.len(), changes.authors.len(), changes.root),
        (0, 0, None)
    );
}

#[test]
fn what_is_held_is_not_wanted_again() {
    let world = World::new();
    let client = world.client();
    let timestamp = world.signed_timestamp();
    let heads = heads(&client, &[], &timestamp, now()).unwrap();
    assert_eq!(
        heads.wanted(),
        Wanted {
            index: None,
            revocations: None
        }
    );
    assert_eq!(heads.complete(&Parts::default()).unwrap().changes, Changes::default());
}

#[test]
fn a_rollback_of_the_index_is_refused() {
    let mut world = World::new();
    let old = world.clone();
    let mut client = world.client();
    client = world.refresh(&client).state;
    let error = refused(old.offer(&client));
    assert_eq!(
        error,
        VerifyError::Rollback {
            document: Role::Timestamp,
            seen: 2,
            offered: 1
        }
    );
    // A thief of the timestamp's key can number timestamps anew; what they name is counted on its own.
    let mut forged = world.clone();
    forged.index = old.index;
    forged.stamp();
    forged.timestamp.seq = 3;
    let error = refused(forged.offer(&client));
    assert_eq!(
        error,
        VerifyError::Rollback {
            document: Role::Index,
            seen: 2,
            offered: 1
        }
    );
    let mut forged = world.clone();
    forged.revocations = old.revocations;
    forged.stamp();
    forged.timestamp.seq = 3;
    let error = refused(forged.offer(&client));
    assert_eq!(
        error,
        VerifyError::Rollback {
            document: Role::Revocations,
            seen: 2,
            offered: 1
        }
    );
}

#[test]
fn a_freeze_is_noticed_when_the_timestamp_expires() {
    let world = World::new();
    let client = world.client();
    let error = refused(world.offer_at(&client, &[], days(7)));
    assert_eq!(error, VerifyError::Expired(Role::Timestamp, days(7)));
    assert_eq!(client.freshness(days(7)), Freshness::Stale(days(7)));
}

#[test]
fn an_expired_root_or_index_is_refused() {
    let mut world = World::new();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    world.timestamp.expires = days(4000);
    assert_eq!(
        refused(world.offer_at(&client, &[], days(90))),
        VerifyError::Expired(Role::Index, days(90))
    );
    assert_eq!(
        refused(world.offer_at(&client, &[], days(365))),
        VerifyError::Expired(Role::Root, days(365))
    );
}

#[test]
fn a_clock_that_was_set_back_does_not_make_old_files_new() {
    let mut world = World::new();
    let client = world.client();
    world.timestamp.issued = days(30);
    world.timestamp.expires = days(37);
    world.timestamp.seq = 2;
    let client = world.offer_at(&client, &[], days(30)).unwrap().state;
    // The clock says 2001, and a file that expired a week after the newest one was made is offered.
    world.timestamp.seq = 3;
    world.timestamp.issued = days(1);
    world.timestamp.expires = days(8);
    let past: Timestamp = "2001-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(
        refused(world.offer_at(&client, &[], past)),
        VerifyError::Expired(Role::Timestamp, days(8))
    );
    assert_eq!(client.freshness(past), Freshness::Fresh(days(37)));
    assert_eq!(client.time(past), days(30));
}

#[test]
fn files_of_two_moments_do_not_mix() {
    let mut world = World::new();
    let old = world.parts();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    world.add("two@acme", "1.0.0");
    world.publish();
    let timestamp = world.signed_timestamp();
    let heads = heads(&client, &[], &timestamp, now()).unwrap();
    for (index, revocations, mixed) in [
        (old.index.clone(), world.parts().revocations, Role::Index),
        (world.parts().index, old.revocations.clone(), Role::Revocations),
    ] {
        let error = heads.complete(&Parts { index, revocations }).unwrap_err();
        assert_eq!(error, VerifyError::Mismatch(mixed));
    }
    assert_eq!(
        heads.complete(&Parts::default()).unwrap_err(),
        VerifyError::Missing(Role::Revocations)
    );
}

#[test]
fn one_number_with_two_contents_is_refused() {
    let mut world = World::new();
    let client = world.client();
    world.timestamp.expires = days(6);
    assert_eq!(refused(world.offer(&client)), VerifyError::TwoFaced(Role::Timestamp, 1));
    world.add("two@acme", "1.0.0");
    world.stamp();
    world.timestamp.seq = 2;
    assert_eq!(refused(world.offer(&client)), VerifyError::TwoFaced(Role::Index, 1));
}

#[test]
fn a_thief_who_counts_to_the_end_is_forgotten_with_the_key() {
    let mut world = World::new();
    let client = world.client();
    let honest = world.clone();
    world.timestamp.seq = u64::MAX;
    world.timestamp.issued = days(36_500);
    world.timestamp.expires = days(36_501);
    world.root.expires = days(40_000);
    world.index.expires = days(40_000);
    // The client falls for it, as far as expiry lets it.
    let poisoned = heads(&client, &[], &world.signed_timestamp(), now()).map(|_| ());
    assert_eq!(poisoned, Err(VerifyError::Expired(Role::Root, days(365))));
    world.timestamp.issued = days(80);
    world.timestamp.expires = days(100);
    world.index.seq = u64::MAX;
    world.stamp();
    let poisoned = world.offer(&client).unwrap().state;
    assert!(matches!(
        refused(honest.clone().offer(&poisoned)),
        VerifyError::Rollback { .. }
    ));

    let mut world = honest;
    world.timestamp_key = Pair::new();
    world.index_key = Pair::new();
    world.root.seq = 2;
    world.root.roles.timestamp = role(&[&world.timestamp_key], 1);
    world.root.roles.index = role(&[&world.index_key], 1);
    world.timestamp.root.seq = 2;
    let root = world.sign_root(&[&world.root_keys[0], &world.root_keys[2]]);
    let healed = world.offer_at(&poisoned, &[root], now()).unwrap();
    assert_eq!(healed.changes.root, Some(2));
    assert_eq!(healed.state.freshness(now()), Freshness::Fresh(days(7)));
}

#[test]
fn a_signature_counts_in_its_own_role_and_for_its_own_number_only() {
    let world = World::new();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    let body = record::to_bytes(&world.timestamp);
    let key = &world.timestamp_key;
    let right = Purpose::Document {
        role: Role::Timestamp,
        seq: 1,
        sha256: Digest::of(&body),
    };
    let offer = |signatures: String| {
        let timestamp = Signed {
            body: body.clone().into(),
            signatures: signatures.into(),
        };
        heads(&client, &[], &timestamp, now()).map(|_| ())
    };
    offer(key.sign(&body, right)).unwrap();
    let other_keys = [&world.index_key, &world.root_keys[0], &world.author];
    for other in other_keys {
        assert_eq!(offer(other.sign(&body, right)), Err(unsigned(Role::Timestamp, 1)));
    }
    for comment in [
        Purpose::Document {
            role: Role::Index,
            seq: 1,
            sha256: Digest::of(&body),
        }
        .to_string(),
        Purpose::Document {
            role: Role::Timestamp,
            seq: 2,
            sha256: Digest::of(&body),
        }
        .to_string(),
        Purpose::Document {
            role: Role::Timestamp,
            seq: 1,
            sha256: Digest::of(b""),
        }
        .to_string(),
        right.to_string() + " ",
        right.to_string().replace("seq=1", "seq=01"),
        right.to_string().replace("v1", "v2"),
        "timestamp:1700000000\tfile:timestamp.json\thashed".to_owned(),
        String::new(),
    ] {
        assert_eq!(
            offer(key.sign_comment(&body, &comment)),
            Err(unsigned(Role::Timestamp, 1)),
            "{comment}"
        );
    }
    // A comment that was changed after it was signed.
    let forged = key
        .sign_comment(&body, "other")
        .replace("trusted comment: other", &format!("trusted comment: {right}"));
    assert_eq!(offer(forged), Err(unsigned(Role::Timestamp, 1)));
    // The signature of other bytes.
    assert_eq!(offer(key.sign(b"other", right)), Err(unsigned(Role::Timestamp, 1)));
    // The old kind of signature, of the bytes themselves instead of their hash.
    let legacy = key
        .sign(&body, right)
        .replacen("\nRUR", "\nRWR", 1)
        .replacen("\nRUQ", "\nRWQ", 1);
    let legacy: String = legacy
        .lines()
        .enumerate()
        .map(|(index, line)| match index {
            1 => {
                let mut bytes = data_encoding::BASE64.decode(line.as_bytes()).unwrap();
                bytes[..2].copy_from_slice(b"Ed");
                data_encoding::BASE64.encode(&bytes) + "\n"
            }
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(offer(legacy), Err(unsigned(Role::Timestamp, 1)));
    // Somebody else's signatures beside the right one do no harm.
    offer(world.index_key.sign(&body, right) + "junk\n\n\n\n" + &key.sign(&body, right)).unwrap();
}

#[test]
fn a_threshold_is_not_met_by_one_key_twice() {
    let mut world = World::new();
    let client = world.client();
    world.root.seq = 2;
    world.root.source.name = "Mine".to_owned();
    let key = &world.root_keys[0];
    let error = refused(world.offer_at(&client, &[world.sign_root(&[key, key])], now()));
    assert_eq!(
        error,
        VerifyError::Signatures {
            document: Role::Root,
            valid: 1,
            threshold: 2
        }
    );
    // Nor by a key that comes under two identifiers.
    let mut twin = data_encoding::BASE64
        .decode(key.public().to_string().as_bytes())
        .unwrap();
    twin[2] ^= 1;
    world.root.roles.root.keys[1] = data_encoding::BASE64.encode(&twin).parse().unwrap();
    let root = world.sign_root(&[key, &world.root_keys[2]]);
    let error = refused(world.offer_at(&client, &[root], now()));
    assert_eq!(
        error,
        VerifyError::Invalid(Role::Root, "role root names a key twice".to_owned())
    );
}

#[test]
fn a_new_root_is_signed_by_the_old_and_the_new_keys_and_comes_in_order() {
    let mut world = World::new();
    let client = world.client();
    let [one, two, three] = [0, 1, 2].map(|index| world.root_keys[index].clone());
    let [four, five] = [Pair::new(), Pair::new()];
    world.root.seq = 2;
    world.root.roles.root = role(&[&three, &four, &five], 2);
    let offer = |keys: &[&Pair]| world.offer_at(&client, &[world.sign_root(keys)], now());
    assert!(matches!(
        refused(offer(&[&one, &two])),
        VerifyError::Signatures { valid: 0, .. }
    ));
    assert!(matches!(
        refused(offer(&[&four, &five])),
        VerifyError::Signatures { valid: 0, .. }
    ));
    assert!(matches!(
        refused(offer(&[&two, &three])),
        VerifyError::Signatures { valid: 1, .. }
    ));
    let second = world.sign_root(&[&two, &three, &four]);
    let state = offer(&[&two, &three, &four]).unwrap().state;
    assert_eq!(state.root().unwrap().seq(), 2);

    // A third root that only the first ones sign is nothing; one that skips the second is nothing either.
    let mut third = world.clone();
    third.root.seq = 3;
    let stolen = third.sign_root(&[&one, &two]);
    assert!(third.offer_at(&state, &[stolen], now()).is_err());
    let skipping = third.sign_root(&[&one, &two, &three, &four]);
    let error = refused(third.offer_at(&client, std::slice::from_ref(&skipping), now()));
    assert_eq!(error, VerifyError::RootNumber { expected: 2, found: 3 });
    third.timestamp.seq = 2;
    third.timestamp.root.seq = 3;
    assert_eq!(
        refused(third.offer(&state)),
        VerifyError::RootMissing { known: 2, needed: 3 }
    );
    assert_eq!(
        third
            .offer_at(&client, &[second, skipping], now())
            .unwrap()
            .changes
            .root,
        Some(3)
    );
}

#[test]
fn what_a_former_key_signed_is_checked_anew() {
    let mut world = World::new();
    let client = world.client();
    world.root.seq = 2;
    let new = Pair::new();
    world.root.roles.index = role(&[&new], 1);
    let root = world.sign_root(&[&world.root_keys[0], &world.root_keys[1]]);
    // The index is the one that is held, and only the former key signed it.
    let error = refused(world.offer_at(&client, std::slice::from_ref(&root), now()));
    assert_eq!(error, unsigned(Role::Index, 1));
    world.index_key = new;
    world.offer_at(&client, &[root], now()).unwrap();
}

#[test]
fn a_source_stays_the_same_source() {
    let mut world = World::new();
    let client = world.client();
    world.root.seq = 2;
    world.root.source.id = "other".parse().unwrap();
    let root = world.sign_root(&[&world.root_keys[0], &world.root_keys[1]]);
    assert_eq!(
        refused(world.offer_at(&client, &[root], now())),
        VerifyError::OtherSource("other".to_owned())
    );
}

#[test]
fn a_source_that_was_added_by_key_must_have_that_key() {
    let world = World::new();
    let [one, two, three] = [0, 1, 2].map(|index| &world.root_keys[index]);
    let root = world.sign_root(&[one, two]);
    let offer = |key: &Pair, root: &Signed| {
        world.offer_at(&SourceState::with_key(key.public()), std::slice::from_ref(root), now())
    };
    assert_eq!(offer(one, &root).unwrap().state.root().unwrap().name(), "Main");
    assert_eq!(refused(offer(three, &root)), VerifyError::OtherKey);
    assert_eq!(refused(offer(&Pair::new(), &root)), VerifyError::OtherKey);
    let alone = world.sign_root(&[one]);
    assert_eq!(
        refused(offer(one, &alone)),
        VerifyError::Signatures {
            document: Role::Root,
            valid: 1,
            threshold: 2
        }
    );
    let error = refused(world.offer_at(&SourceState::with_key(one.public()), &[], now()));
    assert_eq!(error, VerifyError::Missing(Role::Root));
}

#[test]
fn a_plugin_cannot_vanish_unless_it_is_revoked() {
    let mut world = World::new();
    world.add("two@acme", "1.0.0");
    world.stamp();
    let client = world.client();
    world.index.plugins.remove(&identity("one@acme"));
    world.publish();
    assert_eq!(
        refused(world.offer(&client)),
        VerifyError::Vanished(identity("one@acme"))
    );
    let some = VersionRange {
        from: None,
        before: Some(Version::new(1, 0, 1)),
    };
    world.revoke("one@acme", some, crate::Level::Malicious);
    world.stamp();
    assert_eq!(
        refused(world.offer(&client)),
        VerifyError::Vanished(identity("one@acme"))
    );
    world.revoke("one@acme", VersionRange::default(), crate::Level::Deprecated);
    world.stamp();
    assert_eq!(world.offer(&client).unwrap().changes.removed, [identity("one@acme")]);
}

#[test]
fn a_number_never_stands_for_another_package() {
    let mut world = World::new();
    world.add("one@acme", "1.1.0");
    world.stamp();
    let mut client = world.client();
    let reused = |world: &World, client: &SourceState| refused(world.offer(client));
    let mut other = world.clone();
    other.plugin("one@acme").versions[0].sha256 = Digest::of(b"other");
    other.publish();
    assert_eq!(reused(&other, &client), VerifyError::Reused(identity("one@acme"), 1));
    // Taken off the list, and there again with another package, or a new one below what was seen.
    let mut gap = world.clone();
    gap.plugin("one@acme").versions.remove(0);
    gap.publish();
    let later = gap.offer(&client).unwrap().state;
    gap.add("one@acme", "0.9.0").seq = 1;
    gap.publish();
    assert_eq!(reused(&gap, &later), VerifyError::Reused(identity("one@acme"), 1));
    // What is installed counts although the list forgot it.
    client.pin(&world.downloaded("one@acme"));
    let mut forgetful = world.clone();
    forgetful.index.plugins.remove(&identity("one@acme"));
    forgetful.revoke("one@acme", VersionRange::default(), crate::Level::Deprecated);
    forgetful.add("two@acme", "1.0.0");
    let client = forgetful.refresh(&client).state;
    for (version, is_other) in [("1.1.0", false), ("1.2.0", true)] {
        let mut back = forgetful.clone();
        back.add("one@acme", version).seq = 2;
        back.publish();
        let expected = is_other.then(|| VerifyError::Reused(identity("one@acme"), 2));
        assert_eq!(back.offer(&client).err(), expected);
    }
}

#[test]
fn a_thief_of_the_index_key_cannot_become_an_author() {
    let mut world = World::new();
    let client = world.client();
    world.author = Pair::new();
    world.plugin("one@acme").author.key = world.author.public();
    world.add("one@acme", "6.6.6");
    world.publish();
    assert_eq!(
        refused(world.offer(&client)),
        VerifyError::OtherAuthor(identity("one@acme"))
    );
}

#[test]
fn an_installed_plugin_keeps_its_author_although_the_list_lost_it() {
    let mut world = World::new();
    world.add("two@acme", "1.0.0");
    world.stamp();
    let mut client = world.client();
    client.pin(&world.downloaded("one@acme"));
    world.index.plugins.remove(&identity("one@acme"));
    world.revoke("one@acme", VersionRange::default(), crate::Level::Deprecated);
    let client = world.refresh(&client).state;
    world.author = Pair::new();
    world.add("one@acme", "6.6.6").seq = 2;
    world.publish();
    assert_eq!(
        refused(world.offer(&client)),
        VerifyError::OtherAuthor(identity("one@acme"))
    );
}

fn rotation(id: &Identity, old: &Pair, new: &Pair, signer: &Pair) -> RotationRecord {
    let (from, to) = (old.public(), new.public());
    let purpose = Purpose::Author {
        identity: id,
        from: &from,
        to: &to,
    };
    RotationRecord {
        from,
        to,
        signature: signer.sign_compact(purpose.to_string().as_bytes(), purpose),
    }
}

#[test]
fn an_author_hands_over_to_a_new_key_with_the_old_one() {
    let mut world = World::new();
    let mut client = world.client();
    let id = identity("one@acme");
    client.pin(&world.downloaded("one@acme"));
    let (first, second, third) = (world.author.clone(), Pair::new(), Pair::new());
    let to = |world: &mut World, key: &Pair, rotations| {
        world.plugin("one@acme").author.key = key.public();
        world.plugin("one@acme").author.rotations = rotations;
        world.stamp();
    };
    world.publish();
    let forged = rotation(&id, &first, &second, &second);
    to(&mut world, &second, vec![forged]);
    assert_eq!(refused(world.offer(&client)), VerifyError::OtherAuthor(id.clone()));
    let of_another = rotation(&identity("two@acme"), &first, &second, &first);
    to(&mut world, &second, vec![of_another]);
    assert_eq!(refused(world.offer(&client)), VerifyError::OtherAuthor(id.clone()));

    let chain = vec![
        rotation(&id, &first, &second, &first),
        rotation(&id, &second, &third, &second),
    ];
    to(&mut world, &third, chain);
    let refreshed = world.offer(&client).unwrap();
    let change = AuthorChange {
        identity: id.clone(),
        from: first.public(),
        to: third.public(),
        by: Consent::Author,
    };
    assert_eq!(refreshed.changes.authors, [change]);
    assert_eq!(refreshed.state.pinned(&id).unwrap().key, third.public());
}

#[test]
fn the_root_can_name_a_new_author_and_users_are_told() {
    let mut world = World::new();
    let client = world.client();
    let id = identity("one@acme");
    let (old, new) = (world.author.public(), Pair::new());
    world.root.seq = 2;
    let word = OverrideRecord {
        key: new.public(),
        reason: "the laptop was stolen".to_owned(),
    };
    world.root.authors.insert(id.clone(), word);
    let root = world.sign_root(&[&world.root_keys[0], &world.root_keys[1]]);
    world.publish();
    // As long as the index has the old key, nothing changes for users.
    let offered = world.offer_at(&client, std::slice::from_ref(&root), now()).unwrap();
    assert_eq!(offered.changes.authors, []);
    // Whoever stole the old key cannot hand over to somebody else any more.
    let (thief, old_pair) = (Pair::new(), world.author.clone());
    let mut stolen = world.clone();
    stolen.plugin("one@acme").author.key = thief.public();
    stolen.plugin("one@acme").author.rotations = vec![rotation(&id, &old_pair, &thief, &old_pair)];
    stolen.stamp();
    let error = refused(stolen.offer_at(&client, std::slice::from_ref(&root), now()));
    assert_eq!(error, VerifyError::OtherAuthor(id.clone()));
    world.plugin("one@acme").author.key = new.public();
    world.stamp();
    let changes = world.offer_at(&client, &[root], now()).unwrap().changes;
    let by = Consent::Root("the laptop was stolen".to_owned());
    assert_eq!(
        changes.authors,
        [AuthorChange {
            identity: id,
            from: old,
            to: new.public(),
            by
        }]
    );
}

#[test]
fn a_patch_gives_the_new_index_or_is_refused() {
    let mut world = World::new();
    let client = world.client();
    let old = record::to_bytes(&world.index);
    world.add("two@acme", "1.0.0");
    world.publish();
    let new = record::to_bytes(&world.index);
    let Some(IndexPart::Whole(whole)) = world.parts().index else {
        unreachable!()
    };
    let offer = |state: &SourceState, patch: &[u8]| {
        let part = Signed {
            body: Bytes::copy_from_slice(patch),
            signatures: whole.signatures.clone(),
        };
        let parts = Parts {
            index: Some(IndexPart::Patch(part)),
            ..world.parts()
        };
        heads(state, &[], &world.signed_timestamp(), now())?.complete(&parts)
    };
    let patch = merge::diff(&old, &new).unwrap();
    assert_eq!(offer(&client, &patch).unwrap().changes.added, [identity("two@acme")]);
    for hostile in [
        &patch[..patch.len() - 1],
        b"",
        b"{}",
        b"null",
        b"[]",
        br#"{"plugins":null}"#,
        &b"{\"a\":".repeat(9000),
    ] {
        assert_eq!(refused(offer(&client, hostile)), VerifyError::Patch);
    }
    let stranger = SourceState::with_root(&world.first_root()).unwrap();
    assert_eq!(refused(offer(&stranger, &patch)), VerifyError::Patch);
}

#[test]
fn long_files_are_refused_before_they_are_read() {
    let world = World::new();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    let long = |limit: u64| Bytes::from(vec![b' '; usize::try_from(limit).unwrap() + 1]);
    let good = world.signed_timestamp();
    let timestamp = Signed {
        body: long(MAX_TIMESTAMP_BYTES),
        ..good.clone()
    };
    assert_eq!(
        heads(&client, &[], &timestamp, now()).unwrap_err(),
        VerifyError::TooLarge(Role::Timestamp)
    );
    let timestamp = Signed {
        signatures: long(crate::MAX_SIGNATURES_BYTES),
        ..good.clone()
    };
    assert_eq!(
        heads(&client, &[], &timestamp, now()).unwrap_err(),
        VerifyError::TooLarge(Role::Timestamp)
    );
    let root = Signed {
        body: long(MAX_ROOT_BYTES),
        signatures: Bytes::new(),
    };
    assert_eq!(
        heads(&client, &[root], &good, now()).unwrap_err(),
        VerifyError::TooLarge(Role::Root)
    );
    let mut huge = world;
    huge.timestamp.index.size = MAX_INDEX_BYTES + 1;
    assert!(matches!(
        refused(huge.offer(&client)),
        VerifyError::Invalid(Role::Timestamp, _)
    ));
}

#[test]
fn doubled_keys_and_other_versions_of_the_format_are_refused() {
    let world = World::new();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    let text = String::from_utf8(record::to_bytes(&world.timestamp)).unwrap();
    let offer = |text: String| {
        let timestamp = signed(Role::Timestamp, 1, text.into_bytes(), &[&world.timestamp_key]);
        heads(&client, &[], &timestamp, now()).map(|_| ())
    };
    offer(text.replacen('{', r#"{"news":[1],"#, 1)).unwrap();
    offer(text.replace(r#""spec":"1.0""#, r#""spec":"1.9""#)).unwrap();
    let newer = offer(text.replace(r#""spec":"1.0""#, r#""spec":"2.0""#));
    assert_eq!(
        newer,
        Err(VerifyError::Malformed(
            Role::Timestamp,
            Malformed::Version("2.0".to_owned())
        ))
    );
    for doubled in [r#"{"seq":9,"#, r#"{"other":{"a":1,"a":2},"#] {
        let offered = offer(text.replacen('{', doubled, 1));
        assert!(matches!(
            offered,
            Err(VerifyError::Malformed(Role::Timestamp, Malformed::Json(_)))
        ));
    }
}

#[test]
fn an_index_that_contradicts_itself_is_refused() {
    let world = World::new();
    let client = SourceState::with_root(&world.first_root()).unwrap();
    let changes: [fn(&mut World); 5] = [
        |world| {
            let again = world.plugin("one@acme").versions[0].clone();
            world.plugin("one@acme").versions.push(again);
        },
        |world| world.add("one@acme", "1.1.0").seq = 1,
        |world| world.plugin("one@acme").versions[0].mirrors.clear(),
        |world| world.plugin("one@acme").versions[0].size = u64::MAX,
        |world| {
            let entry = world.plugin("one@acme").versions[0].clone();
            world.plugin("one@acme").versions = vec![entry; 201];
        },
    ];
    for change in changes {
        let mut world = world.clone();
        change(&mut world);
        world.stamp();
        assert!(matches!(
            refused(world.offer(&client)),
            VerifyError::Invalid(Role::Index, _)
        ));
    }
    // The number in the file is the number in the timestamp.
    let mut world = world;
    world.timestamp.index.seq = 4;
    let body = record::to_bytes(&world.index);
    let parts = Parts {
        index: Some(IndexPart::Whole(signed(Role::Index, 4, body, &[&world.index_key]))),
        ..world.parts()
    };
    let timestamp = world.signed_timestamp();
    let error = heads(&client, &[], &timestamp, now())
        .unwrap()
        .complete(&parts)
        .unwrap_err();
    assert_eq!(error, VerifyError::Mismatch(Role::Index));
}

#[test]
fn what_is_remembered_survives_being_stored() {
    let mut world = World::new();
    let mut client = world.client();
    client.pin(&world.downloaded("one@acme"));
    world.add("one@acme", "1.1.0");
    let client = world.refresh(&client).state;
    let stored = client.to_stored();
    let again = SourceState::from_stored(stored.clone()).unwrap();
    assert_eq!(again.to_stored(), stored);
    assert_eq!(
        again.pinned(&identity("one@acme")),
        client.pinned(&identity("one@acme"))
    );
    assert_eq!(again.pinned(&identity("one@acme")).unwrap().seen.len(), 1);
    world.refresh(&again);
    let key = SourceState::with_key(world.author.public()).to_stored();
    assert_eq!(SourceState::from_stored(key.clone()).unwrap().to_stored(), key);
    let damaged = StoredState {
        head: "{}".to_owned(),
        ..stored
    };
    SourceState::from_stored(damaged).unwrap_err();
}

#[test]
fn a_stored_file_that_is_not_the_one_that_was_checked_is_not_held() {
    let mut world = World::new();
    let client = world.client();
    world.add("two@acme", "1.0.0");
    let stored = world.refresh(&client).state.to_stored();
    let other = |bytes: &Option<Bytes>| Some([bytes.as_deref().unwrap(), b" "].concat().into());
    let (index, revocations) = (other(&stored.index), other(&stored.revocations));
    for damaged in [
        StoredState {
            index,
            ..stored.clone()
        },
        StoredState {
            revocations,
            ..stored.clone()
        },
        StoredState {
            index: None,
            ..stored.clone()
        },
    ] {
        let damaged = SourceState::from_stored(damaged).unwrap();
        assert_eq!(damaged.freshness(now()), Freshness::Unknown);
        assert_eq!(world.refresh(&damaged).index.plugins().len(), 2);
    }
}

/// What version 1 of the stored state looked like; the index and revocations beside it are of the same moment.
const VERSION_1: &str = include_str!("tests/state-1.json");

#[test]
fn what_earlier_versions_stored_is_still_read() {
    let stored: serde_json::Value = serde_json::from_str(VERSION_1).unwrap();
    let text = |name: &str| stored[name].as_str().unwrap().to_owned();
    let stored = StoredState {
        head: text("head"),
        index: Some(text("index").into()),
        revocations: Some(text("revocations").into()),
    };
    let state = SourceState::from_stored(stored).unwrap();
    assert_eq!(state.freshness(now()), Freshness::Fresh(days(7)));
    assert_eq!(state.pinned(&identity("one@acme")).unwrap().seq, 1);
    assert_eq!(state.index().unwrap().unwrap().plugins().len(), 1);
    assert_eq!(state.root().unwrap().seq(), 1);
}

/// Some bytes of a file, changed: set, cut off, or put in.
fn mutated(bytes: &Bytes, mutations: &[(prop::sample::Index, u8, u8)]) -> Bytes {
    let mut bytes = bytes.to_vec();
    for (at, kind, byte) in mutations.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match kind % 3 {
            0 => bytes[at] = *byte,
            1 => bytes.truncate(at),
            _ => bytes.insert(at, *byte),
        }
    }
    bytes.into()
}

type Mutations = Vec<(prop::sample::Index, u8, u8)>;

fn mutations() -> impl Strategy<Value = Mutations> {
    prop::collection::vec(any::<(prop::sample::Index, u8, u8)>(), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever changes in whichever file: either nothing is believed, or it is exactly what the source says.
    #[test]
    fn changed_bytes_never_change_what_is_believed(files in prop::array::uniform8(mutations())) {
        static WORLD: std::sync::LazyLock<(World, SourceState)> = std::sync::LazyLock::new(|| {
            let mut world = World::new();
            let client = world.client();
            world.add("one@acme", "1.1.0");
            world.root.seq = 2;
            world.publish();
            (world, client)
        });
        let (world, client) = &*WORLD;
        let honest = (world.sign_root(&[&world.root_keys[0], &world.root_keys[1]]), world.signed_timestamp(), world.parts());
        let change = |signed: &Signed, at: usize| Signed {
            body: mutated(&signed.body, &files[at]),
            signatures: mutated(&signed.signatures, &files[at + 1]),
        };
        let Some(IndexPart::Whole(index)) = &honest.2.index else { unreachable!() };
        let parts = Parts {
            index: Some(IndexPart::Whole(change(index, 4))),
            revocations: honest.2.revocations.as_ref().map(|signed| change(signed, 6)),
        };
        let offered = heads(client, &[change(&honest.0, 0)], &change(&honest.1, 2), now())
            .and_then(|heads| heads.complete(&parts));
        if let Ok(refreshed) = offered {
            let stored = refreshed.state.to_stored();
            prop_assert_eq!(stored.index.unwrap(), record::to_bytes(&world.index));
            prop_assert_eq!(stored.revocations.unwrap(), record::to_bytes(&world.revocations));
            prop_assert_eq!(refreshed.state.root().unwrap().seq(), 2);
        }
    }

    /// Whoever has the keys can sign anything; whatever it is, it is read or refused.
    #[test]
    fn signed_nonsense_is_no_panic(at in 0..4_usize, mutations in mutations()) {
        static WORLD: std::sync::LazyLock<(World, SourceState)> = std::sync::LazyLock::new(|| {
            let mut world = World::new();
            let client = world.client();
            world.revoke("one@acme", VersionRange::default(), crate::Level::Deprecated);
            world.publish();
            (world, client)
        });
        let (mut world, client) = WORLD.clone();
        let body = |bytes: Vec<u8>, index: usize| if at == index { mutated(&bytes.into(), &mutations) } else { bytes.into() };
        world.root.seq = 2;
        let root = signed(Role::Root, 2, body(record::to_bytes(&world.root), 0).to_vec(), &[&world.root_keys[0], &world.root_keys[1]]);
        let index = body(record::to_bytes(&world.index), 1);
        let revocations = body(record::to_bytes(&world.revocations), 2);
        for (file, bytes) in [(&mut world.timestamp.index, &index), (&mut world.timestamp.revocations, &revocations)] {
            file.sha256 = Digest::of(bytes);
            file.size = bytes.len() as u64;
        }
        let timestamp = body(record::to_bytes(&world.timestamp), 3).to_vec();
        let timestamp = signed(Role::Timestamp, 2, timestamp, &[&world.timestamp_key]);
        let parts = Parts {
            index: Some(IndexPart::Whole(signed(Role::Index, 2, index.to_vec(), &[&world.index_key]))),
            revocations: Some(signed(Role::Revocations, 2, revocations.to_vec(), &[&world.revocations_key])),
        };
        let offered = heads(&client, &[root], &timestamp, now()).and_then(|heads| heads.complete(&parts));
        if mutations.is_empty() {
            prop_assert!(offered.is_ok());
        }
    }

    /// A row that was damaged is noticed, or read as something; it is never the end of the process.
    #[test]
    fn a_damaged_row_is_no_panic(mutations in mutations()) {
        static HEAD: std::sync::LazyLock<StoredState> = std::sync::LazyLock::new(|| World::new().client().to_stored());
        let head = mutated(&Bytes::from(HEAD.head.clone()), &mutations);
        if let Ok(head) = String::from_utf8(head.to_vec()) {
            let _either = SourceState::from_stored(StoredState { head, ..HEAD.clone() });
        }
    }
}
