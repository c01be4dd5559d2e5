//! A recording of HTTP Live Streaming, from its playlist to one file, through everything that can come between.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fmt::Write as _,
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use aes::Aes128;
use cbc::{
    Encryptor,
    cipher::{BlockModeEncrypt as _, KeyIvInit as _, block_padding::Pkcs7},
};
use e2e::{Home, Service, service::wait_until};
use serde_json::json;
use support::{Content, Origin, Proxy, Resource, Version, behaviour};

use super::{
    guest,
    plugin_sites::{go_through, run},
};

/// The plugin of these tests.
const PLUGIN: &str = "hls@svc";

/// Segments of the recording.
const COUNT: usize = 30;

/// As many of them are parts of one resource.
const PARTS: usize = 8;

/// The number of the first one.
const SEQUENCE: usize = 100;

/// Segments that have one key.
const PER_KEY: usize = 5;

/// Bytes per second of one connection, where something is to happen meanwhile.
const PACE: u64 = 256 * 1024;

/// Bytes per second of one connection, where nothing is.
const FAST: u64 = 1 << 30;

/// The plain bytes of a segment; no two have the same length.
fn plain(index: usize) -> Vec<u8> {
    Content::seeded(900 + index as u64, 60_000 + 5_003 * (index as u64 * 7 % 30)).to_vec()
}

fn whole() -> Vec<u8> {
    (0..COUNT).flat_map(plain).collect()
}

fn key(index: usize) -> [u8; 16] {
    [u8::try_from(index / PER_KEY).unwrap() + 1; 16]
}

fn encrypted(index: usize) -> Vec<u8> {
    let iv = u128::try_from(SEQUENCE + index).unwrap().to_be_bytes();
    Encryptor::<Aes128>::new(&key(index).into(), &iv.into()).encrypt_padded_vec::<Pkcs7>(&plain(index))
}

/// The playlist, in which every URL has this ticket.
fn playlist(ticket: usize) -> String {
    let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:{SEQUENCE}\n");
    let mut first = 0;
    for index in 0..COUNT {
        if index < PARTS {
            let length = plain(index).len();
            let _ = write!(
                text,
                "#EXT-X-BYTERANGE:{length}@{first}\n#EXTINF:4,\nparts.ts?t={ticket}\n"
            );
            first += length;
            continue;
        }
        if index == PARTS || index % PER_KEY == 0 {
            let number = index / PER_KEY;
            let _ = writeln!(text, "#EXT-X-KEY:METHOD=AES-128,URI=\"/keys/{number}\"");
        }
        let _ = write!(text, "#EXTINF:4,\n{index}.ts?t={ticket}\n");
    }
    text + "#EXT-X-ENDLIST\n"
}

