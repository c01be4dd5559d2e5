//! aria2's options, each from outside: what one that acts does, with both programs where they do the same; and that
//! every option of aria2 acts, is harmless or is refused, with a reason.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::{Ipv6Addr, TcpListener},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use e2e::{Svc, http, service::wait_until};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Proxy, Request};

use super::*;

/// What a program did with a command line.
pub(super) struct Done {
    pub(super) code: Option<i32>,
    pub(super) said: String,
    pub(super) place: Place,
    pub(super) requests: Vec<Request>,
    /// The most connections at one time.
    pub(super) connections: usize,
    pub(super) took: Duration,
}

impl Done {
    #[track_caller]
    pub(super) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.said);
    }

    /// The values of a header, of each request.
    fn headers(&self, name: &str) -> Vec<Option<String>> {
        let value = |request: &Request| request.header(name).map(str::to_owned);
        self.requests.iter().map(value).collect()
    }
}

pub(super) fn files() -> Vec<Resource> {
    let served = |path: &str| Resource::new(path, content());
    vec![
        served("/f.bin"),
        served("/auth").with(basic_auth("u", "p")),
        served("/busy").with(behaviour::status(503)),
        served("/paced").with(behaviour::paced(2 * MIB)),
        served("/dated"),
        served("/slow").with(behaviour::paced(20 * 1024)),
    ]
}

/// Runs `line` with one program and an origin of its own; `{}` is the origin, `{port}` its port.
fn done(program: &Path, place: Place, line: &[&str]) -> Done {
    let origin = Origin::start(files());
    let base = origin.url("");
    let port = origin.port().to_string();
    let words: Vec<_> = line
        .iter()
        .map(|word| word.replace("{}", &base).replace("{port}", &port))
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let began = Instant::now();
    let (code, said) = run(command(program, &place, &words));
    Done {
        code,
        said,
        place,
        requests: origin.requests(),
        connections: origin.max_connections_seen(),
        took: began.elapsed(),
    }
}

/// Runs `line` with aria2c and with ours, at the same time, and checks both.
pub(super) fn both(line: &[&str], prepare: impl Fn(&Place) + Sync, check: impl Fn(&Done) + Sync) {
    thread::scope(|scope| {
        for is_ours in [false, true] {
            let (prepare, check) = (&prepare, &check);
            scope.spawn(move || {
                let place = Place::new();
                fs::create_dir_all(place.aside("home")).unwrap();
                prepare(&place);
                let program = if is_ours {
                    with_our_name(&place)
                } else {
                    reference().to_owned()
                };
                let done = done(&program, place, line);
                check(&done);
            });
        }
    });
}

pub(super) fn nothing(_: &Place) {}

fn checksum() -> String {
    let digest = Sha256::digest(content().to_vec());
    format!("--checksum=sha-256={}", data_encoding::HEXLOWER.encode(&digest))
}

#[test]
fn lowest_speed_limit_closes_slow_connections_and_no_others() {
    both(
        &["--lowest-speed-limit=100K", "--max-tries=9", "{}/slow"],
        nothing,
        |done| {
            done.assert_code(5);
            assert!(done.took > Duration::from_secs(9), "it was not given time");
            assert_eq!(done.requests.len(), 1, "it is not tried again");
            assert!(done.requests[0].bytes_sent() < content().len() / 2);
        },
    );
    both(&["--lowest-speed-limit=1K", "{}/f.bin"], nothing, |done| {
        done.assert_code(0);
        done.place.assert_file("f.bin", &content());
    });
}

#[test]
fn a_connection_that_is_fast_enough_stays() {
    both(&["--lowest-speed-limit=5K", "--stop=14", "{}/slow"], nothing, |done| {
        done.assert_code(7);
        assert!(done.took > Duration::from_secs(13), "it was closed: {}", done.said);
    });
}

