//! What all clients of the agent see: the projection of the daemon, the agent's own state, and the events of both, each
//! encoded once for all connections. A snapshot has the number of the last event that it contains, so a client that
//! reads the events after it misses nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
    time::Duration,
};

use bytes::Bytes;
use protocol::{
    EventBody, LinkDeviceInfo, LinkDiscoveredPeer, LinkPairingRequestDto, PendingCaptureDto, SERVICE_EVENT, Service,
    ServiceEvent, ServiceEventParams, TaskRuntimeDto,
    agent::{AgentEvent, GatewayStatusDto, Preferences},
    encode_notification,
};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use super::{
    feed::Feed,
    task_list::Task,
    tasks::{Change, Listing, Projection},
};
use crate::metrics::Metrics;

/// Events kept for slow readers; enough for ten thousand tasks created one by one.
const MAX_EVENTS: usize = 16 * 1024;

/// Bytes kept for slow readers; about ten thousand changed tasks.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of events that one reader holds at a time, unless a single event is larger.
const MAX_BYTES_AT_ONCE: usize = 64 * 1024;

/// A larger snapshot is not sent as an event: readers get a gap and fetch it at their own pace.
const MAX_SNAPSHOT_EVENT_BYTES: usize = 1024 * 1024;

/// How long the answer to a write waits for the projection; longer than fetching a large snapshot.
const MAX_CATCH_UP: Duration = Duration::from_secs(10);

/// A reader is so far behind that the events it needs were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

/// A position in the events. Events are kept only while a reader exists.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The last event that was read.
    cursor: u64,
    newest: watch::Receiver<u64>,
}

impl Reader {
    /// Resolves once there are newer events. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        let _hub_is_gone = self.newest.changed().await;
    }
}

/// The last event of the daemon that the projection contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: Arc<str>,
    pub(crate) sequence: u64,
}

#[derive(Debug, Default)]
struct Inner {
    projection: Projection,
    feeds: Vec<Weak<Feed>>,
    is_connected: bool,
    gateway: GatewayStatusDto,
    preferences: Preferences,
    pending: Vec<PendingCaptureDto>,
    linked_devices: Vec<LinkDeviceInfo>,
    pairing_requests: Vec<LinkPairingRequestDto>,
    discovered: Vec<LinkDiscoveredPeer>,
    events: VecDeque<Bytes>,
    bytes: usize,
    newest: u64,
}

impl Inner {
    fn feed(&mut self, changes: &[Change]) {
        self.feeds.retain(|feed| {
            let feed = feed.upgrade();
            feed.inspect(|feed| feed.push(changes)).is_some()
        });
    }
}

/// What a subscriber within the process gets.
pub(crate) enum Taken {
    /// In order.
    Changes(Vec<Change>),
    /// The subscriber starts again from this state.
    Everything {
        /// Oldest first, each with its place.
        tasks: Vec<(u64, Arc<Task>)>,
        /// The last progress of each active run.
        runs: Vec<Arc<TaskRuntimeDto>>,
        /// In order.
        queues: Vec<String>,
        /// Whether changes were lost because too many were queued.
        is_gap: bool,
    },
}

