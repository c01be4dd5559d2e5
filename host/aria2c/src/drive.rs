//! The main loop: adds the downloads, prints their events, and ends when they have ended or a stop is requested.

use std::{
    collections::HashSet,
    path::Path,
    pin::pin,
    time::{Duration, Instant},
};

use aria2::{Aria2, Kind, Notices, SessionFile as _, files::Entry, option::Refusal};
use command::{memory, stop::StopRequests};
use data_encoding::BASE64;
use jiff::Zoned;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior};

use crate::{
    Refused,
    console::{self, Console, Level},
    document::{self, Wanted},
    hooks::Callers,
    in_memory::InMemory,
    ledger::{KEYS, Ledger, StatusReply},
    leftover::{self, Borrowed},
    plan::Plan,
};

/// The interval of the readout and of all timers.
const TICK: Duration = Duration::from_secs(1);

/// aria2's exit code of a torrent that is downloaded already.
const ALREADY_REGISTERED: u8 = 12;

/// Downloads added by one call.
const ADDED_AT_ONCE: usize = 1000;

/// Numbers of unfinished downloads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stat {
    num_active: String,
    num_waiting: String,
}

impl Stat {
    fn unfinished(&self) -> u64 {
        let count = |text: &str| text.parse::<u64>().unwrap_or(0);
        count(&self.num_active) + count(&self.num_waiting)
    }
}

enum Event {
    /// A stop was requested by the user, a service manager or a client.
    StopRequested,
    Notices(Vec<(Kind, String)>),
    Tick,
}

/// Executes the plan; returns the exit code.
pub(super) async fn drive(plan: Plan, mut console: Console) -> Result<u8, Refused> {
    let mut stop =
        StopRequests::listen().map_err(|error| Refused::new(format!("Cannot listen for signals: {error}")))?;
    for warning in &plan.warnings {
        console.message(Level::Warn, warning);
    }
    let service = InMemory::start(&plan).await?;
    let aria2 = service.agent().aria2();
    let mut drive = Drive {
        notices: aria2.notices(),
        aria2,
        ledger: Ledger::new(plan.results),
        callers: Callers::default(),
        followed: HashSet::new(),
        seeded: Vec::new(),
        borrowed: Vec::new(),
        console,
        plan,
        began: Instant::now(),
        last_summary: Instant::now(),
        last_save: Instant::now(),
    };
    drive.begin(&service).await?;
    drive.run(&service, &mut stop).await?;
    drive.end(service, &mut stop).await
}

struct Drive {
    aria2: Aria2,
    notices: Notices,
    ledger: Ledger,
    callers: Callers,
    /// Downloads that came from a document which was downloaded.
    followed: HashSet<String>,
    /// Torrents whose seeding is over.
    seeded: Vec<String>,
    /// Existing files that runs continue, although they may be complete.
    borrowed: Vec<Borrowed>,
    console: Console,
    plan: Plan,
    began: Instant,
    last_summary: Instant,
    last_save: Instant,
}

