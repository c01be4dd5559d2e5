//! Maps the engine's records to the protocol's.

pub(crate) mod login;
pub(crate) mod plugin;
pub(crate) mod plugin_journal;
pub(crate) mod torrent;

use engine::{
    AfterSeeding, Group, LeftOut, LoginNeed, ProxyChoice, Queue, Schedule, SeedEnd, SeedLimit, SeedState, Seeding,
    Status, Task, TaskId, Timestamp,
};
use metainfo::InfoHash;
use protocol::{
    GroupDto, LeftOutDto, LoginNeedDto, QueueDto, SegmentDto, ServerDto, TaskDto, TaskRuntimeDto, TaskStatus,
};
use transfer::{Progress, SafeUrl, source::torrent_hash};
use transfer_torrent::{Live, SCHEMES};

/// Bytes of the unit that limits of queues have on the wire.
pub(crate) const KIB: u64 = 1024;

pub(crate) fn status(status: Status) -> TaskStatus {
    match status {
        Status::Pending => TaskStatus::Pending,
        Status::Downloading => TaskStatus::Downloading,
        Status::Paused => TaskStatus::Paused,
        Status::Completed => TaskStatus::Completed,
        Status::Error => TaskStatus::Error,
        Status::Preparing => TaskStatus::Preparing,
    }
}

/// The URL with its query and its user, but without a password.
pub(crate) fn shown(url: &SafeUrl) -> String {
    url.shown()
}

/// [`shown`] for text that may not parse as a URL.
pub(crate) fn shown_text(text: String) -> String {
    SafeUrl::parse(&text).map_or(text, |url| shown(&url))
}

/// What clients know of seeding, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum SeedingStatus {
    None = 0,
    Seeding = 1,
    RatioReached = 2,
    TimeReached = 3,
    UserStopped = 4,
    Released = 6,
    Inactive = 7,
    Waiting = 8,
}

fn seeding_status(state: &SeedState) -> SeedingStatus {
    match state {
        SeedState::Downloading => SeedingStatus::None,
        SeedState::Waiting | SeedState::Stopping(_, AfterSeeding::Wait) => SeedingStatus::Waiting,
        SeedState::Seeding(_) => SeedingStatus::Seeding,
        SeedState::Stopping(_, AfterSeeding::End(end)) | SeedState::Ended(end) => match end {
            SeedEnd::Ratio => SeedingStatus::RatioReached,
            SeedEnd::Time => SeedingStatus::TimeReached,
            SeedEnd::User => SeedingStatus::UserStopped,
            SeedEnd::Idle => SeedingStatus::Inactive,
            SeedEnd::Off | SeedEnd::Failed(_) => SeedingStatus::Released,
        },
    }
}

/// Whether it uploads its finished file.
pub(crate) fn is_seeding(task: &Task) -> bool {
    let state = task.seeding.as_deref().map(|seeding| &seeding.state);
    matches!(state, Some(SeedState::Seeding(_)))
}

/// A limit of time in minutes, rounded up so that a limit does not become none.
fn minutes(limit: SeedLimit) -> i64 {
    match limit {
        SeedLimit::Own(secs) => SeedLimit::Own(secs.div_ceil(60)).to_wire(),
        other => other.to_wire(),
    }
}

pub(crate) fn is_torrent(task: &Task) -> bool {
    SCHEMES.contains(&task.url().scheme())
}

/// The torrent that a task's URL names.
pub(crate) fn info_hash(url: &SafeUrl) -> Option<InfoHash> {
    torrent_hash(url).map(InfoHash)
}

