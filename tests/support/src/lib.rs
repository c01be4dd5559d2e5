//! Servers for tests: origins that serve files honestly or misbehave in every way we know of, and proxies; and a
//! transport for tests without a network.
//!
//! *Owns* [`Origin`] and what it serves ([`Resource`], [`Content`], [`behaviour`]), [`Proxy`], the table of hostile
//! origins ([`cases()`]) that every downloader of ours is measured against, [`LoginSite`], a site with accounts, and
//! [`Attacker`], a host that wants their secrets. [`swarm`] has programs of others and hostile peers of BitTorrent,
//! [`transport`] a fake transport, [`Answer`] reads what a server of ours sends.
//!
//! *Never* uses the code under test, except the trait that a fake implements: sockets and threads of the standard library only, loopback only, and dropping a
//! server ends everything it started.
//!
//! Start reading at [`Origin`]; a misbehaviour is a function that bends a [`Reply`] before it is sent.

mod answer;
mod attacker;
pub mod behaviour;
mod case;
mod cases;
mod content;
mod ftp;
mod ftp_cases;
mod login_site;
mod origin;
mod proxy;
mod recorder;
mod reply;
mod request;
mod resource;
mod server;
pub mod swarm;
mod tls;
pub mod transport;
mod wire;

pub use answer::Answer;
pub use attacker::Attacker;
pub use case::{Case, Check, Expect, Scene};
pub use cases::{cases, themes};
pub use content::Content;
pub use ftp::{At, FTP_LOGIN, FtpSecurity, FtpServer, FtpSetting, Wrong};
pub use ftp_cases::{FtpCase, FtpCheck, FtpScene, ftp_themes};
pub use login_site::{Account, CdnWants, LoginSite, PasswordAs, SiteOptions};
pub use origin::Origin;
pub use proxy::{Proxied, Proxy, tunnel};
pub use recorder::Seen;
pub use reply::{Chunks, End, Framing, Head, Pace, Piece, Reply};
pub use request::{Place, Request};
pub use resource::{Exchange, Resource, Version, Visit};
pub use tls::Certificate;
