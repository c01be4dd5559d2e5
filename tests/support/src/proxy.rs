//! Proxies: HTTP (absolute form and `CONNECT`), SOCKS 4a and SOCKS5, which resolve names by a table of their own.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex},
};

use crate::{
    behaviour::basic,
    request::Request,
    server::{Accepted, Server, lock},
};

/// Something that a proxy was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxied {
    /// `GET`, `CONNECT`, …, or `SOCKS5`.
    pub method: String,
    /// An absolute URL or `host:port`, the host as the client gave it.
    pub target: String,
    /// Whether it was done, rather than refused for want of credentials.
    pub is_served: bool,
}

/// A proxy on loopback. Dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct Proxy {
    server: Server,
    log: Arc<Mutex<Vec<Proxied>>>,
}

/// What a proxy knows.
#[derive(Debug, Clone, Default)]
struct Rules {
    ports: HashMap<String, u16>,
    credentials: Option<(String, String)>,
}

impl Proxy {
    /// An HTTP proxy. A host of `names` is reached at that port of 127.0.0.1; every other host as it is.
    pub fn http(names: &[(&str, u16)], credentials: Option<(&str, &str)>) -> Self {
        Self::start(rules(names, credentials), serve_http)
    }

    /// A SOCKS 4a proxy that is given names and resolves them itself.
    pub fn socks4(names: &[(&str, u16)]) -> Self {
        Self::start(rules(names, None), |client, rules, log| {
            // A client that breaks off is what ends the exchange.
            let _broken_off = serve_socks4(client, rules, log);
        })
    }

    /// A SOCKS5 proxy that is given names and resolves them itself.
    pub fn socks5(names: &[(&str, u16)], credentials: Option<(&str, &str)>) -> Self {
        Self::start(rules(names, credentials), |client, rules, log| {
            // A client that breaks off is what ends the exchange.
            let _broken_off = serve_socks5(client, rules, log);
        })
    }

    fn start(rules: Rules, serve: fn(TcpStream, &Rules, &Mutex<Vec<Proxied>>)) -> Self {
        let log = Arc::<Mutex<Vec<Proxied>>>::default();
        let for_connections = Arc::clone(&log);
        let server = Server::start(move |Accepted { stream, .. }| serve(stream, &rules, &for_connections));
        Self { server, log }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// Everything it was asked to do so far.
    pub fn requests(&self) -> Vec<Proxied> {
        lock(&self.log).clone()
    }
}

fn rules(names: &[(&str, u16)], credentials: Option<(&str, &str)>) -> Rules {
    Rules {
        ports: names.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect(),
        credentials: credentials.map(|(user, password)| (user.to_owned(), password.to_owned())),
    }
}

impl Rules {
    fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        match self.ports.get(host) {
            Some(port) => TcpStream::connect(("127.0.0.1", *port)),
            None => TcpStream::connect((host, port)),
        }
    }
}

fn serve_http(mut client: TcpStream, rules: &Rules, log: &Mutex<Vec<Proxied>>) {
    // Absolute-form exchanges close their connection; a refused one leaves it open for a second try.
    while let Some(request) = Request::read(&mut client, 0, &Arc::default()) {
        let wanted = rules.credentials.as_ref().map(|(user, password)| basic(user, password));
        let is_served = wanted.is_none() || request.header("proxy-authorization") == wanted.as_deref();
        let (method, target) = (request.method.clone(), request.target.clone());
        lock(log).push(Proxied {
            method,
            target,
            is_served,
        });
        if is_served {
            let _broken_off = if request.method == "CONNECT" {
                tunnel_http(client, &request, rules)
            } else {
                forward_http(client, &request, rules)
            };
            return;
        }
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                       Proxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n\r\n";
        if client.write_all(refusal.as_bytes()).is_err() {
            return;
        }
    }
}