pub(crate) fn task(task: &Task) -> TaskDto {
    let options = task.options();
    let none = Seeding::default();
    let seeding = task.seeding.as_deref().unwrap_or(&none);
    let failure = task.failure();
    TaskDto {
        task_id: task.id.to_string(),
        url: shown(task.url()),
        mirrors: task.urls()[1..].iter().map(shown).collect(),
        file_name: task.file_name(),
        save_dir: task.save_dir.display().to_string(),
        status: status(task.status()),
        downloaded_bytes: task.done_bytes,
        total_bytes: task.total_bytes.unwrap_or(0),
        info_hash: info_hash(task.url()).map(|hash| hash.to_string()).unwrap_or_default(),
        error_message: failure.map(|failure| failure.message.clone()).unwrap_or_default(),
        error_kind: failure
            .map(|failure| failure.kind.code().to_owned())
            .unwrap_or_default(),
        login_need: task.login_need().map(login_need),
        continues_at: task.continues_at().map(seconds).unwrap_or_default(),
        created_at: seconds(task.created_at),
        proxy_url: match &options.proxy {
            ProxyChoice::Settings => String::new(),
            ProxyChoice::Direct => "direct".to_owned(),
            // Printed without user and password.
            ProxyChoice::Through(url) => url.to_string(),
        },
        queue_id: task.queue.to_string(),
        checksum: options.checksum.as_ref().map(ToString::to_string).unwrap_or_default(),
        ignore_tls_errors: options.ignore_tls_errors,
        file_missing: task.file_missing,
        completed_at: task.completed_at.map(seconds).unwrap_or_default(),
        referrer: options.request.referrer.clone(),
        rss_source_id: options.feed.as_deref().unwrap_or_default().to_owned(),
        created_by: options.created_by.as_deref().unwrap_or_default().to_owned(),
        group_id: task.group.map(|group| group.to_string()).unwrap_or_default(),
        queue_order: task.queue_order,
        tags: options.tags.iter().map(ToString::to_string).collect(),
        origin_url: String::new(),
        auto_route: String::new(),
        uploaded_bytes: seeding.uploaded_bytes,
        uploaded_at_completion: seeding.uploaded_at_completion,
        seeding_status: seeding_status(&seeding.state) as u8,
        seeding_message: match &seeding.state {
            SeedState::Ended(SeedEnd::Failed(failure)) => failure.message.clone(),
            _ => String::new(),
        },
        seeding_time_secs: seeding.seeded_before().as_secs(),
        seed_ratio_limit_milli: options.seed_limits.ratio_milli.to_wire(),
        seed_post_ratio_limit_milli: options.seed_limits.post_ratio_milli.to_wire(),
        seed_time_limit_minutes: minutes(options.seed_limits.time_secs),
        seed_inactive_time_limit_minutes: minutes(options.seed_limits.idle_secs),
    }
}

fn login_need(need: &LoginNeed) -> LoginNeedDto {
    LoginNeedDto {
        identity: need.identity().to_string(),
        slot: need.slot().to_owned(),
        account: need.account().unwrap_or_default().to_owned(),
    }
}

pub(crate) fn queue(queue: &Queue) -> QueueDto {
    QueueDto {
        queue_id: queue.id.to_string(),
        name: queue.spec.name.clone(),
        speed_limit_kbps: queue.spec.speed_limit_bytes.div_ceil(KIB),
        upload_limit_kbps: queue.spec.upload_limit_bytes.div_ceil(KIB),
        max_concurrent: queue.spec.max_concurrent,
        default_save_dir: queue
            .spec
            .default_save_dir
            .as_deref()
            .map(|dir| dir.display().to_string())
            .unwrap_or_default(),
        position: queue.position,
        default_segments: queue.spec.default_segments,
        default_user_agent: queue.spec.default_user_agent.clone(),
        // It was checked; what another version stored is not shown.
        post_chain: serde_json::from_str(&queue.spec.post_chain).unwrap_or_default(),
        is_running: queue.is_running,
        schedule_enabled: queue.schedule.is_enabled,
        schedule_start: Schedule::time_text(queue.schedule.start),
        schedule_stop: Schedule::time_text(queue.schedule.stop),
        schedule_days: queue.schedule.days.bits(),
    }
}

pub(crate) fn group(group: &Group) -> GroupDto {
    GroupDto {
        group_id: group.id.to_string(),
        name: group.spec.name.clone(),
        source_url: shown_text(group.spec.source_url.clone()),
        save_dir: group
            .spec
            .save_dir
            .as_deref()
            .map(|dir| dir.display().to_string())
            .unwrap_or_default(),
        created_at: seconds(group.created_at),
        left_out: group.spec.left_out.iter().map(left_out).collect(),
    }
}

pub(crate) fn left_out(left_out: &LeftOut) -> LeftOutDto {
    LeftOutDto {
        kind: left_out.kind.name().to_owned(),
        name: left_out.name.clone(),
        count: left_out.count,
    }
}

