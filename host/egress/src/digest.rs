//! HTTP Digest (RFC 7616): reads challenges, and answers them without the password leaving the process. Pure, except for
//! the random client nonce.
//!
//! MD5 and SHA-256 with their session variants, and `qop=auth` or none. `auth-int` and SHA-512-256, which no server of
//! note offers alone, are not answered.

use std::fmt::{self, Write as _};

use transfer::{Checksum, Credentials, checksum::Algorithm};

/// The longest realm, nonce or opaque value that is repeated to a server. Those in use have some hundred bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// Challenges that are looked at in one response.
const MAX_CHALLENGES: usize = 16;

/// A challenge that can be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter that is there or not")]
pub struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// The algorithm as the server wrote it, which the answer repeats.
    algorithm_name: Option<String>,
    is_session: bool,
    has_qop: bool,
    hashes_user: bool,
    /// The answer was right, except that its nonce had expired.
    pub is_stale: bool,
}

/// A scheme with its parameters, names in lower case.
struct Offer {
    scheme: String,
    params: Vec<(String, String)>,
}

impl Offer {
    fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.params.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

impl Challenge {
    /// The strongest challenge in the values of `WWW-Authenticate` or `Proxy-Authenticate` headers.
    pub fn strongest<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
        let offers = texts.flat_map(offers).take(MAX_CHALLENGES);
        let known = offers.filter_map(|offer| Self::of(&offer));
        // The first of equals: servers list what they prefer first.
        known.reduce(|best, next| if next.strength() > best.strength() { next } else { best })
    }

    fn strength(&self) -> usize {
        self.algorithm.digest_bytes()
    }

    fn of(offer: &Offer) -> Option<Self> {
        if !offer.scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let algorithm_name = offer.get("algorithm").map(str::to_owned);
        let (algorithm, is_session) = match algorithm_name.as_deref().unwrap_or("MD5").to_ascii_uppercase().as_str() {
            "MD5" => (Algorithm::Md5, false),
            "MD5-SESS" => (Algorithm::Md5, true),
            "SHA-256" => (Algorithm::Sha256, false),
            "SHA-256-SESS" => (Algorithm::Sha256, true),
            _ => return None,
        };
        let has_qop = match offer.get("qop") {
            None => false,
            Some(list) if list.split(',').any(|qop| qop.trim().eq_ignore_ascii_case("auth")) => true,
            Some(_) => return None,
        };
        let is_on = |name: &str| offer.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let text = |name: &str| offer.get(name).map(str::to_owned);
        let challenge = Self {
            realm: text("realm")?,
            nonce: text("nonce")?,
            opaque: text("opaque"),
            algorithm,
            algorithm_name,
            is_session,
            has_qop,
            hashes_user: is_on("userhash"),
            is_stale: is_on("stale"),
        };
        let values = [
            Some(&challenge.realm),
            Some(&challenge.nonce),
            challenge.opaque.as_ref(),
        ];
        let is_usable = |value: &&String| value.len() <= MAX_VALUE_BYTES && !value.chars().any(char::is_control);
        values.iter().flatten().all(is_usable).then_some(challenge)
    }

    fn hash(&self, text: &str) -> String {
        let hashed = Checksum::compute(self.algorithm, &mut text.as_bytes());
        hashed.expect("reading from memory does not fail").hex()
    }
}

/// Answers to one challenge, counted as the server expects it.
#[derive(Debug)]
pub struct Session {
    challenge: Challenge,
    /// The nonce of the first answer, which the key of a session variant is made with.
    first_nonce: String,
    cnonce: String,
    count: u32,
}

impl Session {
    /// Begins to answer a challenge.
    pub fn new(challenge: Challenge) -> Self {
        let mut random = [0; 16];
        getrandom::fill(&mut random).expect("the system has random numbers");
        Self::with_cnonce(challenge, data_encoding::HEXLOWER.encode(&random))
    }

    fn with_cnonce(challenge: Challenge, cnonce: String) -> Self {
        Self {
            first_nonce: challenge.nonce.clone(),
            challenge,
            cnonce,
            count: 0,
        }
    }

    /// Whether it answers the nonce of `challenge`.
    pub fn answers(&self, challenge: &Challenge) -> bool {
        self.challenge.nonce == challenge.nonce
    }

    /// Continues with the nonce that the server wants next, according to an `Authentication-Info` header.
    pub fn renew(&mut self, info: &[u8]) {
        let next = std::str::from_utf8(info).ok().and_then(|text| {
            let (params, _) = params(text);
            params.into_iter().find(|(name, _)| name == "nextnonce")
        });
        if let Some((_, nonce)) = next
            && nonce.len() <= MAX_VALUE_BYTES
            && !nonce.is_empty()
            && !nonce.chars().any(char::is_control)
        {
            self.challenge.nonce = nonce;
            self.count = 0;
        }
    }

