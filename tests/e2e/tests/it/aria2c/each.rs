//! The options that act and are not about one download's bytes alone: speed, certificates, documents, console, commands,
//! sessions, RPC. And the table that names a test for every option that acts.

use e2e::{Svc, http};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use support::{Certificate, Proxy};

use super::{
    options::{Done, Listening, both, files, groups, help, nothing},
    *,
};

#[test]
fn options_of_speed_hold() {
    for option in ["--max-download-limit=1M", "--max-overall-download-limit=1M"] {
        both(&[option, "{}/f.bin"], nothing, |done| {
            done.assert_code(0);
            assert!(done.took > Duration::from_secs(2), "{option}: {:?}", done.took);
        });
    }
    let wait = ["--retry-wait=2", "--max-tries=2", "{}/busy"];
    both(&wait, nothing, |done| {
        done.assert_code(29);
        assert_eq!(done.requests.len(), 2);
        assert!(done.took > Duration::from_secs(1), "{:?}", done.took);
    });
    for (line, many) in [
        (&["-x4", "-s4", "-k1M", "{}/paced"][..], true),
        (&["-x4", "-s1", "-k1M", "{}/paced"], false),
        (&["-x1", "-s4", "-k1M", "{}/paced"], false),
        (&["-x4", "-s4", "-k20M", "{}/paced"], false),
        (&["-Z", "-j2", "{}/paced?1", "{}/paced?2"], true),
        (&["-Z", "-j1", "{}/paced?1", "{}/paced?2"], false),
    ] {
        both(line, nothing, |done| {
            done.assert_code(0);
            assert_eq!(done.connections > 1, many, "{line:?}: {}", done.connections);
        });
    }
}

#[test]
fn options_of_certificates_and_their_proxy_hold() {
    for is_ours in [false, true] {
        let origin = Origin::start_tls(files(), Certificate::Trusted);
        let place = Place::new();
        let pem = place.aside("authority.pem");
        fs::write(&pem, origin.authority_pem().unwrap()).unwrap();
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let url = origin.url("/f.bin");
        let code = |options: &[&str]| {
            let line = [&["--max-tries=1", "--allow-overwrite=true", &url], options].concat();
            run(command(&program, &place, &line)).0
        };
        assert_ne!(code(&[]), Some(0), "nobody trusts it");
        assert_eq!(code(&["--check-certificate=false"]), Some(0));
        assert_eq!(code(&[&format!("--ca-certificate={}", pem.display())]), Some(0));
        let proxy = Proxy::http(&[], Some(("u", "p")));
        let at = format!("--https-proxy=127.0.0.1:{}", proxy.port());
        let login = [
            "--https-proxy-user=u",
            "--https-proxy-passwd=p",
            "--check-certificate=false",
            &at,
        ];
        assert_eq!(code(&login), Some(0));
        assert!(proxy.requests().iter().any(|request| request.is_served));
    }
}

#[test]
fn connect_timeout_ends_a_handshake_that_is_not_answered() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/f", mute.local_addr().unwrap());
    let place = Place::new();
    let began = std::time::Instant::now();
    let (code, said) = run(ours(&place, &["--connect-timeout=1", "--max-tries=1", &url]));
    assert_eq!(code, Some(2), "{said}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn remote_time_is_that_of_the_server() {
    for (option, is_old) in [("--remote-time=true", true), ("--remote-time=false", false)] {
        both(&[option, "{}/dated"], nothing, |done| {
            done.assert_code(0);
            let written = fs::metadata(done.place.path().join("dated"))
                .unwrap()
                .modified()
                .unwrap();
            let age = written.elapsed().unwrap_or_default();
            assert_eq!(age > Duration::from_hours(365 * 24), is_old, "{age:?}");
        });
    }
}

/// A Metalink document with two files.
fn document(place: &Place) {
    let file = |name: &str, language: &str, os: &str, version: &str, url: &str| {
        format!(
            "<file name=\"{name}\"><language>{language}</language><os>{os}</os><version>{version}</version>\
             <url priority=\"1\">{url}</url></file>"
        )
    };
    let text = format!(
        "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{}{}</metalink>",
        file("one", "en", "Linux-x86", "1.0", "f.bin?1"),
        file("two", "de", "Windows-x86", "2.0", "f.bin?2"),
    );
    fs::write(place.path().join("d.meta4"), text).unwrap();
}

