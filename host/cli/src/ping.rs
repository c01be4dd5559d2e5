//! `svc ping` and `svc info`: whether a service answers, its version and its state.

use std::time::Instant;

use ::http::{Method, StatusCode};
use command::{Exit, amount, environment::Environment};
use protocol::{DiagnosticsResult, RuntimeStats};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::service::{RemoteError, ServiceArgs, Target, http};

pub(crate) const PING_EXAMPLES: &str = "Examples:
  svc ping                                         the service on this machine
  svc ping --url https://nas.example.com";

#[derive(Debug, clap::Args)]
pub struct PingArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

/// The unauthenticated answer of a service.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pong {
    app: String,
    pub(crate) version: String,
}

/// Requests `/ping`; also returns the `Date` header, which shows the service's clock.
pub(crate) async fn request_ping(target: &Target) -> Result<(Pong, Option<String>), RemoteError> {
    let answer = http::send(target, Method::GET, "/ping", None).await?;
    let foreign = || RemoteError::Foreign {
        address: target.address.to_string(),
        found: format!("HTTP {}", answer.status),
    };
    if answer.status == StatusCode::FORBIDDEN {
        return Err(RemoteError::Refused {
            address: target.address.to_string(),
            status: answer.status.as_u16(),
            message: http::message(&answer.body, answer.status),
        });
    }
    let pong: Pong = answer.read(target)?;
    let date = answer.headers.get(::http::header::DATE);
    let date = date.and_then(|date| date.to_str().ok()).map(ToOwned::to_owned);
    if pong.app == "Svc" {
        Ok((pong, date))
    } else {
        Err(foreign())
    }
}

pub(crate) async fn ping(args: &PingArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let target = args.service.target(environment)?;
    let begun = Instant::now();
    let (pong, _) = request_ping(&target).await?;
    let took = begun.elapsed();
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let record = json!({
        "url": target.address.to_string(),
        "version": pong.version,
        "milliseconds": milliseconds,
    });
    let sentence = format!(
        "Svc {} at {} answers in {milliseconds} ms",
        pong.version, target.address
    );
    args.service.print_done(&record, &sentence)
}

pub(crate) async fn info(args: &InfoArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let stats: RuntimeStats = client.ask(protocol::Method::RuntimeStats).await?;
    let about: DiagnosticsResult = client.ask(protocol::Method::DiagnosticsDescribe).await?;
    let record = json!({
        "url": client.target.address.to_string(),
        "version": client.version,
        "daemon": about,
        "stats": stats,
    });
    let free = stats
        .disk_free_bytes
        .map_or_else(|| "unknown".to_owned(), amount::bytes);
    let up = amount::duration(std::time::Duration::from_secs(about.uptime_secs));
    let lines = vec![
        format!(
            "Service    Svc {} at {}, daemon {} up for {up}",
            client.version, client.target.address, about.version
        ),
        format!(
            "Tasks      {}: {} active, {} waiting",
            about.tasks, stats.active_tasks, stats.pending_tasks
        ),
        format!("Queues     {}", about.queues),
        format!("Receiving  {}", amount::rate(stats.total_download_bps)),
        format!("Saves in   {} ({free} free)", stats.save_dir),
    ];
    args.service.print(&record, || lines)
}
