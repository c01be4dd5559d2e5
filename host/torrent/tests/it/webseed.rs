//! Web servers as peers, through the interface that the embedder implements.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use torrent::{
    Content, Status, TorrentSpec, Webseed, WebseedAnswer, WebseedBody, WebseedClient, WebseedError, WebseedRequest,
};
use transfer::{GivenBy, SafeUrl};

use crate::content::{Files, address, connect, seed, session_with, spec, until, until_view};

/// Serves ranges of files below a directory, as a web server would.
#[derive(Debug)]
struct Server {
    directory: PathBuf,
    /// The bytes that it sends are wrong.
    lies: AtomicBool,
    requests: Mutex<Vec<String>>,
}

struct Body(Vec<Bytes>);

impl WebseedBody for Body {
    fn chunk(&mut self) -> std::pin::Pin<Box<dyn Future<Output = Result<Option<Bytes>, WebseedError>> + Send + '_>> {
        let next = self.0.pop();
        Box::pin(async move { Ok(next) })
    }
}

impl WebseedClient for Server {
    fn fetch<'a>(&'a self, request: WebseedRequest<'a>) -> WebseedAnswer<'a> {
        let WebseedRequest {
            url, offset, length, ..
        } = request;
        self.requests.lock().unwrap().push(url.expose().to_owned());
        Box::pin(async move {
            let path = url
                .as_url()
                .path()
                .strip_prefix("/files/")
                .ok_or(WebseedError::Refused)?;
            let content = std::fs::read(self.directory.join(path)).map_err(|_| WebseedError::Refused)?;
            let range = usize::try_from(offset).unwrap()..usize::try_from(offset + length).unwrap();
            let mut content = content.get(range).ok_or(WebseedError::Refused)?.to_vec();
            if self.lies.load(Ordering::Relaxed) {
                content[0] ^= 1;
            }
            let chunks = content.chunks(7000).map(Bytes::copy_from_slice).rev().collect();
            Ok(Box::new(Body(chunks)) as Box<dyn WebseedBody>)
        })
    }
}

fn webseed(url: &str) -> Webseed {
    Webseed {
        url: SafeUrl::parse(url).unwrap(),
        given_by: GivenBy::User,
    }
}

fn server(files: &Files, lies: bool) -> Arc<Server> {
    Arc::new(Server {
        directory: files.directory.path().to_owned(),
        lies: AtomicBool::new(lies),
        requests: Mutex::default(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_files_arrive_from_a_web_server_alone() {
    let files = Files::several(
        &[("a", 100_000), ("empty", 0), ("dir/b", 300_001), ("c", 70_000)],
        32 * 1024,
    );
    let server = server(&files, false);
    let target = tempfile::tempdir().unwrap();
    let client: Arc<dyn WebseedClient> = server.clone();
    let session = session_with(target.path(), |config| config.webseeds = Some(client)).await;
    let torrent = session
        .add(TorrentSpec {
            webseeds: vec![webseed("http://127.0.0.1/files/")],
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    let requests = server.requests.lock().unwrap().clone();
    assert!(
        requests.contains(&"http://127.0.0.1/files/top/dir/b".to_owned()),
        "{requests:?}"
    );
    assert!(torrent.peers().await.unwrap().is_empty());
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_server_that_lies_is_banned_and_peers_do_the_rest() {
    let files = Files::single("one.bin", 300_000, 32 * 1024);
    let server = server(&files, true);
    let target = tempfile::tempdir().unwrap();
    let client: Arc<dyn WebseedClient> = server.clone();
    let session = session_with(target.path(), |config| config.webseeds = Some(client)).await;
    let torrent = session
        .add(TorrentSpec {
            webseeds: vec![webseed("http://127.0.0.1/files/one.bin")],
            ..spec(Content::Info(files.info.clone()), target.path())
        })
        .unwrap();
    until_view(&torrent, |view| view.banned == 1).await;
    let (seeding, _seeder) = seed(&files).await;
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    session.shutdown().await;
    seeding.shutdown().await;
}
