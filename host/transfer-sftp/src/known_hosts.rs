//! The keys by which a user knows SSH servers: lines of `known_hosts` as OpenSSH writes them (sshd(8)). Pure.

use data_encoding::BASE64;
use ring::hmac;

/// The longest line that is read; a key of 16,384 bits has 2,800 bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The most keys of one server that are remembered; one that is left out is not accepted.
const MAX_KEYS: usize = 64;

/// What a file says about a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Its keys.
    pub keys: Vec<KnownKey>,
    /// Keys that it must not have.
    pub revoked: Vec<KnownKey>,
}

/// A key of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Its type, as `ssh-ed25519`.
    pub kind: String,
    /// The public key (RFC 4253, section 6.6).
    pub blob: Vec<u8>,
    /// The number of its line, from 1.
    pub line: usize,
}

/// How a server's key compares with those that it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is one of them.
    Known,
    /// The server is known by none.
    Unknown,
    /// The server is known by others; the number of the line of one of them.
    Changed(usize),
    /// A line says that this key must not be accepted.
    Revoked(usize),
}

impl Verdict {
    /// The line that revokes the key.
    pub fn revoked(&self) -> Option<usize> {
        match self {
            Self::Revoked(line) => Some(*line),
            _ => None,
        }
    }
}

impl Known {
    /// What the lines of `text` say about `host`, a name or an address without brackets, at `port`.
    pub fn of(text: &[u8], host: &str, port: u16) -> Self {
        let host = host.to_ascii_lowercase();
        let spelled = if port == 22 { host } else { format!("[{host}]:{port}") };
        let mut known = Self::default();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let Some((is_revoked, key)) = read(line, &spelled, index + 1) else {
                continue;
            };
            if is_revoked {
                // One that was left out would be accepted.
                known.revoked.push(key);
            } else if known.keys.len() < MAX_KEYS {
                known.keys.push(key);
            }
        }
        known
    }

    /// Compares the public key `blob` with them.
    pub fn verdict(&self, blob: &[u8]) -> Verdict {
        if let Some(key) = self.revoked.iter().find(|key| key.blob == blob) {
            return Verdict::Revoked(key.line);
        }
        if self.keys.iter().any(|key| key.blob == blob) {
            return Verdict::Known;
        }
        match self.keys.first() {
            Some(key) => Verdict::Changed(key.line),
            None => Verdict::Unknown,
        }
    }
}

/// The host of a line for `known_hosts`, as OpenSSH writes it.
pub fn spelled(host: &str, port: u16) -> String {
    if port == 22 {
        host.to_owned()
    } else {
        format!("[{host}]:{port}")
    }
}

/// Reads a line; `None` if it is about another server, or cannot be read, which OpenSSH passes over as well.
fn read(line: &[u8], host: &str, number: usize) -> Option<(bool, KnownKey)> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let line = std::str::from_utf8(line).ok()?.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut words = line.split_ascii_whitespace().peekable();
    let is_revoked = match *words.peek()? {
        "@revoked" => true,
        // Certificates are not asked for.
        marker if marker.starts_with('@') => return None,
        _ => false,
    };
    if is_revoked {
        words.next();
    }
    let hosts = words.next()?;
    if !matches(hosts, host) {
        return None;
    }
    let kind = words.next()?.to_owned();
    let blob = BASE64.decode(words.next()?.as_bytes()).ok()?;
    // The blob begins with its own type; a line that contradicts it says nothing.
    let length = usize::try_from(u32::from_be_bytes(*blob.first_chunk()?)).ok()?;
    let own = blob.get(4..4_usize.checked_add(length)?)?;
    if own != kind.as_bytes() {
        return None;
    }
    let line = number;
    Some((is_revoked, KnownKey { kind, blob, line }))
}

/// Whether the first field of a line is about `host`.
fn matches(hosts: &str, host: &str) -> bool {
    if let Some(hashed) = hosts.strip_prefix("|1|") {
        return is_hash_of(hashed, host);
    }
    let mut is_named = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if is_like(pattern, host) => return false,
            Some(_) => {}
            None => is_named |= is_like(pattern, host),
        }
    }
    is_named
}

