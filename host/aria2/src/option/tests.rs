use protocol::CreateTaskRequest;
use serde_json::{Value, json};

use super::{
    row::{Effect, Scope},
    table::ROWS,
    *,
};
use crate::vocabulary::fault::Fault;

fn read(given: &Value) -> Result<Options, Fault> {
    Options::read(given.as_object(), OptionScope::WithDownload)
}

fn request(given: &Value) -> CreateTaskRequest {
    let mut request = CreateTaskRequest {
        url: "http://a.test/f".into(),
        ..CreateTaskRequest::default()
    };
    apply(&read(given).unwrap(), &mut request, "/usual").unwrap();
    request
}

#[test]
fn values_are_kept_as_aria2_keeps_them() {
    let good = json!({"max-download-limit": "10K", "min-split-size": "1M", "split": 5, "continue": true, "nope": "1",
        "checksum": format!("SHA-1={}", "A".repeat(40)), "header": ["A: b", 7, "C: d"], "max-concurrent-downloads": "3"});
    let options = read(&good).unwrap();
    let check = |name: &str, expect: Option<&str>| assert_eq!(options.get(name), expect, "{name}");
    check("max-download-limit", Some("10240"));
    check("min-split-size", Some("1048576"));
    check("split", Some("5"));
    check("continue", Some("true"));
    check("header", Some("A: b\nC: d"));
    check("checksum", Some(&format!("sha-1={}", "a".repeat(40))));
    check("nope", None);
    check("max-concurrent-downloads", None);
}

#[test]
fn a_bad_value_is_refused_in_aria2s_words() {
    for (name, value) in [
        ("split", "0"),
        ("split", "x"),
        ("max-download-limit", "10Q"),
        ("max-download-limit", ""),
        ("continue", "yes"),
        ("checksum", "sha-1=zz"),
        ("checksum", "foo=00"),
        ("max-connection-per-server", "17"),
        ("min-split-size", "1"),
        ("file-allocation", "x"),
        ("gid", "12"),
        ("seed-ratio", "-1"),
    ] {
        let text = format!("We encountered a problem while processing the option '--{name}'.");
        assert_eq!(read(&json!({name: value})).unwrap_err(), Fault::new(text));
    }
    let refused = read(&json!({"dry-run": "true"})).unwrap_err();
    assert_eq!(
        refused.message,
        "The option '--dry-run' is not supported by Svc: there is no download without a file; ask the server with curl -I."
    );
    assert!(read(&json!({"dry-run": "false", "no-proxy": ""})).is_ok());
}

