//! The limits of one call.

use std::time::Duration;

pub(crate) mod meter;

/// Items of a feed: as many as are read of one in XML.
const MAX_ITEMS: usize = 2000;

/// Memory of a hook, which receives a few texts.
const HOOK_MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// The limits of one call. The constructors have the defaults per kind of call; manifests may ask for more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time in which guest code, or the host for it, computes. Waiting for a site is not counted.
    pub cpu: Duration,
    /// Time from start to end, waiting included.
    pub wall: Duration,
    /// Linear memory.
    pub memory_bytes: usize,
    /// Elements of each table.
    pub table_elements: usize,
    /// What one host call may copy out of the guest, so that the guest cannot size the host's allocations.
    pub host_call_bytes: usize,
    /// Host objects (requests, responses, entries) alive at once.
    pub handles: usize,
    /// Requests over the network.
    pub http: HttpLimits,
    /// The result.
    pub output: OutputLimits,
    /// Lines written to the log; more are counted and left out.
    pub log_lines: u32,
}

/// The network limits of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Requests, redirects included.
    pub requests: u32,
    /// Concurrent requests.
    pub in_flight: usize,
    /// Bodies together, inflated.
    pub total_bytes: u64,
    /// One body, inflated.
    pub response_bytes: u64,
    /// One body that is sent.
    pub request_bytes: usize,
    /// Names and values of the fields of one request or response.
    pub header_bytes: usize,
    /// Fields of one request or response.
    pub header_lines: usize,
    /// Redirects that one request may follow.
    pub redirects: u32,
    /// How long a request takes at most if the plugin does not say.
    pub timeout: Duration,
    /// How long it takes at most, whatever the plugin says.
    pub max_timeout: Duration,
}

/// The limits of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    /// Entries of a listing.
    pub entries: usize,
    /// Variants of one entry.
    pub variants: usize,
    /// Texts of a listing together.
    pub bytes: usize,
    /// One URL.
    pub url_bytes: usize,
    /// Request headers or mirrors of one link.
    pub link_parts: usize,
    /// Segments of one link.
    pub segments: usize,
}

impl Limits {
    /// For `resolve`.
    pub fn resolve() -> Self {
        Self::within(Duration::from_secs(1), Duration::from_secs(15))
    }

    /// For `preview`.
    pub fn preview() -> Self {
        Self::within(Duration::from_millis(500), Duration::from_secs(5))
    }

    /// For `feed`.
    pub fn feed() -> Self {
        let mut limits = Self::within(Duration::from_secs(1), Duration::from_secs(20));
        limits.output.entries = MAX_ITEMS;
        limits
    }

    /// For a hook.
    pub fn hook() -> Self {
        Self {
            memory_bytes: HOOK_MEMORY_BYTES,
            ..Self::within(Duration::from_millis(500), Duration::from_secs(5))
        }
    }

    /// For work on finished files, which waits for the host most of the time.
    pub fn post() -> Self {
        Self::within(Duration::from_secs(30), Duration::from_mins(30))
    }

    /// For a step of a login, and other calls about an account.
    pub fn login() -> Self {
        Self::within(Duration::from_millis(500), Duration::from_secs(10))
    }

    /// For `linkFor`.
    pub fn link() -> Self {
        Self::within(Duration::from_secs(1), Duration::from_secs(10))
    }

    /// The limits of a script instead of compiled code: interpretation takes longer.
    pub(crate) fn of_script(self) -> Self {
        Self {
            cpu: self.cpu * 2,
            ..self
        }
    }

    fn within(cpu: Duration, wall: Duration) -> Self {
        Self {
            cpu,
            wall,
            memory_bytes: 64 * 1024 * 1024,
            table_elements: 20_000,
            host_call_bytes: 32 * 1024 * 1024,
            handles: 256,
            http: HttpLimits::default(),
            output: OutputLimits::default(),
            log_lines: 200,
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            requests: 64,
            in_flight: 8,
            total_bytes: 32 * 1024 * 1024,
            response_bytes: 8 * 1024 * 1024,
            request_bytes: 1024 * 1024,
            header_bytes: 64 * 1024,
            header_lines: 128,
            redirects: 10,
            timeout: Duration::from_secs(10),
            max_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            entries: 10_000,
            variants: 50,
            bytes: 16 * 1024 * 1024,
            url_bytes: 8 * 1024,
            link_parts: 32,
            // Two days in segments of four seconds.
            segments: 50_000,
        }
    }
}
