//! Files that the programs themselves wrote, and databases with their tables.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use import::{Download, Found, ImportError, browser, curl, jdownloader, qbittorrent, transmission};
use protocol::{RequestBody, TorrentFilePath, TorrentRequest};
use rusqlite::Connection;

const MAGNET: &str = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";

fn real(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real").join(name)
}

fn named<'f>(found: &'f Found, title: &str) -> &'f Download {
    let download = found.downloads.iter().find(|download| download.title == title);
    download.unwrap_or_else(|| panic!("{title} in {:?}", found.downloads))
}

fn torrent(download: &Download) -> &TorrentRequest {
    assert!(download.request.check_integrity, "what is there is used");
    download.request.torrent.as_ref().unwrap()
}

fn paths(paths: &[(u32, &str)]) -> Vec<TorrentFilePath> {
    let path = |(index, path): &(u32, &str)| TorrentFilePath {
        index: *index,
        path: (*path).to_owned(),
    };
    paths.iter().map(path).collect()
}

#[test]
fn torrents_of_qbittorrent() {
    let found = qbittorrent::torrents(Some(&real("qbittorrent")), None).unwrap();
    assert_eq!((found.downloads.len(), &*found.refused), (3, &[][..]));
    let directory = named(&found, "dir");
    let request = &directory.request;
    assert_eq!((&*request.save_dir, &*request.file_name), ("/tmp/qb/data", ""));
    assert!(request.start_paused && directory.torrent.is_some());
    assert_eq!(
        (request.speed_limit_bytes, request.upload_limit_bytes),
        (100_000, 50_000)
    );
    assert_eq!(
        (request.seed_ratio_limit_milli, request.seed_time_limit_secs),
        (Some(1500), Some(3600))
    );
    let options = torrent(directory);
    assert_eq!(
        (&*options.files, &*options.paths),
        (&[0][..], &*paths(&[(0, "renamed.bin")]))
    );
    assert!(options.sequential && options.first_last_piece_first);
    let file = named(&found, "single.bin");
    assert!(!file.request.start_paused);
    assert_eq!(
        (file.request.seed_ratio_limit_milli, file.request.seed_time_limit_secs),
        (None, None)
    );
    let link = named(&found, "some name");
    assert!(
        link.request.url.starts_with(MAGNET) && link.torrent.is_none(),
        "{}",
        link.request.url
    );
    assert!(
        link.request.url.contains("&tr=http%3A%2F%2Ft.test%2Fannounce"),
        "{}",
        link.request.url
    );
    assert!(torrent(link).trackers.is_empty(), "they are in the link");
    let notes: Vec<_> = found.notes.iter().collect();
    assert_eq!(notes, ["categories and tags are not taken over: films, one, two"]);
    let again = qbittorrent::torrents(Some(&real("qbittorrent/BT_backup")), None).unwrap();
    let ids = |found: &Found| found.downloads.iter().map(Download::task_id).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&found), "they are the same whenever they are imported");
    assert_eq!(ids(&found)[0].len(), 36);
}

#[test]
fn torrents_of_qbittorrent_with_a_database() {
    let found = qbittorrent::torrents(Some(&real("qbittorrent-sqlite")), None).unwrap();
    assert_eq!((found.downloads.len(), &*found.refused), (3, &[][..]));
    // Without a directory of its own, so that the one of the user is it.
    let directory = named(&found, "dir");
    assert_eq!(
        (&*directory.request.save_dir, &*directory.request.file_name),
        ("/tmp/qb", "data")
    );
    assert!(directory.request.start_paused && torrent(directory).paths.is_empty());
    // In one that the torrent does not name.
    let file = named(&found, "single.bin");
    assert_eq!(
        (&*file.request.save_dir, &*file.request.file_name),
        ("/tmp/qb/data/single", "")
    );
    assert!(named(&found, "some name").request.url.starts_with(MAGNET));
}

#[test]
fn torrents_of_transmission() {
    let found = transmission::torrents(Some(&real("transmission")), None).unwrap();
    assert_eq!((found.downloads.len(), &*found.refused), (3, &[][..]));
    let directory = named(&found, "dir");
    let request = &directory.request;
    assert_eq!((&*request.save_dir, request.start_paused), ("/tmp/qb/data", true));
    assert_eq!(
        (request.speed_limit_bytes, request.upload_limit_bytes),
        (100_000, 50_000)
    );
    assert_eq!(
        (request.seed_ratio_limit_milli, &*torrent(directory).files),
        (Some(1500), &[0][..])
    );
    let file = named(&found, "single.bin");
    assert_eq!((file.request.speed_limit_bytes, file.request.start_paused), (0, false));
    let link = named(&found, "some+name");
    assert!(link.request.url.starts_with(MAGNET), "{}", link.request.url);
    assert!(found.notes.contains("labels are not taken over"), "{:?}", found.notes);
}

