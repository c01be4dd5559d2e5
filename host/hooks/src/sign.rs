//! Signatures of deliveries. Pure.

use data_encoding::HEXLOWER;
use ring::hmac;

/// The header of the signature.
pub const HEADER: &str = "X-Svc-Signature";

/// The value of the header: `t=<unix seconds>,v1=<hex HMAC-SHA256(secret, "<t>.<body>")>`. The time is signed, so that a
/// receiver can refuse a delivery that somebody recorded and sends again.
pub fn signature(secret: &str, unix_seconds: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{unix_seconds}.{body}").as_bytes());
    format!("t={unix_seconds},v1={}", HEXLOWER.encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_follows_the_description_gets_the_same_value() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        assert_eq!(
            signature("key", 1_700_000_000, "{\"a\":1}"),
            "t=1700000000,v1=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
    }
}