/// The state and its events. A lock rather than a channel, because a snapshot must correspond to exactly one event;
/// nothing is awaited while it is held.
#[derive(Debug)]
pub(crate) struct Hub {
    epoch: String,
    inner: RwLock<Inner>,
    newest: watch::Sender<u64>,
    reached: watch::Sender<Position>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Hub {
    pub(crate) fn new(gateway: GatewayStatusDto, preferences: Preferences) -> Self {
        let inner = Inner {
            gateway,
            preferences,
            ..Inner::default()
        };
        Self {
            epoch: uuid::Uuid::new_v4().to_string(),
            inner: RwLock::new(inner),
            newest: watch::Sender::new(0),
            reached: watch::Sender::default(),
            metrics: Arc::default(),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Identifies this start of the agent.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Reads the projection under the lock.
    pub(crate) fn with_tasks<T>(&self, read: impl FnOnce(&Projection) -> T) -> T {
        read(&self.read().projection)
    }

    /// The default directory for downloads; empty until the daemon has reported its configuration.
    pub(crate) fn save_dir(&self) -> String {
        self.with_tasks(|daemon| daemon.stats().save_dir.clone())
    }

    /// Queues changes of the tasks until the subscriber drops the feed.
    pub(crate) fn subscribe(&self) -> Arc<Feed> {
        let feed = Arc::new(Feed::default());
        self.write().feeds.push(Arc::downgrade(&feed));
        feed
    }

    /// The changes since the last call.
    pub(crate) fn take(&self, feed: &Feed) -> Taken {
        if let Some(changes) = feed.take() {
            return Taken::Changes(changes);
        }
        let inner = self.read();
        let is_gap = feed.renewed();
        Taken::Everything {
            tasks: inner.projection.placed().collect(),
            runs: inner.projection.runs().cloned().collect(),
            queues: inner.projection.queue_ids(),
            is_gap,
        }
    }

    /// Replaces the daemon's state after a reconnect or a gap.
    pub(crate) fn replace(&self, projection: Projection, reached: Position) {
        let text = (self.has_readers() && projection.len() < MAX_SNAPSHOT_EVENT_BYTES / 512)
            .then(|| projection.snapshot(String::new(), "]}").into_text());
        let text = text.filter(|text| text.len() < MAX_SNAPSHOT_EVENT_BYTES);
        let mut inner = self.write();
        inner.projection = projection;
        inner.feed(&[Change::All]);
        match text.and_then(|text| RawValue::from_string(text).ok()) {
            Some(snapshot) => self.publish(&mut inner, &AgentEvent::DaemonSnapshotReplaced(&snapshot)),
            None => self.drop_events(&mut inner),
        }
        if !inner.is_connected {
            inner.is_connected = true;
            self.publish(&mut inner, &AgentEvent::DaemonConnectionChanged(true));
        }
        drop(inner);
        self.reached.send_replace(reached);
    }

    /// Applies an event of the daemon and forwards it to clients unchanged.
    pub(crate) fn apply(&self, event: &EventBody, reached: Position) -> Result<(), serde_json::Error> {
        let mut inner = self.write();
        let changes = inner.projection.apply(event)?;
        inner.feed(&changes);
        self.publish(&mut inner, &AgentEvent::Daemon(event));
        drop(inner);
        self.reached.send_replace(reached);
        Ok(())
    }

    /// Sends `daemonConnectionChanged`: there is no session until the next [`replace`](Self::replace).
    pub(crate) fn disconnected(&self) {
        let mut inner = self.write();
        if inner.is_connected {
            inner.is_connected = false;
            self.publish(&mut inner, &AgentEvent::DaemonConnectionChanged(false));
        }
    }

    /// Sends `gatewayChanged` and `preferencesChanged` for what differs from the last published values.
    pub(crate) fn publish_settings(&self, gateway: GatewayStatusDto, preferences: &Preferences) {
        let mut inner = self.write();
        if inner.gateway != gateway {
            self.publish(&mut inner, &AgentEvent::GatewayChanged(&gateway));
            inner.gateway = gateway;
        }
        if inner.preferences != *preferences {
            self.publish(&mut inner, &AgentEvent::PreferencesChanged(preferences));
            inner.preferences = preferences.clone();
        }
    }

    /// Sends `pendingCapturesChanged`: the downloads that wait for their user's decision.
    pub(crate) fn publish_pending(&self, pending: Vec<PendingCaptureDto>) {
        let mut inner = self.write();
        self.publish(&mut inner, &AgentEvent::PendingCapturesChanged(&pending));
        inner.pending = pending;
    }

    /// Sends `linkedDevicesChanged`, `linkPairingRequestsChanged` or `linkDiscoveredChanged`.
    pub(crate) fn publish_link(&self, change: link::Change) {
        let mut inner = self.write();
        match change {
            link::Change::Devices(devices) if devices != inner.linked_devices => {
                self.publish(&mut inner, &AgentEvent::LinkedDevicesChanged(&devices));
                inner.linked_devices = devices;
            }
            link::Change::Requests(requests) => {
                self.publish(&mut inner, &AgentEvent::LinkPairingRequestsChanged(&requests));
                inner.pairing_requests = requests;
            }
            link::Change::Discovered(peers) => {
                self.publish(&mut inner, &AgentEvent::LinkDiscoveredChanged(&peers));
                inner.discovered = peers;
            }
            link::Change::Devices(_) => {}
        }
    }

    /// Sends `captureTasksStarted`: these tasks were made of a download that a browser handed over.
    pub(crate) fn publish_captured(&self, tasks: &[String]) {
        self.publish(&mut self.write(), &AgentEvent::CaptureTasksStarted(tasks));
    }

    /// Without readers, events are not encoded: a later reader begins with a snapshot.
    fn has_readers(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    fn publish(&self, inner: &mut Inner, event: &AgentEvent<'_>) {
        if !self.has_readers() {
            return self.drop_events(inner);
        }
        let params = ServiceEventParams {
            epoch: self.epoch.clone(),
            sequence: inner.newest + 1,
            event: ServiceEvent {
                service: Service::Agent,
                event,
            },
        };
        let Ok(text) = encode_notification(SERVICE_EVENT, &params) else {
            return self.drop_events(inner);
        };
        inner.newest += 1;
        inner.bytes += text.len();
        inner.events.push_back(text.into());
        while inner.events.len() > MAX_EVENTS || (inner.bytes > MAX_BYTES && inner.events.len() > 1) {
            let Some(gone) = inner.events.pop_front() else { break };
            inner.bytes -= gone.len();
        }
        self.newest.send_replace(inner.newest);
    }

    /// Gives every reader a gap.
    fn drop_events(&self, inner: &mut Inner) {
        inner.events.clear();
        inner.bytes = 0;
        inner.newest += 1;
        self.newest.send_replace(inner.newest);
    }

    /// Up to `most` newer events, in order, bounded by [`MAX_BYTES_AT_ONCE`].
    pub(crate) fn next(&self, reader: &mut Reader, most: usize) -> Result<Vec<Bytes>, Gap> {
        let inner = self.read();
        let held = u64::try_from(inner.events.len()).unwrap_or(u64::MAX);
        let missing = inner.newest.saturating_sub(reader.cursor);
        if missing > held {
            return Err(Gap);
        }
        let skip = usize::try_from(held - missing).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let fits = |event: &&Bytes| {
            let is_first = bytes == 0;
            bytes += event.len();
            is_first || bytes <= MAX_BYTES_AT_ONCE
        };
        let events = inner.events.iter().skip(skip).take(most);
        let events: Vec<Bytes> = events.take_while(fits).cloned().collect();
        reader.cursor += u64::try_from(events.len()).unwrap_or(0);
        Ok(events)
    }

    /// `head` and the result of `system.snapshot` as the end of an object, with a reader that continues from there.
    pub(crate) fn snapshot(&self, head: &str) -> (Listing, Reader) {
        let inner = self.read();
        let own = |value: Result<Box<RawValue>, serde_json::Error>| value.unwrap_or_else(|_| RawValue::NULL.to_owned());
        let gateway = own(to_raw_value(&inner.gateway));
        let preferences = own(to_raw_value(&inner.preferences));
        let pending = own(to_raw_value(&inner.pending));
        let devices = own(to_raw_value(&inner.linked_devices));
        let requests = own(to_raw_value(&inner.pairing_requests));
        let discovered = own(to_raw_value(&inner.discovered));
        let head = format!(
            "{head}{{\"epoch\":\"{}\",\"sequence\":{},\"body\":{{\"role\":\"agent\",\"snapshot\":{{\"daemonConnected\":{},\
             \"gateway\":{gateway},\"preferences\":{preferences},\"linkedDevices\":{devices},\"pendingCaptures\":{pending},\
             \"linkPairingRequests\":{requests},\"linkDiscovered\":{discovered},\"daemon\":",
            self.epoch, inner.newest, inner.is_connected,
        );
        let reader = Reader {
            cursor: inner.newest,
            newest: self.newest.subscribe(),
        };
        (inner.projection.snapshot(head, "]}}}}}"), reader)
    }

    /// Changes with every event of the daemon that the projection has.
    pub(crate) fn applied(&self) -> watch::Receiver<Position> {
        self.reached.subscribe()
    }

    /// Waits until the projection includes a write.
    pub(crate) async fn caught_up(&self, write: &Position) {
        let is_there = |now: &Position| now.epoch != write.epoch || now.sequence >= write.sequence;
        // A reply follows its events, so this returns at once unless a snapshot is being fetched.
        if is_there(&self.reached.borrow()) {
            return;
        }
        let mut reached = self.reached.subscribe();
        let waited = tokio::time::timeout(MAX_CATCH_UP, reached.wait_for(is_there)).await;
        if waited.is_err() {
            tracing::warn!(sequence = write.sequence, "the projection is behind a write");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        Hub::new(GatewayStatusDto::default(), Preferences::default())
    }

    fn event(data: &str) -> EventBody {
        EventBody {
            kind: "comesNextYear".into(),
            data: RawValue::from_string(data.into()).unwrap(),
        }
    }

    fn reader_at(hub: &Hub, cursor: u64) -> Reader {
        let (_, reader) = hub.snapshot("");
        Reader { cursor, ..reader }
    }

    #[test]
    fn a_snapshot_belongs_to_one_event_and_the_next_ones_follow() {
        let hub = hub();
        hub.apply(&event("1"), Position::default()).unwrap();
        let (snapshot, mut reader) = hub.snapshot("{\"result\":");
        let read: serde_json::Value = serde_json::from_str(&snapshot.into_text()).unwrap();
        let read = &read["result"];
        assert_eq!((read["sequence"].as_u64(), reader.cursor), (Some(1), 1));
        assert!(read["body"]["snapshot"]["daemon"]["tasks"].is_array());
        hub.apply(&event("2"), Position::default()).unwrap();
        let events = hub.next(&mut reader, 10).unwrap();
        let told: serde_json::Value = serde_json::from_slice(&events[0]).unwrap();
        assert_eq!(told["params"]["sequence"], 2);
        assert_eq!(told["params"]["event"]["event"]["type"], "daemon");
        assert_eq!(told["params"]["event"]["event"]["data"]["type"], "comesNextYear");
        assert_eq!(hub.next(&mut reader, 10), Ok(vec![]));
    }

    #[test]
    fn a_reader_that_is_too_far_behind_learns_of_its_gap() {
        let hub = hub();
        let next = |cursor, most| hub.next(&mut reader_at(&hub, cursor), most).map(|events| events.len());
        let _reader = reader_at(&hub, 0);
        (0..=MAX_EVENTS).for_each(|_| hub.apply(&event("1"), Position::default()).unwrap());
        assert_eq!(next(0, 1), Err(Gap));
        assert_eq!(next(1, 3), Ok(3));
        let large = format!("\"{}\"", "x".repeat(MAX_BYTES));
        hub.apply(&event(&large), Position::default()).unwrap();
        let newest = hub.read().newest;
        assert_eq!(next(newest - 1, 9), Ok(1));
        assert_eq!(next(newest - 2, 9), Err(Gap));
    }

    #[test]
    fn events_without_readers_are_counted_but_not_kept() {
        let hub = hub();
        hub.apply(&event("1"), Position::default()).unwrap();
        let (_, mut reader) = hub.snapshot("");
        hub.apply(&event("2"), Position::default()).unwrap();
        assert_eq!((hub.read().events.len(), hub.read().newest), (1, 2));
        assert_eq!(hub.next(&mut reader, 9).unwrap().len(), 1);
        drop(reader);
        hub.apply(&event("3"), Position::default()).unwrap();
        assert_eq!(
            (hub.read().events.len(), hub.read().bytes, hub.read().newest),
            (0, 0, 3)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_waited_for_in_its_own_epoch() {
        let hub = hub();
        let write = Position {
            epoch: "e".into(),
            sequence: 2,
        };
        hub.caught_up(&write).await;
        let reached = |sequence| Position {
            epoch: "e".into(),
            sequence,
        };
        hub.apply(&event("1"), reached(1)).unwrap();
        let catch_up = hub.caught_up(&write);
        let go_on = async { hub.apply(&event("2"), reached(2)).unwrap() };
        let started = tokio::time::Instant::now();
        tokio::join!(catch_up, go_on);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
