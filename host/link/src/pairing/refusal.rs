//! Why a step of a pairing is refused.

/// A refusal. All of them are 400, except [`Refusal::Throttled`], which is 429, and [`Refusal::NotStored`], which is 503.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The other device speaks another version.
    #[error("the devices speak different versions of the pairing (this one: 2); update Svc on both")]
    VersionMismatch,
    /// The message is not as it must be.
    #[error("{0}")]
    BadPayload(String),
    /// Too many wrong codes.
    #[error("too many wrong pairing codes; wait two minutes, then generate a new code")]
    Throttled,
    /// Both sides are this device.
    #[error("this device cannot be paired with itself")]
    SelfPairing,
    /// There is no such code now.
    #[error("the pairing code is wrong, used or expired; generate a new one on the other device")]
    CodeInvalid,
    /// A signature does not verify.
    #[error("the signature does not verify; a third device alters the messages, or one of the two is broken")]
    SignatureInvalid,
    /// What is revealed is not what was committed to.
    #[error("the revealed values are not those of the commitment; start the pairing again")]
    CommitmentMismatch,
    /// There is no such session.
    #[error("the pairing session is unknown or expired; start the pairing again")]
    SessionExpired,
    /// The second message is missing.
    #[error("the pairing was not revealed yet")]
    NotRevealed,
    /// The agreed device could not be stored.
    #[error("the paired device could not be stored; start the pairing again")]
    NotStored,
}
