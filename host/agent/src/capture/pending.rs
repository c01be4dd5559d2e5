//! Downloads that await the user's decision, bounded in number, size and time. Those of browsers are in memory only, because
//! they contain cookies and can be asked for again; those of paired devices are also stored ([`super::kept`]).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use data_encoding::BASE64;
use protocol::{CreateTaskRequest, PendingCaptureDto, RequestBody};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};
use uuid::Uuid;

use crate::{capture::request::Download, clock::unix_ms, projection::hub::Hub};

/// How long a download awaits the user's decision: long enough for a lunch break.
const WAITING_TIME: Duration = Duration::from_hours(1);

/// Bounds what a page can queue by asking repeatedly.
const MAX_WAITING: usize = 256;

/// How many of them may be those of paired devices, which wait for days.
const MAX_KEPT: usize = 128;

/// Bytes of all pending downloads together.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Characters of a request body that are shown to the user.
const MAX_SHOWN: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many downloads wait for confirmation")]
pub(crate) struct Full;

/// Why a decision cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecided {
    #[error("not found")]
    Unknown,
    #[error("this download is being created already")]
    Busy,
}

struct Waiting {
    shown: PendingCaptureDto,
    download: Download,
    bytes: usize,
    until: Instant,
    /// It is stored.
    is_kept: bool,
    is_decided: bool,
}

/// A download that a client is accepting or rejecting. Until this is dropped, other clients cannot.
pub(crate) struct Decision<'a> {
    pending: &'a Pending,
    id: String,
    /// What was decided about.
    pub(crate) download: Download,
    /// Whether it is stored, so that what becomes of it must be, too.
    pub(crate) is_kept: bool,
}

impl std::fmt::Debug for Decision<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decision").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Decision<'_> {
    /// It waits no more.
    pub(crate) fn done(self) {
        self.pending.change(&self.id, |table, place| drop(table.remove(place)));
    }

    /// Only `rest` of it still waits; the tasks of the others exist.
    pub(crate) fn keep(self, rest: Vec<CreateTaskRequest>) {
        let rest = self.download.clone().only(rest);
        self.pending.change(&self.id, |table, place| {
            let waiting = &mut table[place];
            waiting.shown = PendingCaptureDto {
                transaction_id: waiting.shown.transaction_id.clone(),
                created_at_unix_ms: waiting.shown.created_at_unix_ms,
                ..shown(&rest)
            };
            waiting.download = rest;
        });
    }
}

impl Drop for Decision<'_> {
    fn drop(&mut self) {
        let mut table = self.pending.table();
        if let Some(waiting) = table.iter_mut().find(|waiting| waiting.shown.transaction_id == self.id) {
            waiting.is_decided = false;
        }
    }
}

/// The pending downloads. Every change is published as `pendingCapturesChanged`.
pub(crate) struct Pending {
    /// The lock is held while a change is published, so that events keep the order of changes.
    table: Mutex<Vec<Waiting>>,
    hub: Arc<Hub>,
    added: Notify,
    changes: watch::Sender<u64>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl Pending {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self {
            table: Mutex::default(),
            hub,
            added: Notify::new(),
            changes: watch::Sender::new(0),
        }
    }

    /// Adds a download and returns its id.
    pub(crate) fn add(&self, download: Download) -> Result<String, Full> {
        self.put(Uuid::new_v4().to_string(), download, None)
    }

    /// Adds a stored download under its id, once. It waits until then, in Unix seconds.
    pub(crate) fn add_kept(&self, id: String, download: Download, until: i64) -> Result<String, Full> {
        let left = u64::try_from(until).unwrap_or(0).saturating_sub(unix_ms() / 1000);
        self.put(id, download, Some(Duration::from_secs(left)))
    }

