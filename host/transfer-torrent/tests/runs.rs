//! Runs of the engine for torrents, with two sessions of this crate as each other's peers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use egress::{ClientConfig, HttpClient, Names};
use metainfo::create::{Options, Plan};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{
    ConnectionPlan, Discarded, FailureKind, Finished, GivenBy, Job, Lanes, OnConflict, Outcome, Progress, Purpose,
    RateLimiter, RateLimits, Recorded, Reporter, Reports, RetryPolicy, SafeUrl, Source, Stage, Target, TorrentOptions,
    Transport as _,
};
use transfer_torrent::{Config, Of, Settings, Torrents};

/// A machine with its own session.
struct Machine {
    home: TempDir,
    torrents: Torrents,
}

impl Machine {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let torrents = Torrents::new(Config {
            directory: home.path().join("torrents"),
            dht_file: None,
            settings: Settings {
                ports: 0..=0,
                addresses: vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])],
                is_dht_on: false,
                is_lsd_on: false,
                is_port_mapping_on: false,
                ..Settings::default()
            },
            http: HttpClient::new(ClientConfig {
                user_agent: "test".to_owned(),
                tls: egress::tls::trusting_system(),
                connect_timeout: Duration::from_secs(5),
                idle_connections: 1,
                names: Names::default(),
            })
            .unwrap(),
            names: Names::default(),
            lanes: Lanes::default(),
            chooser: None,
        });
        Self { home, torrents }
    }

    fn downloads(&self) -> PathBuf {
        self.home.path().join("downloads")
    }

    /// Begins a run; the paths that it reserves are recorded.
    fn run(&self, url: &str, change: impl FnOnce(&mut Job)) -> Running {
        let (reporter, reports) = Reporter::new();
        let stop = CancellationToken::new();
        let mut job = Job {
            source: Source::new(SafeUrl::parse(url).unwrap()),
            target: Target {
                directory: self.downloads(),
                name: None,
                on_conflict: OnConflict::Rename,
                reserved: None,
                adopt: false,
                check_integrity: false,
                use_server_time: false,
            },
            connections: ConnectionPlan::default(),
            limits: RateLimits::new([]),
            upload_limits: RateLimits::new([]),
            purpose: Purpose::Download,
            uploaded_bytes: 0,
            retry: RetryPolicy::default(),
            reporter,
            stop: stop.clone(),
        };
        change(&mut job);
        let Reports { mut events, progress } = reports;
        let tasks = TaskTracker::new();
        tasks.spawn(async move {
            while let Some(report) = events.recv().await {
                if let Some(receipt) = report.receipt {
                    receipt.give(Ok(Recorded::Done));
                }
            }
        });
        Running {
            outcome: tasks.spawn(self.torrents.run(job)),
            progress,
            stop,
        }
    }

    /// The link of this machine as the only peer of a torrent.
    fn link(&self, url: &SafeUrl) -> String {
        let port = self.torrents.session().unwrap().port.unwrap();
        format!("{}&x.pe=127.0.0.1:{port}", url.expose())
    }
}

struct Running {
    outcome: JoinHandle<Outcome>,
    progress: watch::Receiver<Progress>,
    stop: CancellationToken,
}

impl Running {
    async fn ended(self) -> Outcome {
        timeout(LIMIT, self.outcome).await.expect("the run ends").unwrap()
    }

    async fn finished(self) -> Finished {
        match self.ended().await {
            Outcome::Finished(finished) => finished,
            other => panic!("{other:?}"),
        }
    }

    async fn until(&mut self, wanted: impl Fn(&Progress) -> bool) {
        let waiting = timeout(LIMIT, self.progress.wait_for(|progress| wanted(progress))).await;
        drop(waiting.expect("it comes to that").expect("the run goes on"));
    }

    async fn stopped(self) {
        self.stop.cancel();
        assert_eq!(self.ended().await, Outcome::Stopped);
    }
}

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_mins(1);

const FILES: [(&str, usize); 3] = [("a/one.bin", 300_000), ("a/two.bin", 70_000), ("three.bin", 5)];

fn content(name: &str, length: usize) -> Vec<u8> {
    let seed = u8::try_from(name.len()).unwrap();
    (0..length).map(|n| u8::try_from(n % 251).unwrap() ^ seed).collect()
}

/// A directory of three files in the downloads of `machine`, and its torrent.
fn share(machine: &Machine) -> Vec<u8> {
    let top = machine.downloads().join("set");
    for (name, length) in FILES {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content(name, length)).unwrap();
    }
    let entries = FILES.map(|(name, length)| (name.split('/').map(ToOwned::to_owned).collect(), length as u64));
    let options = Options {
        piece_length: Some(16 * 1024),
        ..Options::default()
    };
    let plan = Plan::of_directory("set", entries.to_vec(), options).unwrap();
    let files: Vec<_> = plan
        .files()
        .iter()
        .map(|(path, length)| (path.join("/"), *length))
        .collect();
    let mut hasher = plan.hasher();
    for (name, length) in files {
        hasher
            .update(&content(&name, usize::try_from(length).unwrap()))
            .unwrap();
    }
    hasher.finish().unwrap().encode()
}

/// A machine that seeds a torrent, its run, and the link to it.
async fn seeder() -> (Machine, Running, String) {
    let machine = Machine::new();
    let kept = machine.torrents.keep(share(&machine)).await.unwrap();
    let checked = machine.run(kept.url.expose(), |job| job.target.check_integrity = true);
    let finished = checked.finished().await;
    assert_eq!(finished.received_bytes, 0);
    let mut seeding = machine.run(kept.url.expose(), |job| {
        job.purpose = Purpose::Seed {
            most_uploaded_bytes: None,
        };
        job.target.reserved = Some(finished.path);
    });
    seeding.until(|progress| progress.stage == Stage::Seeding).await;
    let link = machine.link(&kept.url);
    (machine, seeding, link)
}

