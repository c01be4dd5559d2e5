//! Reads what other download programs keep on the disk, and the commands that browsers copy, as requests for tasks.
//!
//! *Owns* the formats of qBittorrent, Transmission, JDownloader, Chromium, Firefox and curl's command line.
//!
//! *Never* connects to anything, writes, or changes what it reads: the other program goes on as before.
//!
//! # Layers
//! - `browser`, `curl`, `jdownloader`, `qbittorrent`, `transmission`
//! - `torrent`
//! - `read`, `words`
//! - `found`

pub mod browser;
pub mod curl;
mod found;
pub mod jdownloader;
pub mod qbittorrent;
mod read;
mod torrent;
pub mod transmission;
mod words;

pub use found::{Download, Found, ImportError, Refused};