    /// The value of an `Authorization` header for a request.
    pub fn authorization(&mut self, login: &Credentials, method: &str, target: &str) -> String {
        self.count += 1;
        let Self {
            challenge,
            first_nonce,
            cnonce,
            count,
        } = self;
        let (user, realm, nonce) = (&login.user, &challenge.realm, &challenge.nonce);
        let secret = challenge.hash(&format!("{user}:{realm}:{}", login.password.expose()));
        let key = if challenge.is_session {
            challenge.hash(&format!("{secret}:{first_nonce}:{cnonce}"))
        } else {
            secret
        };
        let request = challenge.hash(&format!("{method}:{target}"));
        let number = format!("{count:08x}");
        let response = if challenge.has_qop {
            challenge.hash(&format!("{key}:{nonce}:{number}:{cnonce}:auth:{request}"))
        } else {
            challenge.hash(&format!("{key}:{nonce}:{request}"))
        };
        let name = if challenge.hashes_user {
            format!(
                "username=\"{}\", userhash=true",
                challenge.hash(&format!("{user}:{realm}"))
            )
        } else if user.is_ascii() {
            format!("username=\"{}\"", escaped(user))
        } else {
            let encoded = percent_encoding::utf8_percent_encode(user, percent_encoding::NON_ALPHANUMERIC);
            format!("username*=UTF-8''{encoded}")
        };
        let (realm, nonce, target) = (escaped(realm), escaped(nonce), escaped(target));
        let mut value =
            format!("Digest {name}, realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{target}\", response=\"{response}\"");
        let mut add = |text: fmt::Arguments<'_>| value.write_fmt(text).expect("a text has room");
        if let Some(name) = &challenge.algorithm_name {
            add(format_args!(", algorithm={name}"));
        }
        if challenge.has_qop {
            add(format_args!(", qop=auth, nc={number}, cnonce=\"{cnonce}\""));
        } else if challenge.is_session {
            add(format_args!(", cnonce=\"{cnonce}\""));
        }
        if let Some(opaque) = &challenge.opaque {
            add(format_args!(", opaque=\"{}\"", escaped(opaque)));
        }
        value
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The challenges in one header, which may have several (RFC 9110, section 11.6.1).
fn offers(text: &str) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut rest = text;
    while offers.len() < MAX_CHALLENGES {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
        let (scheme, after) = rest.split_at(end);
        if scheme.is_empty() || scheme.contains(['=', '"']) {
            break;
        }
        let (params, left) = params(after);
        offers.push(Offer {
            scheme: scheme.to_owned(),
            params,
        });
        rest = left;
    }
    offers
}

/// Parameters separated by commas, and what follows them: the next challenge.
fn params(text: &str) -> (Vec<(String, String)>, &str) {
    let mut params = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start_matches([' ', '\t', ',']);
        let name_end = start.find([' ', '\t', ',', '=', '"']).unwrap_or(start.len());
        let (name, after) = start.split_at(name_end);
        let Some(value) = after.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            return (params, start);
        };
        if name.is_empty() {
            return (params, "");
        }
        let value = value.trim_start_matches([' ', '\t']);
        let (value, left) = if let Some(quoted) = value.strip_prefix('"') {
            unquote(quoted)
        } else {
            let end = value.find([' ', '\t', ',']).unwrap_or(value.len());
            (value[..end].to_owned(), &value[end..])
        };
        params.push((name.to_ascii_lowercase(), value));
        rest = left;
    }
}

