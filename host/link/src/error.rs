//! Why a request of this device's owner or of another device is refused.

use protocol::{ErrorCode, Reason};

use crate::{
    message::Invalid,
    outbox::Full,
    pairing::{initiator::InitiateError, refusal::Refusal},
    plane::Unauthorized,
};

/// What is stored cannot be read or written now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A step of a pairing that another device began.
    #[error(transparent)]
    Pairing(#[from] Refusal),
    /// A step of a pairing that began here.
    #[error(transparent)]
    Initiating(#[from] InitiateError),
    /// The owner's input is not as it must be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// What answers is not Svc.
    #[error("what answers there is not Svc")]
    NotSvc,
    /// The other device does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// Too many pairings that began here are not finished.
    #[error("32 pairings wait to be finished already; finish them, or wait three minutes")]
    TooManyPending,
    /// There is no device of this fingerprint.
    #[error("not found")]
    UnknownDevice,
    /// A download for a device that is not paired, or that does not take it as coming from this one.
    #[error("{0}")]
    NotPaired(String),
    /// The other device does not take a download, since its clock and that of this device differ too much.
    #[error("{0}")]
    ClockSkew(String),
    /// The other device refused a download.
    #[error("the other device refused: {0}")]
    PeerRefused(String),
    /// The outbox is full.
    #[error(transparent)]
    Full(#[from] Full),
    /// There is no such entry in the outbox.
    #[error("not found")]
    UnknownEntry,
    /// Searching is switched off or does not work.
    #[error("{0}")]
    NoDiscovery(String),
    /// Storage, random numbers or the service itself are not available.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// What clients of the service decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The status over HTTP.
    pub status: u16,
    /// The code over `/rpc`.
    pub code: ErrorCode,
    /// The finer cause.
    pub reason: Option<Reason>,
}

impl LinkError {
    /// Status and code of the refusal.
    pub fn kind(&self) -> Kind {
        let kind = |status, code, reason| Kind { status, code, reason };
        let invalid = |reason| kind(400, ErrorCode::InvalidArgument, Some(reason));
        match self {
            Self::Pairing(refusal) => match refusal {
                Refusal::Throttled => kind(429, ErrorCode::Unavailable, Some(Reason::PairingThrottled)),
                Refusal::NotStored => kind(503, ErrorCode::Unavailable, None),
                Refusal::VersionMismatch => invalid(Reason::PairingVersionMismatch),
                Refusal::SelfPairing => invalid(Reason::PairingSelf),
                Refusal::CodeInvalid => invalid(Reason::PairingCodeInvalid),
                Refusal::SignatureInvalid => invalid(Reason::PairingSignatureInvalid),
                Refusal::SessionExpired => invalid(Reason::PairingSessionExpired),
                Refusal::BadPayload(_) | Refusal::CommitmentMismatch | Refusal::NotRevealed => {
                    kind(400, ErrorCode::InvalidArgument, None)
                }
            },
            Self::Initiating(error) => match error {
                InitiateError::CodeInvalid | InitiateError::NoCode => invalid(Reason::PairingCodeInvalid),
                InitiateError::Throttled => invalid(Reason::PairingThrottled),
                InitiateError::VersionMismatch => invalid(Reason::PairingVersionMismatch),
                InitiateError::SelfPairing => invalid(Reason::PairingSelf),
                InitiateError::SignatureInvalid | InitiateError::OtherIdentity => {
                    invalid(Reason::PairingSignatureInvalid)
                }
                InitiateError::SessionExpired => invalid(Reason::PairingSessionExpired),
                InitiateError::Nonsense(_) => invalid(Reason::PairingNotSvc),
                InitiateError::Refused(_) => invalid(Reason::PairingRejected),
                InitiateError::Crypto(_) => kind(503, ErrorCode::Unavailable, None),
            },
            Self::NotSvc => invalid(Reason::PairingNotSvc),
            Self::Invalid(_) | Self::PeerRefused(_) => kind(400, ErrorCode::InvalidArgument, None),
            Self::Unreachable(_) => kind(503, ErrorCode::Unavailable, Some(Reason::PairingPeerUnreachable)),
            Self::UnknownDevice => kind(404, ErrorCode::NotFound, Some(Reason::PeerNotPaired)),
            Self::UnknownEntry => kind(404, ErrorCode::NotFound, None),
            Self::NotPaired(_) => kind(401, ErrorCode::Unauthorized, Some(Reason::PeerNotPaired)),
            Self::ClockSkew(_) => kind(401, ErrorCode::Unauthorized, Some(Reason::PeerClockSkew)),
            Self::Full(_) => kind(503, ErrorCode::Unavailable, Some(Reason::PeerOffline)),
            Self::TooManyPending | Self::NoDiscovery(_) | Self::Unavailable(_) => {
                kind(503, ErrorCode::Unavailable, None)
            }
        }
    }
}

/// Why a request on the data plane is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaneError {
    /// 401 with a reason and this device's time.
    Unauthorized(Unauthorized),
    /// 400: the body does not open, or holds no such message.
    Body(String),
    /// 403: this device's owner does not take downloads of that one.
    Declined(String),
    /// 429: the device sent as many downloads as this device's owner allows in a day.
    TooMany(String),
    /// 503: not now.
    Unavailable(String),
}
