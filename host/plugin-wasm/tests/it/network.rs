//! The real network: which addresses it connects to, whom it trusts, and where it stops reading.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use data_encoding::BASE64;
use egress::Reach;
use plugin_host::runtime::CallClock;
use plugin_wasm::{Answer, Exchange, Internet, InternetConfig, Network as _, NetworkError};
use support::{Certificate, Content, Origin, Proxy, Resource, behaviour};
use transfer::SafeUrl;

const PATH: &str = "/page";

fn resource() -> Resource {
    Resource::new(PATH, Content::bytes("hello"))
}

fn origin() -> Origin {
    Origin::start(vec![resource()])
}

async fn get(config: &InternetConfig, url: String, reach: Reach, max_bytes: u64) -> Result<Answer, NetworkError> {
    let internet = Internet::new(config).unwrap();
    let answer = internet.exchange(exchange(&url, reach, max_bytes));
    tokio::time::timeout(Duration::from_secs(20), answer).await.unwrap()
}

fn exchange(url: &str, reach: Reach, max_bytes: u64) -> Exchange {
    Exchange {
        method: "GET".to_owned(),
        url: url.parse().unwrap(),
        headers: Vec::new(),
        body: Bytes::new(),
        reach,
        pins: Arc::default(),
        proxy: None,
        max_bytes,
        clock: CallClock::default(),
    }
}

async fn simply(url: String, reach: Reach, max_bytes: u64) -> Result<Answer, NetworkError> {
    get(&InternetConfig::default(), url, reach, max_bytes).await
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_blocked_unless_the_user_named_it() {
    let origin = origin();
    let url = format!("http://localhost:{}{PATH}", origin.port());
    assert_eq!(
        simply(url.clone(), Reach::Global, 100).await,
        Err(NetworkError::BlockedAddress)
    );
    assert!(origin.requests().is_empty());
    let answer = simply(url, Reach::Anywhere, 100).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (200, &b"hello"[..]));
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let origin = origin();
    assert_eq!(
        simply(origin.url(PATH), Reach::Anywhere, 4).await,
        Err(NetworkError::TooLarge(4))
    );
    assert!(simply(origin.url(PATH), Reach::Anywhere, 5).await.is_ok());
}

#[tokio::test]
async fn a_body_is_counted_as_it_unfolds() {
    let small = behaviour::compressed(&[b'a'; 1000]);
    assert!(small.len() < 100);
    let origin = Origin::start(vec![resource().with(behaviour::gzip(small))]);
    assert_eq!(
        simply(origin.url(PATH), Reach::Anywhere, 999).await,
        Err(NetworkError::TooLarge(999))
    );
    assert_eq!(
        simply(origin.url(PATH), Reach::Anywhere, 1000)
            .await
            .unwrap()
            .body
            .len(),
        1000
    );
}

#[tokio::test]
async fn redirects_are_left_to_the_caller() {
    let origin = Origin::start(vec![resource().with(behaviour::redirect(302, "/elsewhere"))]);
    assert_eq!(
        simply(origin.url(PATH), Reach::Anywhere, 100).await.unwrap().status,
        302
    );
    assert_eq!(origin.requests().len(), 1);
}

#[tokio::test]
async fn a_site_is_not_asked_faster_than_is_polite() {
    let origin = origin();
    let internet = Internet::new(&InternetConfig::default()).unwrap();
    let started = Instant::now();
    for _ in 0..22 {
        let asked = internet.exchange(exchange(&origin.url(PATH), Reach::Anywhere, 10));
        asked.await.unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn certificates_are_believed_only_from_authorities() {
    for certificate in [
        Certificate::Trusted,
        Certificate::SelfSigned,
        Certificate::Expired,
        Certificate::WrongName,
    ] {
        let origin = Origin::start_tls(vec![resource()], certificate);
        let unknown_import = simply(origin.url(PATH), Reach::Anywhere, 10).await;
        assert!(
            matches!(unknown_import, Err(NetworkError::Tls(_))),
            "{certificate:?}: {unknown_import:?}"
        );
        let pem: String = origin
            .authority_pem()
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('-'))
            .collect();
        let trusting = InternetConfig {
            extra_roots: vec![BASE64.decode(pem.as_bytes()).unwrap()],
            ..InternetConfig::default()
        };
        let known = get(&trusting, origin.url(PATH), Reach::Anywhere, 10).await;
        assert_eq!(
            known.is_ok(),
            certificate == Certificate::Trusted,
            "{certificate:?}: {known:?}"
        );
    }
}

#[tokio::test]
async fn a_proxy_looks_names_up_itself() {
    let origin = origin();
    let proxy = Proxy::http(&[("site.test", origin.port())], None);
    let config = InternetConfig {
        user_agent: "Svc/1".to_owned(),
        ..InternetConfig::default()
    };
    let internet = Internet::new(&config).unwrap();
    let through = |url: &str, proxy: String| {
        let proxy = Some(SafeUrl::parse(&proxy).unwrap());
        let exchange = exchange(url, Reach::Global, 10);
        internet.exchange(Exchange { proxy, ..exchange })
    };
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let answer = through(&format!("http://site.test{PATH}"), address.clone())
        .await
        .unwrap();
    assert_eq!(&answer.body[..], b"hello");
    assert_eq!(proxy.requests().len(), 1);
    assert_eq!(origin.requests()[0].header("user-agent"), Some("Svc/1"));

    for own in ["http://localhost/", "http://x.localhost./"] {
        let blocked = through(own, address.clone()).await;
        assert_eq!(blocked, Err(NetworkError::BlockedAddress), "{own}");
    }
    let strange = through("http://site.test/", "gopher://127.0.0.1:1".to_owned()).await;
    assert!(matches!(strange, Err(NetworkError::Failed(reason)) if reason.contains("gopher")));
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn another_proxy_takes_over_at_once_and_none_means_none() {
    let origin = origin();
    let internet = Internet::new(&InternetConfig::default()).unwrap();
    let sites = [("site.test", origin.port())];
    let proxies = [Proxy::http(&sites, None), Proxy::http(&sites, Some(("user", "p@ss")))];
    let addresses = [
        format!("http://127.0.0.1:{}", proxies[0].port()),
        format!("http://user:p%40ss@127.0.0.1:{}", proxies[1].port()),
    ];
    let url = format!("http://site.test{PATH}");
    for (turn, address) in [0, 1, 0, 1].into_iter().map(|turn| (turn, &addresses[turn])) {
        let proxy = Some(SafeUrl::parse(address).unwrap());
        let exchange = exchange(&url, Reach::Global, 10);
        let answer = internet.exchange(Exchange { proxy, ..exchange }).await.unwrap();
        assert_eq!(answer.status, 200, "{turn}");
    }
    assert_eq!(proxies.each_ref().map(|proxy| proxy.requests().len()), [2, 2]);
    let direct = internet
        .exchange(exchange(&origin.url(PATH), Reach::Anywhere, 10))
        .await;
    assert_eq!(direct.unwrap().status, 200);
    assert_eq!(proxies.each_ref().map(|proxy| proxy.requests().len()), [2, 2]);
}

#[tokio::test]
async fn a_site_is_asked_over_a_few_connections_only() {
    let origin = Origin::start(vec![resource().with(behaviour::paced(20))]);
    let internet = Internet::new(&InternetConfig::default()).unwrap();
    let asked = (0..12).map(|_| internet.exchange(exchange(&origin.url(PATH), Reach::Anywhere, 10)));
    for answer in futures_util::future::join_all(asked).await {
        answer.unwrap();
    }
    assert_eq!(origin.max_connections_seen(), 6);
}
