//! Connections of another user of the same machine. Whose a connection is, the kernel decides when its socket is made: by
//! the thread that makes it.

use std::{
    io,
    net::{TcpListener, TcpStream},
};

use rustix::{process::Uid, thread::set_thread_uid};

/// `nobody`.
const USER: u32 = 65_534;

/// Connects as a user who is neither the service's nor root. Needs the right to become one, and fails without it: a test
/// that cannot ask as somebody else has shown nothing.
#[track_caller]
pub fn connect(address: &str) -> TcpStream {
    let address = address.to_owned();
    let connecting = std::thread::spawn(move || {
        // On Linux this is the user of this thread alone.
        set_thread_uid(Uid::from_raw(USER)).expect("this test acts as another user, so it must be run as root");
        TcpStream::connect(address)
    });
    let connected = connecting.join().expect("the thread can become another user");
    connected.expect("the service listens")
}

/// A program of another user that passes one connection on and says nothing of itself, as `ssh -L` and `socat` do. Gives
/// its address.
pub fn forward_once(address: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let own = listener.local_addr().expect("it listens").to_string();
    let address = address.to_owned();
    std::thread::spawn(move || -> io::Result<()> {
        let (near, _) = listener.accept()?;
        support::tunnel(near, connect(&address))
    });
    own
}
