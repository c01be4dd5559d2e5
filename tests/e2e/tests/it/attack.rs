//! Attacks on the running executable, one topic per file. Each test carries out its attack as another program would, and
//! fails where the attack succeeds. `host/docs/security.md` lists them.

mod addresses;
mod logins;
mod part_files;