#[test]
fn files_of_a_document_are_selected_by_number_and_range() {
    let check = |text: &str, expect: Option<&[u32]>| {
        let options = read(&json!({"select-file": text})).unwrap();
        let found =
            selected(&options).map(|is_selected| (0..8).filter(|index| is_selected(*index)).collect::<Vec<_>>());
        assert_eq!(found.ok().as_deref(), expect, "{text}");
    };
    check("3,6", Some(&[3, 6]));
    check("1-3,5", Some(&[1, 2, 3, 5]));
    for bad in ["0", "x", "3-1", "1-", ",", "1048577", "1-99999999999"] {
        check(bad, None);
    }
    check("", Some(&[1, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn options_of_torrents_are_what_the_service_takes() {
    let asked = request;
    let given = json!({"select-file": "5,1-2,2", "seed-ratio": "1.5", "seed-time": "0.26", "max-upload-limit": "1K",
        "bt-tracker": "wss://t.test/a, http://t.test/a ,", "bt-prioritize-piece": "head=1K,tail", "bt-stop-timeout": "0",
        "bt-max-peers": "7", "bt-metadata-only": "true", "bt-save-metadata": "true"});
    let request = asked(&given);
    let limits = (
        request.seed_ratio_limit_milli,
        request.seed_time_limit_secs,
        request.no_seed,
    );
    assert_eq!(limits, (Some(1500), Some(16), false));
    assert_eq!(request.upload_limit_bytes, 1024);
    let expect = protocol::TorrentRequest {
        files: vec![0, 1, 4],
        trackers: vec!["http://t.test/a".into()],
        head_bytes: 1024,
        tail_bytes: 1024 * 1024,
        metadata_only: true,
        save_metadata: true,
        max_peers: Some(7),
        ..protocol::TorrentRequest::default()
    };
    assert_eq!(request.torrent, Some(expect));
    assert!(!request.check_integrity && asked(&json!({"bt-seed-unverified": "true"})).check_integrity);
    // Without options nothing is asked for: the settings of the service hold.
    let usual = asked(&json!({}));
    assert_eq!(
        (usual.torrent, usual.seed_ratio_limit_milli, usual.follow_torrent),
        (None, None, None)
    );
    let check = |given: Value, expect: (Option<i64>, Option<i64>, bool)| {
        let request = asked(&given);
        let found = (
            request.seed_ratio_limit_milli,
            request.seed_time_limit_secs,
            request.no_seed,
        );
        assert_eq!(found, expect, "{given}");
    };
    check(json!({"seed-ratio": "0.0"}), (Some(-1), None, false));
    check(json!({"seed-time": "0"}), (None, Some(-1), true));
    check(json!({"seed-time": "0.01"}), (None, Some(1), false));
    check(json!({"seed-ratio": "1e300"}), (Some(1_000_000_000_000), None, false));
    for (name, value) in [
        ("bt-prioritize-piece", "middle"),
        ("bt-prioritize-piece", "head=x"),
        ("seed-time", "x"),
        ("select-file", "0"),
    ] {
        let text = format!("We encountered a problem while processing the option '--{name}'.");
        let mut request = CreateTaskRequest::default();
        let refused = read(&json!({name: value})).and_then(|options| apply(&options, &mut request, "/usual"));
        assert_eq!(refused.unwrap_err(), Fault::new(text), "{value}");
    }
}

#[test]
fn fractions_of_minutes_are_read_as_they_are_shown() {
    for seconds in (1..200).chain([3599, 86_401, 1_000_000_007]) {
        let first = CreateTaskRequest {
            seed_time_limit_secs: Some(seconds),
            ..CreateTaskRequest::default()
        };
        let options = shown(&first);
        let mut again = CreateTaskRequest::default();
        apply(&options, &mut again, "/usual").unwrap();
        assert_eq!(
            again.seed_time_limit_secs,
            Some(seconds),
            "{:?}",
            options.get("seed-time")
        );
    }
}

#[test]
fn what_a_torrent_cannot_have_is_left_out_and_what_is_excluded_is_not_asked() {
    let options = read(
        &json!({"out": "o", "checksum": format!("md5={}", "a".repeat(32)), "header": "A: b", "dir": "/d",
        "bt-exclude-tracker": "http://a.test/x, udp://b.test:1"}),
    )
    .unwrap();
    let left: Vec<_> = of_torrent(&options).iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["bt-exclude-tracker", "dir"]);
    let is_admitted = admitted(&options);
    assert!(!is_admitted("http://a.test/x") && !is_admitted("udp://b.test:1") && is_admitted("http://a.test/y"));
    let all = read(&json!({"bt-exclude-tracker": "*"})).unwrap();
    assert!(!admitted(&all)("http://a.test/y") && excludes_trackers(&all));
    assert!(!excludes_trackers(&Options::default()));
    let named = read(&json!({"index-out": ["1=a=b", "3= c/d "]})).unwrap();
    assert_eq!(index_out(&named).unwrap(), [(1, "a=b"), (3, "c/d")]);
    for bad in ["x", "0=a", "1=", "a=b"] {
        let options = read(&json!({"index-out": bad})).unwrap();
        assert_eq!(
            index_out(&options).unwrap_err(),
            Fault::bad_option("index-out"),
            "{bad}"
        );
    }
    for (text, expect) in [
        ("6881-6999", Some(6881..=6999)),
        ("7000", Some(7000..=7000)),
        ("0", None),
        ("2-1", None),
        ("1,2", None),
    ] {
        assert_eq!(ports(text), expect, "{text}");
    }
}

#[test]
fn every_default_is_a_value_of_its_option_and_no_option_is_there_twice() {
    let mut names = std::collections::BTreeSet::new();
    for row in ROWS {
        assert!(names.insert(row.name), "{}", row.name);
        if let Some(default) = row.default {
            assert_eq!(row.read(default).as_deref(), Ok(default), "{}", row.name);
        }
    }
}

/// The generated part of the page begins and ends with such a line.
const GENERATED: [&str; 2] = [
    "<!-- Made from `aria2/src/option/table.rs` by a test; `UPDATE_EXPECT=1` rewrites it. -->\n",
    "<!-- End of what is made. -->\n",
];

/// A table of options by their reason, in the order of the table of options.
fn by_reason<'a>(rows: impl Iterator<Item = (&'a Row, &'static str)>) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (row, reason) in rows {
        let name = format!("`{}`", row.name);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let line = |(reason, names): (&str, Vec<String>)| format!("| {} | {reason} |\n", names.join(", "));
    let lines: String = reasons.into_iter().map(line).collect();
    format!("| Options | Reason |\n|---|---|\n{lines}")
}

/// What the page says of options that do nothing: for clients, then for the start of a program where it is otherwise.
fn page_of_options() -> String {
    let harmless = |effect| match effect {
        Effect::Harmless(reason) => Some(reason),
        _ => None,
    };
    let refused = |effect| match effect {
        Effect::Refused(reason) => Some(reason),
        _ => None,
    };
    let of_clients = |reason: fn(Effect) -> Option<&'static str>| {
        let rows = ROWS.iter().filter(|row| row.scope != Scope::Start);
        by_reason(rows.filter_map(|row| Some((row, reason(row.effect)?))))
    };
    let is_otherwise = |row: &&Row| row.scope == Scope::Start || row.effect_at_start() != row.effect;
    let at_start = |reason: fn(Effect) -> Option<&'static str>| {
        let rows = ROWS.iter().filter(is_otherwise);
        by_reason(rows.filter_map(|row| Some((row, reason(row.effect_at_start())?))))
    };
    let acting = ROWS
        .iter()
        .filter(is_otherwise)
        .filter(|row| row.effect_at_start() == Effect::Acts);
    let acting: Vec<_> = acting.map(|row| format!("`{}`", row.name)).collect();
    format!(
        "### Options that are refused\n\nAny value but aria2's default is refused by name, because without the option the \
        result would be another one:\n\n{}\n### Options without an effect\n\nTheir values are checked:\n\n{}\n\
        ### Options of the start\n\nFor `svc aria2c`, on its command line and in `aria2.conf`, these act as in aria2: {}.\n\n\
        These are refused with exit code 28, unless they have their default value:\n\n{}\n\
        These are accepted, because front ends pass them, and have no effect:\n\n{}",
        of_clients(refused),
        of_clients(harmless),
        acting.join(", "),
        at_start(refused),
        at_start(harmless),
    )
}