#[test]
fn options_of_metalinks_choose_files() {
    for (option, expect) in [
        ("--pause=false", &["d.meta4", "one", "two"][..]),
        ("--select-file=2", &["d.meta4", "two"]),
        ("--select-file=1-2", &["d.meta4", "one", "two"]),
        ("--metalink-language=de", &["d.meta4", "two"]),
        ("--metalink-os=Linux-x86", &["d.meta4", "one"]),
        ("--metalink-version=2.0", &["d.meta4", "two"]),
    ] {
        both(
            &["-M", "d.meta4", "--metalink-base-uri={}/", option],
            document,
            |done| {
                done.assert_code(0);
                assert_eq!(done.place.names(), expect, "{option}: {}", done.said);
            },
        );
    }
}

#[test]
fn a_file_of_a_metalink_without_a_url_is_an_error_that_names_it() {
    let place = Place::new();
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::bytes(*b"abc"))]);
    let text = |urls: &str| {
        format!(
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"no-way\">\
             <url>gopher://example.test/x</url></file>{urls}</metalink>"
        )
    };
    let other = format!("<file name=\"one\"><url>{}</url></file>", origin.url("/f.bin"));
    for (more, names) in [("", &["d.meta4"][..]), (&other, &["d.meta4", "one"])] {
        fs::write(place.path().join("d.meta4"), text(more)).unwrap();
        let run = Svc::new()
            .args(["aria2c", "--no-conf", "-d"])
            .arg(place.path())
            .arg(place.path().join("d.meta4"))
            .run();
        assert_eq!(run.code, Some(1), "{:?} {}", run.stdout, run.stderr);
        let said = run.stdout.concat() + &run.stderr;
        assert!(said.contains("no-way: the Metalink document has no URL"), "{said}");
        assert_eq!(place.names(), names);
    }
}

/// A document that comes from a URI: followed, kept as a file, or followed and not kept.
#[test]
fn a_document_from_a_uri_is_followed_as_follow_metalink_says() {
    let text =
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"in/one\"><url>f.bin</url></file></metalink>";
    let origin = Origin::start(vec![
        Resource::new("/pub/d.meta4", Content::bytes(text)),
        Resource::new("/pub/f.bin", Content::bytes(*b"abc")),
    ]);
    for (option, expect) in [
        ("--follow-metalink=true", &["d.meta4", "in"][..]),
        ("--follow-metalink=false", &["d.meta4"]),
        ("--follow-metalink=mem", &["in"]),
    ] {
        let place = Place::new();
        let run = Svc::new()
            .args(["aria2c", "--no-conf", option, "-d"])
            .arg(place.path())
            .arg(origin.url("/pub/d.meta4"))
            .run();
        assert_eq!(run.code, Some(0), "{option}: {:?} {}", run.stdout, run.stderr);
        assert_eq!(place.names(), expect, "{option}");
        if expect.contains(&"in") {
            place.assert_file("in/one", &Content::bytes(*b"abc"));
        }
    }
}