impl Drive {
    /// Sets global options, adds the downloads, and accepts clients.
    async fn begin(&mut self, service: &InMemory) -> Result<(), Refused> {
        self.aria2
            .change_settings(std::mem::take(&mut self.plan.torrents))
            .await?;
        let usual = self.plan.usual.clone().into_value();
        self.aria2
            .call::<String>("aria2.changeGlobalOption", vec![usual])
            .await?;
        let wanted = std::mem::take(&mut self.plan.wanted);
        let mut entries = Vec::new();
        let mut gids = HashSet::new();
        let mut known = HashSet::new();
        for wanted in wanted {
            if let Some(hash) = wanted.info_hash().filter(|hash| !known.insert(*hash)) {
                self.ledger.failed(ALREADY_REGISTERED);
                let message = format!("errorCode={ALREADY_REGISTERED} InfoHash {hash} is already registered.");
                self.console.message(Level::Error, &message);
                continue;
            }
            match wanted {
                Wanted::Uris(entry) => entries.push(entry),
                Wanted::Torrent {
                    file,
                    webseeds,
                    options,
                    ..
                } => {
                    let params = vec![BASE64.encode(&file).into(), webseeds.into(), options.into_value()];
                    match self.aria2.call::<String>("aria2.addTorrent", params).await {
                        Ok(gid) => drop(gids.insert(gid)),
                        Err(refusal) => self.refuse("BitTorrent", &refusal.to_string()),
                    }
                }
                Wanted::Metalink(document, options) => {
                    let without_urls = document::without_urls(&document, self.metalink_base(&options));
                    let params = vec![BASE64.encode(&document).into(), options.into_value()];
                    match self.aria2.call::<Vec<String>>("aria2.addMetalink", params).await {
                        Ok(added) => gids.extend(added),
                        Err(refusal) => self.refuse("Metalink", &refusal.to_string()),
                    }
                    self.refuse_files(without_urls);
                }
            }
        }
        let taken = entries
            .iter()
            .filter_map(|entry| leftover::take(entry, &self.plan.usual));
        self.borrowed.extend(taken);
        for entries in entries.chunks(ADDED_AT_ONCE) {
            gids.extend(self.add(entries).await?);
        }
        if !gids.is_empty() {
            self.console
                .message(Level::Notice, &format!("Downloading {} item(s)", gids.len()));
        }
        service.session.began_with.get_or_init(|| gids);
        service.session.aria2.get_or_init(|| self.aria2.clone());
        if let Some(listener) = &self.plan.listener {
            if listener.secret.is_none() {
                self.console.message(
                    Level::Warn,
                    "No --rpc-secret is set: every program of this machine can give orders.",
                );
            }
            let port = service.agent().local_addr().port();
            self.console
                .message(Level::Notice, &format!("IPv4 RPC: listening on TCP port {port}"));
            service.agent().open();
        }
        Ok(())
    }

    /// Adds downloads; returns the GIDs of the accepted ones.
    async fn add(&mut self, entries: &[Entry]) -> Result<Vec<String>, Refused> {
        let call = |entry: &Entry| json!({"methodName": "aria2.addUri", "params": [entry.uris, entry.options.clone().into_value()]});
        let calls: Vec<Value> = entries.iter().map(call).collect();
        let answers: Vec<Value> = self.aria2.call("system.multicall", vec![calls.into()]).await?;
        let mut taken = Vec::new();
        for (entry, answer) in entries.iter().zip(answers) {
            match (answer[0].as_str(), answer["message"].as_str()) {
                (Some(gid), _) => taken.push(gid.to_owned()),
                (None, why) => self.refuse(entry.uris.first().map_or("", String::as_str), why.unwrap_or_default()),
            }
        }
        Ok(taken)
    }

    fn refuse_files(&mut self, without_urls: Vec<String>) {
        for name in without_urls {
            self.refuse(&name, "the Metalink document has no URL for it that can be downloaded");
        }
    }

    /// What relative URLs of a Metalink document with these options are relative to.
    fn metalink_base<'a>(&'a self, options: &'a aria2::option::Options) -> &'a str {
        let name = "metalink-base-uri";
        options
            .get(name)
            .or_else(|| self.plan.usual.get(name))
            .unwrap_or_default()
    }

    fn refuse(&mut self, what: &str, why: &str) {
        self.ledger.failed(crate::UNKNOWN_ERROR);
        let shown = transfer::SafeUrl::parse(what).map_or_else(|_| what.to_owned(), |url| url.to_string());
        self.console.message(Level::Error, &format!("{shown}: {why}"));
    }

    async fn run(&mut self, service: &InMemory, stop: &mut StopRequests) -> Result<(), Refused> {
        let mut tick = ticks();
        let mut memory = pin!(memory::release_regularly());
        loop {
            if self.plan.listener.is_none() && self.notices.is_caught_up() && self.stat().await?.unfinished() == 0 {
                // A download that stopped between the two queries has a pending notice by now.
                if self.notices.is_caught_up() {
                    return Ok(());
                }
            }
            let happening = tokio::select! {
                biased;
                () = stop.next() => Event::StopRequested,
                _ending = service.agent().shutdown_requested() => Event::StopRequested,
                notices = self.notices.next() => Event::Notices(notices),
                _ = tick.tick() => Event::Tick,
                never = &mut memory => match never {},
            };
            match happening {
                Event::StopRequested => {
                    let message = "Shutdown sequence commencing... Press Ctrl-C again for emergency shutdown.";
                    self.console.message(Level::Notice, message);
                    return Ok(());
                }
                Event::Notices(notices) => self.handle_notices(notices).await?,
                Event::Tick => {
                    if let Some(reason) = self.reason_to_stop() {
                        self.console
                            .message(Level::Notice, &format!("{reason} Stopping application."));
                        return Ok(());
                    }
                    self.show().await?;
                    self.save_now_and_then(service).await;
                }
            }
        }
    }

