//! A web server of a folder that lies where it is told to.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use market::http::Http;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use url::Url;

use crate::place::web;

/// A request: its path without the first `/`, and where its range starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) start: Option<usize>,
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The file.
    Truth,
    /// The file, but the connection breaks after so many bytes.
    Cut(usize),
    /// The whole file although a part was asked for.
    Whole,
    /// Other bytes.
    Bytes(Vec<u8>),
    /// This status and nothing else.
    Status(u16),
    /// Go there.
    Redirect(String),
    /// Bytes without end.
    Endless,
    /// Nothing, for ever.
    Silence,
}

/// The server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Liar {
    pub(crate) url: Url,
    log: Arc<Mutex<Vec<Asked>>>,
    _task: JoinSet<()>,
}

impl Liar {
    pub(crate) fn new(folder: &Path, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let (folder, answer, log) = (folder.to_owned(), Arc::new(answer), Arc::<Mutex<Vec<Asked>>>::default());
        let mut task = JoinSet::new();
        let kept = Arc::clone(&log);
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (folder, answer, log) = (folder.clone(), Arc::clone(&answer), Arc::clone(&kept));
                connections.spawn(async move {
                    let _broken = converse(stream, &folder, answer.as_ref(), &log).await;
                });
            }
        });
        Self { url, log, _task: task }
    }

    /// An honest one.
    pub(crate) fn honest(folder: &Path) -> Self {
        Self::new(folder, |_| Answer::Truth)
    }

    /// The client's view of it.
    pub(crate) fn origin(&self) -> Http {
        web().at(self.url.clone()).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }
}

async fn converse(
    mut stream: TcpStream,
    folder: &Path,
    answer: &(dyn Fn(&Asked) -> Answer + Send + Sync),
    log: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
    let range = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("range: bytes=")
            .map(str::to_owned)
    });
    let start = range.and_then(|range| range.trim_end_matches('-').parse().ok());
    let asked = Asked { path, start };
    log.lock().unwrap().push(asked.clone());
    let file = tokio::fs::read(folder.join(&asked.path)).await;
    let (status, extra, body, length) = match (answer(&asked), file) {
        (Answer::Status(status), _) => (status, String::new(), Vec::new(), 0),
        (Answer::Redirect(to), _) => (302, format!("Location: {to}\r\n"), Vec::new(), 0),
        (Answer::Bytes(bytes), _) => (200, String::new(), bytes.clone(), bytes.len()),
        (Answer::Silence, _) => {
            std::future::pending::<()>().await;
            return Ok(());
        }
        (Answer::Endless, _) => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                .await?;
            loop {
                stream.write_all(&[b' '; 16_384]).await?;
            }
        }
        (_, Err(_)) => (404, String::new(), Vec::new(), 0),
        (Answer::Whole, Ok(file)) => (200, String::new(), file.clone(), file.len()),
        (lie, Ok(file)) => {
            let part = file[start.unwrap_or(0).min(file.len())..].to_vec();
            let length = part.len();
            let sent = if let Answer::Cut(bytes) = lie {
                part[..bytes.min(length)].to_vec()
            } else {
                part
            };
            match start {
                None => (200, String::new(), sent, length),
                Some(start) => {
                    let range = format!("Content-Range: bytes {start}-{}/{}\r\n", file.len() - 1, file.len());
                    (206, range, sent, length)
                }
            }
        }
    };
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{extra}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