    /// Whether a download waits under this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.table().iter().any(|waiting| waiting.shown.transaction_id == id)
    }

    /// Whether another download of a device fits.
    pub(crate) fn check_room(&self, download: &Download) -> Result<(), Full> {
        check_room(&self.table(), bytes_of(download), true)
    }

    fn put(&self, id: String, download: Download, kept: Option<Duration>) -> Result<String, Full> {
        let mut table = self.table();
        if table.iter().any(|waiting| waiting.shown.transaction_id == id) {
            return Ok(id);
        }
        let bytes = bytes_of(&download);
        check_room(&table, bytes, kept.is_some())?;
        let shown = PendingCaptureDto {
            transaction_id: id.clone(),
            ..shown(&download)
        };
        table.push(Waiting {
            shown,
            download,
            bytes,
            until: Instant::now() + kept.unwrap_or(WAITING_TIME),
            is_kept: kept.is_some(),
            is_decided: false,
        });
        self.publish(&table);
        self.added.notify_one();
        Ok(id)
    }

    /// The user decides about a download.
    pub(crate) fn decide(&self, id: &str) -> Result<Decision<'_>, Undecided> {
        let mut table = self.table();
        let waiting = table.iter_mut().find(|waiting| waiting.shown.transaction_id == id);
        let waiting = waiting.ok_or(Undecided::Unknown)?;
        if std::mem::replace(&mut waiting.is_decided, true) {
            return Err(Undecided::Busy);
        }
        Ok(Decision {
            pending: self,
            id: id.to_owned(),
            download: waiting.download.clone(),
            is_kept: waiting.is_kept,
        })
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Vec<Waiting>, usize)) {
        let mut table = self.table();
        // It may have expired meanwhile.
        if let Some(place) = table.iter().position(|waiting| waiting.shown.transaction_id == id) {
            change(&mut table, place);
            self.publish(&table);
        }
    }

    /// Counts changes of the list.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<PendingCaptureDto> {
        self.table().iter().map(|waiting| waiting.shown.clone()).collect()
    }

    /// Removes expired entries; never returns.
    pub(crate) async fn expire(&self) {
        loop {
            let next = self.table().iter().map(|waiting| waiting.until).min();
            match next {
                None => self.added.notified().await,
                Some(until) => {
                    // One that is added meanwhile may expire sooner.
                    let _added = timeout_at(until, self.added.notified()).await;
                    self.drop_expired();
                }
            }
        }
    }

    fn drop_expired(&self) {
        let mut table = self.table();
        let (before, now) = (table.len(), Instant::now());
        table.retain(|waiting| waiting.until > now);
        if table.len() < before {
            tracing::info!(
                count = before - table.len(),
                "dropped downloads that were not confirmed in time"
            );
            self.publish(&table);
        }
    }

    fn publish(&self, table: &[Waiting]) {
        self.hub
            .publish_pending(table.iter().map(|waiting| waiting.shown.clone()).collect());
        self.changes.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(download: &Download) -> usize {
    serde_json::to_vec(download.requests()).map_or(MAX_BYTES, |text| text.len())
}

fn check_room(table: &[Waiting], bytes: usize, is_kept: bool) -> Result<(), Full> {
    let held: usize = table.iter().map(|waiting| waiting.bytes).sum();
    let kept = table.iter().filter(|waiting| waiting.is_kept).count();
    if table.len() >= MAX_WAITING || held + bytes > MAX_BYTES || is_kept && kept >= MAX_KEPT {
        return Err(Full);
    }
    Ok(())
}

/// The public view of a download: no cookies, headers or credentials.
fn shown(download: &Download) -> PendingCaptureDto {
    let requests = download.requests();
    let names = requests.iter().filter_map(|request| request.headers.as_ref());
    let mut header_names: Vec<String> = names.flat_map(|headers| headers.keys().cloned()).collect();
    header_names.sort_unstable();
    header_names.dedup();
    let first = requests.first();
    let urls: Vec<&str> = requests.iter().map(|request| request.url.as_str()).collect();
    let mut methods: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.method.as_deref())
        .collect();
    methods.dedup();
    let bodies: Vec<String> = requests
        .iter()
        .filter_map(|request| request.body.as_ref().map(body_text))
        .collect();
    PendingCaptureDto {
        transaction_id: Uuid::new_v4().to_string(),
        url: urls.join("\n"),
        file_name: first.map(|request| request.file_name.clone()).unwrap_or_default(),
        created_at_unix_ms: unix_ms(),
        file_size: download.size,
        referrer: download.referrer().to_owned(),
        created_by: download.created_by.clone(),
        save_dir: first.map(|request| request.save_dir.clone()).unwrap_or_default(),
        has_cookies: requests.iter().any(|request| !request.cookies.is_empty()),
        header_names,
        method: plain(&methods.join(", ")),
        body: plain(&bodies.join(" ")),
    }
}

