//! All outgoing connections, to other machines and between our own processes.
//!
//! *Owns* the rules about addresses, names and redirects, and the only code that resolves names and opens connections:
//! [`dial()`] for our own HTTP/1.1 client, the high-level [`HttpClient`] for everything else, [`udp`] for datagrams,
//! [`own_machine`] for our own processes. TLS trust is in [`tls`].
//!
//! *Never* knows a task, a plugin or a setting: callers say who supplied a URL, and get a [`Reach`].
//!
//! The rules, implemented by the pure modules `address`, `name`, `reach` and `redirect`:
//!
//! - A URL that the user gave may lead anywhere.
//! - A redirect, and what a plugin makes of a URL of the user, may lead to global addresses, and to the host that the user
//!   gave. That host may name another of its ports (a NAS that redirects from 5000 to 5001 is usual), but none that
//!   belongs to a protocol for which HTTP could be mistaken ([`reach::is_blocked_port`]). Redirects from a host on this
//!   machine may lead to this machine under another name.
//! - What a web page or another device hands over may lead to global addresses. If the user confirmed its URL, it may also
//!   lead to the host of that URL, but to a private address there only if the host is private by its spelling ([`name`],
//!   [`address`]): a public name says nothing about where it leads, because its owner can change that at any moment.
//! - A public name that led to a global address leads to no other address for the rest of the run or call ([`Pins`]).
//! - All of this is judged by the addresses that a connection is made to. Behind a proxy there are none, so that names
//!   which mean a local network are refused by their spelling; and unless the proxy is a SOCKS proxy, they are looked up
//!   here, too, and refused if they lead to a local network ([`dial::check_proxied`] says why so, and what remains).
//!
//! # Layers
//!
//! - `client`: HTTP requests for content
//! - `peer`: connections to peers
//! - `route`: proxies and TLS
//! - `udp`: datagrams
//! - `dial`: name resolution and connecting
//! - `reach`: the addresses that a URL may connect to, by who supplied it
//! - `digest`: answers to challenges of HTTP Digest
//! - `address`, `name`, `redirect`: the pure rules below it
//! - `tls`, `own_machine`: independent of the rules
//!
//! Start reading at [`Reach`] and [`reach::of`].

pub mod address;
pub mod client;
pub mod dial;
pub mod digest;
pub mod name;
pub mod own_machine;
pub mod peer;
pub mod reach;
pub mod redirect;
pub mod route;
pub mod tls;
pub mod udp;

pub use client::{ClientConfig, HttpClient, Request, Response, SendError};
pub use dial::{DialError, Family, Lookup, Names, dial};
pub use reach::{Forbidden, Pins, Reach};
pub use redirect::{Redirects, Refusal};

/// What the host calls itself where a user, a task or a site gives no name.
pub const USER_AGENT: &str = concat!("Svc/", env!("CARGO_PKG_VERSION"));
