//! What differs between systems in giving memory back.

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
