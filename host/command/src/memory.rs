//! Returns memory that is not needed any more to the operating system, on systems where that must be requested.

use std::{convert::Infallible, future::pending, time::Duration};

use tokio::time::{Instant, MissedTickBehavior};

/// When memory is released first: the calls that follow a start are over then.
const FIRST: Duration = Duration::from_millis(100);

/// How often it is looked whether there is memory to release.
const TICK: Duration = Duration::from_secs(5);

/// A process that computed for less than this since the last tick is idle. Five hundred idle seeding torrents take half of
/// it.
const IDLE: Duration = Duration::from_millis(8);

/// Memory is released again once the process has this much more than when it last was. Most of it is code: each call of
/// code that did not run before has the system map 64 KiB.
const GROWN_BYTES: u64 = 256 * 1024;

/// Releases code that has not run for some seconds, and freed memory each time that the process becomes idle after it worked:
/// what a crowd of requests or the start of many torrents needed is not kept for days. Needs no stop: it is dropped.
pub async fn release_regularly() -> Infallible {
    let mut meter = Meter::default();
    let mut tick = tokio::time::interval_at(Instant::now() + FIRST, TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(computed), Some(resident)) = (processor_time(), transfer::resident_bytes()) else {
            return pending().await;
        };
        let release = meter.tick(computed, resident);
        if release == Some(Release::All) {
            release_free();
        }
        if release.is_some() {
            release_code();
            meter.released = transfer::resident_bytes().unwrap_or(resident);
        }
    }
}

/// Decides when memory is released, from the processor time and the memory of the process at each tick.
#[derive(Debug, Default)]
struct Meter {
    last: Option<Duration>,
    /// What the process had after memory was released last.
    released: u64,
    /// It worked since freed memory was released.
    has_worked: bool,
}

impl Meter {
    fn tick(&mut self, computed: Duration, resident: u64) -> Option<Release> {
        let last = self.last.replace(computed);
        let is_idle = last.is_none_or(|last| computed.saturating_sub(last) < IDLE);
        let has_grown = resident > self.released + GROWN_BYTES;
        let had_worked = std::mem::replace(&mut self.has_worked, !is_idle);
        if is_idle {
            (had_worked || has_grown).then_some(Release::All)
        } else {
            has_grown.then_some(Release::Code)
        }
    }
}

/// What is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    /// Code and constants: those that are needed come back for a few hundred microseconds.
    Code,
    /// Freed memory as well, which takes longer the more there is.
    All,
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
        #[expect(unsafe_code, reason = "a function of the C library")]
        // SAFETY: it takes no pointer and may be called at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Takes the pages of code and constants that a start needed, of the executable and of its libraries, out of this process,
/// most of which it does not need again: 2 MB of a download. They stay in the cache of the operating system, from which those
/// that are needed come back at once.
pub fn release_code() {
    #[cfg(target_os = "linux")]
    {
        #[expect(unsafe_code, reason = "the loader lists what it has mapped")]
        // SAFETY: the callback has the signature that is asked for, and keeps no pointer.
        unsafe {
            libc::dl_iterate_phdr(Some(release_unwritten), std::ptr::null_mut());
        }
    }
}

/// Releases the parts of an object (the executable, a library) that cannot be written.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the loader calls it with its own tables")]
unsafe extern "C" fn release_unwritten(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: it only reads a constant of the system.
    let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(64 * 1024);
    // SAFETY: the loader passes a valid description, whose table has as many rows as it says.
    let (object, parts) = unsafe {
        (
            &*object,
            std::slice::from_raw_parts((*object).dlpi_phdr, (*object).dlpi_phnum.into()),
        )
    };
    for part in parts {
        if part.p_type != libc::PT_LOAD || part.p_flags & libc::PF_W != 0 {
            continue;
        }
        let (Ok(start), Ok(length)) = (
            usize::try_from(object.dlpi_addr + part.p_vaddr),
            usize::try_from(part.p_memsz),
        ) else {
            continue;
        };
        let first = start.next_multiple_of(page_bytes);
        let length = (start + length).saturating_sub(first) / page_bytes * page_bytes;
        // SAFETY: these are whole pages of a file that nothing writes (code, constants, the tables of the loader), so that what
        // is dropped is read again as it was. Without success they stay.
        let _result = unsafe { libc::madvise(std::ptr::without_provenance_mut(first), length, libc::MADV_DONTNEED) };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_released_when_the_process_idles_and_code_whenever_it_has_grown() {
        const MIB: u64 = 1024 * 1024;
        let mut meter = Meter::default();
        let mut at = |milliseconds, resident| {
            let release = meter.tick(Duration::from_millis(milliseconds), resident);
            if release.is_some() {
                meter.released = resident / 2;
            }
            release
        };
        assert_eq!(at(500, 20 * MIB), Some(Release::All), "after the start");
        assert_eq!(at(501, 10 * MIB), None, "nothing came since");
        assert_eq!(at(900, 30 * MIB), Some(Release::Code), "it works");
        assert_eq!(at(940, 15 * MIB), None, "it needs what it has");
        assert_eq!(
            at(945, 15 * MIB),
            Some(Release::All),
            "it stopped working, and may have freed what it needed"
        );
        assert_eq!(at(946, 7 * MIB), None);
        assert_eq!(at(947, 7 * MIB + MIB / 2 + GROWN_BYTES), None);
        assert_eq!(at(948, 8 * MIB), Some(Release::All), "little by little it grew");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn code_is_released_and_still_runs() {
        let before = transfer::resident_bytes().unwrap();
        release_code();
        assert!(
            transfer::resident_bytes().unwrap() < before,
            "what the start needed is not there any more"
        );
        let releasing = tokio::time::timeout(10 * TICK, release_regularly()).await;
        assert!(releasing.is_err(), "it goes on until it is dropped");
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
