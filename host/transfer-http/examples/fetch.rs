//! The transport by itself, without an engine: `fetch URL DIRECTORY [SEGMENTS]`.

#![expect(clippy::print_stderr, reason = "what it finds out is for the person at the terminal")]

use transfer::{
    ConnectionPlan, Job, OnConflict, RateLimits, Reporter, RetryPolicy, SafeUrl, Source, Target, Transport as _,
};
use transfer_http::{Config, HttpTransport};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(directory)) = (arguments.next(), arguments.next()) else {
        panic!("fetch URL DIRECTORY [SEGMENTS]")
    };
    let segments = arguments
        .next()
        .map_or(0, |text| text.parse().expect("SEGMENTS is a number"));
    let (reporter, mut reports) = Reporter::new();
    let job = Job {
        source: Source::new(SafeUrl::parse(&url).expect("URL can be parsed")),
        target: Target {
            directory: directory.into(),
            name: None,
            on_conflict: OnConflict::Overwrite,
            reserved: None,
            adopt: true,
            check_integrity: false,
            use_server_time: false,
        },
        connections: ConnectionPlan {
            segments,
            ..ConnectionPlan::default()
        },
        limits: RateLimits::unlimited(),
        upload_limits: RateLimits::unlimited(),
        purpose: transfer::Purpose::Download,
        uploaded_bytes: 0,
        retry: RetryPolicy::default(),
        reporter,
        stop: tokio_util::sync::CancellationToken::new(),
    };
    let transport = HttpTransport::new(Config::default()).expect("the defaults are usable");
    let running = transport.run(job);
    let telling = async {
        while let Some(report) = reports.events.recv().await {
            eprintln!("{:?}", report.event);
        }
    };
    let (outcome, ()) = futures_util::future::join(running, telling).await;
    eprintln!("{outcome:?}");
}