#[test]
fn options_of_the_console_hold() {
    let says = |line: &[&str], text: &str, is_said: bool| {
        both(line, nothing, |done| {
            assert_eq!(done.said.contains(text), is_said, "{line:?}: {}", done.said);
        });
    };
    says(
        &["--summary-interval=1", "--stop=3", "{}/slow"],
        "Download Progress Summary",
        true,
    );
    says(
        &["--summary-interval=0", "--stop=3", "{}/slow"],
        "Download Progress Summary",
        false,
    );
    says(&["--stop=3", "{}/slow"], "[#", true);
    says(
        &[
            "--show-console-readout=false",
            "--summary-interval=0",
            "--stop=3",
            "{}/slow",
        ],
        "[#",
        false,
    );
    says(&["--human-readable=false", "--stop=3", "{}/slow"], "MiB(", false);
    says(&["--human-readable=true", "--stop=3", "{}/slow"], "MiB(", true);
    says(&["{}/f.bin"], "Downloading 1 item", true);
    says(&["--console-log-level=error", "{}/f.bin"], "Downloading 1 item", false);
    says(&["--enable-color=false", "{}/f.bin"], "\u{1b}[", false);
    says(&["--download-result=hide", "{}/f.bin"], "Download Results", false);
    says(&["--download-result=full", "{}/f.bin"], "Download Results", true);
    both(
        &["-Z", "--max-download-result=1", "{}/nope?1", "{}/nope?2"],
        nothing,
        |done| {
            let rows = done.said.lines().filter(|line| line.contains("|ERR |"));
            assert_eq!(rows.count(), 1, "{}", done.said);
        },
    );
    for (option, is_standard) in [("--stderr=true", false), ("--stderr=false", true)] {
        let (origin, place) = (origin(), Place::new());
        for mut command in [
            command(reference(), &place, &[option, &origin.url("/f.bin")]),
            ours(&place, &[option, &origin.url("/f.bin")]),
        ] {
            let output = command.output().unwrap();
            assert_eq!(!output.stdout.is_empty(), is_standard, "{output:?}");
        }
    }
    // Lines that are too long for the terminal are cut; without a terminal none is.
    both(
        &["--truncate-console-readout=false", "--stop=3", "{}/slow"],
        nothing,
        |done| {
            assert!(done.said.contains("[#"), "{}", done.said);
        },
    );
    for (level, has_details) in [("debug", true), ("error", false)] {
        let level = format!("--log-level={level}");
        both(&["--log=log", &level, "{}/f.bin"], nothing, |done| {
            let log = fs::read_to_string(done.place.path().join("log")).unwrap();
            assert_eq!(!log.is_empty(), has_details, "{log}");
        });
    }
}

#[test]
fn commands_are_called_for_each_kind_of_event() {
    use std::os::unix::fs::PermissionsExt as _;
    for is_ours in [false, true] {
        let (origin, place) = (Origin::start(files()), Place::new());
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let option = |event: &str| {
            let hook = place.aside(event);
            fs::write(
                &hook,
                format!("#!/bin/sh\necho {event} >> {}\n", place.aside("told").display()),
            )
            .unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
            format!("--on-download-{event}={}", hook.display())
        };
        let options = ["start", "complete", "error", "pause", "stop"].map(option);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let rpc = Listening::start(&program, &place, &options);
        let told = |event: &str| {
            e2e::service::wait_until(event, || {
                fs::read_to_string(place.aside("told")).is_ok_and(|told| told.lines().any(|line| line == event))
            });
        };
        rpc.add(&origin.url("/f.bin"), &json!({}));
        told("start");
        told("complete");
        rpc.add(&origin.url("/nope"), &json!({}));
        told("error");
        let slow = rpc.add(&origin.url("/slow"), &json!({}));
        e2e::service::wait_until("it runs", || {
            rpc.call("aria2.tellStatus", &json!([slow, ["status", "connections"]]))["connections"] == "1"
        });
        rpc.call("aria2.pause", &json!([slow]));
        told("pause");
        let other = rpc.add(&origin.url("/slow"), &json!({"out": "other"}));
        e2e::service::wait_until("the other runs", || {
            rpc.call("aria2.tellStatus", &json!([other, ["connections"]]))["connections"] == "1"
        });
        rpc.call("aria2.remove", &json!([other]));
        told("stop");
    }
}

