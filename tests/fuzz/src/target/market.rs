//! The documents of a market's source with valid signatures, so that what is read after their verification is reached,
//! and files of signatures.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use market::{
    Digest, FILES, FILES_SIGNATURE, Index, PublicKey, Role, SourceState, files_list,
    signature::{self, Compact, Purpose},
    verify::{self, IndexPart, Parts, Signed},
    verify_files,
};
use minisign::KeyPair;
use serde_json::{Value, json};

use super::Target;

/// What stands in a document for the key that signs it.
const KEY: &str = "$KEY";

/// The first byte says which document of the source the rest is.
pub(super) fn documents() -> Target {
    let source = Source::new();
    Box::new(move |data| {
        let Some((&kind, body)) = data.split_first() else {
            return;
        };
        let body = String::from_utf8_lossy(body).replace(KEY, &source.key.to_string());
        source.refresh(kind, &Bytes::from(body));
    })
}

/// Replaced in a file of signatures by a valid signature.
const SIGNATURE: &str = "$SIGNATURE";

/// Files of signatures: of a timestamp, and of the list of a package's files. Nothing is accepted without a valid one.
pub(super) fn signatures() -> Target {
    let source = Source::new();
    let (index, revocations) = (
        source.signed(Role::Index, index()),
        source.signed(Role::Revocations, revocations()),
    );
    let timestamp = source.signed(Role::Timestamp, timestamp(&index, &revocations));
    let state = SourceState::with_root(&source.root()).expect("it is a root");
    let (identity, version) = ("a@b".parse().expect("it is one"), "1.0.0".parse().expect("it is one"));
    let mut files = BTreeMap::from([("plugin.json".to_owned(), Bytes::from_static(b"{}"))]);
    let list = files_list(&files);
    let purpose = Purpose::Files {
        identity: &identity,
        version: &version,
        sha256: Digest::of(&list),
    };
    let list_signature = source.sign(&list, purpose);
    files.insert(FILES.to_owned(), list.into());
    let mut accepts = move |text: &str| {
        let signatures = text.replace(SIGNATURE, &String::from_utf8_lossy(&timestamp.signatures));
        let signed = Signed {
            body: timestamp.body.clone(),
            signatures: signatures.into(),
        };
        files.insert(
            FILES_SIGNATURE.to_owned(),
            text.replace(SIGNATURE, &list_signature).into(),
        );
        (
            verify::heads(&state, &[], &signed, source.now).is_ok(),
            verify_files(&files, &identity, &version, Some(&source.key)).is_ok(),
        )
    };
    assert_eq!(accepts(SIGNATURE), (true, true), "valid signatures count");
    Box::new(move |data| {
        let _number = signature::claimed_sequence(data, Role::Timestamp);
        let text = String::from_utf8_lossy(data);
        let accepted = accepts(&text);
        assert!(
            text.contains(SIGNATURE) || accepted == (false, false),
            "nothing is believed without the key's signature"
        );
        if let Ok(compact) = Compact::from_file(&text) {
            assert_eq!(compact.to_string().parse(), Ok(compact), "what is written is read");
        }
    })
}

struct Source {
    pair: KeyPair,
    key: PublicKey,
    now: Timestamp,
}

impl Source {
    fn new() -> Self {
        let pair = KeyPair::generate_unencrypted_keypair().expect("there is randomness");
        let key = pair.pk.to_base64().parse().expect("it is a key");
        let now = "2026-11-21T12:00:00Z".parse().expect("it is a time");
        Self { pair, key, now }
    }

    /// A source whose document of this kind is `body`.
    fn refresh(&self, kind: u8, body: &Bytes) {
        let root = self.signed(Role::Root, if kind == 0 { body.clone() } else { self.root() });
        let index = self.signed(Role::Index, if kind == 1 { body.clone() } else { index() });
        let revocations = self.signed(Role::Revocations, if kind == 2 { body.clone() } else { revocations() });
        let timestamp = if kind == 3 {
            body.clone()
        } else {
            timestamp(&index, &revocations)
        };
        let timestamp = self.signed(Role::Timestamp, timestamp);
        let state = SourceState::with_key(self.key);
        let Ok(heads) = verify::heads(&state, &[root], &timestamp, self.now) else {
            return;
        };
        let index = match kind {
            4 => IndexPart::Patch(Signed {
                body: body.clone(),
                ..index
            }),
            _ => IndexPart::Whole(index),
        };
        let parts = Parts {
            index: Some(index),
            revocations: Some(revocations),
        };
        if let Ok(refreshed) = heads.complete(&parts) {
            let stored = SourceState::from_stored(refreshed.state.to_stored());
            let stored = stored.expect("what is believed can be remembered");
            let index = stored.index().expect("it was read before").expect("there is one");
            let names = |index: &Index| index.plugins().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(
                names(&index),
                names(&refreshed.index),
                "the same plugins are remembered"
            );
        }
    }

    fn signed(&self, role: Role, body: Bytes) -> Signed {
        let sha256 = Digest::of(&body);
        let claimed: Value = serde_json::from_slice(&body).unwrap_or_default();
        let seq = claimed["seq"].as_u64().unwrap_or(1);
        let signatures = self.sign(&body, Purpose::Document { role, seq, sha256 }).into();
        Signed { body, signatures }
    }

    fn sign(&self, message: &[u8], purpose: Purpose<'_>) -> String {
        let signature = minisign::sign(None, &self.pair.sk, message, Some(&purpose.to_string()), None);
        signature.expect("the key has no passphrase").to_string()
    }

    fn root(&self) -> Bytes {
        let role = json!({"keys": [self.key.to_string()], "threshold": 1});
        let root = json!({
            "spec": "1.0", "seq": 1, "expires": "2027-11-21T12:00:00Z", "source": {"id": "main", "name": "Main"},
            "roles": {"root": role, "timestamp": role, "index": role, "revocations": role},
        });
        root.to_string().into()
    }
}

fn index() -> Bytes {
    Bytes::from_static(br#"{"expires":"2027-01-21T12:00:00Z","plugins":{},"seq":1,"spec":"1.0"}"#)
}

fn revocations() -> Bytes {
    Bytes::from_static(br#"{"items":[],"seq":1,"spec":"1.0"}"#)
}

fn timestamp(index: &Signed, revocations: &Signed) -> Bytes {
    let file = |signed: &Signed| {
        let claimed: Value = serde_json::from_slice(&signed.body).unwrap_or_default();
        let seq = claimed["seq"].as_u64().unwrap_or(1);
        json!({"seq": seq, "sha256": Digest::of(&signed.body).to_string(), "size": signed.body.len()})
    };
    let timestamp = json!({
        "spec": "1.0", "seq": 1, "issued": "2026-11-21T11:00:00Z", "expires": "2026-12-21T12:00:00Z",
        "root": {"seq": 1}, "index": file(index), "revocations": file(revocations),
    });
    timestamp.to_string().into()
}
