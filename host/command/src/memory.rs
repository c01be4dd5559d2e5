//! Returns memory that a start needed to the operating system, on systems where that must be requested.

/// Gives freed memory back to the operating system. What a start builds and drops again (descriptions, tables, rows) lies
/// between what stays, so that glibc keeps it: 4 MB of an agent. Musl and other systems' allocators do this by themselves.
pub fn release_free() {
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
