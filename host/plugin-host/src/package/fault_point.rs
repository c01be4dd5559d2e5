//! Fault injection for tests: each step of an installation can be made to fail as in a power failure. Empty outside of
//! tests.

use std::io;

/// The steps with durable effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file of the package is written.
    Materialise,
    Commit,
    /// The new version is activated.
    Activate,
    /// The row of a source is saved, or removed.
    Refresh,
    /// An unused package is deleted.
    Collect,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FaultPoints {
    #[cfg(test)]
    fail_at: std::sync::Arc<std::sync::Mutex<Option<(Step, u32)>>>,
}

impl FaultPoints {
    /// Fails if a test injected a fault at `step`.
    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it fails in tests only")
    )]
    pub(crate) fn pass(&self, step: Step) -> io::Result<()> {
        #[cfg(test)]
        if let Some((at, times)) = &mut *self.fail_at.lock().unwrap()
            && *at == step
        {
            if *times == 0 {
                return Err(io::Error::other("the power is gone"));
            }
            *times -= 1;
        }
        let _ = step;
        Ok(())
    }

    /// Fails from the `times`th `step` on.
    #[cfg(test)]
    pub(crate) fn fail_at(&self, step: Step, times: u32) {
        *self.fail_at.lock().unwrap() = Some((step, times));
    }
}
