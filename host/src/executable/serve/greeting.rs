//! The text that a host prints once it is up: addresses, directories, and the next step.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use agent::{Agent, DEFAULT_PORT, Edition, SetupCode};

use crate::executable::process::Places;

#[derive(Debug)]
struct Facts<'a> {
    address: SocketAddr,
    /// This machine's host name, for URLs that are opened on other machines.
    machine: &'a str,
    /// Present on a server without a key.
    setup_code: Option<&'a SetupCode>,
    has_key: bool,
    data: String,
    downloads: String,
}

pub(super) fn text(agent: &Agent, edition: Edition, places: &Places) -> String {
    let name = rustix::system::uname();
    let facts = Facts {
        address: agent.local_addr(),
        machine: name.nodename().to_str().unwrap_or("localhost"),
        setup_code: agent.setup_code(),
        has_key: agent.access_key().is_some() || edition == Edition::Desktop,
        data: places.data.display().to_string(),
        downloads: places.downloads.display().to_string(),
    };
    facts.text()
}

/// The URL of the page, for a browser on this machine.
pub(super) fn page(agent: &Agent) -> String {
    format!("{}/", here(agent.local_addr()))
}

/// The URL for clients on this machine.
fn here(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

impl Facts<'_> {
    fn text(&self) -> String {
        let mut text = "Svc is running.\n\n".to_owned();
        let mut line = |name: &str, value: &str| {
            let _infallible = writeln!(text, "  {name:<10} {value}");
        };
        line("Address", &self.here());
        if let Some(code) = self.setup_code {
            line("Set-up", &format!("{}/#setup={}", self.elsewhere(), code.expose()));
            line("", "(once, to choose the access key; not needed from this machine)");
        }
        line("Data", &self.data);
        line("Downloads", &self.downloads);
        let url = if self.address.port() == DEFAULT_PORT {
            String::new()
        } else {
            format!(" --url {}", self.here())
        };
        let next = if self.has_key {
            "add https://example.com/file"
        } else {
            "setup"
        };
        let _infallible = writeln!(text, "\nNext: svc {next}{url}");
        text
    }

    fn here(&self) -> String {
        here(self.address)
    }

    /// The URL for browsers on other machines.
    fn elsewhere(&self) -> String {
        if self.address.ip().is_unspecified() {
            format!("http://{}:{}", self.machine, self.address.port())
        } else {
            self.here()
        }
    }
}