/// The request body as shown to the user.
fn body_text(body: &RequestBody) -> String {
    match body {
        RequestBody::FormData { fields } => {
            let each = |(name, values): (&String, &Vec<String>)| format!("{name}={} ", values.join(","));
            fields.iter().map(each).collect()
        }
        RequestBody::UrlEncoded { raw } => raw.clone(),
        RequestBody::Raw { bytes_b64, .. } => match BASE64.decode(bytes_b64.as_bytes()) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => bytes_b64.clone(),
        },
    }
}

/// The beginning of a text without control characters, which a terminal would interpret.
fn plain(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_SHOWN)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use protocol::{
        DownloadRequest,
        agent::{GatewayStatusDto, Preferences},
    };

    use super::*;
    use crate::capture::request;

    fn pending() -> Pending {
        Pending::new(Arc::new(Hub::new(GatewayStatusDto::default(), Preferences::default())))
    }

    fn download(cookies: &str) -> Download {
        let request = DownloadRequest {
            url: "http://a.test/".into(),
            cookies: cookies.into(),
            ..DownloadRequest::default()
        };
        request::one(request).unwrap_or_else(|error| panic!("{error}"))
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_downloads_expire() {
        let pending = pending();
        let ask = async {
            pending.add(download("")).unwrap();
            tokio::time::sleep(WAITING_TIME / 2).await;
            pending.add(download("")).unwrap();
            tokio::time::sleep(WAITING_TIME * 3 / 4).await;
        };
        tokio::select! {
            () = ask => assert_eq!(pending.list().len(), 1),
            () = pending.expire() => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_devices_wait_for_days_and_leave_room_for_others() {
        let pending = pending();
        let until = i64::try_from(unix_ms() / 1000).unwrap() + 7 * 24 * 60 * 60;
        for number in 0..MAX_KEPT {
            pending.add_kept(number.to_string(), download(""), until).unwrap();
        }
        assert_eq!(pending.check_room(&download("")), Err(Full));
        assert_eq!(pending.add_kept("more".to_owned(), download(""), until), Err(Full));
        pending.add_kept("0".to_owned(), download(""), until).unwrap();
        let ask = async {
            pending.add(download("")).unwrap();
            tokio::time::sleep(WAITING_TIME + Duration::from_secs(1)).await;
            assert_eq!(
                pending.list().len(),
                MAX_KEPT,
                "that of a browser expired, although it came last"
            );
            assert!(pending.has("0") && pending.decide("0").unwrap().is_kept);
            tokio::time::sleep(Duration::from_hours(7 * 24)).await;
        };
        tokio::select! {
            () = ask => assert!(pending.list().is_empty()),
            () = pending.expire() => {}
        }
    }

    #[test]
    fn questions_are_few_and_small() {
        let pending = pending();
        (0..MAX_WAITING).for_each(|_| drop(pending.add(download("")).unwrap()));
        assert_eq!(pending.add(download("")), Err(Full));
        let id = pending.list().remove(0).transaction_id;
        let decision = pending.decide(&id).unwrap();
        assert_eq!(pending.decide(&id).unwrap_err(), Undecided::Busy, "two users decide");
        drop(decision);
        pending.decide(&id).unwrap().done();
        assert_eq!(pending.decide(&id).unwrap_err(), Undecided::Unknown);
        assert_eq!(pending.add(download(&"x".repeat(MAX_BYTES))), Err(Full));
        pending.add(download("")).unwrap();
    }

    #[test]
    fn what_was_not_created_still_waits() {
        let pending = pending();
        let request = DownloadRequest {
            url: "http://a.test/1\nhttp://a.test/2".into(),
            ..DownloadRequest::default()
        };
        let id = pending.add(request::one(request).unwrap()).unwrap();
        let decision = pending.decide(&id).unwrap();
        let rest = decision.download.requests()[1..].to_vec();
        decision.keep(rest);
        let left = pending.list();
        assert_eq!(
            (left[0].transaction_id.as_str(), left[0].url.as_str()),
            (&*id, "http://a.test/2")
        );
        pending.decide(&id).unwrap().done();
        assert!(pending.list().is_empty());
    }

    #[test]
    fn no_secret_is_shown() {
        let pending = pending();
        pending.add(download("session=hunter2")).unwrap();
        let shown = pending.list().remove(0);
        assert!(shown.has_cookies && !format!("{shown:?}").contains("hunter2"));
    }
}