#[test]
fn max_file_not_found_counts_answers_of_404() {
    for (line, code, count) in [
        (&["{}/nope"][..], 3, 1),
        (&["--max-file-not-found=2", "{}/nope"], 4, 2),
        (&["--max-file-not-found=3", "--max-tries=2", "{}/nope"], 3, 2),
        (&["--max-file-not-found=1", "{}/nope"], 4, 1),
        (&["--max-file-not-found=9", "{}/nope", "{}/f.bin", "-o", "f.bin"], 0, 2),
    ] {
        both(line, nothing, |done| {
            done.assert_code(code);
            let asked = done
                .requests
                .iter()
                .filter(|request| request.path() != "/f.bin")
                .count();
            // With a mirror, aria2c asks the missing one more often than ours.
            assert!(if code == 0 { asked > 0 } else { asked == count }, "{asked}");
        });
    }
}

#[test]
fn check_integrity_keeps_a_right_file_and_replaces_a_wrong_one() {
    let sum = checksum();
    let line = ["-V", &sum, "{}/f.bin"];
    let right = |place: &Place| fs::write(place.path().join("f.bin"), content().to_vec()).unwrap();
    let wrong = |place: &Place| fs::write(place.path().join("f.bin"), vec![0; content().to_vec().len()]).unwrap();
    let short = |place: &Place| fs::write(place.path().join("f.bin"), b"short").unwrap();
    let is_right = |done: &Done| {
        done.assert_code(0);
        assert_eq!(done.place.names(), ["f.bin"]);
        done.place.assert_file("f.bin", &content());
    };
    both(&line, right, |done| {
        is_right(done);
        assert_eq!(done.requests.len(), 1);
        let written = fs::metadata(done.place.path().join("f.bin"))
            .unwrap()
            .modified()
            .unwrap();
        assert!(written.elapsed().unwrap() > Duration::ZERO);
    });
    both(&line, wrong, is_right);
    both(&["-c", "-V", &sum, "{}/f.bin"], wrong, is_right);
    // One that is not complete is no candidate, and without the option none is.
    both(&line, short, |done| {
        done.assert_code(0);
        assert_eq!(fs::read(done.place.path().join("f.bin")).unwrap(), b"short");
        assert_eq!(done.place.names().len(), 2);
    });
    both(&[&sum, "{}/f.bin"], right, |done| {
        done.assert_code(0);
        assert_eq!(done.place.names().len(), 2);
    });
}

