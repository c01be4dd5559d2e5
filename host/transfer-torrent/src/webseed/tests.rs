use std::{net::IpAddr, sync::Arc};

use egress::{ClientConfig, Names, Pins};
use metainfo::{
    Info,
    create::{Options, Plan},
};
use support::{Content as Bytes, End, Origin, Proxy, Resource, behaviour};
use tempfile::TempDir;
use torrent::{Connections, Content, EventKind, Session, SessionConfig, TorrentSpec, Webseed};
use transfer::{GivenBy, Lanes, SafeUrl, UserHost};

use super::*;

fn client() -> Webseeds {
    let config = ClientConfig {
        user_agent: "Svc/test".to_owned(),
        tls: egress::tls::trusting_mozilla(&[]).unwrap(),
        connect_timeout: Duration::from_secs(5),
        idle_connections: 1,
        names: Names::default(),
    };
    Webseeds::new(HttpClient::new(config).unwrap())
}

fn webseed(url: &str, given_by: GivenBy) -> Webseed {
    Webseed {
        url: SafeUrl::parse(url).unwrap(),
        given_by,
    }
}

const BY_OTHERS: GivenBy = GivenBy::Other { user_host: None };

/// Fetches bytes of the file that is the webseed itself.
async fn fetch(webseed: &Webseed, offset: u64, length: u64) -> Result<Vec<u8>, WebseedError> {
    let client = client();
    let pins = Pins::default();
    let mut body = client
        .fetch(WebseedRequest {
            webseed,
            url: &webseed.url,
            offset,
            length,
            pins: &pins,
            proxy: None,
        })
        .await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn origin(bend: impl Fn(&support::Exchange, &mut support::Reply) + Send + Sync + 'static) -> (Origin, Bytes) {
    let content = Bytes::seeded(7, 300_000);
    let resource = Resource::new("/one.bin", content.clone()).with(bend);
    (Origin::start(vec![resource]), content)
}

fn honest(_: &support::Exchange, _: &mut support::Reply) {}

#[tokio::test]
async fn ranges_come_from_a_web_server_of_the_user() {
    let (origin, content) = origin(honest);
    let webseed = webseed(&origin.url("/one.bin"), GivenBy::User);
    assert_eq!(
        fetch(&webseed, 100_000, 65_536).await.unwrap(),
        content.slice(100_000..165_536)
    );
    assert_eq!(fetch(&webseed, 0, 300_000).await.unwrap(), content.to_vec());
    let asked: Vec<_> = origin
        .requests()
        .iter()
        .map(|request| request.header("range").unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["bytes=100000-165535", "bytes=0-299999"]);
}

#[tokio::test]
async fn a_metainfo_file_cannot_name_a_server_that_is_not_public() {
    let (origin, _) = origin(honest);
    let url = origin.url("/one.bin");
    assert_eq!(
        fetch(&webseed(&url, BY_OTHERS), 0, 10).await,
        Err(WebseedError::Refused)
    );
    for private in [
        "http://192.168.1.1/one.bin",
        "http://[::1]/one.bin",
        "http://169.254.1.1/",
        "http://router.lan/x",
    ] {
        assert_eq!(
            fetch(&webseed(private, BY_OTHERS), 0, 10).await,
            Err(WebseedError::Refused),
            "{private}"
        );
    }
    assert!(origin.requests().is_empty());
    // Unless the metainfo file itself came from that host.
    let known = UserHost::typed(SafeUrl::parse(&url).unwrap().as_url());
    let by_host = GivenBy::Other { user_host: known };
    assert_eq!(fetch(&webseed(&url, by_host), 0, 10).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_redirect_leads_no_further_than_its_server_may() {
    let (target, content) = origin(honest);
    let (moved, _) = origin(behaviour::redirect(302, &target.url("/one.bin")));
    let webseed_here = webseed(&moved.url("/one.bin"), GivenBy::User);
    assert_eq!(fetch(&webseed_here, 5, 10).await.unwrap(), content.slice(5..15));
    let (away, _) = origin(behaviour::redirect(302, "http://192.168.1.1/one.bin"));
    let refused = fetch(&webseed(&away.url("/one.bin"), GivenBy::User), 5, 10).await;
    assert_eq!(refused, Err(WebseedError::Refused));
    let (looping, _) = origin(behaviour::redirect(302, "/one.bin"));
    let refused = fetch(&webseed(&looping.url("/one.bin"), GivenBy::User), 5, 10).await;
    assert_eq!(refused, Err(WebseedError::Refused));
}

#[tokio::test]
async fn an_answer_with_other_bytes_is_not_taken() {
    async fn check(
        bend: impl Fn(&support::Exchange, &mut support::Reply) + Send + Sync + 'static,
        (offset, length): (u64, u64),
        expected: Result<usize, WebseedError>,
    ) {
        let (origin, _) = origin(bend);
        let webseed = webseed(&origin.url("/one.bin"), GivenBy::User);
        let found = fetch(&webseed, offset, length).await.map(|bytes| bytes.len());
        assert_eq!(found, expected, "{offset}+{length}");
    }
    let (refused, unavailable) = (Err(WebseedError::Refused), Err(WebseedError::Unavailable));
    check(behaviour::ignore_ranges, (10, 20), refused).await;
    check(behaviour::ignore_ranges, (0, 20), refused).await;
    check(behaviour::ignore_ranges, (0, 300_000), Ok(300_000)).await;
    check(
        behaviour::other_range(|first, last, _| (first + 1, last + 1)),
        (10, 20),
        refused,
    )
    .await;
    check(behaviour::content_range("bytes 0-9/300000"), (10, 20), refused).await;
    check(behaviour::without(&["content-range"]), (10, 20), refused).await;
    check(behaviour::status(404), (10, 20), refused).await;
    check(behaviour::status(403), (10, 20), refused).await;
    check(behaviour::busy(503, "1"), (10, 20), unavailable).await;
    // Decompressed whether it was asked for or not, and then broken.
    check(behaviour::header("Content-Encoding", b"gzip"), (10, 20), unavailable).await;
    check(behaviour::cut(5, End::Close), (10, 20), unavailable).await;
    check(honest, (299_990, 20), refused).await;
}

#[tokio::test]
async fn what_is_no_web_server_is_refused() {
    let refused = fetch(&webseed("ftp://127.0.0.1/one.bin", GivenBy::User), 0, 10).await;
    assert_eq!(refused, Err(WebseedError::Refused));
    let closed = fetch(&webseed("http://127.0.0.1:9/one.bin", GivenBy::User), 0, 10).await;
    assert_eq!(closed, Err(WebseedError::Unavailable));
}

fn info(content: &Bytes) -> Info {
    let plan = Plan::of_file("one.bin", content.len(), Options::default()).unwrap();
    let mut hasher = plan.hasher();
    hasher.update(&content.to_vec()).unwrap();
    hasher.finish().unwrap().info
}

/// Downloads a torrent from a web server alone; returns its bytes.
async fn download(webseed: Webseed, info: Info, proxy: Option<&str>) -> Vec<u8> {
    let target = TempDir::new().unwrap();
    let session = Session::start(SessionConfig {
        ports: 0..=0,
        addresses: vec![IpAddr::from([127, 0, 0, 1])],
        state_directory: target.path().join(".state"),
        lanes: Lanes::default(),
        connections: Connections::default(),
        is_exchange_on: true,
        encryption: torrent::Encryption::default(),
        names: Names::default(),
        filter: None,
        webseeds: Some(Arc::new(client())),
    })
    .unwrap();
    let mut events = session.events();
    let _torrent = session
        .add(TorrentSpec {
            webseeds: vec![webseed],
            proxy: proxy.map(|proxy| SafeUrl::parse(proxy).unwrap()),
            ..TorrentSpec::new(Content::Info(info), target.path().to_owned())
        })
        .unwrap();
    let completing = async {
        while let Ok(event) = events.recv().await {
            match event.kind {
                EventKind::Completed => return,
                EventKind::Failed(failure) => panic!("{failure}"),
                _ => {}
            }
        }
    };
    timeout(Duration::from_secs(20), completing).await.unwrap();
    let bytes = std::fs::read(target.path().join("one.bin")).unwrap();
    session.shutdown().await;
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torrent_comes_from_a_web_server_and_through_its_proxy() {
    let (origin, content) = origin(honest);
    let url = origin.url("/one.bin");
    let found = download(webseed(&url, GivenBy::User), info(&content), None).await;
    assert!(found == content.to_vec(), "other bytes");
    let proxy = Proxy::socks5(&[], None);
    let led = format!("socks5://127.0.0.1:{}", proxy.port());
    let before = origin.requests().len();
    let found = download(webseed(&url, GivenBy::User), info(&content), Some(&led)).await;
    assert!(found == content.to_vec(), "other bytes");
    assert!(!proxy.requests().is_empty() && origin.requests().len() > before);
}