#[test]
fn links_of_version_4_of_transmission_are_texts() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("torrents")).unwrap();
    std::fs::write(place.path().join("torrents/a.magnet"), format!("{MAGNET}&dn=x")).unwrap();
    std::fs::write(place.path().join("torrents/b.torrent"), "d4:infole").unwrap();
    std::fs::write(place.path().join("torrents/c.magnet"), "magnet:?xt=urn:btih:1").unwrap();
    let found = transmission::torrents(Some(place.path()), None).unwrap();
    assert_eq!(found.downloads.len(), 1);
    assert_eq!(named(&found, "x").request.save_dir, "");
    let refused: Vec<_> = found.refused.iter().map(|refused| &*refused.title).collect();
    assert_eq!(refused, ["b", "c"]);
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let place = tempfile::tempdir().unwrap();
    let error = qbittorrent::torrents(None, Some(place.path())).unwrap_err();
    assert!(matches!(error, ImportError::Nowhere { .. }), "{error}");
    assert!(
        error.to_string().contains("/qBittorrent; name the directory"),
        "{error}"
    );
    let error = transmission::torrents(Some(place.path()), None).unwrap_err();
    assert!(matches!(error, ImportError::Nowhere { .. }), "{error}");
    assert!(jdownloader::links(place.path()).is_err() && browser::downloads(place.path()).is_err());
}

fn list(path: &Path, entries: &[(&str, &str)]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, text) in entries {
        archive
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn unfinished_links_of_jdownloader() {
    let place = tempfile::tempdir().unwrap();
    let configuration = place.path().join("cfg");
    std::fs::create_dir(&configuration).unwrap();
    list(
        &configuration.join("downloadList99.zip"),
        &[("0_0", "{\"url\": \"http://old.test/f\"}")],
    );
    let entries = [
        ("extraInfo", "{}"),
        ("0", "{\"name\": \"p\", \"downloadFolder\": \"/d/p\"}"),
        (
            "0_0",
            "{\"name\": \"done\", \"url\": \"http://a.test/1\", \"finalLinkState\": \"FINISHED_MIRROR\"}",
        ),
        (
            "0_1",
            "{\"name\": \"f\", \"url\": \"http://a.test/2?k=1\", \"enabled\": false, \"uid\": 7}",
        ),
        (
            "0_2",
            "{\"name\": \"page\", \"url\": \"somehost://x/3\", \"browserURL\": \"https://a.test/page\"}",
        ),
        ("0_3", "{\"name\": \"hidden\", \"url\": \"CRYPTED:abc\"}"),
        ("0_4", "{\"name\": \"own\", \"url\": \"jd://x\"}"),
    ];
    list(&configuration.join("downloadList100.zip"), &entries);
    let found = jdownloader::links(place.path()).unwrap();
    assert_eq!(found.downloads.len(), 2);
    let (file, page) = (&named(&found, "f").request, &named(&found, "page").request);
    assert_eq!(
        (&*file.url, &*file.save_dir, file.start_paused),
        ("http://a.test/2?k=1", "/d/p", true)
    );
    assert_eq!((&*page.url, page.start_paused), ("https://a.test/page", false));
    let refused: Vec<_> = found.refused.iter().map(|refused| &*refused.title).collect();
    assert_eq!(refused, ["hidden", "own"]);
    let bad = place.path().join("bad.zip");
    list(&bad, &[("0_0", "7")]);
    assert!(
        jdownloader::links(&bad)
            .unwrap_err()
            .to_string()
            .contains("no list of JDownloader 2")
    );
    std::fs::write(&bad, "PK").unwrap();
    assert!(
        jdownloader::links(&bad)
            .unwrap_err()
            .to_string()
            .contains("ZIP archive")
    );
}

#[test]
fn unfinished_downloads_of_browsers() {
    let place = tempfile::tempdir().unwrap();
    let history = Connection::open(place.path().join("History")).unwrap();
    history
        .execute_batch(
            "CREATE TABLE downloads (id INTEGER PRIMARY KEY, target_path LONGVARCHAR, referrer VARCHAR, state INTEGER,
                start_time INTEGER);
             CREATE TABLE downloads_url_chains (id INTEGER, chain_index INTEGER, url LONGVARCHAR);
             INSERT INTO downloads VALUES (1, '/d/done', '', 1, 1), (2, '/d/a.iso', 'http://p.test/', 4, 2),
                (3, '/d/no', '', 2, 3), (4, '/d/blob', '', 0, 4);
             INSERT INTO downloads_url_chains VALUES (2, 1, 'http://mirror.test/x'), (2, 0, 'http://a.test/a.iso'),
                (4, 0, 'blob:http://a.test/1'), (1, 0, 'http://a.test/done'), (3, 0, 'http://a.test/no');",
        )
        .unwrap();
    let found = browser::downloads(place.path()).unwrap();
    assert_eq!((found.downloads.len(), found.refused.len()), (1, 1));
    let request = &named(&found, "a.iso").request;
    assert_eq!((&*request.url, &*request.save_dir), ("http://a.test/a.iso", "/d"));
    assert_eq!((&*request.file_name, &*request.referrer), ("a.iso", "http://p.test/"));

    let places = place.path().join("places.sqlite");
    let firefox = Connection::open(&places).unwrap();
    firefox
        .execute_batch(
            "CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url LONGVARCHAR);
             CREATE TABLE moz_anno_attributes (id INTEGER PRIMARY KEY, name VARCHAR);
             CREATE TABLE moz_annos (id INTEGER PRIMARY KEY, place_id INTEGER, anno_attribute_id INTEGER,
                content LONGVARCHAR, dateAdded INTEGER);
             INSERT INTO moz_places VALUES (1, 'https://a.test/f'), (2, 'https://a.test/done'), (3, 'https://a.test/g');
             INSERT INTO moz_anno_attributes VALUES (5, 'downloads/destinationFileURI'), (6, 'downloads/metaData');
             INSERT INTO moz_annos VALUES (1, 1, 5, 'file:///d/my%20file', 1), (2, 1, 6, '{\"state\":4}', 2),
                (3, 2, 6, '{\"state\":1,\"fileSize\":7}', 3), (4, 3, 6, '{\"state\":2}', 4);",
        )
        .unwrap();
    let found = browser::downloads(&places).unwrap();
    assert_eq!(found.downloads.len(), 2);
    let request = &named(&found, "my file").request;
    assert_eq!((&*request.url, &*request.save_dir), ("https://a.test/f", "/d"));
    std::fs::write(place.path().join("other"), "SQLite format 3").unwrap();
    assert!(browser::downloads(&place.path().join("other")).is_err());
}