#[test]
fn options_of_sessions_hold() {
    let session = |done: &Done| fs::read_to_string(done.place.path().join("s")).unwrap_or_default();
    let has = |line: &[&str], path: &str, is_saved: bool| {
        both(line, nothing, |done| {
            let session = session(done);
            assert_eq!(session.contains(path), is_saved, "{line:?}: {session}");
        });
    };
    has(&["--save-session=s", "{}/f.bin"], "/f.bin", false);
    has(&["--save-session=s", "--force-save=true", "{}/f.bin"], "/f.bin", true);
    has(&["--save-session=s", "{}/nope"], "/nope", true);
    has(
        &["--save-session=s", "--save-not-found=false", "{}/nope"],
        "/nope",
        false,
    );
    let place = Place::new();
    let origin = Origin::start(files());
    let mut child = ours(
        &place,
        &["--save-session=s", "--save-session-interval=1", &origin.url("/slow")],
    )
    .spawn()
    .unwrap();
    e2e::service::wait_until("it is saved meanwhile", || {
        fs::read_to_string(place.path().join("s")).is_ok_and(|session| session.contains("/slow"))
    });
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn options_of_the_process_hold() {
    for is_ours in [false, true] {
        let (origin, place) = (Origin::start(files()), Place::new());
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let slow = origin.url("/slow");
        let mut watched = Command::new("sleep").arg("2").spawn().unwrap();
        let watched_pid = format!("--stop-with-process={}", watched.id());
        let line = [&watched_pid, "--dir=watching", &slow];
        let child = command(&program, &place, &line).spawn().unwrap();
        watched.wait().unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(7));
        // It returns at once, and goes on without its terminal.
        let (code, said) = run(command(
            &program,
            &place,
            &["--daemon=true", "--stop=30", &origin.url("/f.bin")],
        ));
        assert_eq!(code, Some(0), "{said}");
        e2e::service::wait_until("the daemon has the file", || {
            place.finished_names().contains(&"f.bin".to_owned())
        });
        fs::create_dir_all(place.aside("home/.aria2")).unwrap();
        fs::write(place.aside("home/.aria2/aria2.conf"), "out=by-conf\n").unwrap();
        let url = origin.url("/f.bin");
        assert_eq!(
            run(command(&program, &place, &["--no-conf", "-d", "without", &url])).0,
            Some(0)
        );
        assert_eq!(run(command(&program, &place, &["-d", "with", &url])).0, Some(0));
        assert!(place.path().join("without/f.bin").exists() && place.path().join("with/by-conf").exists());
    }
    let me = Pid::from_raw(std::process::id().cast_signed()).unwrap();
    assert!(test_kill_process(me).is_ok(), "what --stop-with-process asks");
}

#[test]
fn options_of_rpc_hold() {
    for is_ours in [false, true] {
        let (origin, place) = (Origin::start(files()), Place::new());
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let options = ["--rpc-secret=s", "--rpc-allow-origin-all", "--rpc-listen-all"];
        let rpc = Listening::start(&program, &place, &options);
        let ask = |token: &str, method: &str, params: &[serde_json::Value]| {
            let params = [&[json!(format!("token:{token}"))], params].concat();
            rpc.ask(method, &params.into()).unwrap()
        };
        assert_eq!(
            ask("wrong", "aria2.getVersion", &[])["error"]["message"],
            "Unauthorized"
        );
        assert!(ask("s", "aria2.getVersion", &[])["result"].is_object());
        let call = json!({"jsonrpc": "2.0", "id": "1", "method": "aria2.getVersion", "params": ["token:s"]});
        let page = [("Origin", "http://page.test")];
        let answer = http::ask(&rpc.address, "POST", "/jsonrpc", &page, Some(&call)).unwrap();
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let listening = fs::read_to_string("/proc/net/tcp").unwrap();
        let port: u16 = rpc.address.rsplit(':').next().unwrap().parse().unwrap();
        assert!(
            listening.contains(&format!("00000000:{port:04X} 00000000:0000 0A")),
            "on all addresses"
        );
        let options = json!({"pause": "true", "gid": "00000000000000b2"});
        let added = ask("s", "aria2.addUri", &[json!([origin.url("/f.bin")]), options]);
        assert_eq!(added["result"], "00000000000000b2");
        let status = ask("s", "aria2.tellStatus", &[json!("00000000000000b2"), json!(["status"])]);
        assert_eq!(status["result"]["status"], "paused");
    }
}

/// The files of tests that the table names.
const FILES: &[(&str, &str)] = &[
    ("aria2c.rs", include_str!("../aria2c.rs")),
    ("options.rs", include_str!("options.rs")),
    ("sftp.rs", include_str!("../sftp.rs")),
    ("each.rs", include_str!("each.rs")),
    ("torrents.rs", include_str!("torrents.rs")),
    (
        "option.rs",
        include_str!("../../../../../host/aria2/src/option/tests.rs"),
    ),
    ("plan.rs", include_str!("../../../../../host/aria2c/src/plan.rs")),
    (
        "metalink.rs",
        include_str!("../../../../../host/metalink-reader/src/document/tests.rs"),
    ),
];

