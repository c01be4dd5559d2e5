//! The steps of an installation. In tests, each of them can be made to fail as if the power had gone at that moment;
//! otherwise nothing of this is there.

use std::io;

/// The steps that leave something behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file of the package is written.
    Materialise,
    /// The rows are saved.
    Commit,
    /// The new version is put into service.
    Activate,
    /// The row of a source is saved, or removed.
    Refresh,
    /// A package that nobody needs is removed.
    Collect,
}

/// Decides whether a step is reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultPoints {
    #[cfg(test)]
    fail_at: std::sync::Arc<std::sync::Mutex<Option<(Step, u32)>>>,
}

impl FaultPoints {
    /// Goes on to `step`, unless a test wants it to fail.
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