/// A quoted string after its first quote, and what follows it.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            char => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use transfer::Secret;

    use super::*;

    fn challenge(text: &str) -> Option<Challenge> {
        Challenge::strongest(std::iter::once(text.as_bytes()))
    }

    fn login(user: &str, password: &str) -> Credentials {
        Credentials {
            user: user.into(),
            password: Secret::new(password),
        }
    }

    /// The value of a parameter of an answer.
    fn param(answer: &str, name: &str) -> Option<String> {
        let (params, _) = params(answer.strip_prefix("Digest").unwrap());
        params
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// The example of RFC 7616, section 3.9.1, for both of its algorithms.
    #[test]
    fn the_example_of_the_standard_is_answered_as_there() {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let text = format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ".to_owned();
            let mut session = Session::with_cnonce(challenge(&text).unwrap(), cnonce);
            let answer = session.authorization(&login("Mufasa", "Circle of Life"), "GET", "/dir/index.html");
            assert_eq!(param(&answer, "response").as_deref(), Some(response), "{answer}");
            assert_eq!(param(&answer, "nc").as_deref(), Some("00000001"));
            assert!(!answer.contains("Circle"));
            let again = session.authorization(&login("Mufasa", "Circle of Life"), "GET", "/dir/index.html");
            assert_eq!(param(&again, "nc").as_deref(), Some("00000002"));
        }
    }

    /// RFC 2069, as old servers speak it: no qop, no counter.
    #[test]
    fn a_challenge_without_qop_is_answered_without_a_counter() {
        let text = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"";
        let mut session = Session::new(challenge(text).unwrap());
        let answer = session.authorization(&login("Mufasa", "CircleOfLife"), "GET", "/dir/index.html");
        assert_eq!(
            param(&answer, "response").as_deref(),
            Some("1949323746fe6a43ef61f9606e7febea")
        );
        assert_eq!(
            (
                param(&answer, "nc"),
                param(&answer, "cnonce"),
                param(&answer, "algorithm")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn a_session_variant_keeps_its_first_nonce_in_the_key() {
        let text = "Digest realm=r, nonce=n1, algorithm=MD5-sess, qop=auth";
        let mut session = Session::with_cnonce(challenge(text).unwrap(), "c".into());
        session.renew(b"nextnonce=\"n2\", qop=auth");
        let answer = session.authorization(&login("u", "p"), "GET", "/");
        let md5 = |text: &str| Checksum::compute(Algorithm::Md5, &mut text.as_bytes()).unwrap().hex();
        let key = md5(&format!("{}:n1:c", md5("u:r:p")));
        let wanted = md5(&format!("{key}:n2:00000001:c:auth:{}", md5("GET:/")));
        assert_eq!(param(&answer, "response"), Some(wanted));
        assert_eq!(param(&answer, "nonce").as_deref(), Some("n2"));
    }

    #[test]
    fn the_strongest_challenge_that_can_be_answered_is_chosen() {
        let several = "Basic realm=\"a, b=c\", Digest realm=x, nonce=1, algorithm=MD5, Negotiate, \
             Digest realm=y, nonce=2, algorithm=SHA-256, Digest realm=z, nonce=3, algorithm=SHA-512-256";
        let chosen = challenge(several).unwrap();
        assert_eq!((chosen.realm.as_str(), chosen.nonce.as_str()), ("y", "2"));
        let headers = [
            "Digest realm=x, nonce=1",
            "Digest realm=y, nonce=2, algorithm=sha-256-SESS",
        ];
        let chosen = Challenge::strongest(headers.iter().map(|text| text.as_bytes())).unwrap();
        assert!(chosen.is_session && chosen.nonce == "2");
        for text in [
            "",
            "Basic realm=x",
            "Digest",
            "Digest realm=x",
            "Digest nonce=x",
            "Digest realm=x, nonce=1, qop=auth-int",
            "Digest realm=x, nonce=1, algorithm=SHA-512-256",
            "Digestive realm=x, nonce=1",
            "Digest realm=x, nonce=\"a\u{7}b\"",
            &format!("Digest realm=x, nonce={}", "n".repeat(5000)),
        ] {
            assert_eq!(challenge(text), None, "{text}");
        }
        assert!(
            challenge("digest REALM = \"x\\\"y\" , nonce=1, stale=TRUE")
                .unwrap()
                .is_stale
        );
    }

    #[test]
    fn users_are_hashed_or_encoded_as_the_server_asks() {
        let answer = |text: &str, user: &str| {
            Session::new(challenge(text).unwrap()).authorization(&login(user, "p"), "GET", "/")
        };
        let hashed = answer("Digest realm=r, nonce=n, userhash=true", "me");
        assert!(
            hashed.contains("userhash=true") && !hashed.contains("\"me\""),
            "{hashed}"
        );
        let plain = answer("Digest realm=r, nonce=n", "J\u{e4}s\u{f8}n Doe");
        assert!(plain.contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"), "{plain}");
        let quoted = answer("Digest realm=\"a\\\"b\", nonce=n", "a\"b\\c");
        assert!(quoted.contains(r#"username="a\"b\\c", realm="a\"b""#), "{quoted}");
    }

    proptest! {
        #[test]
        fn any_header_is_a_challenge_or_none_and_an_answer_has_one_line(
            text in "(Digest )?[a-z=,\" \\\\]{0,40}", known in "Digest realm=\"[^\"\\\\]{0,8}\", nonce=\"[^\"\\\\]{0,8}\"",
        ) {
            let _any = challenge(&text);
            if let Some(known) = challenge(&known) {
                let answer = Session::new(known).authorization(&login("u", "p"), "GET", "/");
                prop_assert!(!answer.chars().any(char::is_control), "{:?}", answer);
            }
        }
    }
}
