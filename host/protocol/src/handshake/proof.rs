//! How agent and daemon prove to each other that they know the long-term token, without sending it.
//!
//! The agent asks with a nonce; the daemon answers with its own nonce and a proof over both; the agent checks it and
//! answers with a proof of its own. Both then derive the same credential for HTTP, for as long as the socket lives.

use data_encoding::HEXLOWER;
use ring::{hmac, rand::SecureRandom as _};
use serde::{Deserialize, Serialize};

/// The first line of every message that is authenticated.
const LABEL: &str = "svc-daemon-auth/v1";

/// Random bytes of a nonce that we make; 64 hexadecimal digits on the wire.
const NONCE_BYTES: usize = 32;

/// The hexadecimal digits that a nonce may have.
const NONCE_CHARS: std::ops::RangeInclusive<usize> = 32..=128;

/// Who proves, so that one side's proof is never the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofRole {
    /// The daemon.
    Daemon,
    /// The agent.
    Agent,
    /// No peer: the bearer credential of HTTP requests that belong to the socket.
    HttpCredential,
}

impl ProofRole {
    fn label(self) -> &'static str {
        match self {
            Self::Daemon => "daemon-proof",
            Self::Agent => "agent-proof",
            Self::HttpCredential => "http-credential",
        }
    }
}

/// Params of `system.auth.challenge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChallengeParams {
    /// The agent's nonce.
    pub client_nonce: String,
}

/// Result of `system.auth.challenge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChallengeResult {
    /// The daemon's nonce.
    pub server_nonce: String,
    /// The daemon's proof.
    pub server_proof: String,
}

/// Params of `system.auth.prove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProveParams {
    /// The agent's proof.
    pub client_proof: String,
}

/// Result of `system.auth.prove`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProveResult {
    /// Always true: what failed is an error.
    pub authenticated: bool,
}

/// No random numbers can be had from the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandom;

/// The long-term token, as a key. Prints as `***`.
#[derive(Clone)]
pub struct Token {
    text: Box<str>,
    key: hmac::Key,
}

impl Token {
    /// The token with this text.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            key: hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()),
        }
    }

    /// A new random one: 64 hexadecimal digits.
    pub fn random() -> Result<Self, NoRandom> {
        nonce().map(|text| Self::new(&text))
    }

    /// Its text, for the file that keeps it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The proof of `role` over the two nonces, as lower-case hexadecimal digits.
    pub fn prove(&self, role: ProofRole, client_nonce: &str, server_nonce: &str) -> String {
        HEXLOWER.encode(hmac::sign(&self.key, &message(role, client_nonce, server_nonce)).as_ref())
    }

    /// Whether `proof` is the proof of `role`; takes equally long whatever it is.
    pub fn verify(&self, role: ProofRole, client_nonce: &str, server_nonce: &str, proof: &str) -> bool {
        let Ok(tag) = HEXLOWER.decode(proof.as_bytes()) else {
            return false;
        };
        hmac::verify(&self.key, &message(role, client_nonce, server_nonce), &tag).is_ok()
    }

    /// Whether `text` is the token itself; takes equally long whatever it is.
    pub fn is(&self, text: &str) -> bool {
        same(&self.text, text)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Whether two secrets are equal; takes equally long wherever they differ, and whatever their lengths.
pub fn same(left: &str, right: &str) -> bool {
    // What is compared are authentication tags under a key nobody else has, so neither content nor length shows.
    let key = hmac::Key::new(hmac::HMAC_SHA256, LABEL.as_bytes());
    hmac::verify(&key, left.as_bytes(), hmac::sign(&key, right.as_bytes()).as_ref()).is_ok()
}

fn message(role: ProofRole, client_nonce: &str, server_nonce: &str) -> Vec<u8> {
    format!("{LABEL}\n{}\n{client_nonce}\n{server_nonce}", role.label()).into_bytes()
}

/// A new random nonce: 64 hexadecimal digits.
pub fn nonce() -> Result<String, NoRandom> {
    let mut bytes = [0; NONCE_BYTES];
    ring::rand::SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Whether `text` can be a nonce: 32 to 128 hexadecimal digits.
pub fn is_nonce(text: &str) -> bool {
    NONCE_CHARS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_the_mac_that_the_document_describes() {
        // Computed with: printf 'svc-daemon-auth/v1\nagent-proof\n<c>\n<s>' | openssl dgst -sha256 -hmac secret
        let token = Token::new("secret");
        let (client, server) = ("a".repeat(32), "b".repeat(32));
        assert_eq!(token.prove(ProofRole::Agent, &client, &server), AGENT_PROOF);
        assert!(token.verify(ProofRole::Agent, &client, &server, AGENT_PROOF));
    }

    const AGENT_PROOF: &str = "d5f514a43eca94fbe62d8df821afdabd2910922669e932099f439d117267af57";

    #[test]
    fn a_proof_holds_for_its_role_nonces_and_token_only() {
        let token = Token::new("secret");
        let proof = token.prove(ProofRole::Daemon, "c", "s");
        assert!(!token.verify(ProofRole::Agent, "c", "s", &proof));
        assert!(!token.verify(ProofRole::Daemon, "s", "c", &proof));
        assert!(!Token::new("other").verify(ProofRole::Daemon, "c", "s", &proof));
        assert!(!token.verify(ProofRole::Daemon, "c", "s", &proof.to_uppercase()));
        assert!(!token.verify(ProofRole::Daemon, "c", "s", ""));
    }

    #[test]
    fn a_nonce_is_32_to_128_hexadecimal_digits() {
        assert!(is_nonce(&nonce().unwrap()));
        assert_ne!(nonce().unwrap(), nonce().unwrap());
        for (text, expect) in [
            ("a".repeat(31), false),
            ("a".repeat(32), true),
            ("a".repeat(129), false),
        ] {
            assert_eq!(is_nonce(&text), expect);
        }
        assert!(!is_nonce(&"g".repeat(40)));
    }

    #[test]
    fn secrets_are_equal_only_if_they_are() {
        assert!(same("key", "key"));
        assert!(!same("key", "kez"));
        assert!(!same("key", ""));
        assert!(Token::new("key").is("key"));
    }

    #[test]
    fn unknown_keys_are_refused_in_all_four_shapes() {
        fn check<T: serde::de::DeserializeOwned>(text: &str) {
            assert!(serde_json::from_str::<T>(text).is_ok(), "{text}");
            let more = text.replacen('{', "{\"more\":1,", 1);
            assert!(serde_json::from_str::<T>(&more).is_err(), "{more}");
        }
        check::<ChallengeParams>(r#"{"clientNonce":"c"}"#);
        check::<ChallengeResult>(r#"{"serverNonce":"s","serverProof":"p"}"#);
        check::<ProveParams>(r#"{"clientProof":"p"}"#);
        check::<ProveResult>(r#"{"authenticated":true}"#);
    }
}