    async fn stat(&self) -> Result<Stat, Refusal> {
        self.aria2.call("aria2.getGlobalStat", Vec::new()).await
    }

    async fn handle_notices(&mut self, notices: Vec<(Kind, String)>) -> Result<(), Refused> {
        if notices.is_empty() {
            self.console.message(Level::Warn, "Some events were lost.");
        }
        for (kind, gid) in notices {
            // A client may have removed the result already.
            let Ok(status) = self
                .aria2
                .call::<StatusReply>("aria2.tellStatus", vec![gid.into(), json!(KEYS)])
                .await
            else {
                continue;
            };
            self.record_notice(kind, &status).await;
        }
        Ok(())
    }

    async fn record_notice(&mut self, kind: Kind, status: &StatusReply) {
        let now = Instant::now();
        let mut forgotten = None;
        match kind {
            Kind::Start => self.ledger.began(status, now),
            Kind::Pause | Kind::BtComplete => {}
            Kind::Stop => forgotten = self.ledger.ended(status, now),
            Kind::Complete => {
                forgotten = self.ledger.ended(status, now);
                if status.has_metadata() {
                    self.console.message(Level::Notice, "Seeding is over.");
                    self.seeded.push(status.gid.clone());
                }
                self.complete(status);
                self.follow(status).await;
            }
            Kind::Error => {
                forgotten = self.ledger.ended(status, now);
                let uri = transfer::SafeUrl::parse(status.uri())
                    .map_or_else(|_| status.uri().to_owned(), |url| url.to_string());
                let (code, why) = (&status.error_code, &status.error_message);
                self.console.message(
                    Level::Error,
                    &format!("Download aborted. URI={uri}\nException: errorCode={code} {why}"),
                );
                self.incomplete(status);
            }
        }
        if let Some(command) = self.plan.hooks.command(kind)
            && let Err(why) = self.callers.call(command, &status.gid, status.count(), status.path())
        {
            self.console.message(Level::Error, &why);
        }
        if let Some(gid) = forgotten {
            // A client may have removed it already.
            let _forgotten = self
                .aria2
                .call::<String>("aria2.removeDownloadResult", vec![gid.into()])
                .await;
        }
    }