#[test]
fn commands_of_curl() {
    let text = "curl 'https://a.test/f?x=1' \\\n  -H 'accept: */*' -H 'Accept-Encoding: gzip' -b 'k=v; l=w' \\\n  \
        -H 'referer: https://p.test/' -A Me --compressed -sSLo out/f.bin -ume:secret --limit-rate 2M --retry 3 -k\n\
        curl --json '{\"a\":1}' https://a.test/j; curl -G -d a=1 --data-urlencode 'b=ä b' a.test/g?z=1 -x 127.0.0.1:8080\n\
        curl -F a=b https://a.test/form\ncurl -T f https://a.test/up\ncurl --unknown https://a.test/u\ncurl -b jar https://a.test/c";
    let found = curl::commands(text).unwrap();
    let [first, json, query, form] = &*found.downloads else {
        panic!("{:?}", found.downloads)
    };
    let request = &first.request;
    assert_eq!((&*request.url, &*request.file_name), ("https://a.test/f?x=1", "f.bin"));
    assert!(request.save_dir.ends_with("/out") && Path::new(&request.save_dir).is_absolute());
    assert_eq!((&*request.cookies, &*request.referrer), ("k=v; l=w", "https://p.test/"));
    assert_eq!((&*request.user_agent, &*request.http_user), ("Me", "me"));
    assert_eq!(
        (&*request.http_password, request.speed_limit_bytes),
        ("secret", 2 << 20)
    );
    assert_eq!((request.max_tries, request.ignore_tls_errors), (Some(4), true));
    assert_eq!(request.headers.as_ref().unwrap().keys().collect::<Vec<_>>(), ["accept"]);
    assert!(!format!("{first:?}").contains("secret"));
    assert_eq!(json.request.method.as_deref(), Some("POST"));
    let body = RequestBody::Raw {
        bytes_b64: "eyJhIjoxfQ==".to_owned(),
        content_type: Some("application/json".to_owned()),
    };
    assert_eq!(json.request.body, Some(body));
    assert_eq!(query.request.url, "http://a.test/g?z=1&a=1&b=%C3%A4%20b");
    assert_eq!(
        (&*query.request.proxy_url, query.request.method.is_none()),
        ("http://127.0.0.1:8080", true)
    );
    assert!(matches!(form.request.body, Some(RequestBody::FormData { .. })));
    let reasons: Vec<_> = found
        .refused
        .iter()
        .map(|refused| refused.reason.split(' ').next().unwrap())
        .collect();
    assert_eq!(reasons, ["--upload-file", "--unknown", "--cookie"]);
    let words = ["-o", "x", "https://a.test/1", "--output", "y", "https://a.test/2"].map(str::to_owned);
    let several = curl::command(words.to_vec()).unwrap();
    let names: Vec<_> = several
        .downloads
        .iter()
        .map(|download| &*download.request.file_name)
        .collect();
    assert_eq!(names, ["x", "y"]);
    assert_eq!(curl::commands("curl 'x").unwrap().refused.len(), 1);
    assert_eq!(
        curl::commands("curl -s").unwrap().refused[0].reason,
        "the command names no URL"
    );
}
