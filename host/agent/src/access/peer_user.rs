//! The user id that owns the peer socket of a local connection, as reported by the kernel. With its submodule, the only
//! file of this crate that depends on the operating system for that.

#[cfg(target_os = "linux")]
mod diag;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use tokio::sync::Semaphore;

/// Concurrent lookups where the kernel does not answer at once. Each reads a kernel table on a blocking thread.
const MAX_LOOKUPS: usize = 2;

/// The owner of the client's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerUser {
    Id(u32),
    /// This operating system has no such lookup.
    Unavailable,
    /// The lookup failed, so the peer may be any user.
    Unknown,
}

impl PeerUser {
    /// Whether the peer runs as the user of this process. Without a lookup, every local process counts as such.
    pub(crate) fn is_own(self) -> bool {
        match self {
            Self::Id(id) => Some(id) == system::own_user(),
            Self::Unavailable => true,
            Self::Unknown => false,
        }
    }

    /// Like [`Self::is_own`], or root.
    pub(crate) fn is_own_or_root(self) -> bool {
        self == Self::Id(0) || self.is_own()
    }
}

/// The two addresses of a connection, and its peer user, looked up on first use.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Our address; none if it is unknown or there is no socket.
    local: Option<SocketAddr>,
    user: Arc<OnceLock<PeerUser>>,
}

impl Peer {
    pub(crate) fn of_socket(address: SocketAddr, local: Option<SocketAddr>) -> Self {
        Self {
            address,
            local,
            user: Arc::default(),
        }
    }

    /// A client in this process, as if it connected from `address`.
    pub(crate) fn in_process(address: SocketAddr) -> Self {
        let user = system::own_user().map_or(PeerUser::Unavailable, PeerUser::Id);
        Self {
            address,
            local: None,
            user: Arc::new(user.into()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct PeerUsers {
    turns: Semaphore,
}

impl Default for PeerUsers {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(MAX_LOOKUPS),
        }
    }
}

impl PeerUsers {
    /// Looked up once per connection; an unknown user is looked up again at the next request.
    pub(crate) async fn of(&self, peer: &Peer) -> PeerUser {
        if let Some(user) = peer.user.get() {
            return *user;
        }
        let Some(local) = peer.local else {
            return PeerUser::Unknown;
        };
        let address = peer.address;
        let user = match system::ask(address, local) {
            Some(user) => user,
            None => self.search(address, local).await,
        };
        if user == PeerUser::Unknown {
            tracing::warn!(%address, "the user of a local connection cannot be found in /proc/net/tcp");
        } else {
            // A concurrent request of the same connection may have set it to the same value.
            let _same = peer.user.set(user);
        }
        user
    }

    async fn search(&self, address: SocketAddr, local: SocketAddr) -> PeerUser {
        let Ok(_turn) = self.turns.acquire().await else {
            return PeerUser::Unknown;
        };
        let found = tokio::task::spawn_blocking(move || system::search(address, local)).await;
        found.unwrap_or(PeerUser::Unknown)
    }
}

/// Linux lists the sockets of a network namespace with their owners.
#[cfg(target_os = "linux")]
mod system {
    use std::{
        fs::File,
        io::{BufRead, BufReader, Read as _},
        net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    };

    use super::{
        PeerUser,
        diag::{self, OPEN},
    };

    const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

    /// Beyond this size (some hundred thousand connections) the user stays unknown.
    const MAX_TABLE_BYTES: u64 = 32 * 1024 * 1024;

    #[expect(clippy::unnecessary_wraps, reason = "other systems have no user ids")]
    pub(super) fn own_user() -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    /// The owner of the socket that is bound to `client` and connected to `server`, if the kernel answers at once. It may
    /// lack that (`CONFIG_INET_DIAG`), a sandbox may deny it, and it does not find a socket that is bound to an interface.
    pub(super) fn ask(client: SocketAddr, server: SocketAddr) -> Option<PeerUser> {
        diag::find(client, server).map(PeerUser::Id)
    }

    /// The same from the list of all sockets.
    pub(super) fn search(client: SocketAddr, server: SocketAddr) -> PeerUser {
        for table in TABLES {
            let Ok(file) = File::open(table) else { continue };
            if let Some(id) = owner(BufReader::new(file.take(MAX_TABLE_BYTES)), client, server) {
                return PeerUser::Id(id);
            }
        }
        PeerUser::Unknown
    }

    /// The owner of the row with these addresses. A socket without a process (inode 0) is listed with root as its owner
    /// and does not count.
    pub(super) fn owner(table: impl BufRead, client: SocketAddr, server: SocketAddr) -> Option<u32> {
        let ends = (plain(client), plain(server));
        table.lines().map_while(Result::ok).find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (local, remote, state) = (fields.nth(1)?, fields.next()?, fields.next()?);
            let state = u8::from_str_radix(state, 16).ok()?;
            if !OPEN.contains(&state) || (address(local)?, address(remote)?) != ends {
                return None;
            }
            let user = fields.nth(3)?.parse().ok()?;
            let inode: u64 = fields.nth(1)?.parse().ok()?;
            (inode != 0).then_some(user)
        })
    }

