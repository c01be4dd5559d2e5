//! What a server answers a download with, from the first byte of the head to the end of the body, and what a proxy says
//! before that.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use transfer::{
    ConnectionPlan, Job, OnConflict, Outcome, Purpose, RateLimits, Reporter, RetryPolicy, SafeUrl, Source,
    Target as Place, Transport as _,
};
use transfer_http::{Config, HttpTransport};

use super::Target;

/// A server that says no more is given up quickly.
const SILENCE: Duration = Duration::from_millis(300);

/// How often the server answers before it says nothing more: a first request, and some that it may cause.
const ANSWERS: usize = 8;

/// Who writes the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The server, through a proxy that passes it on.
    Server,
    /// A proxy that is asked for a tunnel to a server with TLS.
    Tunnel,
    /// A SOCKS proxy.
    Socks,
}

/// Every answer of the server.
pub(super) fn response() -> Target {
    let runtime = runtime();
    Box::new(move |data| runtime.block_on(download(Writer::Server, data)))
}

/// Every answer of a proxy: the first byte says of which kind.
pub(super) fn proxy() -> Target {
    let runtime = runtime();
    Box::new(move |data| {
        let (&kind, data) = data.split_first().unwrap_or((&0, &[]));
        let writer = if kind % 2 == 0 { Writer::Tunnel } else { Writer::Socks };
        runtime.block_on(download(writer, data));
    })
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime needs nothing but descriptors")
}

async fn download(writer: Writer, data: &[u8]) {
    let directory = tempfile::tempdir().expect("there is room for temporary files");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("the loopback can be listened on");
    let port = listener.local_addr().expect("it listens").port();
    let url = |text: String| SafeUrl::parse(&text).expect("it is a URL");
    let (scheme, proxy) = match writer {
        Writer::Server => ("http", "http"),
        Writer::Tunnel => ("https", "http"),
        Writer::Socks => ("http", "socks5"),
    };
    let mut source = Source::new(url(format!("{scheme}://example.org/file")));
    // Whoever it is sent to, it comes here.
    source.proxy = Some(url(format!("{proxy}://127.0.0.1:{port}")));
    let (reporter, reports) = Reporter::new();
    drop(reports);
    let job = Job {
        source,
        target: Place {
            directory: directory.path().to_owned(),
            name: None,
            on_conflict: OnConflict::Rename,
            reserved: None,
            adopt: false,
            check_integrity: false,
            use_server_time: true,
        },
        connections: ConnectionPlan {
            segments: 2,
            ..ConnectionPlan::default()
        },
        limits: RateLimits::new([]),
        upload_limits: RateLimits::new([]),
        purpose: Purpose::Download,
        uploaded_bytes: 0,
        retry: RetryPolicy {
            attempts: Some(1),
            base: Duration::ZERO,
            cap: Duration::ZERO,
            not_found: 0,
        },
        reporter,
        stop: CancellationToken::new(),
    };
    let config = Config {
        connect_timeout: SILENCE,
        response_timeout: SILENCE,
        stall_timeout: SILENCE,
        ..Config::default()
    };
    let transport = Arc::new(HttpTransport::new(config).expect("there is no certificate to read"));
    let outcome = tokio::select! {
        outcome = transport.run(job) => outcome,
        () = answer(&listener, writer, data) => unreachable!("it answers for ever"),
    };
    if let Outcome::Finished(finished) = outcome {
        let size = std::fs::metadata(&finished.path)
            .expect("a finished file is there")
            .len();
        assert_eq!(size, finished.size_bytes);
        assert_eq!(
            finished.path.parent(),
            Some(directory.path()),
            "it is where it was wanted"
        );
    }
}

/// Answers the first requests with `data`, and all later ones with nothing.
async fn answer(listener: &TcpListener, writer: Writer, data: &[u8]) {
    for number in 0.. {
        let Ok((mut stream, _)) = listener.accept().await else {
            continue;
        };
        // A SOCKS proxy is greeted in a few bytes, which all of its answers may follow.
        let is_asked = writer == Writer::Socks || asked(&mut stream).await;
        if number < ANSWERS && is_asked {
            let _gone = stream.write_all(data).await;
        }
    }
}

async fn asked(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_buf(&mut request).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    true
}
