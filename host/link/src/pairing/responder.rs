//! The device that shows the code. Pure: [`Responder::apply`] takes an input with the time and returns what must happen.
//!
//! A session goes from *committed* (after the first message) over *revealed* (after the second; from here the user can
//! see it) to *storing* (both users agreed) and *paired* (it is on the disk). A device is stored only on the way from
//! *revealed* to *storing*, for which this device's user must have approved this session and the other device must have
//! confirmed it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use admission::throttle::Source;
use protocol::{LinkPairHelloResponse, LinkPairRevealRequest, LinkPairRevealResponse, LinkPairingRequestDto};

use super::{
    NewDevice,
    guesses::Guesses,
    hello::{Hello, said},
    refusal::Refusal,
};
use crate::{
    constants::{CODE_TTL, DECISION_TTL, MAX_INCOMING, PAIRING_VERSION, REVEAL_TTL, SESSION_TTL},
    crypto::{
        identity::{Identity, PeerKey},
        read_base64,
        transcript::{
            About, Secrets, Transcript, agree, commitment, ephemeral_public, hello_message, responder_message, secrets,
            sha256,
        },
        write_base64,
    },
};

/// Random values of a new session.
#[derive(Clone)]
pub struct Fresh {
    /// 32 hexadecimal digits.
    pub session_id: String,
    /// The ephemeral key.
    pub ephemeral: [u8; 32],
    /// The nonce.
    pub nonce: [u8; 32],
}

impl std::fmt::Debug for Fresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fresh(***)")
    }
}

/// What happens to the responder.
#[derive(Debug)]
pub enum Input {
    /// The user asked for a code. It voids the one before.
    NewCode(String),
    /// The first message. `fresh` is used only if it is accepted.
    Hello {
        /// Who sent it, for the count of wrong codes.
        source: Source,
        /// The message.
        hello: Box<Hello>,
        /// The values of the session.
        fresh: Fresh,
    },
    /// The second message.
    Reveal(LinkPairRevealRequest),
    /// The third message.
    Confirm {
        /// The session.
        session_id: String,
        /// What the other device's user said.
        confirm: bool,
    },
    /// This device's user has decided.
    Decide {
        /// The session.
        session_id: String,
        /// What they said.
        accept: bool,
    },
    /// [`Effect::Store`] was carried out, or could not be.
    Stored {
        /// The session.
        session_id: String,
        /// Whether it is on the disk.
        is_stored: bool,
    },
    /// Time has passed.
    Tick,
}

/// What must happen.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Answer the input.
    Answer(Result<Reply, Refusal>),
    /// The answer to this third message follows as [`Effect::Settle`]. An earlier one that waits for the same session is
    /// answered with [`Refusal::SessionExpired`].
    Wait(String),
    /// Answer the third message that waits for this session, if one does.
    Settle(String, Result<Reply, Refusal>),
    /// Store the device, and report with [`Input::Stored`].
    Store(String, Box<NewDevice>),
    /// The list of requests is another one.
    RequestsChanged,
}

/// The answer to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Ok,
    /// To the first message.
    Hello(Box<LinkPairHelloResponse>),
    /// To the second message.
    Reveal(LinkPairRevealResponse),
    /// To the third message.
    Confirmed(Confirmed),
}

/// The end of a pairing, for the other device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// Both users agreed.
    Paired,
    /// The other device's own user refused.
    Withdrawn,
    /// This device's user refused.
    Rejected,
    /// This device's user did not answer.
    TimedOut,
}

impl Confirmed {
    /// The reason that the other device is given.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Paired | Self::Withdrawn => None,
            Self::Rejected => Some("rejected"),
            Self::TimedOut => Some("timeout"),
        }
    }
}

struct Session {
    began: Instant,
    peer: PeerKey,
    about: About,
    addresses: Vec<String>,
    phase: Phase,
}

enum Phase {
    Committed {
        hello: Vec<u8>,
        commitment: [u8; 32],
        fresh: Fresh,
    },
    Revealed {
        secrets: Secrets,
        until: Instant,
        decision: Decision,
        is_confirmed: bool,
    },
    Storing,
    Paired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Open,
    Approved,
    Rejected,
    TimedOut,
}

struct Code {
    digits: String,
    until: Instant,
}

