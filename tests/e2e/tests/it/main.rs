//! The executable, end to end. Servers are `support`'s; everything else is what a user has: arguments, exit codes,
//! output and files.

mod aria2c;
mod attack;
mod disk;
mod examples;
mod ftp;
mod get;
mod hostile_docs;
mod hostile_ftp;
mod hostile_origins;
mod hostile_sftp;
mod kill_loop;
mod link;
mod packaging;
mod place;
mod power_cut;
mod remote;
mod service;
mod sftp;
mod torrent;