/// A site with the recording. Each time its playlist is asked for, the tickets in it are new; those from `valid` on are
/// good.
fn site(valid: &Arc<AtomicUsize>, pace: u64) -> Origin {
    let of_ticket = |resource: Resource| {
        let valid = Arc::clone(valid);
        let is_old = move |exchange: &support::Exchange| {
            let ticket = exchange
                .request
                .target
                .rsplit_once("?t=")
                .map(|(_, ticket)| ticket.parse::<usize>());
            ticket.is_none_or(|ticket| ticket.is_ok_and(|ticket| ticket < valid.load(Ordering::SeqCst)))
        };
        resource
            .with(behaviour::paced(pace))
            .with(behaviour::when(is_old, behaviour::status(403)))
    };
    let recording = Resource::changing("/films/one/index.m3u8", |visit| {
        Version::unnamed(Content::bytes(playlist(visit.nth).into_bytes()))
    });
    let mut resources = vec![
        recording.media_type("application/vnd.apple.mpegurl"),
        Resource::new(
            "/films/one/master.m3u8",
            Content::bytes(*b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=4x3\nindex.m3u8\n"),
        ),
    ];
    let parts: Vec<u8> = (0..PARTS).flat_map(plain).collect();
    resources.push(of_ticket(Resource::new("/films/one/parts.ts", Content::bytes(parts))));
    for index in PARTS..COUNT {
        let resource = Resource::new(&format!("/films/one/{index}.ts"), Content::bytes(encrypted(index)));
        resources.push(of_ticket(resource));
        if index == PARTS || index % PER_KEY == 0 {
            let path = format!("/keys/{}", index / PER_KEY);
            resources.push(Resource::new(&path, Content::bytes(key(index))));
        }
    }
    Origin::start(resources)
}

/// How often each segment was asked for.
fn asked(origin: &Origin) -> [usize; COUNT] {
    let mut asked = [0; COUNT];
    let starts: Vec<u64> = (0..PARTS)
        .map(|index| (0..index).map(|it| plain(it).len() as u64).sum())
        .collect();
    for request in origin.requests() {
        let name = request.path().trim_start_matches("/films/one/").trim_end_matches(".ts");
        let index = match request.range().filter(|_| name == "parts") {
            Some((first, _)) => starts.iter().position(|start| *start == first),
            None => name.parse().ok(),
        };
        if let Some(index) = index {
            asked[index] += 1;
        }
    }
    asked
}

/// Waits until so many bytes are there, and says how many segments are whole by then.
fn wait_for(service: &Service, id: &str, bytes: u64) -> usize {
    wait_until("bytes come", || {
        service.task(id)["downloadedBytes"].as_u64() > Some(bytes)
    });
    let there = service.task(id)["downloadedBytes"].as_u64().unwrap();
    let mut end = 0;
    let ends = (0..COUNT).map(|index| {
        end += plain(index).len() as u64;
        end
    });
    ends.take_while(|end| *end <= there).count()
}

fn assert_complete(service: &Service, home: &Home, id: &str) {
    wait_until("the file is there", || {
        let task = service.task(id);
        assert_ne!(task["status"], 4, "{task}");
        task["status"] == 3
    });
    let file = fs::read(home.downloads().join("one.ts")).unwrap();
    assert!(file == whole(), "{} bytes, and other ones", file.len());
    let names: Vec<_> = fs::read_dir(home.downloads())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(names, ["one.ts"], "nothing else stays");
}

#[test]
fn a_recording_is_one_file_in_the_order_of_its_playlist() {
    let origin = site(&Arc::default(), FAST);
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    let url = origin.url("/films/one/master.m3u8");
    let preview = service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})));
    assert_eq!(preview["items"][0]["name"], "one.ts", "{preview}");
    let id = service.create(&json!({"url": url}));
    assert_complete(&service, &home, &id);
    assert_eq!(asked(&origin), [1; COUNT], "each is fetched once");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_playlist_of_another_host_is_read_once_the_user_has_allowed_that_host() {
    let resource = |path: &str, text: &str| Resource::new(path, Content::bytes(text));
    let stream =
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://edge.test/1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n";
    let origin = Origin::start(vec![
        resource(
            "/films/one/master.m3u8",
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://cdn.test/low.m3u8\n",
        ),
        resource("/low.m3u8", stream),
        resource("/1.ts", "first, "),
        resource("/2.ts", "second"),
    ]);
    let names = ["site.test", "cdn.test", "edge.test"].map(|name| (name, origin.port()));
    let proxy = Proxy::http(&names, None);
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    go_through(&service, &proxy, "");
    let url = "http://site.test/films/one/master.m3u8";
    let id = service.create(&json!({"url": url}));
    wait_until("the task fails", || service.task(&id)["status"] == 4);
    let allow = format!("svc plugin allow {PLUGIN} http://cdn.test");
    let message = service.task(&id)["errorMessage"].take();
    assert!(message.as_str().unwrap().contains(&allow), "{message}");

    let preview = || service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})));
    let choose = |choice: &str| {
        let choice = json!({"host": "http://cdn.test", "choice": choice});
        service.call("PUT", &format!("/api/v1/plugins/{PLUGIN}/hosts"), Some(&choice));
    };
    assert_eq!(preview()["grantableHosts"], json!(["http://cdn.test"]));
    assert!(
        run(&service, &["plugin", "preview", url])
            .stdout
            .join("\n")
            .contains(&allow)
    );
    choose("never");
    assert_eq!(preview()["grantable"], json!(null), "nobody is asked again");
    choose("once");
    assert_eq!(preview()["items"][0]["name"], "one.ts");
    assert_eq!(preview()["grantable"], true, "once is once");

    run(&service, &["plugin", "allow", PLUGIN, "http://cdn.test"]);
    run(&service, &["resume", &id]);
    wait_until("the file is there", || {
        let task = service.task(&id);
        assert_ne!(task["status"], 4, "{task}");
        task["status"] == 3
    });
    let file = fs::read_to_string(home.downloads().join("one.ts")).unwrap();
    assert_eq!(file, "first, second");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_killed_daemon_goes_on_behind_the_last_whole_segment() {
    let origin = site(&Arc::default(), PACE);
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    let id = service.create(&json!({"url": origin.url("/films/one/index.m3u8")}));
    let before = wait_for(&service, &id, whole().len() as u64 / 3);
    assert!(before > 4, "{before} segments");
    let daemon = home.daemon().expect("a daemon runs");
    daemon.kill();
    let path = format!("/api/v1/tasks/{id}");
    wait_until("another daemon answers", || {
        home.daemon().is_some_and(|it| it != daemon)
            && service
                .ask("GET", &path, None)
                .is_some_and(|answer| answer.status == 200)
    });
    assert_complete(&service, &home, &id);
    assert_eq!(
        asked(&origin)[..before],
        vec![1; before],
        "what was there was not fetched again"
    );
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn segments_that_expire_are_asked_for_under_fresh_links() {
    let valid = Arc::default();
    let origin = site(&valid, PACE);
    let home = Home::new();
    let service = guest::with_plugin(&home, PLUGIN);
    let id = service.create(&json!({"url": origin.url("/films/one/index.m3u8")}));
    let before = wait_for(&service, &id, whole().len() as u64 / 4);
    let playlists = || {
        origin
            .requests()
            .iter()
            .filter(|it| it.path().contains(".m3u8"))
            .count()
    };
    let known = playlists();
    valid.store(known, Ordering::SeqCst);
    assert_complete(&service, &home, &id);
    assert!(playlists() > known, "a fresh one was asked for");
    assert_eq!(
        asked(&origin)[..before],
        vec![1; before],
        "what was there was not fetched again"
    );
    assert_eq!(service.terminate().code, Some(0));
}