#[test]
fn the_page_says_of_each_option_what_it_does_or_why_it_does_nothing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/aria2.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(GENERATED[0]).unwrap();
    let (found, after) = rest.split_once(GENERATED[1]).unwrap();
    let made = format!("\n{}\n", page_of_options());
    if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
        let [begin, end] = GENERATED;
        std::fs::write(path, format!("{before}{begin}{made}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, made, "{path} is out of date: UPDATE_EXPECT=1 rewrites it");
    }
    // The table of options that act is written by hand.
    let (_, acting) = before.split_once("### Options with an effect").unwrap();
    let described: Vec<_> = acting
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let acts = ROWS
        .iter()
        .filter(|row| row.scope != Scope::Start && row.effect == Effect::Acts);
    let mut acts: Vec<_> = acts.map(|row| row.name).collect();
    let mut sorted = described.clone();
    sorted.sort_unstable();
    acts.sort_unstable();
    assert_eq!(sorted, acts);
}

#[test]
fn a_file_stays_below_its_directory() {
    let check = |given: Value, dir: &str, name: &str| {
        let request = request(&given);
        assert_eq!(
            (request.save_dir.as_str(), request.file_name.as_str()),
            (dir, name),
            "{given}"
        );
    };
    check(json!({}), "", "");
    check(json!({"out": "a"}), "", "a");
    check(json!({"out": "sub/a"}), "/usual/sub", "a");
    check(json!({"dir": "/d", "out": "sub//./a"}), "/d/sub", "a");
    check(json!({"dir": "rel"}), "/usual/rel", "");
    check(json!({"out": "../../etc/passwd"}), "/usual/etc", "passwd");
    check(json!({"out": "/etc/passwd"}), "/usual/etc", "passwd");
}

