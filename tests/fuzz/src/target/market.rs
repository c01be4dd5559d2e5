//! The documents of a market's source, signed by those who may: what is read before and after the signature counts.

use bytes::Bytes;
use jiff::Timestamp;
use market::{
    Digest, Index, PublicKey, Role, SourceState,
    signature::Purpose,
    verify::{self, IndexPart, Parts, Signed},
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
        let comment = Purpose::Document { role, seq, sha256 }.to_string();
        let signature = minisign::sign(None, &self.pair.sk, &body[..], Some(&comment), None);
        let signatures = signature
            .expect("it is no secret key of somebody else")
            .to_string()
            .into();
        Signed { body, signatures }
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