/// For each option that acts: the test that exercises it, and what of the option its text has.
const TESTED: &[(&str, &str, &str)] = &[
    ("all-proxy", "options_of_proxies_choose_and_log_in", "--all-proxy="),
    (
        "all-proxy-passwd",
        "options_of_proxies_choose_and_log_in",
        "-proxy-passwd=p",
    ),
    (
        "all-proxy-user",
        "options_of_proxies_choose_and_log_in",
        "-proxy-user=u",
    ),
    ("allow-overwrite", LINES_TEST, "--allow-overwrite=true"),
    ("auto-file-renaming", LINES_TEST, "--auto-file-renaming=false"),
    (
        "ca-certificate",
        "options_of_certificates_and_their_proxy_hold",
        "--ca-certificate=",
    ),
    (
        "check-certificate",
        "options_of_certificates_and_their_proxy_hold",
        "--check-certificate=false",
    ),
    (
        "check-integrity",
        "check_integrity_keeps_a_right_file_and_replaces_a_wrong_one",
        "\"-V\"",
    ),
    ("checksum", LINES_TEST, "--checksum=md5"),
    ("conf-path", LINES_TEST, "--conf-path=odd.conf"),
    (
        "connect-timeout",
        "connect_timeout_ends_a_handshake_that_is_not_answered",
        "--connect-timeout=1",
    ),
    (
        "console-log-level",
        "options_of_the_console_hold",
        "--console-log-level=error",
    ),
    ("continue", "what_another_program_began_goes_on", "\"-c\""),
    ("daemon", "options_of_the_process_hold", "--daemon=true"),
    ("dir", LINES_TEST, "\"-d\""),
    (
        "disable-ipv6",
        "disable_ipv6_connects_to_no_such_address",
        "--disable-ipv6",
    ),
    (
        "download-result",
        "options_of_the_console_hold",
        "--download-result=hide",
    ),
    ("enable-color", "options_of_the_console_hold", "--enable-color=false"),
    ("enable-rpc", LINES_TEST, "--enable-rpc"),
    ("force-save", "options_of_sessions_hold", "--force-save=true"),
    ("force-sequential", LINES_TEST, "\"-Z\""),
    (
        "gid",
        "commands_are_called_with_the_gid_the_number_of_files_and_the_path",
        "--gid=",
    ),
    ("header", "options_of_requests_reach_the_server", "--header="),
    (
        "http-no-cache",
        "options_of_requests_reach_the_server",
        "--http-no-cache=true",
    ),
    ("http-passwd", "options_of_requests_reach_the_server", "--http-passwd=p"),
    ("http-proxy", "options_of_proxies_choose_and_log_in", "--http-proxy="),
    (
        "http-proxy-passwd",
        "options_of_proxies_choose_and_log_in",
        "-proxy-passwd=p",
    ),
    (
        "http-proxy-user",
        "options_of_proxies_choose_and_log_in",
        "-proxy-user=u",
    ),
    ("http-user", "options_of_requests_reach_the_server", "--http-user=u"),
    (
        "https-proxy",
        "options_of_certificates_and_their_proxy_hold",
        "--https-proxy=",
    ),
    (
        "https-proxy-passwd",
        "options_of_certificates_and_their_proxy_hold",
        "--https-proxy-passwd=p",
    ),
    (
        "https-proxy-user",
        "options_of_certificates_and_their_proxy_hold",
        "--https-proxy-user=u",
    ),
    (
        "human-readable",
        "options_of_the_console_hold",
        "--human-readable=false",
    ),
    ("input-file", LINES_TEST, "\"-i\", \"list\""),
    (
        "load-cookies",
        "options_of_requests_reach_the_server",
        "--load-cookies=jar",
    ),
    ("log", "options_of_the_console_hold", "--log=log"),
    ("log-level", "options_of_the_console_hold", "--log-level="),
    (
        "lowest-speed-limit",
        "lowest_speed_limit_closes_slow_connections_and_no_others",
        "--lowest-speed-limit=100K",
    ),
    ("max-concurrent-downloads", "options_of_speed_hold", "\"-j1\""),
    ("max-connection-per-server", "options_of_speed_hold", "\"-x1\""),
    ("max-download-limit", "options_of_speed_hold", "--max-download-limit=1M"),
    (
        "max-download-result",
        "options_of_the_console_hold",
        "--max-download-result=1",
    ),
    (
        "max-file-not-found",
        "max_file_not_found_counts_answers_of_404",
        "--max-file-not-found=3",
    ),
    (
        "max-overall-download-limit",
        "options_of_speed_hold",
        "--max-overall-download-limit=1M",
    ),
    ("max-tries", "max_file_not_found_counts_answers_of_404", "--max-tries=2"),
    (
        "metalink-base-uri",
        "options_of_metalinks_choose_files",
        "--metalink-base-uri=",
    ),
    ("metalink-file", "options_of_metalinks_choose_files", "\"-M\""),
    (
        "metalink-language",
        "options_of_metalinks_choose_files",
        "--metalink-language=de",
    ),
    (
        "metalink-location",
        "preferences_go_before_the_documents_order",
        "locations",
    ),
    ("metalink-os", "options_of_metalinks_choose_files", "--metalink-os="),
    (
        "metalink-preferred-protocol",
        "preferences_go_before_the_documents_order",
        "protocol",
    ),
    (
        "metalink-version",
        "options_of_metalinks_choose_files",
        "--metalink-version=",
    ),
    ("min-split-size", "options_of_speed_hold", "\"-k20M\""),
    (
        "netrc-path",
        "netrc_logs_in_at_its_own_host_only_if_nobody_else_may_read_it",
        "--netrc-path=",
    ),
    ("no-conf", "options_of_the_process_hold", "--no-conf"),
    (
        "no-netrc",
        "netrc_logs_in_at_its_own_host_only_if_nobody_else_may_read_it",
        "--no-netrc",
    ),
    ("no-proxy", "options_of_proxies_choose_and_log_in", "--no-proxy="),
    (
        "on-download-complete",
        "commands_are_called_for_each_kind_of_event",
        "\"complete\"",
    ),
    (
        "on-download-error",
        "commands_are_called_for_each_kind_of_event",
        "\"error\"",
    ),
    (
        "on-download-pause",
        "commands_are_called_for_each_kind_of_event",
        "\"pause\"",
    ),
    (
        "on-download-start",
        "commands_are_called_for_each_kind_of_event",
        "\"start\"",
    ),
    (
        "on-download-stop",
        "commands_are_called_for_each_kind_of_event",
        "\"stop\"",
    ),
    ("out", LINES_TEST, "\"-o\""),
    ("parameterized-uri", LINES_TEST, "\"-P\""),
    ("pause", "options_of_rpc_hold", "\"pause\": \"true\""),
    ("quiet", LINES_TEST, "--quiet"),
    ("referer", "options_of_requests_reach_the_server", "--referer="),
    ("remote-time", "remote_time_is_that_of_the_server", "--remote-time=true"),
    ("retry-wait", "options_of_speed_hold", "--retry-wait=2"),
    ("rpc-allow-origin-all", "options_of_rpc_hold", "--rpc-allow-origin-all"),
    ("rpc-listen-all", "options_of_rpc_hold", "--rpc-listen-all"),
    ("rpc-listen-port", LINES_TEST, "--rpc-listen-port="),
    ("rpc-secret", "options_of_rpc_hold", "--rpc-secret=s"),
    ("save-not-found", "options_of_sessions_hold", "--save-not-found=false"),
    ("save-session", "options_of_sessions_hold", "--save-session=s"),
    (
        "save-session-interval",
        "options_of_sessions_hold",
        "--save-session-interval=1",
    ),
    ("select-file", "options_of_metalinks_choose_files", "--select-file=2"),
    (
        "show-console-readout",
        "options_of_the_console_hold",
        "--show-console-readout=false",
    ),
    ("split", "options_of_speed_hold", "\"-s1\""),
    (
        "ssh-host-key-md",
        "the_drop_in_for_aria2c_checks_the_host_key_that_it_is_told",
        "--ssh-host-key-md",
    ),
    ("stderr", "options_of_the_console_hold", "--stderr=true"),
    ("stop", LINES_TEST, "--stop=1"),
    (
        "stop-with-process",
        "options_of_the_process_hold",
        "--stop-with-process=",
    ),
    (
        "summary-interval",
        "options_of_the_console_hold",
        "--summary-interval=1",
    ),
    ("timeout", LINES_TEST, "--timeout=1"),
    (
        "truncate-console-readout",
        "options_of_the_console_hold",
        "--truncate-console-readout=false",
    ),
    ("user-agent", "options_of_requests_reach_the_server", "--user-agent="),
    (
        "bt-exclude-tracker",
        "what_a_torrent_cannot_have_is_left_out_and_what_is_excluded_is_not_asked",
        "bt-exclude-tracker",
    ),
    (
        "bt-max-peers",
        "options_of_torrents_are_what_the_service_takes",
        "bt-max-peers",
    ),
    (
        "bt-metadata-only",
        "options_of_torrents_are_what_the_service_takes",
        "bt-metadata-only",
    ),
    (
        "bt-prioritize-piece",
        "options_of_torrents_are_what_the_service_takes",
        "bt-prioritize-piece",
    ),
    (
        "bt-stop-timeout",
        "options_of_torrents_are_what_the_service_takes",
        "bt-stop-timeout",
    ),
    (
        "bt-tracker",
        "options_of_torrents_are_what_the_service_takes",
        "bt-tracker",
    ),
    (
        "enable-dht",
        "a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says",
        "--enable-dht=false",
    ),
    (
        "follow-torrent",
        "what_is_shown_of_a_request_asks_for_it_again",
        "follow-torrent",
    ),
    (
        "index-out",
        "what_a_torrent_cannot_have_is_left_out_and_what_is_excluded_is_not_asked",
        "index-out",
    ),
    (
        "listen-port",
        "a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says",
        "--listen-port=",
    ),
    (
        "max-upload-limit",
        "options_of_torrents_are_what_the_service_takes",
        "max-upload-limit",
    ),
    (
        "on-bt-download-complete",
        "a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says",
        "--on-bt-download-complete=",
    ),
    (
        "pause-metadata",
        "what_is_shown_of_a_request_asks_for_it_again",
        "pause-metadata",
    ),
    (
        "seed-ratio",
        "a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says",
        "--seed-ratio=0",
    ),
    (
        "seed-time",
        "a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says",
        "--seed-time=0.01",
    ),
    (
        "show-files",
        "a_torrent_is_listed_and_a_bad_one_refused_as_aria2_does_it",
        "--show-files",
    ),
    (
        "torrent-file",
        "a_torrent_is_listed_and_a_bad_one_refused_as_aria2_does_it",
        "--torrent-file=",
    ),
    (
        "bt-seed-unverified",
        "options_of_torrents_are_what_the_service_takes",
        "bt-seed-unverified",
    ),
    (
        "max-overall-upload-limit",
        "settings_of_the_service_are_taken_out",
        "max-overall-upload-limit",
    ),
    (
        "bt-enable-lpd",
        "settings_of_the_service_are_taken_out",
        "bt-enable-lpd",
    ),
    (
        "enable-peer-exchange",
        "settings_of_the_service_are_taken_out",
        "enable-peer-exchange",
    ),
    (
        "bt-save-metadata",
        "the_metadata_of_a_magnet_link_is_saved_with_its_files_and_without_them",
        "--bt-save-metadata=true",
    ),
    (
        "bt-load-saved-metadata",
        "saved_metadata_is_loaded",
        "bt-load-saved-metadata",
    ),
    ("ftp-passwd", "ftp_has_its_own_login_and_proxy", "ftp-passwd"),
    ("ftp-proxy", "ftp_has_its_own_login_and_proxy", "ftp-proxy"),
    (
        "ftp-proxy-passwd",
        "ftp_has_its_own_login_and_proxy",
        "ftp-proxy-passwd",
    ),
    ("ftp-proxy-user", "ftp_has_its_own_login_and_proxy", "ftp-proxy-user"),
    ("ftp-user", "ftp_has_its_own_login_and_proxy", "ftp-user"),
];

/// It tries all of `LINES`.
const LINES_TEST: &str = "the_same_lines_end_with_the_same_codes_files_and_messages";

#[test]
fn every_option_that_acts_has_a_test() {
    let [mut acting, ..] = groups(&help(&with_our_name(&Place::new())));
    acting.retain(|name| !matches!(name.as_str(), "help" | "version"));
    acting.sort_unstable();
    let mut named: Vec<_> = TESTED.iter().map(|(name, ..)| (*name).to_owned()).collect();
    named.sort_unstable();
    assert_eq!(acting, named);
    for (name, test, mention) in TESTED {
        let head = format!("fn {test}(");
        let file = FILES.iter().find(|(_, text)| text.contains(&head));
        let (file, text) = file.unwrap_or_else(|| panic!("{name}: there is no test {test}"));
        let (before, _) = text
            .split_once("/// The files of tests that the table names.")
            .unwrap_or((text, ""));
        assert!(before.contains(mention), "{name}: {mention} is not in {file}");
    }
}
