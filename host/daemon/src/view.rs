//! Maps the engine's records to the protocol's.

pub(crate) mod plugin;
pub(crate) mod plugin_journal;

use engine::{Group, LeftOut, ProxyChoice, Queue, Status, Task, TaskId, Timestamp};
use protocol::{GroupDto, LeftOutDto, QueueDto, SegmentDto, ServerDto, TaskDto, TaskRuntimeDto, TaskStatus};
use transfer::{Progress, SafeUrl};

/// Bytes of the unit that limits of queues have on the wire.
pub(crate) const KIB: u64 = 1024;

/// "As the global setting", for every limit of seeding.
const INHERIT: i64 = -2;

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

/// The URL with its query, but without a login.
pub(crate) fn shown(url: &SafeUrl) -> String {
    url.without_login().expose().to_owned()
}

/// [`shown`] for text that may not parse as a URL.
pub(crate) fn shown_text(text: String) -> String {
    SafeUrl::parse(&text).map_or(text, |url| shown(&url))
}

pub(crate) fn task(task: &Task) -> TaskDto {
    let options = task.options();
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
        error_message: failure.map(|failure| failure.message.clone()).unwrap_or_default(),
        error_kind: failure
            .map(|failure| failure.kind.code().to_owned())
            .unwrap_or_default(),
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
        seed_ratio_limit_milli: INHERIT,
        seed_post_ratio_limit_milli: INHERIT,
        seed_time_limit_minutes: INHERIT,
        seed_inactive_time_limit_minutes: INHERIT,
        ..TaskDto::default()
    }
}

pub(crate) fn queue(queue: &Queue) -> QueueDto {
    let time = |time: Option<jiff::civil::Time>| {
        time.map(|time| format!("{:02}:{:02}", time.hour(), time.minute()))
            .unwrap_or_default()
    };
    QueueDto {
        queue_id: queue.id.to_string(),
        name: queue.spec.name.clone(),
        speed_limit_kbps: queue.spec.speed_limit_bytes.div_ceil(KIB),
        upload_limit_kbps: 0,
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
        is_running: queue.is_running,
        schedule_enabled: queue.schedule.is_enabled,
        schedule_start: time(queue.schedule.start),
        schedule_stop: time(queue.schedule.stop),
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
pub(crate) fn runtime(task: TaskId, progress: &Progress, sequence: u64) -> TaskRuntimeDto {
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
        connected_peers: None,
        parallelism_limit: None,
        downloaded_bytes: progress.done_bytes,
        total_bytes: progress.total_bytes.unwrap_or(0),
        download_bps: progress.bytes_per_second,
        upload_bps: 0,
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
