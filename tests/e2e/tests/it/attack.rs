//! Attacks on the running executable, one topic per file. Each test carries out its attack as another program would, and
//! fails where the attack succeeds. `host/docs/security.md` lists them.

mod addresses;
mod crowd;
mod dev_plugins;
mod dumps;
mod harm;
mod hostile;
pub(crate) mod hostile_plugins;
mod keyless;
mod lockout;
mod login_canary;
mod logins;
mod memory;
mod part_files;
mod patterns;
pub(crate) mod scripts;
mod secrets_shown;
mod setup;
mod sockets;
mod strangers;
mod token_theft;
