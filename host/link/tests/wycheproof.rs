//! The vectors of Project Wycheproof for every primitive that the link uses, through the link's own functions.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use ring::{hkdf, hmac};
use wycheproof::{TestResult, aead, eddsa, hkdf as hkdf_vectors, mac, xdh};

#[test]
fn x25519_agrees_and_refuses_points_of_small_order() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).unwrap();
    let mut checked = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Ok(public), Ok(secret)) = (test.public_key[..].try_into(), test.private_key[..].try_into()) else {
            continue;
        };
        let expected: &[u8] = &test.shared_secret;
        let is_zero = expected.iter().all(|byte| *byte == 0);
        let agreed = link::crypto::transcript::agree(&secret, &public);
        if is_zero {
            assert_eq!(agreed, None, "{}", test.tc_id);
        } else {
            assert_eq!(
                agreed.as_ref().map(|shared| &shared[..]),
                Some(expected),
                "{}",
                test.tc_id
            );
        }
        checked += 1;
    }
    assert!(checked > 400, "{checked}");
}

#[test]
fn ed25519_takes_exactly_the_valid_signatures() {
    let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
    let mut checked = 0;
    for group in &set.test_groups {
        let public: [u8; 32] = group.key.pk[..].try_into().unwrap();
        let key = link::crypto::identity::PeerKey::read(&public);
        for test in &group.tests {
            let signature = test.sig[..].try_into().ok();
            let verifies = key
                .as_ref()
                .zip(signature)
                .is_some_and(|(key, signature)| key.verifies(&test.msg, &signature));
            assert_eq!(
                verifies,
                test.result == TestResult::Valid,
                "{} {}",
                test.tc_id,
                test.comment
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn chacha20_poly1305_opens_exactly_what_was_sealed() {
    let set = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).unwrap();
    let mut checked = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let (Ok(key), Ok(nonce)) = (
            <[u8; 32]>::try_from(&test.key[..]),
            <[u8; 12]>::try_from(&test.nonce[..]),
        ) else {
            continue;
        };
        let sealed = [&test.ct[..], &test.tag[..]].concat();
        let payload = Payload {
            msg: &sealed,
            aad: &test.aad,
        };
        let opened = ChaCha20Poly1305::new(&key.into())
            .decrypt(&Nonce::from(nonce), payload)
            .ok();
        match test.result {
            TestResult::Invalid => assert_eq!(opened, None, "{}", test.tc_id),
            _ => assert_eq!(opened.as_deref(), Some(&test.pt[..]), "{}", test.tc_id),
        }
        checked += 1;
    }
    assert!(checked > 200, "{checked}");
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn hkdf_and_hmac_are_those_of_the_vectors() {
    let set = hkdf_vectors::TestSet::load(hkdf_vectors::TestName::HkdfSha256).unwrap();
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &test.salt).extract(&test.ikm);
        let info: [&[u8]; 1] = [&test.info];
        let expanded = extracted.expand(&info, Length(test.size));
        let derived = expanded.ok().and_then(|okm| {
            let mut out = vec![0; test.size];
            okm.fill(&mut out).ok().map(|()| out)
        });
        match test.result {
            TestResult::Invalid => assert_eq!(derived, None, "{}", test.tc_id),
            _ => assert_eq!(derived.as_deref(), Some(&test.okm[..]), "{}", test.tc_id),
        }
    }
    let set = mac::TestSet::load(mac::TestName::HmacSha256).unwrap();
    for group in &set.test_groups {
        for test in group.tests.iter().filter(|_| group.tag_size == 256) {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &test.key);
            let verifies = hmac::verify(&key, &test.msg, &test.tag).is_ok();
            assert_eq!(verifies, test.result == TestResult::Valid, "{}", test.tc_id);
        }
    }
}
