//! The process between the service and a tool. It limits and isolates itself, starts the tool, which inherits all of that,
//! and ends it with everything that it started: when it takes too long, when it is asked to, and when the service dies.
//!
//! It has one thread, because the system lets no process with several enter a namespace of users, and no process start
//! threads that has entered one of processes.

use std::{
    ffi::OsString,
    io,
    net::{Ipv4Addr, TcpListener},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use crate::{
    order::{GRACE, Network, Order, PROXY_USER, Report},
    sys::{self, Watch, Woken},
};

/// Names of the variables by which programs find a proxy. Lower case only: the others mean something else to CGI programs,
/// and `yt-dlp` reads both.
const PROXY_VARIABLES: [&str; 2] = ["http_proxy", "https_proxy"];

/// The supervisor's process. `arguments` are its own: an order, the program, and the arguments of that. Must be the first
/// thing in the process.
pub fn supervisor_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Err(error) = supervise(arguments.into_iter()) else {
        return ExitCode::SUCCESS;
    };
    let message = error.to_string();
    // If the service has died, no process reads it.
    let _closed = report(&Report::Refused { message }, None);
    ExitCode::FAILURE
}

fn supervise(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let order = arguments.next().ok_or_else(invalid)?;
    let order: Order = serde_json::from_slice(order.as_encoded_bytes())?;
    let mut command = Command::new(arguments.next().ok_or_else(invalid)?);
    command.args(arguments).stdin(Stdio::null());

    let (password, inputs) = if order.has_first_message() {
        sys::first_message()?
    } else {
        Default::default()
    };
    if inputs.len() != order.inputs {
        return Err(invalid());
    }
    // Open until the tool has them.
    let _inputs = sys::hand_on(inputs)?;
    let isolation = sys::confine(&order)?;
    let listener = match order.network {
        Network::Nothing => None,
        Network::Proxy => Some(listen(&password, &mut command)?),
    };
    let until = Instant::now() + order.limits.wall;
    let tool = sys::Started::spawn(&mut command)?;
    let process = tool.number();
    // If the service has died, its end of the socket is closed, which is a request to stop.
    let _closed = report(&Report::Started { process, isolation }, listener.as_ref());
    // The service has it now.
    drop(listener);

    let woken = tool.wait(until, Watch::EndAndRequests);
    if woken != Woken::Ended {
        tool.terminate();
        tool.wait(Instant::now() + GRACE, Watch::End);
    }
    let (code, signal) = tool.end();
    let is_late = woken == Woken::Late;
    report(&Report::Ended { code, signal, is_late }, None)
}

/// Opens the listener of the proxy, in the network that the tool has, and puts its address into the tool's environment.
fn listen(password: &str, command: &mut Command) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let proxy = format!("http://{PROXY_USER}:{password}@{}:{port}", Ipv4Addr::LOCALHOST);
    command.envs(PROXY_VARIABLES.map(|name| (name, &proxy)));
    Ok(listener)
}

fn report(report: &Report, listener: Option<&TcpListener>) -> io::Result<()> {
    sys::send_report(&serde_json::to_vec(report)?, listener)
}