    /// Adds the files of a Metalink document that was downloaded (`follow-metalink`). Files of such a document are not
    /// followed: two of them could lead to each other for ever.
    async fn follow(&mut self, status: &StatusReply) {
        let wish = self.plan.options.get("follow-metalink").unwrap_or("true").to_owned();
        let path = Path::new(status.path());
        let is_document = metalink_reader::is_document_name(status.path());
        if wish == "false" || !is_document || self.followed.contains(&status.gid) {
            return;
        }
        let is_large = |file: &std::fs::Metadata| file.len() > metalink_reader::MAX_DOCUMENT_BYTES as u64;
        let document = match std::fs::metadata(path) {
            Ok(file) if is_large(&file) => Err(std::io::ErrorKind::FileTooLarge.into()),
            _ => std::fs::read(path),
        };
        let folder = transfer::SafeUrl::parse(status.uri()).and_then(|uri| uri.join("."));
        let base = folder.map(|folder| folder.expose().to_owned()).unwrap_or_default();
        let dir = path.parent().unwrap_or(Path::new("/")).display().to_string();
        let options = json!({"dir": dir, "metalink-base-uri": base});
        let mut without_urls = Vec::new();
        let added = match document {
            Ok(document) => {
                without_urls = document::without_urls(&document, &base);
                let params = vec![BASE64.encode(&document).into(), options];
                let added = self.aria2.call::<Vec<String>>("aria2.addMetalink", params).await;
                added.map_err(|refusal| refusal.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match added {
            Ok(added) => {
                self.followed.extend(added);
                self.refuse_files(without_urls);
                // As in aria2, the document itself is not wanted then.
                if wish == "mem" {
                    let _may_be_gone = std::fs::remove_file(path);
                }
            }
            Err(why) => self.refuse(status.path(), &why),
        }
    }

    fn complete(&mut self, status: &StatusReply) {
        let message = format!("Download complete: {}", status.place());
        self.console.message(Level::Notice, &message);
        if status.has_metadata() {
            self.console.message(Level::Notice, &status.share(self.console.sizes));
        }
    }

    fn incomplete(&mut self, status: &StatusReply) {
        let message = format!("Download GID#{} not complete: {}", status.gid, status.place());
        self.console.message(Level::Notice, &message);
    }

    /// Forgets what was kept of complete torrents for another start: they are not continued.
    async fn forget_complete(&self) {
        for gid in &self.seeded {
            // A client may have removed it already.
            let params = vec![gid.clone().into()];
            let _removed = self.aria2.call::<String>("aria2.removeDownloadResult", params).await;
        }
    }

    fn reason_to_stop(&self) -> Option<String> {
        if let Some(after) = self.plan.stop_after.filter(|after| self.began.elapsed() >= *after) {
            return Some(format!("{} second(s) has passed.", after.as_secs()));
        }
        let watched = self.plan.stop_with?;
        let is_there = rustix::process::Pid::from_raw(watched)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        (!is_there).then(|| format!("Process {watched} is not running."))
    }

    async fn show(&mut self) -> Result<(), Refused> {
        let is_summary_due = is_due(self.plan.summary_every, self.last_summary);
        if !self.console.shows_readout && !is_summary_due {
            return Ok(());
        }
        let active = self.active().await?;
        if active.is_empty() {
            return Ok(());
        }
        let active: Vec<_> = active.iter().map(StatusReply::active).collect();
        let sizes = self.console.sizes;
        if is_summary_due {
            self.last_summary = Instant::now();
            self.console.print(&console::summary(&active, sizes, &Zoned::now()));
        }
        if self.console.shows_readout {
            self.console.read_out(&console::readout(&active, sizes));
        }
        Ok(())
    }

    async fn active(&self) -> Result<Vec<StatusReply>, Refusal> {
        self.aria2.call("aria2.tellActive", vec![json!(KEYS)]).await
    }

    async fn save_now_and_then(&mut self, service: &InMemory) {
        let session = &service.session;
        if session.path().is_some() && is_due(session.saving.every, self.last_save) {
            self.last_save = Instant::now();
            if let Err(why) = session.save().await {
                self.console.message(Level::Error, &why);
            }
        }
    }

    /// Records the results, saves the session, shuts down, and prints the results table.
    async fn end(mut self, service: InMemory, stop: &mut StopRequests) -> Result<u8, Refused> {
        let mut unfinished = self.stat().await?.unfinished();
        for status in self.active().await? {
            self.ledger.ended(&status, Instant::now());
            if status.is_seeding() {
                unfinished = unfinished.saturating_sub(1);
                self.complete(&status);
            } else {
                self.incomplete(&status);
            }
        }
        let saved = match service.session.path() {
            Some(path) => Some((path, service.session.save().await)),
            None => None,
        };
        self.forget_complete().await;
        tokio::select! {
            () = service.end() => {}
            () = stop.next() => {}
        }
        self.borrowed.iter().for_each(Borrowed::give_back);
        let form = self.plan.options.get("download-result").unwrap_or_default();
        let table = console::results(form, self.ledger.results(), self.console.sizes);
        self.console.print(&table);
        let exit = self.ledger.exit(unfinished);
        if exit != 0 && form != "hide" {
            self.console.print(
                "\naria2 will resume download if the transfer is restarted.\nIf there are any errors, then see the log file. \
                See '-l' option in help/man page for details.\n",
            );
        }
        match saved {
            Some((path, Ok(()))) => {
                let message = format!("Serialized session to '{}' successfully.", path.display());
                self.console.message(Level::Notice, &message);
            }
            Some((_, Err(why))) => self.console.message(Level::Error, &why),
            None => {}
        }
        Ok(exit)
    }
}

/// Whether a timer with period `every` expires with this tick, the nearest to its time.
fn is_due(every: Option<Duration>, last: Instant) -> bool {
    every.is_some_and(|every| last.elapsed() + TICK / 2 >= every)
}

fn ticks() -> Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
