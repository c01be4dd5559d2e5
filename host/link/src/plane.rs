//! The checks of a request on the data plane, in their order. Pure.

use crate::{
    constants::MAX_SKEW_SECS,
    crypto::{
        identity::{Fingerprint, is_lower_hex},
        seal::{Envelope, Keys},
    },
};

/// The headers of a request. Each is `None` if it is absent, given twice, or not text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `X-SvcLink-Enc`
    pub enc: Option<&'a str>,
    /// `X-SvcLink-Device`
    pub device: Option<&'a str>,
    /// `X-SvcLink-Ts`
    pub timestamp: Option<&'a str>,
    /// `X-SvcLink-Nonce`
    pub nonce: Option<&'a str>,
    /// `X-SvcLink-Tag`
    pub tag: Option<&'a str>,
}

/// The `reason` of a 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unauthorized {
    /// The device is not paired with this one, or not any more.
    NotPaired,
    /// The clocks differ too much.
    ClockSkew,
    /// Anything else.
    Unauthorized,
}

impl Unauthorized {
    /// On the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotPaired => "notPaired",
            Self::ClockSkew => "clockSkew",
            Self::Unauthorized => "unauthorized",
        }
    }
}

/// Headers of the right shape.
#[derive(Debug, Clone)]
pub struct Shaped<'a> {
    /// The sender.
    pub device: Fingerprint,
    /// As it was sent, because the tag contains it.
    pub timestamp: &'a str,
    /// The same as a number.
    pub seconds: i64,
    /// 32 hexadecimal digits.
    pub nonce: &'a str,
    /// 64 hexadecimal digits.
    pub tag: &'a str,
}

/// Checks encryption, shape and clock.
pub fn shaped<'a>(headers: &Headers<'a>, now: i64) -> Result<Shaped<'a>, Unauthorized> {
    if headers.enc != Some("v2") {
        return Err(Unauthorized::Unauthorized);
    }
    let read = || {
        let timestamp = headers.timestamp?;
        let is_number = (1..=18).contains(&timestamp.len()) && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        Some(Shaped {
            device: Fingerprint::read(headers.device?)?,
            timestamp,
            seconds: timestamp.parse().ok().filter(|_| is_number)?,
            nonce: headers.nonce.filter(|nonce| is_lower_hex(nonce, 32))?,
            tag: headers.tag.filter(|tag| is_lower_hex(tag, 64))?,
        })
    };
    let shaped = read().ok_or(Unauthorized::Unauthorized)?;
    if shaped.seconds.abs_diff(now) > MAX_SKEW_SECS.unsigned_abs() {
        return Err(Unauthorized::ClockSkew);
    }
    Ok(shaped)
}

/// Checks the tag of a request from a known device.
pub fn authenticated(
    keys: &Keys,
    envelope: &Envelope<'_>,
    shaped: &Shaped<'_>,
    body: &[u8],
) -> Result<(), Unauthorized> {
    if keys.verifies(envelope, shaped.timestamp, body, shaped.tag) {
        Ok(())
    } else {
        Err(Unauthorized::Unauthorized)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX64: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn right() -> Headers<'static> {
        Headers {
            enc: Some("v2"),
            device: Some(HEX64),
            timestamp: Some("1000"),
            nonce: Some("00112233445566778899aabbccddeeff"),
            tag: Some(HEX64),
        }
    }

    #[test]
    fn a_wrong_shape_is_refused_before_the_clock_is_looked_at() {
        let refused = |headers: Headers<'_>, now| shaped(&headers, now).err();
        assert_eq!(refused(right(), 1120), None);
        assert_eq!(refused(right(), 880), None);
        assert_eq!(refused(right(), 1121), Some(Unauthorized::ClockSkew));
        assert_eq!(refused(right(), 879), Some(Unauthorized::ClockSkew));
        for enc in [None, Some("v1"), Some("V2"), Some("v2 "), Some("")] {
            assert_eq!(
                refused(Headers { enc, ..right() }, 5000),
                Some(Unauthorized::Unauthorized)
            );
        }
        for timestamp in [
            None,
            Some(""),
            Some("+1000"),
            Some("-1"),
            Some("1e3"),
            Some("9999999999999999999"),
        ] {
            assert_eq!(
                refused(Headers { timestamp, ..right() }, 1000),
                Some(Unauthorized::Unauthorized)
            );
        }
        for wrong in [None, Some(""), Some("00"), Some("00112233445566778899AABBCCDDEEFF")] {
            assert_eq!(
                refused(
                    Headers {
                        nonce: wrong,
                        ..right()
                    },
                    1000
                ),
                Some(Unauthorized::Unauthorized)
            );
            assert_eq!(
                refused(Headers { tag: wrong, ..right() }, 1000),
                Some(Unauthorized::Unauthorized)
            );
            assert_eq!(
                refused(
                    Headers {
                        device: wrong,
                        ..right()
                    },
                    1000
                ),
                Some(Unauthorized::Unauthorized)
            );
        }
    }
}
