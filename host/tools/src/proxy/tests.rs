use egress::dial::Lookup;
use futures_util::future::BoxFuture;
use support::Proxy;
use tokio::net::{TcpListener as Listener, TcpStream};

use super::*;

/// Answers every lookup with this machine.
struct Here;

impl Lookup for Here {
    fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(async { Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()]) })
    }
}

/// A server that answers each connection with what it was sent, after `HTTP/1.1 200`, and closes it.
async fn origin() -> (u16, JoinSet<()>) {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (head, rest) = read_head(&mut stream).await.unwrap();
            let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            answer.extend(head.into_iter().chain(rest));
            stream.write_all(&answer).await.unwrap();
        }
    });
    (port, serving)
}

struct Served {
    port: u16,
    gate: Arc<Gate>,
    _serving: JoinSet<()>,
}

fn serve(url: &str, given_by: GivenBy, upstream: Option<&str>) -> Served {
    let outbound = Outbound {
        url: SafeUrl::parse(url).unwrap(),
        given_by,
        upstream: upstream.map(|url| SafeUrl::parse(url).unwrap()),
    };
    let gate = Arc::new(Gate::new(outbound, Names::by(Here)).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut serving = JoinSet::new();
    serving.spawn(Arc::clone(&gate).serve(listener));
    Served {
        port,
        gate,
        _serving: serving,
    }
}

impl Served {
    fn login(&self) -> String {
        let login = Credentials {
            user: PROXY_USER.to_owned(),
            password: self.gate.password.clone(),
        };
        format!("Proxy-Authorization: {}\r\n", login.basic())
    }

    /// Everything that comes back for `request`.
    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // A connection that is closed with bytes unread ends with an error on this side.
        let _reset = stream.read_to_string(&mut answer).await;
        answer
    }

    async fn get(&self, url: &str) -> String {
        let login = self.login();
        self.ask(&format!("GET {url} HTTP/1.1\r\nHost: other\r\n{login}\r\n"))
            .await
    }

    async fn connect(&self, authority: &str) -> String {
        let login = self.login();
        self.ask(&format!(
            "CONNECT {authority} HTTP/1.1\r\n{login}\r\nGET / HTTP/1.1\r\n\r\n"
        ))
        .await
    }
}

#[tokio::test]
async fn the_host_of_the_user_is_reached_directly_and_through_a_tunnel() {
    let (port, _origin) = origin().await;
    let served = serve(&format!("http://127.0.0.1:{port}/page"), GivenBy::User, None);
    let login = served.login();
    let answer = served
        .ask(&format!(
            "POST http://127.0.0.1:{port}/a?b=c#d HTTP/1.1\r\nHost: evil\r\nX-Own: 1\r\nProxy-Connection: \
             keep-alive\r\n{login}Content-Length: 4\r\n\r\nbody"
        ))
        .await;
    let sent = answer.strip_prefix("HTTP/1.1 200 OK\r\n\r\n").unwrap();
    assert!(
        sent.starts_with(&format!(
            "POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nX-Own: 1\r\nContent-Length: 4\r\n\r\n"
        )),
        "{sent}"
    );
    let answer = served.connect(&format!("127.0.0.1:{port}")).await;
    assert_eq!(
        answer,
        "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    );
    assert_eq!(served.gate.refused(), None);
}

#[tokio::test]
async fn without_the_password_nothing_is_served() {
    let (port, _origin) = origin().await;
    let served = serve(&format!("http://127.0.0.1:{port}/"), GivenBy::User, None);
    let other = serve("http://127.0.0.1/", GivenBy::User, None);
    for login in ["", "Proxy-Authorization: Basic dG9vbDo=\r\n", &other.login()] {
        for target in [format!("http://127.0.0.1:{port}/"), format!("http://10.0.0.1:{port}/")] {
            let answer = served.ask(&format!("GET {target} HTTP/1.1\r\n{login}\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
        }
    }
    assert_eq!(served.gate.refused(), None);
}

#[tokio::test]
async fn what_the_source_of_the_url_may_not_reach_is_refused() {
    let (port, _origin) = origin().await;
    let public = serve("https://video.example/watch", GivenBy::User, None);
    let stranger = serve(
        &format!("http://127.0.0.1:{port}/"),
        GivenBy::Other { user_host: None },
        None,
    );
    for served in [&public, &stranger] {
        // The last is a public name that leads here.
        for host in ["127.0.0.1", "localhost", "0.0.0.0", "2130706433", "nas", "cdn.example"] {
            let answer = served.get(&format!("http://{host}:{port}/")).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
            let answer = served.connect(&format!("{host}:{port}")).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        }
        let answer = served.connect("[::1]:443").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(served.gate.refused().unwrap().host, "127.0.0.1");
    }
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_is_refused() {
    let served = serve("http://127.0.0.1/", GivenBy::User, None);
    let login = served.login();
    for line in [
        "GET / HTTP/1.1",
        "GET ftp://127.0.0.1/ HTTP/1.1",
        "GET https://127.0.0.1/ HTTP/1.1",
        "GET http://user@127.0.0.1/ HTTP/1.1",
        "CONNECT evil@127.0.0.1:80 HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "nothing",
    ] {
        let answer = served.ask(&format!("{line}\r\n{login}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
    }
    let long = format!(
        "GET http://127.0.0.1/ HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(MAX_HEAD_BYTES)
    );
    assert_eq!(served.ask(&long).await, "");
}

#[tokio::test]
async fn a_proxy_of_the_user_is_asked_for_a_tunnel() {
    let (port, _origin) = origin().await;
    let inner = serve(&format!("http://127.0.0.1:{port}/"), GivenBy::User, None);
    let upstream = format!("http://{PROXY_USER}:{}@127.0.0.1:{}", inner.gate.password(), inner.port);
    let served = serve(&format!("http://127.0.0.1:{port}/"), GivenBy::User, Some(&upstream));
    let answer = served.get(&format!("http://127.0.0.1:{port}/x")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n\r\nGET /x HTTP/1.1\r\n"),
        "{answer}"
    );
    // Refused here, without asking.
    let answer = served.get(&format!("http://nas:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(inner.gate.refused(), None);
    let wrong = serve(
        &format!("http://127.0.0.1:{port}/"),
        GivenBy::User,
        Some(&format!("http://127.0.0.1:{}", inner.port)),
    );
    let answer = wrong.get(&format!("http://127.0.0.1:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_socks_proxy_of_the_user_is_asked_by_name() {
    let (port, _origin) = origin().await;
    let page = format!("http://video.example:{port}/watch");
    let proxy = Proxy::socks5(&[("video.example", port)], Some(("me", "secret")));
    let upstream = format!("socks5://me:secret@127.0.0.1:{}", proxy.port());
    let served = serve(&page, GivenBy::User, Some(&upstream));
    let answer = served.get(&page).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n\r\nGET /watch HTTP/1.1\r\n"),
        "{answer}"
    );
    // Refused here, without asking.
    let answer = served.get(&format!("http://nas:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn a_run_moves_a_limited_number_of_bytes() {
    let (port, _origin) = origin().await;
    let served = serve(&format!("http://127.0.0.1:{port}/"), GivenBy::User, None);
    served.gate.spent_bytes.store(MAX_BYTES, Ordering::Relaxed);
    let answer = served.connect(&format!("127.0.0.1:{port}")).await;
    assert!(!answer.contains("200 OK"), "{answer}");
}