/// Whether `hashed`, a salt and a HMAC-SHA1, was made of `host`.
fn is_hash_of(hashed: &str, host: &str) -> bool {
    let Some((salt, hash)) = hashed.split_once('|') else {
        return false;
    };
    let (Ok(salt), Ok(hash)) = (BASE64.decode(salt.as_bytes()), BASE64.decode(hash.as_bytes())) else {
        return false;
    };
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    hmac::sign(&key, host.as_bytes()).as_ref() == hash
}

/// Whether `text` is as `pattern` says, in which `*` stands for any characters and `?` for one. Takes time proportional to
/// the product of both lengths at most.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.as_bytes());
    let pattern = pattern.as_bytes();
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((of_star, from)) => {
                    at = of_star + 1;
                    in_text = from + 1;
                    star = Some((of_star, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, last: u8) -> (Vec<u8>, String) {
        let length = u32::try_from(kind.len()).unwrap().to_be_bytes();
        let blob = [&length[..], kind.as_bytes(), &[last; 32]].concat();
        let text = format!("{kind} {}", BASE64.encode(&blob));
        (blob, text)
    }

    #[test]
    fn patterns_are_read_as_openssh_reads_them() {
        for (hosts, host, expect) in [
            ("example.test", "example.test", true),
            ("Example.Test", "example.test", true),
            ("example.test", "other.test", false),
            ("a,b,example.test", "example.test", true),
            ("*.test", "example.test", true),
            ("*.test,!example.test", "example.test", false),
            ("!example.test,*", "other.test", true),
            ("exampl?.test", "example.test", true),
            ("*", "example.test", true),
            ("[example.test]:2222", "[example.test]:2222", true),
            ("example.test", "[example.test]:2222", false),
            ("ex*mple*st", "example.test", true),
            ("", "example.test", false),
        ] {
            assert_eq!(matches(hosts, host), expect, "{hosts} {host}");
        }
    }

    #[test]
    fn hashed_lines_are_compared_by_their_hash() {
        let salt = [7; 20];
        let hmac_key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
        let hash = BASE64.encode(hmac::sign(&hmac_key, b"[example.test]:2222").as_ref());
        let (blob, text) = key("ssh-ed25519", 1);
        let line = format!("|1|{}|{hash} {text}\n", BASE64.encode(&salt));
        assert_eq!(
            Known::of(line.as_bytes(), "Example.test", 2222).verdict(&blob),
            Verdict::Known
        );
        assert_eq!(
            Known::of(line.as_bytes(), "example.test", 22).verdict(&blob),
            Verdict::Unknown
        );
    }

    #[test]
    fn keys_are_known_unknown_changed_or_revoked() {
        let (first, first_text) = key("ssh-ed25519", 1);
        let (second, second_text) = key("ecdsa-sha2-nistp256", 2);
        let (third, third_text) = key("ssh-ed25519", 3);
        let text = format!(
            "# comment\n\nh.test {first_text} a comment\nh.test,10.0.0.1 {second_text}\n@revoked * {third_text}\n\
             @cert-authority * {third_text}\nbroken\nh.test ssh-rsa {}\n",
            BASE64.encode(&third)
        );
        let known = Known::of(text.as_bytes(), "h.test", 22);
        assert_eq!(known.verdict(&first), Verdict::Known);
        assert_eq!(known.verdict(&second), Verdict::Known);
        assert_eq!(known.verdict(&third), Verdict::Revoked(5));
        assert_eq!(known.verdict(&key("ssh-ed25519", 4).0), Verdict::Changed(3));
        let kinds: Vec<_> = known.keys.iter().map(|key| key.kind.as_str()).collect();
        assert_eq!(kinds, ["ssh-ed25519", "ecdsa-sha2-nistp256"]);
        let other = Known::of(text.as_bytes(), "other.test", 22);
        assert_eq!(other.verdict(&first), Verdict::Unknown);
        assert_eq!(other.verdict(&third), Verdict::Revoked(5));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(text in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let known = Known::of(&text, "h", 22);
            proptest::prop_assert!(known.keys.len() <= text.len());
        }
    }
}
