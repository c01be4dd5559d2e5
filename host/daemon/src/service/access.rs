//! Authentication: the long-term token, the proofs made with it, and the credentials of open connections.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::{HeaderMap, header};
use protocol::{
    ErrorCode, Method, Request, RpcError,
    proof::{ChallengeParams, ChallengeResult, ProofRole, ProveParams, Token, is_nonce, nonce},
};

#[derive(Debug)]
pub(crate) struct Access {
    token: Token,
    /// The HTTP credentials of authenticated connections. They are authentication tags of fresh nonces, so a lookup by
    /// text leaks no timing that helps to guess another.
    sessions: Mutex<HashSet<String>>,
}

/// The HTTP credential of one connection; revoked on drop.
#[derive(Debug)]
pub(crate) struct Credential {
    access: Arc<Access>,
    credential: String,
}

impl Drop for Credential {
    fn drop(&mut self) {
        self.access.sessions().remove(&self.credential);
    }
}

impl Access {
    pub(crate) fn new(token: Token) -> Self {
        Self {
            token,
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the request carries the token itself, as an older agent's does. `None` if it carries no key at all.
    pub(crate) fn has_token(&self, headers: &HeaderMap) -> Option<bool> {
        headers.get(header::AUTHORIZATION).map(|value| {
            value
                .to_str()
                .ok()
                .and_then(|value| value.strip_prefix("Bearer "))
                .is_some_and(|key| self.token.is(key))
        })
    }

    /// Whether an HTTP request may be served: by the credential of an open connection, or by the token itself.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let key = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        key.is_some_and(|key| self.sessions().contains(key) || self.token.is(key))
    }

    /// Begins a proof: answers the agent's nonce with our own and with our proof.
    fn challenge(&self, params: ChallengeParams) -> Result<(Challenge, ChallengeResult), RpcError> {
        if !is_nonce(&params.client_nonce) {
            return Err(unauthorized("clientNonce must be 32 to 128 hexadecimal digits").with_field("clientNonce"));
        }
        let server_nonce = nonce().map_err(|error| RpcError::internal(error.to_string()))?;
        let server_proof = self.token.prove(ProofRole::Daemon, &params.client_nonce, &server_nonce);
        let challenge = Challenge {
            client_nonce: params.client_nonce,
            server_nonce: server_nonce.clone(),
        };
        Ok((
            challenge,
            ChallengeResult {
                server_nonce,
                server_proof,
            },
        ))
    }

    fn prove(self: &Arc<Self>, challenge: &Challenge, params: &ProveParams) -> Result<Credential, RpcError> {
        let Challenge {
            client_nonce,
            server_nonce,
        } = challenge;
        if !self
            .token
            .verify(ProofRole::Agent, client_nonce, server_nonce, &params.client_proof)
        {
            return Err(unauthorized("the proof is wrong"));
        }
        let credential = self.token.prove(ProofRole::HttpCredential, client_nonce, server_nonce);
        self.sessions().insert(credential.clone());
        Ok(Credential {
            access: Arc::clone(self),
            credential,
        })
    }
}

#[derive(Debug)]
struct Challenge {
    client_nonce: String,
    server_nonce: String,
}

/// The proof of one connection, step by step. An error ends the connection.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    challenge: Option<Challenge>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// Our nonce and proof.
    Challenged(ChallengeResult),
    /// The peer has authenticated.
    Proved(Credential),
}

impl Handshake {
    pub(crate) fn step(&mut self, access: &Arc<Access>, request: &Request) -> Result<Step, RpcError> {
        match (Method::parse(&request.method), self.challenge.take()) {
            (Some(Method::SystemAuthChallenge), None) => {
                let (challenge, result) = access.challenge(request.params()?)?;
                self.challenge = Some(challenge);
                Ok(Step::Challenged(result))
            }
            (Some(Method::SystemAuthProve), Some(challenge)) => {
                access.prove(&challenge, &request.params()?).map(Step::Proved)
            }
            _ => Err(unauthorized(
                "prove first: system.auth.challenge, then system.auth.prove",
            )),
        }
    }
}

pub(crate) fn unauthorized(message: &str) -> RpcError {
    RpcError::application(ErrorCode::Unauthorized, message)
}