fn tunnel_http(mut client: TcpStream, request: &Request, rules: &Rules) -> io::Result<()> {
    let upstream = host_and_port(&request.target, 443).and_then(|(host, port)| rules.connect(host, port));
    let Ok(upstream) = upstream else {
        return bad_gateway(client);
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    tunnel(client, upstream)
}

fn forward_http(mut client: TcpStream, request: &Request, rules: &Rules) -> io::Result<()> {
    let Some(rest) = request.target.strip_prefix("http://") else {
        return bad_gateway(client);
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let upstream = host_and_port(authority, 80).and_then(|(host, port)| rules.connect(host, port));
    let Ok(mut upstream) = upstream else {
        return bad_gateway(client);
    };
    let mut head = format!(
        "{} {} HTTP/1.1\r\n",
        request.method,
        if path.is_empty() { "/" } else { path }
    );
    for (name, value) in &request.headers {
        let stays_here = ["proxy-authorization", "proxy-connection", "connection"];
        if !stays_here.iter().any(|header| name.eq_ignore_ascii_case(header)) {
            head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    upstream.write_all(head.as_bytes())?;
    upstream.write_all(&request.body)?;
    copy(&mut upstream, &mut client)?;
    client.shutdown(Shutdown::Write)?;
    copy(&mut client, &mut io::sink())
}

fn bad_gateway(mut client: TcpStream) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// SOCKS 4 and 4a (openssh.com/txt/socks4a.protocol), `CONNECT` only.
fn serve_socks4(mut client: TcpStream, rules: &Rules, log: &Mutex<Vec<Proxied>>) -> io::Result<()> {
    let [_version, _connect] = take(&mut client)?;
    let port = u16::from_be_bytes(take(&mut client)?);
    let address = std::net::Ipv4Addr::from(take::<4>(&mut client)?);
    let _user = take_text(&mut client)?;
    let host = if address.octets()[..3] == [0; 3] {
        take_text(&mut client)?
    } else {
        address.to_string()
    };
    lock(log).push(Proxied {
        method: "SOCKS4".to_owned(),
        target: format!("{host}:{port}"),
        is_served: true,
    });
    let upstream = rules.connect(&host, port).ok();
    let reply = if upstream.is_some() { 0x5a } else { 0x5b };
    client.write_all(&[0, reply, 0, 0, 0, 0, 0, 0])?;
    upstream.map_or(Ok(()), |upstream| tunnel(client, upstream))
}

/// A text that ends with a zero byte.
fn take_text(client: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        match take(client)? {
            [0] => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            [byte] => bytes.push(byte),
        }
    }
}

/// SOCKS5 (RFC 1928) with user name and password (RFC 1929), `CONNECT` only.
fn serve_socks5(mut client: TcpStream, rules: &Rules, log: &Mutex<Vec<Proxied>>) -> io::Result<()> {
    let [_version, methods] = take(&mut client)?;
    let mut offered = vec![0; methods.into()];
    client.read_exact(&mut offered)?;
    let method = if rules.credentials.is_some() { 2 } else { 0 };
    if !offered.contains(&method) {
        lock(log).push(Proxied {
            method: "SOCKS5".to_owned(),
            target: String::new(),
            is_served: false,
        });
        return client.write_all(&[5, 0xff]);
    }
    client.write_all(&[5, method])?;
    if let Some((user, password)) = &rules.credentials {
        let [_version] = take(&mut client)?;
        let is_right = take_string(&mut client)? == *user && take_string(&mut client)? == *password;
        client.write_all(&[1, u8::from(!is_right)])?;
        if !is_right {
            lock(log).push(Proxied {
                method: "SOCKS5".to_owned(),
                target: String::new(),
                is_served: false,
            });
            return Ok(());
        }
    }
    let [_version, _connect, _reserved, address_type] = take(&mut client)?;
    let host = match address_type {
        1 => std::net::Ipv4Addr::from(take::<4>(&mut client)?).to_string(),
        3 => take_string(&mut client)?,
        _ => std::net::Ipv6Addr::from(take::<16>(&mut client)?).to_string(),
    };
    let port = u16::from_be_bytes(take(&mut client)?);
    lock(log).push(Proxied {
        method: "SOCKS5".to_owned(),
        target: format!("{host}:{port}"),
        is_served: true,
    });
    let Ok(upstream) = rules.connect(&host, port) else {
        return client.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]);
    };
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0])?;
    tunnel(client, upstream)
}

fn take<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_string(client: &mut TcpStream) -> io::Result<String> {
    let [len] = take(client)?;
    let mut bytes = vec![0; len.into()];
    client.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Copies both ways until both sides have said their last.
pub fn tunnel(mut client: TcpStream, mut upstream: TcpStream) -> io::Result<()> {
    let (mut from_client, mut to_upstream) = (client.try_clone()?, upstream.try_clone()?);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _broken_off = copy(&mut from_client, &mut to_upstream);
            let _already_gone = to_upstream.shutdown(Shutdown::Both);
        });
        let _broken_off = copy(&mut upstream, &mut client);
        let _already_gone = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    io::copy(from, to).map(|_bytes| ())
}

fn host_and_port(authority: &str, default: u16) -> io::Result<(&str, u16)> {
    match authority.rsplit_once(':') {
        None => Ok((authority, default)),
        Some((host, port)) => port.parse().map(|port| (host, port)).map_err(io::Error::other),
    }
}