/// The responder.
pub struct Responder {
    about: About,
    code: Option<Code>,
    guesses: Guesses,
    sessions: BTreeMap<String, Session>,
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

type Effects = Vec<Effect>;

fn answer(reply: Result<Reply, Refusal>) -> Effects {
    vec![Effect::Answer(reply)]
}

impl Responder {
    /// A responder that says `about` of itself.
    pub fn new(about: About) -> Self {
        Self {
            about,
            code: None,
            guesses: Guesses::default(),
            sessions: BTreeMap::new(),
        }
    }

    /// Takes an input. `identity` is this device's.
    pub fn apply(&mut self, now: Instant, identity: &Identity, input: Input) -> Effects {
        let mut effects = self.expire(now);
        effects.extend(match input {
            Input::NewCode(digits) => {
                let until = now + CODE_TTL;
                self.code = Some(Code { digits, until });
                answer(Ok(Reply::Ok))
            }
            Input::Hello { source, hello, fresh } => answer(self.hello(now, identity, source, *hello, fresh)),
            Input::Reveal(reveal) => {
                let reply = self.reveal(now, identity, &reveal);
                let mut effects = Vec::from_iter(reply.is_ok().then_some(Effect::RequestsChanged));
                effects.push(Effect::Answer(reply));
                effects
            }
            Input::Confirm { session_id, confirm } => self.confirm(session_id, confirm),
            Input::Decide { session_id, accept } => self.decide(session_id, accept),
            Input::Stored { session_id, is_stored } => self.stored(session_id, is_stored),
            Input::Tick => Vec::new(),
        });
        effects
    }

    /// When something expires next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let of_sessions = self.sessions.values().filter_map(Session::deadline);
        of_sessions.chain(self.code.as_ref().map(|code| code.until)).min()
    }

    /// Until when the code can be used, if there is one.
    pub fn code_until(&self) -> Option<Instant> {
        self.code.as_ref().map(|code| code.until)
    }

    /// What waits for this device's user, oldest first. `unix_ms` is the time of `now`.
    pub fn requests(&self, now: Instant, unix_ms: i64) -> Vec<LinkPairingRequestDto> {
        let mut open: Vec<_> = self.sessions.iter().filter(|(_, session)| session.is_open()).collect();
        open.sort_by_key(|(_, session)| session.began);
        let show = |(id, session): (&String, &Session)| {
            let Phase::Revealed { secrets, until, .. } = &session.phase else {
                return None;
            };
            let left = i64::try_from(until.saturating_duration_since(now).as_millis()).unwrap_or(0);
            Some(LinkPairingRequestDto {
                session_id: id.clone(),
                sas: secrets.sas.clone(),
                peer_name: session.about.name.clone(),
                peer_platform: said(&session.about.platform),
                peer_fingerprint: session.peer.fingerprint().as_str().to_owned(),
                expires_at_unix_ms: unix_ms + left,
            })
        };
        open.into_iter().filter_map(show).collect()
    }