    /// Maps IPv4-in-IPv6 to IPv4 and drops flow and scope, which the table does not contain.
    fn plain(address: SocketAddr) -> (IpAddr, u16) {
        (address.ip().to_canonical(), address.port())
    }

    /// Parses `0100007F:4588`: address words in the machine's byte order, then the port.
    fn address(text: &str) -> Option<(IpAddr, u16)> {
        let (address, port) = text.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
        let address = match address.len() {
            8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
            32 => {
                let words = [word(0)?, word(8)?, word(16)?, word(24)?];
                let bytes: [u8; 16] = words.concat().try_into().ok()?;
                IpAddr::V6(Ipv6Addr::from(bytes))
            }
            _ => return None,
        };
        Some((address.to_canonical(), port))
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        #[test]
        fn a_row_counts_if_a_process_holds_its_socket_and_both_ends_fit() {
            let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
            let v4 = word([127, 0, 0, 1]);
            let mapped = [word([0; 4]), word([0; 4]), word([0, 0, 255, 255]), v4.clone()].concat();
            let row = |local: &str, state: &str, inode: u64| {
                format!("  7: {local}:1000 {local}:4588 {state} 0:0 00:0 0 65534 0 {inode} 2 c1 20 0 0 10 -1\n")
            };
            let find = |table: String, client: &str| {
                owner(
                    table.as_bytes(),
                    client.parse().unwrap(),
                    "127.0.0.1:17800".parse().unwrap(),
                )
            };
            let client = "127.0.0.1:4096";
            assert_eq!(find(row(&v4, "01", 9), client), Some(65534));
            assert_eq!(find(row(&mapped, "01", 9), client), Some(65534));
            assert_eq!(find(row(&v4, "01", 9), "[::ffff:127.0.0.1]:4096"), Some(65534));
            assert_eq!(find(row(&v4, "05", 9), client), Some(65534), "half closed");
            let six = [word([0; 4]), word([0; 4]), word([0; 4]), word([0, 0, 0, 1])].concat();
            let (from, to) = ("[::1]:4096".parse().unwrap(), "[::1]:17800".parse().unwrap());
            assert_eq!(owner(row(&six, "01", 9).as_bytes(), from, to), Some(65534));
            assert_eq!(find(row(&v4, "01", 0), client), None, "an orphan");
            assert_eq!(find(row(&v4, "06", 9), client), None, "an old connection");
            assert_eq!(find(row(&v4, "0A", 9), client), None, "a listener");
            assert_eq!(find(row(&v4, "01", 9), "127.0.0.1:4097"), None, "another port");
            assert_eq!(find(row(&v4, "01", 9), "127.0.0.2:4096"), None, "another address");
        }

        proptest! {
            #[test]
            fn no_table_makes_the_reader_panic(text in "[ :0-9A-Fa-f\n]{0,200}", any in ".{0,80}") {
                let end = SocketAddr::from(([127, 0, 0, 1], 1));
                prop_assert_eq!(owner(text.as_bytes(), end, end), None);
                prop_assert_eq!(owner(any.as_bytes(), end, end), None);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::net::SocketAddr;

    use super::PeerUser;

    pub(super) fn own_user() -> Option<u32> {
        None
    }

    pub(super) fn ask(_: SocketAddr, _: SocketAddr) -> Option<PeerUser> {
        Some(PeerUser::Unavailable)
    }

    pub(super) fn search(_: SocketAddr, _: SocketAddr) -> PeerUser {
        PeerUser::Unavailable
    }
}
