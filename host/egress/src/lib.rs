//! All outgoing connections, to other machines and between our own processes.
//!
//! *Owns* the rules about addresses, names and redirects, and the only code that resolves names and opens connections:
//! [`dial()`] for our own HTTP/1.1 client, the high-level [`HttpClient`] for everything else, [`own_machine`] for our
//! own processes. TLS trust is in [`tls`].
//!
//! *Never* knows a task, a plugin or a setting: callers say who supplied a URL, and get a [`Reach`].
//!
//! The rules, implemented by the pure modules `address`, `name`, `reach` and `redirect`:
//!
//! - A URL from the user may connect to any address.
//! - A redirect, and a URL that a plugin derives from the user's, may connect to global addresses, and to the host of
//!   the user's URL. That host may redirect to another of its ports (a NAS that redirects from 5000 to 5001 is usual),
//!   but none that belongs to a protocol for which HTTP could be mistaken ([`reach::is_blocked_port`]). Redirects from
//!   a host on this machine may go to this machine under another name.
//! - A URL from a web page or another device may connect to global addresses, and to the page's own host only if that
//!   host is a private one by its spelling ([`name`], [`address`]): the owner of a public name can change its addresses
//!   at any moment. If the page's port is known, it is the only one besides HTTPS.
//! - A public name that had a global address may only have global addresses for the rest of the run or call ([`Pins`]).
//! - All of this is checked on the addresses of the actual connection. Behind a proxy these are unknown: local names
//!   are refused by their spelling, and, unless it is a SOCKS proxy, names are also resolved here and refused if they
//!   have a local address ([`dial::check_proxied`] explains why, and what remains).
//!
//! # Layers
//!
//! - `client`: HTTP requests for content
//! - `dial`: name resolution and connecting
//! - `reach`: the addresses that a URL may connect to, by who supplied it
//! - `address`, `name`, `redirect`: the pure rules below it
//! - `tls`, `own_machine`: independent of the rules
//!
//! Start reading at [`Reach`] and [`reach::of`].

pub mod address;
pub mod client;
pub mod dial;
pub mod name;
pub mod own_machine;
pub mod reach;
pub mod redirect;
pub mod tls;

pub use client::{ClientConfig, HttpClient, Request, Response, SendError};
pub use dial::{DialError, Lookup, Names, dial};
pub use reach::{Forbidden, Pins, Reach};
pub use redirect::{Redirects, Refusal};
