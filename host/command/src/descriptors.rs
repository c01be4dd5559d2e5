//! The limit of open file descriptors of this process.

/// Descriptors reserved for everything but client connections: downloads, database, logs, the connection between agent
/// and daemon.
const RESERVE: usize = 128;

/// Raises the soft limit up to the hard limit, because the default is meant for programs that use `select`. Returns the
/// resulting limit, if known. Child processes inherit it.
pub fn raise_limit() -> Option<usize> {
    imp::raise_limit()
}

/// The limit of client connections for this descriptor limit: each may need a second descriptor, for a file or for the
/// daemon.
pub fn connections(limit: usize, most: usize) -> usize {
    (limit.saturating_sub(RESERVE) / 2).clamp(1, most)
}

#[cfg(unix)]
mod imp {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// A higher limit has no benefit, and libraries that allocate tables of that size would suffer.
    const ENOUGH: u64 = 1024 * 1024;

    pub(super) fn raise_limit() -> Option<usize> {
        let now = getrlimit(Resource::Nofile);
        let wanted = now.maximum.unwrap_or(ENOUGH).min(ENOUGH);
        let is_less = now.current.is_some_and(|current| current < wanted);
        if is_less {
            let raised = Rlimit {
                current: Some(wanted),
                maximum: now.maximum,
            };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::warn!(%error, "the limit of open files could not be raised");
            }
        }
        let current = getrlimit(Resource::Nofile).current.unwrap_or(ENOUGH);
        usize::try_from(current).ok()
    }
}

#[cfg(not(unix))]
mod imp {
    /// These systems have no such limit.
    pub(super) fn raise_limit() -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        for (limit, expect) in [(0, 1), (128, 1), (256, 64), (1024, 448), (1 << 20, 4096)] {
            assert_eq!(connections(limit, 4096), expect, "{limit}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_limit_is_the_hard_one_afterwards() {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let raised = raise_limit().and_then(|limit| u64::try_from(limit).ok());
        assert_eq!(raised, Some(hard.unwrap_or(u64::MAX).min(1 << 20)));
    }
}
