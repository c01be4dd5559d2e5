//! Returns memory that is not needed any more to the operating system, on systems where that must be requested.

use std::{convert::Infallible, future::pending, time::Duration};

/// How often an idle process is looked for.
const TICK: Duration = Duration::from_mins(1);

/// A process that computed for less than this since the last tick is idle. Five hundred idle seeding torrents take half of
/// it.
const IDLE: Duration = Duration::from_millis(100);

/// Memory is released again once the process has computed for this long since it last was. Most of it is code: each
/// microsecond in code that did not run before has the system map 64 KiB, so that a few milliseconds bring back all.
const WORKED: Duration = Duration::from_millis(2);

/// Releases memory now, which is after the start, and then each time that the process becomes idle after it worked: what a
/// crowd of requests or the start of many torrents needed is not kept for days. Needs no stop: it is dropped.
pub async fn release_when_idle() -> Infallible {
    let mut meter = Meter::default();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick is immediate.
    loop {
        tick.tick().await;
        let Some(computed) = processor_time() else {
            return pending().await;
        };
        if meter.is_to_release(computed) {
            release_free();
            release_code();
        }
    }
}

/// Decides when memory is released, from the processor time of the process at each tick.
#[derive(Debug, Default)]
struct Meter {
    last: Option<Duration>,
    released: Duration,
}

impl Meter {
    fn is_to_release(&mut self, computed: Duration) -> bool {
        let last = self.last.replace(computed);
        let is_idle = last.is_none_or(|last| computed.saturating_sub(last) < IDLE);
        let has_worked = last.is_none() || computed.saturating_sub(self.released) > WORKED;
        if is_idle && has_worked {
            self.released = computed;
        }
        is_idle && has_worked
    }
}

/// The processor time of all threads of this process; `None` on systems where no memory is released.
fn processor_time() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Gives freed memory back to the operating system. What a start builds and drops again (descriptions, tables, rows) lies
/// between what stays, so that glibc keeps it: 4 MB of an agent. Musl and other systems' allocators do this by themselves.
fn release_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(
            unsafe_code,
            reason = "a function of the C library that takes no pointer and may be called at any time"
        )]
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        malloc_trim(0);
    }
}

/// Takes the pages of the executable's code and constants that a start needed out of this process, most of which it does
/// not need again: 2 MB of a download. They stay in the cache of the operating system, from which those that are needed
/// come back at once.
pub fn release_code() {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        const PAGE_BYTES: usize = 64 * 1024;
        const DONT_NEED: c_int = 4;
        #[expect(unsafe_code, reason = "two addresses from the linker, and a system call")]
        // SAFETY: between the two addresses are pages of the executable file that nothing writes (code, constants, the
        // tables of the loader), so that what is dropped is read again as it was.
        unsafe {
            unsafe extern "C" {
                static __executable_start: u8;
                static etext: u8;
                fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
            }
            let start = &raw const __executable_start;
            let length = (&raw const etext).addr() - start.addr();
            // Without success the pages stay.
            let _result = madvise(start.cast_mut().cast(), length - length % PAGE_BYTES, DONT_NEED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_released_after_the_start_and_when_the_process_idles_after_work() {
        let mut meter = Meter::default();
        let mut at = |milliseconds| meter.is_to_release(Duration::from_millis(milliseconds));
        assert!(at(500), "after the start");
        assert!(!at(501), "nothing was done since");
        assert!(!at(900), "it works");
        assert!(at(950), "it stopped working");
        assert!(!at(951));
        assert!(!at(952));
        assert!(at(953), "little by little it worked enough");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_grows() {
        let before = processor_time();
        while processor_time() == before {}
        assert!(before.is_some());
        assert!(processor_time() > before);
    }
}