/// `sequence` is the number of the sample since the daemon's start.
pub(crate) fn runtime(task: TaskId, (progress, swarm): (&Progress, Option<Live>), sequence: u64) -> TaskRuntimeDto {
    let count = |peers: fn(&Live) -> usize| {
        swarm
            .as_ref()
            .map(|live| u32::try_from(peers(live)).unwrap_or(u32::MAX))
    };
    let segments = progress.segments.iter().zip(0..).map(|(segment, index)| SegmentDto {
        index,
        start_byte: segment.start,
        end_byte: segment.end.saturating_sub(1),
        downloaded_bytes: segment.done,
        active: Some(segment.is_active),
    });
    let servers = progress.servers.iter().map(|server| ServerDto {
        url: shown(&server.url),
        current_url: if server.current == server.url {
            String::new()
        } else {
            shown(&server.current)
        },
        download_bps: server.rates.clone(),
    });
    TaskRuntimeDto {
        task_id: task.to_string(),
        sampled_at_ms: now_millis(),
        sample_sequence: sequence,
        active_transfers: Some(progress.connections.into()),
        connected_peers: count(|live| live.peers),
        connected_seeds: count(|live| live.seeds),
        parallelism_limit: None,
        downloaded_bytes: progress.done_bytes,
        total_bytes: progress.total_bytes.unwrap_or(0),
        download_bps: progress.bytes_per_second,
        upload_bps: progress.upload_bytes_per_second,
        uploaded_bytes: progress.uploaded_bytes,
        segments: segments.collect(),
        servers: servers.collect(),
    }
}

/// Since the Unix epoch.
pub(crate) fn now_millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn seconds(at: Timestamp) -> String {
    at.unix_seconds().to_string()
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, sync::Arc, time::Duration};

    use engine::{
        AccountKey, AccountLimits, AccountUse, Config, Engine, Link, Phase, ResolveFuture, ResolveRequest, Resolved,
        Resolver, ResolverId, TaskSpec, Unresolved,
    };
    use support::transport::FakeTransport;
    use transfer::{Failure, FailureKind};

    use super::*;

    /// A plugin that wants a login for the path `/login`, and has an account with one download a day for others.
    #[derive(Debug)]
    struct Shelf;

    fn shelf() -> ResolverId {
        ResolverId::new("shelf@us")
    }

    impl Resolver for Shelf {
        fn claim(&self, _: &SafeUrl) -> Option<ResolverId> {
            Some(shelf())
        }

        fn resolve(&self, request: ResolveRequest) -> ResolveFuture {
            let answer = if request.url.as_url().path() == "/login" {
                Err(Unresolved {
                    failure: Failure::new(FailureKind::LoginRequired, "a login is required"),
                    login: LoginNeed::new(shelf(), "main", Some("ann")).ok(),
                })
            } else {
                Ok(Resolved::Link(Box::new(Link {
                    urls: vec![request.url],
                    headers: Vec::new(),
                    file_name: None,
                    promised_size: None,
                    checksum: None,
                    is_single_use: false,
                    is_whole_only: false,
                    max_connections: None,
                    segments: Arc::default(),
                    account: Some(AccountUse {
                        account: AccountKey::new(shelf(), "main", "bob").unwrap(),
                        limits: AccountLimits {
                            daily_downloads: NonZeroU32::new(1),
                            ..AccountLimits::default()
                        },
                    }),
                })))
            };
            Box::pin(async { answer })
        }
    }

    /// The first task that gets into a phase.
    async fn shown_when(engine: &Engine, is_reached: fn(&Phase) -> bool) -> TaskDto {
        let mut events = engine.events();
        loop {
            let tasks = engine.snapshot().await.unwrap().tasks;
            if let Some(found) = tasks.iter().find(|task| is_reached(&task.phase)) {
                return task(found);
            }
            events.next().await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_task_shows_the_login_that_it_needs_and_when_its_account_may_download_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path());
        config.resolver = Some(Arc::new(Shelf));
        let transport = Arc::new(FakeTransport::idle(&["http"]));
        let engine = Engine::start_unsaved(config, vec![transport]).await.unwrap();
        let specs = ["login", "a", "b"].map(|path| TaskSpec::parse(&format!("http://shelf.test/{path}")).unwrap());
        engine.create_many(specs.to_vec()).await.unwrap();

        let refused = shown_when(&engine, |phase| matches!(phase, Phase::NeedsLogin(_))).await;
        let need = LoginNeedDto {
            identity: "shelf@us".to_owned(),
            slot: "main".to_owned(),
            account: "ann".to_owned(),
        };
        assert_eq!((refused.status, refused.login_need), (TaskStatus::Error, Some(need)));
        assert_eq!(refused.error_kind, "login-required");

        let waits = shown_when(&engine, |phase| matches!(phase, Phase::AccountLimited(_))).await;
        assert_eq!(
            (waits.status, &*waits.error_kind),
            (TaskStatus::Pending, "account-limit")
        );
        let seconds: i64 = waits.continues_at.parse().unwrap();
        assert_eq!(seconds % 86400, 0, "midnight in UTC");

        let runs = shown_when(&engine, |phase| matches!(phase, Phase::Running(_))).await;
        assert!(runs.error_kind.is_empty() && runs.continues_at.is_empty(), "{runs:?}");
        assert_eq!(runs.login_need, None);
        engine.shutdown(Duration::ZERO).await;
    }
}