    fn hello(
        &mut self,
        now: Instant,
        identity: &Identity,
        source: Source,
        hello: Hello,
        fresh: Fresh,
    ) -> Result<Reply, Refusal> {
        if self.guesses.is_throttled(source, now) {
            return Err(Refusal::Throttled);
        }
        if hello.peer.fingerprint() == *identity.fingerprint() {
            return Err(Refusal::SelfPairing);
        }
        // Digests, so that the time of the comparison says nothing about the code.
        let is_right = |code: &Code| sha256(code.digits.as_bytes()) == sha256(hello.code.as_bytes());
        if !self.code.as_ref().is_some_and(is_right) {
            self.guesses.record(source, now);
            return Err(Refusal::CodeInvalid);
        }
        self.code = None;
        let message = hello_message(
            &hello.code,
            &hello.peer.bytes(),
            &hello.commitment,
            &hello.about,
            &hello.addresses,
        );
        if !hello.peer.verifies(&message, &hello.signature) {
            return Err(Refusal::SignatureInvalid);
        }
        let response = LinkPairHelloResponse {
            protocol_version: PAIRING_VERSION,
            session_id: fresh.session_id.clone(),
            responder_eph_pub: write_base64(&ephemeral_public(&fresh.ephemeral)),
            responder_nonce: write_base64(&fresh.nonce),
            responder_id_pub: write_base64(&identity.public()),
            name: self.about.name.clone(),
            platform: said(&self.about.platform),
            app_version: said(&self.about.app_version),
        };
        // Each session has used up a code of the user, so making room costs at most a pairing that they gave up.
        if self.sessions.len() >= MAX_INCOMING {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.began);
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                self.sessions.remove(&id);
            }
        }
        let session = Session {
            began: now,
            peer: hello.peer,
            about: hello.about,
            addresses: hello.addresses,
            phase: Phase::Committed {
                hello: message,
                commitment: hello.commitment,
                fresh: fresh.clone(),
            },
        };
        self.sessions.insert(fresh.session_id, session);
        Ok(Reply::Hello(Box::new(response)))
    }

    fn reveal(&mut self, now: Instant, identity: &Identity, reveal: &LinkPairRevealRequest) -> Result<Reply, Refusal> {
        let is_committed = |session: &Session| matches!(session.phase, Phase::Committed { .. });
        if !self.sessions.get(&reveal.session_id).is_some_and(is_committed) {
            return Err(Refusal::SessionExpired);
        }
        // Removed first, so that a wrong reveal ends the session and there is only one try.
        let Some(mut session) = self.sessions.remove(&reveal.session_id) else {
            return Err(Refusal::SessionExpired);
        };
        let Phase::Committed {
            hello,
            commitment: committed,
            fresh,
        } = session.phase
        else {
            return Err(Refusal::SessionExpired);
        };
        let bad = |what: &str| Refusal::BadPayload(format!("{what} must be 32 bytes in base64"));
        let ephemeral = read_base64(&reveal.initiator_eph_pub).ok_or_else(|| bad("initiatorEphPub"))?;
        let nonce = read_base64(&reveal.initiator_nonce).ok_or_else(|| bad("initiatorNonce"))?;
        if commitment(&ephemeral, &nonce) != committed {
            return Err(Refusal::CommitmentMismatch);
        }
        let weak = || Refusal::BadPayload("initiatorEphPub is a point of small order".to_owned());
        let shared = agree(&fresh.ephemeral, &ephemeral).ok_or_else(weak)?;
        let transcript = Transcript {
            hello: &hello,
            identities: [&session.peer.bytes(), &identity.public()],
            ephemerals: [&ephemeral, &ephemeral_public(&fresh.ephemeral)],
            nonces: [&nonce, &fresh.nonce],
            responder: &self.about,
        };
        let transcript = transcript.encode();
        session.phase = Phase::Revealed {
            secrets: secrets(&shared, &transcript).map_err(|error| Refusal::BadPayload(error.to_string()))?,
            until: now + DECISION_TTL,
            decision: Decision::Open,
            is_confirmed: false,
        };
        self.sessions.insert(reveal.session_id.clone(), session);
        let responder_sig = write_base64(&identity.sign(&responder_message(&transcript)));
        Ok(Reply::Reveal(LinkPairRevealResponse { responder_sig }))
    }

    fn confirm(&mut self, id: String, confirm: bool) -> Effects {
        let expired = || answer(Err(Refusal::SessionExpired));
        let Some(session) = self.sessions.get_mut(&id) else {
            return expired();
        };
        let (decision, is_confirmed) = match (&mut session.phase, confirm) {
            (Phase::Committed { .. }, true) => {
                self.sessions.remove(&id);
                return answer(Err(Refusal::NotRevealed));
            }
            (Phase::Storing, true) => return vec![Effect::Wait(id)],
            (Phase::Paired, true) => return answer(Ok(Reply::Confirmed(Confirmed::Paired))),
            (Phase::Storing | Phase::Paired, false) => return expired(),
            (Phase::Committed { .. } | Phase::Revealed { .. }, false) => {
                self.sessions.remove(&id);
                let withdrawn = Ok(Reply::Confirmed(Confirmed::Withdrawn));
                return vec![
                    Effect::RequestsChanged,
                    Effect::Settle(id, withdrawn.clone()),
                    Effect::Answer(withdrawn),
                ];
            }
            (
                Phase::Revealed {
                    decision, is_confirmed, ..
                },
                true,
            ) => (*decision, is_confirmed),
        };
        let ended = match decision {
            Decision::Open | Decision::Approved => {
                *is_confirmed = true;
                let mut effects = vec![Effect::Wait(id.clone())];
                effects.extend(self.store_if_agreed(&id));
                return effects;
            }
            Decision::Rejected => Confirmed::Rejected,
            Decision::TimedOut => Confirmed::TimedOut,
        };
        self.sessions.remove(&id);
        answer(Ok(Reply::Confirmed(ended)))
    }

    fn decide(&mut self, id: String, accept: bool) -> Effects {
        let Some(session) = self.sessions.get_mut(&id) else {
            return answer(Err(Refusal::SessionExpired));
        };
        let is_confirmed = match &mut session.phase {
            Phase::Committed { .. } => return answer(Err(Refusal::NotRevealed)),
            Phase::Revealed {
                decision: decision @ Decision::Open,
                is_confirmed,
                ..
            } => {
                *decision = if accept { Decision::Approved } else { Decision::Rejected };
                *is_confirmed
            }
            Phase::Revealed { .. } | Phase::Storing | Phase::Paired => return answer(Err(Refusal::SessionExpired)),
        };
        let mut effects = vec![Effect::RequestsChanged, Effect::Answer(Ok(Reply::Ok))];
        if accept {
            effects.extend(self.store_if_agreed(&id));
        } else if is_confirmed {
            self.sessions.remove(&id);
            effects.push(Effect::Settle(id, Ok(Reply::Confirmed(Confirmed::Rejected))));
        }
        effects
    }

    /// The only way to a stored device.
    fn store_if_agreed(&mut self, id: &str) -> Option<Effect> {
        let session = self.sessions.get_mut(id)?;
        let Phase::Revealed {
            secrets,
            decision: Decision::Approved,
            is_confirmed: true,
            ..
        } = &session.phase
        else {
            return None;
        };
        let device = NewDevice {
            fingerprint: session.peer.fingerprint(),
            about: session.about.clone(),
            addresses: session.addresses.clone(),
            link_key: secrets.link_key,
        };
        session.phase = Phase::Storing;
        Some(Effect::Store(id.to_owned(), Box::new(device)))
    }

    fn stored(&mut self, id: String, is_stored: bool) -> Effects {
        let session = self.sessions.get_mut(&id);
        let Some(session) = session.filter(|session| matches!(session.phase, Phase::Storing)) else {
            // It expired meanwhile. The device is on the disk, and the other one learns it by asking.
            return vec![Effect::Settle(id, Err(Refusal::SessionExpired))];
        };
        if is_stored {
            // Kept for a while: a third message whose answer was lost is answered again.
            session.phase = Phase::Paired;
            return vec![Effect::Settle(id, Ok(Reply::Confirmed(Confirmed::Paired)))];
        }
        self.sessions.remove(&id);
        vec![Effect::Settle(id, Err(Refusal::NotStored))]
    }

    fn expire(&mut self, now: Instant) -> Effects {
        self.code.take_if(|code| now >= code.until);
        let due = |session: &Session| session.deadline().is_some_and(|deadline| now >= deadline);
        let ids: Vec<String> = self
            .sessions
            .iter()
            .filter(|(_, session)| due(session))
            .map(|(id, _)| id.clone())
            .collect();
        let mut effects = Vec::new();
        for id in ids {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            let is_over = now >= session.began + SESSION_TTL;
            if let Phase::Revealed {
                decision: decision @ Decision::Open,
                is_confirmed,
                ..
            } = &mut session.phase
            {
                effects.push(Effect::RequestsChanged);
                let was_confirmed = *is_confirmed;
                *decision = Decision::TimedOut;
                if was_confirmed || is_over {
                    self.sessions.remove(&id);
                    effects.push(Effect::Settle(id, Ok(Reply::Confirmed(Confirmed::TimedOut))));
                }
            } else {
                self.sessions.remove(&id);
                effects.push(Effect::Settle(id, Err(Refusal::SessionExpired)));
            }
        }
        effects
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.sessions.len()
    }
}

impl Session {
    fn is_open(&self) -> bool {
        matches!(
            self.phase,
            Phase::Revealed {
                decision: Decision::Open,
                ..
            }
        )
    }

    fn deadline(&self) -> Option<Instant> {
        let after = |time: Duration| self.began + time;
        match &self.phase {
            Phase::Committed { .. } => Some(after(REVEAL_TTL)),
            Phase::Revealed {
                until,
                decision: Decision::Open,
                ..
            } => Some((*until).min(after(SESSION_TTL))),
            // Ends with the report that it was stored or not.
            Phase::Storing => None,
            Phase::Revealed { .. } | Phase::Paired => Some(after(SESSION_TTL)),
        }
    }
}

#[cfg(test)]
mod tests;
