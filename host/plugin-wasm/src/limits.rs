//! What one call of a plugin may use.

use std::time::Duration;

pub(crate) mod meter;

/// Everything that is bounded about one call. The constructors give what each kind of call gets unless its manifest was
/// allowed something else.
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
    /// What comes out.
    pub output: OutputLimits,
    /// Lines written to the log; more are counted and left out.
    pub log_lines: u32,
}

/// What one call may do over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Requests, redirects included.
    pub requests: u32,
    /// Requests on their way at once.
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

/// How much a plugin may hand out.
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
    /// For listing what a URL stands for.
    pub fn resolve() -> Self {
        Self::within(Duration::from_secs(1), Duration::from_secs(15))
    }

    /// For a quick look at it.
    pub fn preview() -> Self {
        Self::within(Duration::from_millis(500), Duration::from_secs(5))
    }

    /// For the link of one file.
    pub fn link() -> Self {
        Self::within(Duration::from_secs(1), Duration::from_secs(10))
    }

    /// What a script gets where compiled code gets this: being interpreted takes longer.
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