#[test]
fn headers_are_joined_and_the_known_ones_lifted_out() {
    let request = request(
        &json!({"header": ["A: 1", "a: 2", "Cookie: x=1", "cookie: y=2", "Referer: r", "nocolon"],
        "http-no-cache": "true"}),
    );
    let headers = request.headers.unwrap();
    assert_eq!(headers.get("A").map(String::as_str), Some("1, 2"));
    for name in ["Cache-Control", "Pragma"] {
        assert_eq!(headers.get(name).map(String::as_str), Some("no-cache"));
    }
    assert_eq!(headers.len(), 3);
    assert_eq!((request.cookies.as_str(), request.referrer.as_str()), ("x=1; y=2", "r"));
}

#[test]
fn the_proxy_of_the_scheme_goes_before_the_one_for_all() {
    let proxy = |given: Value| request(&given).proxy_url;
    assert_eq!(
        proxy(json!({"all-proxy": "p:1", "http-proxy": "http://q:2"})),
        "http://q:2/"
    );
    assert_eq!(
        proxy(json!({"all-proxy": "p:1", "https-proxy": "http://q:2"})),
        "http://p:1/"
    );
    assert_eq!(proxy(json!({"all-proxy": ""})), "direct");
    let with_user = json!({"all-proxy": "p:1", "all-proxy-user": "u", "all-proxy-passwd": "w"});
    assert_eq!(proxy(with_user), "http://u:w@p:1/");
}

#[test]
fn ftp_has_its_own_login_and_proxy() {
    let given = json!({"ftp-user": "u", "ftp-passwd": "w", "http-user": "other", "all-proxy": "p:1",
        "ftp-proxy": "http://q:2", "ftp-proxy-user": "v", "ftp-proxy-passwd": "x"});
    let request = |url: &str| {
        let mut request = CreateTaskRequest {
            url: url.into(),
            ..CreateTaskRequest::default()
        };
        apply(&read(&given).unwrap(), &mut request, "/usual").unwrap();
        (request.http_user, request.http_password, request.proxy_url)
    };
    for scheme in ["ftp", "ftpes", "ftps", "sftp"] {
        let expected = ("u".into(), "w".into(), "http://v:x@q:2/".into());
        assert_eq!(request(&format!("{scheme}://a.test/f")), expected);
    }
    assert_eq!(
        request("http://a.test/f"),
        ("other".into(), String::new(), "http://p:1/".into())
    );
}

#[test]
fn what_is_shown_of_a_request_asks_for_it_again() {
    let given = json!({"dir": "/d", "out": "o", "split": "3", "max-connection-per-server": "4", "min-split-size": "2M",
        "max-download-limit": "1K", "max-tries": "2", "retry-wait": "3", "remote-time": "true", "allow-overwrite": "true",
        "referer": "r", "user-agent": "u", "header": "A: b", "check-certificate": "false", "all-proxy": "http://p:1/",
        "select-file": "1,3-5", "seed-ratio": "1.5", "seed-time": "0.5", "max-upload-limit": "1K", "follow-torrent": "false",
        "bt-tracker": "http://t.test/a,udp://t.test:1", "bt-prioritize-piece": "head=1M,tail=3K", "bt-stop-timeout": "9", "bt-max-peers": "0",
        "pause-metadata": "true", "bt-metadata-only": "true", "bt-save-metadata": "true"});
    let first = request(&given);
    let mut again = CreateTaskRequest {
        url: first.url.clone(),
        ..CreateTaskRequest::default()
    };
    apply(&shown(&first), &mut again, "/usual").unwrap();
    assert!(again == first);
    let edges = |text: &str| {
        let shown = shown(&request(&json!({"bt-prioritize-piece": text})));
        shown.get("bt-prioritize-piece").unwrap_or_default().to_owned()
    };
    let same = ["head=1M,tail=3K", "tail=7", ""];
    assert_eq!(same.map(edges), same);
    assert_eq!(edges("tail,head"), "head=1M,tail=1M");
}

