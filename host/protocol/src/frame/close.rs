//! Why a server closes the socket.

/// The reader fell behind; it connects or snapshots anew.
pub const EVENT_GAP: u16 = 4009;
/// The reason that goes with [`EVENT_GAP`].
pub const EVENT_GAP_REASON: &str = "event-gap";

/// The service ends; the client stops reconnecting.
pub const SERVICE_QUIT_REASON: &str = "service-quit";
/// The service begins again at once; the client reconnects.
pub const SERVICE_RESTART_REASON: &str = "service-restart";
/// The code that goes with both: going away (RFC 6455 §7.4.1).
pub const GOING_AWAY: u16 = 1001;

/// The first request was not a proof, or the proof was wrong (RFC 6455: policy violation).
pub const UNAUTHORIZED: u16 = 1008;
/// The reason that goes with [`UNAUTHORIZED`].
pub const UNAUTHORIZED_REASON: &str = "unauthorized";

/// A binary frame came (RFC 6455: unsupported data).
pub const UNSUPPORTED: u16 = 1003;
/// A frame was too large (RFC 6455: message too big).
pub const TOO_BIG: u16 = 1009;