fn assert_files(top: &Path) {
    for (name, length) in FILES {
        assert_eq!(fs::read(top.join(name)).unwrap(), content(name, length), "{name}");
    }
}

#[tokio::test]
async fn a_magnet_link_is_downloaded_and_seeded_without_a_break() {
    let (_seeder, seeding, link) = seeder().await;
    let leecher = Machine::new();
    let finished = leecher.run(&link, |_| {}).finished().await;
    assert_eq!(finished.path, leecher.downloads().join("set"));
    assert_eq!(
        finished.size_bytes,
        FILES.iter().map(|(_, length)| *length as u64).sum::<u64>()
    );
    assert!(finished.can_seed && finished.received_bytes >= finished.size_bytes);
    assert_files(&finished.path);
    seeding.stopped().await;

    // The next machine gets it from the second one.
    let mut seeding = leecher.run(&link, |job| {
        job.purpose = Purpose::Seed {
            most_uploaded_bytes: None,
        };
        job.target.reserved = Some(finished.path.clone());
    });
    seeding.until(|progress| progress.stage == Stage::Seeding).await;
    let third = Machine::new();
    let url = SafeUrl::parse(link.split("&x.pe").next().unwrap()).unwrap();
    assert_files(&third.run(&leecher.link(&url), |_| {}).finished().await.path);
    seeding
        .until(|progress| progress.uploaded_bytes >= finished.size_bytes)
        .await;
    seeding.stopped().await;
}

#[tokio::test]
async fn chosen_files_are_downloaded_and_others_later() {
    let (_seeder, _seeding, link) = seeder().await;
    let leecher = Machine::new();
    let choose = |files: &[u32]| {
        let torrent = TorrentOptions {
            files: files.into(),
            ..TorrentOptions::default()
        };
        move |job: &mut Job| job.source.torrent = Some(torrent.into())
    };
    let finished = leecher.run(&link, choose(&[1])).finished().await;
    assert_eq!(finished.size_bytes, 70_000);
    let url = SafeUrl::parse(&link).unwrap();
    let of = Of {
        url: &url,
        directory: &leecher.downloads(),
        path: Some(&finished.path),
        paths: &[],
    };
    let there: Vec<_> = fs::read_dir(finished.path.join("a"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(there, ["two.bin"], "nothing else looks finished");
    let files = leecher.torrents.files(of).await.unwrap();
    assert_eq!(
        files.iter().map(|file| file.length).collect::<Vec<_>>(),
        [300_000, 70_000, 5]
    );
    assert_eq!(files[1].done_bytes, 70_000);
    let wrong = leecher.run(&link, choose(&[3])).ended().await;
    assert!(matches!(wrong, Outcome::Failed(failure) if failure.to_string().contains("3 files")));
    let all = leecher
        .run(&link, |job| job.target.reserved = Some(finished.path.clone()))
        .finished()
        .await;
    assert_files(&all.path);
}

#[tokio::test]
async fn a_stopped_download_goes_on_from_what_it_has_and_deleting_leaves_nothing() {
    let (_seeder, _seeding, link) = seeder().await;
    let leecher = Machine::new();
    let slow = |job: &mut Job| job.limits = RateLimits::new([RateLimiter::new(100_000)]);
    let mut first = leecher.run(&link, slow);
    first.until(|progress| progress.done_bytes > 50_000).await;
    let before = first.progress.borrow().done_bytes;
    first.stopped().await;
    let path = leecher.downloads().join("set");
    let second = leecher.run(&link, |job| job.target.reserved = Some(path.clone()));
    let finished = second.finished().await;
    assert!(
        finished.received_bytes <= finished.size_bytes - before + 2 * 16 * 1024,
        "{finished:?}"
    );
    assert_files(&path);
    let left = leecher
        .torrents
        .leftovers(Discarded {
            url: SafeUrl::parse(&link).unwrap(),
            directory: leecher.downloads(),
            path: Some(path.clone()),
            deletes_finished: true,
        })
        .await;
    for path in left {
        let removed = if path.to_string_lossy().ends_with('/') {
            fs::remove_dir(&path)
        } else {
            fs::remove_file(&path)
        };
        assert!(removed.is_ok() || !path.exists(), "{}", path.display());
    }
    assert!(!path.exists());
    leecher.torrents.shutdown().await;
    assert!(!leecher.home.path().join("torrents").exists(), "it is empty");
}

#[tokio::test]
async fn metadata_that_does_not_come_is_waited_for_no_longer_than_asked() {
    let machine = Machine::new();
    let link = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";
    let run = machine.run(link, |job| {
        let torrent = TorrentOptions {
            metadata_timeout: Some(Duration::from_millis(100)),
            ..TorrentOptions::default()
        };
        job.source.torrent = Some(torrent.into());
    });
    let Outcome::Failed(failure) = run.ended().await else {
        panic!()
    };
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert!(failure.to_string().contains("metadata"), "{failure}");
}

#[tokio::test]
async fn a_torrent_that_somebody_else_supplied_does_not_reach_this_machine() {
    let (_seeder, _seeding, link) = seeder().await;
    let leecher = Machine::new();
    let run = leecher.run(&link, |job| {
        job.source.given_by = GivenBy::Other { user_host: None };
        let torrent = TorrentOptions {
            metadata_timeout: Some(Duration::from_secs(2)),
            ..TorrentOptions::default()
        };
        job.source.torrent = Some(torrent.into());
    });
    let ended = run.ended().await;
    assert!(matches!(ended, Outcome::Failed(failure) if failure.kind == FailureKind::NotFound));
}