#[test]
fn a_change_names_what_becomes_something_else_only() {
    let now = request(&json!({"split": "3", "referer": "r"}));
    let given = json!({"split": "3", "referer": "s", "http-passwd": "w", "pause": "true", "nope": "x"});
    let options = Options::read(given.as_object(), OptionScope::ToDownload).unwrap();
    let change = change(&options, &now, "/usual").unwrap();
    assert_eq!(Value::from(change), json!({"referrer": "s", "httpPassword": "w"}));
}

#[test]
fn a_secret_that_is_not_told_can_be_removed() {
    // As the service tells it: without cookies and password, which it has.
    let now = request(&json!({"header": "X-A: b"}));
    let given = json!({"header": "X-A: b", "http-passwd": ""});
    let options = Options::read(given.as_object(), OptionScope::ToDownload).unwrap();
    let changed = change(&options, &now, "/usual").unwrap();
    assert_eq!(Value::from(changed), json!({"cookies": "", "httpPassword": ""}));
}

#[test]
fn settings_of_the_service_are_taken_out() {
    let given = json!({"dir": "/d", "split": "1000", "max-concurrent-downloads": "5000", "referer": "r", "out": "o",
        "max-overall-upload-limit": "1K", "bt-enable-lpd": "true", "enable-peer-exchange": "false"});
    let mut options = Options::read(given.as_object(), OptionScope::ToAll).unwrap();
    let settings = options.take_settings();
    assert_eq!(settings["default_segments"], "64");
    assert_eq!(settings["max_concurrent_tasks"], "1024");
    assert_eq!(settings["default_save_dir"], "/d");
    assert_eq!(settings["upload_limit_bytes"], "1024");
    assert_eq!(
        (&*settings["bt_enable_lsd"], &*settings["bt_enable_pex"]),
        ("true", "false")
    );
    assert!(options.is_only("referer"));
}

#[test]
fn secrets_are_redacted_and_redacted_values_keep_their_originals() {
    let given = serde_json::json!({"header": ["X-Api-Key: secret-1", "Cookie: a=secret-2"], "http-passwd": "secret-3",
        "all-proxy": "http://u:secret-4@proxy.test:8080/", "https-proxy": "u:secret-5@proxy.test",
        "http-proxy-passwd": "secret-6", "split": "3"});
    let options = Options::read(given.as_object(), OptionScope::WithDownload).unwrap();
    let shown = options.clone().without_secrets();
    assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");
    assert_eq!(shown.get("header"), Some("X-Api-Key: ***\nCookie: ***\n"));
    assert_eq!(shown.get("all-proxy"), Some("http://proxy.test:8080/"));
    assert_eq!(
        (shown.get("https-proxy"), shown.get("split")),
        (Some("proxy.test"), Some("3"))
    );
    assert_eq!(shown.clone().without_secrets(), shown);
    let back = serde_json::json!({"header": ["X-Api-Key: ***", "X-New: n", "X-Other: ***"]});
    let mut back = Options::read(back.as_object(), OptionScope::ToAll).unwrap();
    back.keep_hidden(&options);
    assert_eq!(
        back.get("header"),
        Some("X-Api-Key: secret-1\nX-New: n\nX-Other: ***\n")
    );
}
