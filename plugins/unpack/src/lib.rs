//! Unpacks the archives among the files of a finished download.
//!
//! *Owns* which archives are unpacked, with which passwords, and whether they are kept.
//!
//! *Never* reads an archive: the host unpacks, and decides what is refused.
//!
//! Start reading at [`Unpack`].

use svc_plugin::prelude::*;

/// The plugin.
#[derive(Debug)]
pub struct Unpack;

/// Passwords that the host tries; of more, the first ones are.
const MAX_PASSWORDS: usize = 100;

impl PostProcessor for Unpack {
    fn done(_: &PostCall, work: &Work<'_>) -> Result<()> {
        let passwords: String = env::setting_or("passwords", String::new())?;
        let passwords: Vec<_> = passwords.lines().filter(|line| !line.is_empty()).collect();
        let passwords = &passwords[..passwords.len().min(MAX_PASSWORDS)];
        let keeps_archive = env::setting_or("keepArchive", true)?;
        let archives = work.archives();
        if archives.is_empty() {
            log::info("there is no archive among the files");
        }
        for archive in &archives {
            let directories = work.unpack(archive, passwords)?;
            log::info(format!("{archive} is unpacked to {}", directories.join(", ")));
            if !keeps_archive {
                work.remove_archive(archive)?;
            }
        }
        Ok(())
    }
}

svc_plugin::plugin!(Unpack: PostProcessor);
