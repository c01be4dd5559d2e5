//! The numbers of the protocol, each once.

use std::time::Duration;

/// The version of the pairing. Both sides must have exactly this one; a missing value counts as 0.
pub const PAIRING_VERSION: i64 = 2;

/// Digits of a pairing code and of the digits that people compare.
pub const DIGITS: usize = 6;

/// How long a pairing code can be used.
pub const CODE_TTL: Duration = Duration::from_mins(2);

/// How long the second message may take after the first.
pub const REVEAL_TTL: Duration = Duration::from_secs(30);

/// The whole life of a pairing, on either side. Longer than [`REVEAL_TTL`] and [`DECISION_TTL`] together.
pub const SESSION_TTL: Duration = Duration::from_mins(3);

/// How long the user may take to compare, from the second message on.
pub const DECISION_TTL: Duration = Duration::from_mins(1);

/// Pairings that other devices began. The oldest makes room, so that none is kept out.
pub const MAX_INCOMING: usize = 16;

/// Pairings that this device began and that are not finished.
pub const MAX_OUTGOING: usize = 32;

/// The window in which wrong codes are counted.
pub const GUESS_WINDOW: Duration = Duration::from_mins(2);

/// Wrong codes of one source in the window.
pub const MAX_GUESSES_OF_SOURCE: usize = 10;

/// Wrong codes of all sources in the window.
pub const MAX_GUESSES: usize = 200;

/// Sources that are counted apart; the others share one count.
pub const MAX_GUESS_SOURCES: usize = 256;

/// How far the clocks of two devices may differ, in seconds.
pub const MAX_SKEW_SECS: i64 = 120;

/// How long a nonce is remembered, in seconds: from the earliest to the latest moment at which its time stamp is taken.
pub const NONCE_SECS: i64 = 240;

/// Nonces that are remembered of one device: ten calls a second for as long as they are kept.
pub const MAX_NONCES: usize = 2400;

/// The longest body of any message, sealed or not.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A device's name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Platform and version, in bytes.
pub const MAX_WORD_BYTES: usize = 32;

/// Addresses that a device may tell of itself, and that are kept of it.
pub const MAX_ADDRESSES: usize = 4;

/// A URL, in bytes.
pub const MAX_URL_BYTES: usize = 8192;

/// A file name, in bytes.
pub const MAX_FILE_NAME_BYTES: usize = 255;

/// A directory, in bytes.
pub const MAX_DIR_BYTES: usize = 1024;

/// The id of a sent task, in bytes.
pub const MAX_TASK_ID_BYTES: usize = 64;

/// Any other text of the device info, in bytes.
pub const MAX_INFO_BYTES: usize = 128;

/// Records of devices, those that ended the pairing included. The oldest of these makes room.
pub const MAX_DEVICES: usize = 256;

/// Downloads that wait for their device.
pub const MAX_OUTBOX: usize = 100;

/// How long a download waits for its device, in seconds.
pub const OUTBOX_SECS: i64 = 7 * 24 * 60 * 60;

/// How long the id of a received download is remembered, in seconds: longer than its sender tries.
pub const DELIVERY_SECS: i64 = OUTBOX_SECS + 24 * 60 * 60;

/// Ids of received downloads that are remembered of one device.
pub const MAX_DELIVERIES: usize = 4096;

/// The period in which received downloads are counted, in seconds.
pub const QUOTA_SECS: i64 = 24 * 60 * 60;

/// Downloads of one device that are taken in that period, unless the owner sets another number.
pub const DAILY_TASKS: u32 = 1000;

/// The largest such number: what is counted are the remembered ids.
pub const MAX_DAILY_TASKS: u32 = 4096;

/// Devices in the snapshot of a search.
pub const MAX_DISCOVERED: usize = 128;

/// How long a probed fingerprint binds the pairing with its address.
pub const PROBE_TTL: Duration = Duration::from_mins(10);

/// Probed addresses that are remembered; the oldest makes room.
pub const MAX_PROBES: usize = 64;

/// For the first and the second message.
pub const PAIR_TIMEOUT: Duration = Duration::from_secs(8);

/// For the third message, which waits for the other user.
pub const CONFIRM_TIMEOUT: Duration = Duration::from_secs(70);

/// For sending a download.
pub const DISPATCH_TIMEOUT: Duration = Duration::from_secs(15);

/// For the exchange of device info.
pub const INFO_TIMEOUT: Duration = Duration::from_secs(8);

/// For asking an address which device it is.
pub const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// For asking all devices whether they are there.
pub const ROUND_TIMEOUT: Duration = Duration::from_secs(8);

/// How often the devices are asked.
pub const POLL_INTERVAL: Duration = Duration::from_secs(45);

/// How often the clocks are compared, to notice that the machine slept.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// The path of the task route, as tags and associated data contain it.
pub const TASKS_PATH: &str = "/api/v1/link/tasks";

/// The path of the info route.
pub const INFO_PATH: &str = "/api/v1/link/info";

/// The path of the unpair route.
pub const UNPAIR_PATH: &str = "/api/v1/link/unpair";