/// Writes `$HOME/.netrc`, or the file at `name` in the directory of downloads.
fn netrc(place: &Place, name: Option<&str>, host: &str, mode: u32) {
    let path = name.map_or_else(|| place.aside("home/.netrc"), |name| place.path().join(name));
    fs::write(&path, format!("machine {host} login u password p\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn netrc_logs_in_at_its_own_host_only_if_nobody_else_may_read_it() {
    let at = |host: &'static str, mode: u32| move |place: &Place| netrc(place, None, host, mode);
    both(&["{}/auth"], at("127.0.0.1", 0o600), |done| {
        done.assert_code(0);
        done.place.assert_file("auth", &content());
    });
    let no_login = |done: &Done| {
        done.assert_code(24);
        assert!(done.headers("authorization").iter().all(Option::is_none));
    };
    both(&["--max-tries=1", "{}/auth"], at("127.0.0.1", 0o644), no_login);
    both(&["--max-tries=1", "{}/auth"], at("other.test", 0o600), no_login);
    both(
        &["--max-tries=1", "--no-netrc", "{}/auth"],
        at("127.0.0.1", 0o600),
        no_login,
    );
    both(
        &["--netrc-path=logins", "{}/auth"],
        |place| netrc(place, Some("logins"), "127.0.0.1", 0o600),
        |done| done.assert_code(0),
    );
    both(
        &["--http-user=mine", "--http-passwd=own", "{}/f.bin"],
        at("127.0.0.1", 0o600),
        |done| {
            done.assert_code(0);
            let own = format!("Basic {}", data_encoding::BASE64.encode(b"mine:own"));
            assert!(
                done.headers("authorization")
                    .iter()
                    .all(|value| *value == Some(own.clone()))
            );
        },
    );
}

/// A server on `::1` that counts its connections and answers `ok`.
fn on_ipv6() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            counting.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let _request = stream.read(&mut [0; 4096]);
            let _answered = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    (port, count)
}

#[test]
fn disable_ipv6_connects_to_no_such_address() {
    let (port, count) = on_ipv6();
    let url = format!("http://[::1]:{port}/f");
    both(&["--max-tries=1", &url], nothing, |done| done.assert_code(0));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    both(&["--disable-ipv6", "--max-tries=1", &url], nothing, |done| {
        assert!(!matches!(done.code, Some(0) | None), "{}", done.said);
    });
    let get = |flag: &str| {
        let place = Place::new();
        Svc::get(place.path()).args(["--retries", "0", flag, &url]).run()
    };
    get("-4").assert_failure(5, "resolve");
    assert_eq!(count.load(Ordering::SeqCst), 2, "nobody connected");
    get("-6").assert_success();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn svc_get_has_the_flags_of_curl_and_wget() {
    let origin = Origin::start(files());
    let place = Place::new();
    let get = |line: &[&str]| Svc::get(place.path()).args(line).run();
    let slow = get(&["--lowest-speed-limit", "100K", "-x1", "-s1", &origin.url("/slow")]);
    slow.assert_failure(2, "too-slow");
    netrc(&place, Some("logins"), "127.0.0.1", 0o600);
    let logins = place.path().join("logins");
    let logins = logins.to_str().unwrap();
    get(&["--netrc-file", logins, &origin.url("/auth")]).assert_success();
    place.assert_file("auth", &content());
    get(&["--retries", "0", "-o", "other", &origin.url("/auth")]).assert_failure(24, "unauthorized");
    netrc(&place, Some("logins"), "127.0.0.1", 0o644);
    let open = get(&["--netrc-file", logins, &origin.url("/auth")]);
    assert!(open.stderr.contains("chmod 600"), "{}", open.stderr);
    // A link of the program Thunder is the URL in it.
    let link = data_encoding::BASE64.encode(format!("AA{}ZZ", origin.url("/f.bin")).as_bytes());
    get(&[&format!("thunder://{link}")]).assert_success();
    place.assert_file("f.bin", &content());
    // A file that is there is checked.
    let sum = checksum().replace("--checksum=", "");
    let inode = || fs::metadata(place.path().join("f.bin")).unwrap().ino();
    let before = inode();
    let checked = get(&["--check-integrity", "--checksum", &sum, &origin.url("/f.bin")]);
    checked.assert_success();
    assert_eq!(
        place
            .finished_names()
            .iter()
            .filter(|name| name.starts_with('f'))
            .count(),
        1
    );
    assert_eq!(
        inode(),
        before,
        "it is the same file, not one that was downloaded again"
    );
}

/// A running program with RPC; killed when dropped.
pub(super) struct Listening {
    child: Child,
    pub(super) address: String,
}

impl Listening {
    pub(super) fn start(program: &Path, place: &Place, options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port_option = format!("--rpc-listen-port={port}");
        let line = [&["--enable-rpc", &port_option], options].concat();
        let child = command(program, place, &line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let listening = Self {
            child: child.unwrap(),
            address: format!("127.0.0.1:{port}"),
        };
        wait_until("it listens", || listening.ask("aria2.getVersion", &json!([])).is_some());
        listening
    }

    pub(super) fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let call = json!({"jsonrpc": "2.0", "id": "1", "method": method, "params": params});
        let answer = http::ask(&self.address, "POST", "/jsonrpc", &[], Some(&call))?;
        serde_json::from_str(&answer.text()).ok()
    }

    pub(super) fn call(&self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params).unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(super) fn add(&self, uri: &str, options: &Value) -> Value {
        self.call("aria2.addUri", &json!([[uri], options]))
    }

    /// The status and error code of a download that has ended.
    fn end(&self, gid: &Value) -> (String, String) {
        let mut ended = Value::Null;
        wait_until("the download has ended", || {
            ended = self.call("aria2.tellStatus", &json!([gid, ["status", "errorCode"]]));
            matches!(ended["status"].as_str(), Some("complete" | "error"))
        });
        let text = |name: &str| ended[name].as_str().unwrap().to_owned();
        (text("status"), text("errorCode"))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
    }
}

#[test]
fn options_of_one_download_hold_for_it_over_rpc() {
    for is_ours in [false, true] {
        let (origin, place) = (Origin::start(files()), Place::new());
        fs::create_dir_all(place.aside("home")).unwrap();
        netrc(&place, None, "127.0.0.1", 0o600);
        fs::write(place.path().join("f.bin"), vec![0; content().to_vec().len()]).unwrap();
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let rpc = Listening::start(&program, &place, &[]);
        let end = |path: &str, options: &Value| {
            let (status, code) = rpc.end(&rpc.add(&origin.url(path), options));
            format!("{status} {code}")
        };
        assert_eq!(end("/nope", &json!({"max-file-not-found": "2"})), "error 4");
        assert_eq!(end("/auth", &json!({"out": "in"})), "complete 0");
        assert_eq!(
            end("/auth", &json!({"out": "not", "no-netrc": "true", "max-tries": "1"})),
            "error 24"
        );
        let sum = checksum().replace("--checksum=", "");
        let checked = json!({"check-integrity": "true", "checksum": sum});
        assert_eq!(end("/f.bin", &checked), "complete 0");
        place.assert_file("f.bin", &content());
        let slow = rpc.add(&origin.url("/slow"), &json!({"lowest-speed-limit": "100K"}));
        let shown = rpc.call("aria2.getOption", &json!([slow]));
        assert_eq!(shown["lowest-speed-limit"], "102400");
        assert_eq!(rpc.end(&slow), ("error".to_owned(), "5".to_owned()));
    }
}

#[test]
fn servers_are_the_real_connections() {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut seen = Vec::new();
    for is_ours in [false, true] {
        let paced = Resource::new("/paced", content()).with(behaviour::paced(200 * 1024));
        let led = Resource::new("/led", content()).with(behaviour::redirect(302, "/paced"));
        let (origin, place) = (Origin::start(vec![paced, led]), Place::new());
        let program = if is_ours {
            with_our_name(&place)
        } else {
            reference().to_owned()
        };
        let rpc = Listening::start(&program, &place, &["-x2", "-s2", "-k1M"]);
        let gid = rpc.add(&origin.url("/led"), &json!({}));
        let mut servers = Value::Null;
        wait_until("both connections receive", || {
            servers = rpc.call("aria2.getServers", &json!([gid]));
            let list = servers[0]["servers"].as_array();
            list.is_some_and(|list| list.len() == 2 && list.iter().all(|server| server["downloadSpeed"] != "0"))
        });
        let status = rpc.call("aria2.tellStatus", &json!([gid, ["connections"]]));
        assert_eq!(status["connections"], "2");
        let list = servers[0]["servers"].as_array().unwrap();
        for server in list {
            assert_eq!(server["uri"], *origin.url("/led"));
            assert_eq!(server["currentUri"], *origin.url("/paced"));
            let speed: u64 = server["downloadSpeed"].as_str().unwrap().parse().unwrap();
            assert!(speed > 20_000, "{server}");
        }
        seen.push((keys(&servers[0]), keys(&list[0]), servers[0]["index"].clone()));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn options_of_requests_reach_the_server() {
    let all = |done: &Done, name: &str, value: &str| {
        done.assert_code(0);
        let found = done.headers(name);
        assert!(
            !found.is_empty()
                && found
                    .iter()
                    .all(|found| found.as_deref().map(|found| found.trim_end_matches(';')) == Some(value)),
            "{found:?}"
        );
    };
    let basic = format!("Basic {}", data_encoding::BASE64.encode(b"u:p"));
    for (line, name, value) in [
        (&["--user-agent=me/1", "{}/f.bin"][..], "user-agent", "me/1"),
        (
            &["--referer=http://page.test/", "{}/f.bin"],
            "referer",
            "http://page.test/",
        ),
        (&["--header=X-A: b", "{}/f.bin"], "x-a", "b"),
        (&["--http-no-cache=true", "{}/f.bin"], "cache-control", "no-cache"),
        (&["--http-no-cache=true", "{}/f.bin"], "pragma", "no-cache"),
        (
            &["--http-user=u", "--http-passwd=p", "{}/f.bin"],
            "authorization",
            &basic,
        ),
        (&["--load-cookies=jar", "{}/f.bin"], "cookie", "a=b"),
    ] {
        let jar = |place: &Place| fs::write(place.path().join("jar"), "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n").unwrap();
        both(line, jar, |done| all(done, name, value));
    }
}

#[test]
fn options_of_proxies_choose_and_log_in() {
    let check = |line: &[&str], login: Option<(&str, &str)>, is_proxied: bool| {
        for program in [reference().to_owned(), with_our_name(&Place::new())] {
            let proxy = Proxy::http(&[], login);
            let place = Place::new();
            let program = if program == reference() {
                program
            } else {
                with_our_name(&place)
            };
            let at = format!("127.0.0.1:{}", proxy.port());
            let line: Vec<_> = line.iter().map(|word| word.replace("{proxy}", &at)).collect();
            let line: Vec<_> = line.iter().map(String::as_str).collect();
            let done = done(&program, place, &line);
            done.assert_code(0);
            let served = proxy.requests().iter().filter(|request| request.is_served).count();
            assert_eq!(served > 0, is_proxied, "{line:?}");
        }
    };
    check(&["--all-proxy={proxy}", "{}/f.bin"], None, true);
    check(&["--http-proxy={proxy}", "{}/f.bin"], None, true);
    check(&["--https-proxy={proxy}", "{}/f.bin"], None, false);
    check(
        &["--all-proxy={proxy}", "--no-proxy=127.0.0.1", "{}/f.bin"],
        None,
        false,
    );
    let login = Some(("u", "p"));
    for name in ["all", "http"] {
        let user = format!("--{name}-proxy-user=u");
        let password = format!("--{name}-proxy-passwd=p");
        let proxy = format!("--{name}-proxy={{proxy}}");
        check(&[&proxy, &user, &password, "{}/f.bin"], login, true);
    }
}

/// The names in the three groups of our help: what acts, is harmless, is refused. The latter two have reasons.
pub(super) fn groups(help: &str) -> [Vec<String>; 3] {
    let (_, options) = help.split_once("Options:\n").unwrap();
    let (acting, rest) = options.split_once("Accepted without effect:\n").unwrap();
    let (harmless, refused) = rest.split_once("Refused, unless they have aria2's default:\n").unwrap();
    let names = |text: &str, has_reason: bool| {
        let name = |line: &str| {
            let (_, line) = line.split_once("--").unwrap();
            let end = line
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(line.len());
            let reason = line[end..].strip_prefix(": ").unwrap_or_default();
            assert_eq!(reason.len() > 10, has_reason, "{line}");
            line[..end].to_owned()
        };
        text.lines().map(name).collect()
    };
    [names(acting, false), names(harmless, true), names(refused, true)]
}

pub(super) fn help(program: &Path) -> String {
    let (code, said) = run(command(program, &Place::new(), &["--help=#all"]));
    assert_eq!(code, Some(0), "{said}");
    said
}

#[test]
fn every_option_of_aria2_acts_or_says_why_it_does_not() {
    let theirs = help(reference());
    let theirs: BTreeSet<_> = theirs
        .lines()
        .filter(|line| line.starts_with(" -"))
        .filter_map(|line| line.split_once("--"))
        .map(|(_, name)| name.split(['=', '[', ' ']).next().unwrap().to_owned())
        .collect();
    assert!(theirs.len() > 190, "{theirs:?}");
    let ours = help(&with_our_name(&Place::new()));
    let mut found = BTreeSet::new();
    for name in groups(&ours).into_iter().flatten() {
        assert!(found.insert(name.clone()), "{name} is in two groups");
    }
    assert_eq!(found, theirs);
}
