//! Linux answers a question about one TCP socket through netlink (`sock_diag(7)`) in a time that does not depend on how
//! many sockets there are; reading `/proc/net/tcp` takes longer with each of them, closed ones included.

use std::net::{IpAddr, SocketAddr};

use rustix::{
    io,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{SOCK_DIAG, SocketAddrNetlink},
        recv, sendto, socket_with,
    },
};

/// States of a client that waits for an answer: established, and its own half closed (`FIN_WAIT1`, `FIN_WAIT2`).
pub(super) const OPEN: [u8; 3] = [1, 4, 5];

/// `SOCK_DIAG_BY_FAMILY`: the type of the question and of its answer.
const BY_FAMILY: u16 = 20;

/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;

const TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

/// The header and `struct inet_diag_req_v2`.
const QUESTION_BYTES: u32 = 16 + 56;

/// `struct inet_diag_msg`; attributes follow it.
const ANSWER_BYTES: usize = HEADER_BYTES + 72;

/// More than the kernel sends for one socket.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// The owner of the socket that is bound to `client` and connected to `server`. `None` if the kernel does not know it, or
/// does not answer such questions.
pub(super) fn find(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    ask(client, server)
        .ok()
        .and_then(|answer| owner(&answer, client, server))
}

fn ask(client: SocketAddr, server: SocketAddr) -> io::Result<Vec<u8>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &question(client, server), SendFlags::empty(), &kernel)?;
    // The kernel has answered before the sending returns.
    let mut answer = vec![0; MAX_ANSWER_BYTES];
    let (read, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(read);
    Ok(answer)
}

/// The address as a socket of its own family has it, in the sixteen bytes of the message.
fn words(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// `struct inet_diag_sockid` up to the addresses: what must be equal in question and answer.
fn ends(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let ports = [client.port().to_be_bytes(), server.port().to_be_bytes()].concat();
    let addresses = [client, server].map(|end| words(end.ip().to_canonical()));
    [ports.as_slice(), &addresses.concat()].concat()
}

fn question(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let family = if client.ip().to_canonical().is_ipv4() {
        AF_INET
    } else {
        AF_INET6
    };
    let states = u32::MAX.to_ne_bytes();
    let (any_interface, no_cookie) = ([0; 4], [0xff; 8]);
    [
        &QUESTION_BYTES.to_ne_bytes(),
        BY_FAMILY.to_ne_bytes().as_slice(),
        &REQUEST.to_ne_bytes(),
        // The number of the message, and of the sender.
        &[0; 8],
        &[family, TCP, 0, 0],
        &states,
        &ends(client, server),
        &any_interface,
        &no_cookie,
    ]
    .concat()
}

/// The owner in an answer about the connection between these ends. A listener or an old connection does not count, nor a
/// socket without a process (inode 0), which has root as its owner.
fn owner(answer: &[u8], client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let body = answer.get(HEADER_BYTES..ANSWER_BYTES)?;
    let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let is_answer = answer.get(4..6)? == BY_FAMILY.to_ne_bytes();
    let is_it = body.get(4..40)? == ends(client, server) && OPEN.contains(body.get(1)?);
    let (user, inode) = (word(64)?, word(68)?);
    (is_answer && is_it && inode != 0).then_some(user)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernel_names_the_owner_of_an_open_connection_and_of_no_other() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(any).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, from) = listener.accept().unwrap();
            let to = accepted.local_addr().unwrap();
            assert_eq!(find(from, to), Some(rustix::process::geteuid().as_raw()));
            // The listener would answer for a connection that is not there.
            let elsewhere = SocketAddr::new(from.ip(), from.port() ^ 1);
            assert_eq!(find(to, elsewhere), None);
            // The address of a client of a socket of both families.
            if let IpAddr::V4(address) = from.ip() {
                let mapped = SocketAddr::from((address.to_ipv6_mapped(), from.port()));
                assert_eq!(find(mapped, to), find(from, to));
            }
            drop(accepted);
            drop(client);
            assert_eq!(find(from, to), None, "an old connection");
        }
    }

    #[test]
    fn an_answer_counts_if_a_process_holds_the_socket_and_both_ends_fit() {
        let (client, server) = (([127, 0, 0, 1], 4096).into(), ([127, 0, 0, 1], 17800).into());
        let answer = |kind: u16, state: u8, client: SocketAddr, inode: u32| {
            let head = [[0; 4].as_slice(), &kind.to_ne_bytes(), &[0; 10]].concat();
            let socket = [&[AF_INET, state, 0, 0], ends(client, server).as_slice(), &[0; 24]].concat();
            [head, socket, 65534_u32.to_ne_bytes().into(), inode.to_ne_bytes().into()].concat()
        };
        let owner = |answer: Vec<u8>| owner(&answer, client, server);
        assert_eq!(owner(answer(BY_FAMILY, 1, client, 9)), Some(65534));
        assert_eq!(owner(answer(BY_FAMILY, 5, client, 9)), Some(65534), "half closed");
        assert_eq!(owner(answer(BY_FAMILY, 1, client, 0)), None, "an orphan");
        assert_eq!(owner(answer(BY_FAMILY, 6, client, 9)), None, "an old connection");
        assert_eq!(owner(answer(BY_FAMILY, 10, client, 9)), None, "a listener");
        assert_eq!(owner(answer(2, 1, client, 9)), None, "an error");
        let other = SocketAddr::new(client.ip(), 4097);
        assert_eq!(owner(answer(BY_FAMILY, 1, other, 9)), None, "another port");
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_reader_panic(answer in proptest::collection::vec(any::<u8>(), 0..200)) {
            let end = SocketAddr::from(([127, 0, 0, 1], 1));
            prop_assert_eq!(owner(&answer, end, end), None);
        }
    }
}
