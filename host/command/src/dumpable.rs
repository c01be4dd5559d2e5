//! Whether other programs of the same user may read the memory of this process, which holds keys, logins and cookies. The
//! only file that depends on the operating system for that.

/// Makes the memory of this process private: a crash writes no core dump, and neither debuggers nor `/proc/PID/mem` of
/// other processes without privileges reach it, whoever they run as. Call it before secrets are read; it does not outlast
/// `exec`, so that other programs that are started are not affected, and our own call it again.
///
/// Not where it is unsupported: other systems than Linux only write no core dump.
pub fn forbid() {
    imp::forbid();
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    pub(super) fn forbid() {
        // A debugger could also attach itself as root; nothing keeps root out.
        let _of_an_old_kernel = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        super::core_dumps::limit();
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod imp {
    pub(super) fn forbid() {
        super::core_dumps::limit();
    }
}

#[cfg(not(unix))]
mod imp {
    pub(super) fn forbid() {}
}

#[cfg(unix)]
mod core_dumps {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Sets the size of core dumps to zero. The soft limit alone: programs of the user that are started from here
    /// inherit it, and may raise it again.
    pub(super) fn limit() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Core);
        let current = Some(0);
        let _lowering_is_always_allowed = setrlimit(Resource::Core, Rlimit { current, maximum });
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_dumped_afterwards() {
        use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
        let hard = getrlimit(Resource::Core).maximum;
        super::forbid();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
        let limit = getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), hard));
    }
}
