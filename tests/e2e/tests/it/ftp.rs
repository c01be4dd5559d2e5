//! FTP with servers of others: pyftpdlib and vsftpd, in clear and with TLS.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use e2e::{Home, Svc, service::wait_until};
use serde_json::json;
use support::{Content, Proxy};

use crate::place::Place;

const MIB: u64 = 1 << 20;

/// As the script of pyftpdlib has it.
const LOGIN: &str = "me:canary-password";
const PASSWORD: &str = "canary-password";

/// A server at work, in front of a folder. Dropping it ends it.
struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    lines: Option<Receiver<String>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Server {
    /// pyftpdlib; see the script for its options.
    fn pyftpdlib(files: &[(&[u8], &Content)], options: &[&str]) -> Self {
        let folder = folder(files);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients");
        let mut child = Command::new(tests.join("python"))
            .arg(tests.join("ftp_server.py"))
            .arg(folder.path().join("root"))
            .args(options.iter().map(|option| match *option {
                "tls" => format!("tls={}", certificate(folder.path()).display()),
                option => option.to_owned(),
            }))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the launcher is a script of ours");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        // It ends with the server's output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _over = sender.send(line);
            }
        });
        let port = lines.recv_timeout(Duration::from_mins(2)).expect("it prints its port");
        Self {
            child,
            port: port.parse().expect("it is a number"),
            folder,
            lines: Some(lines),
        }
    }

    /// vsftpd with TLS, which wants the session of the control connection on data connections.
    fn vsftpd(files: &[(&[u8], &Content)], more: &str) -> Self {
        let folder = folder(files);
        let root = folder.path().display();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let certificate = certificate(folder.path());
        let certificate = certificate.display();
        fs::create_dir(folder.path().join("empty")).unwrap();
        let config = format!(
            "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nseccomp_sandbox=NO\n\
             anonymous_enable=YES\nlocal_enable=NO\nanon_root={root}/root\nsecure_chroot_dir={root}/empty\n\
             xferlog_enable=YES\nlog_ftp_protocol=YES\nvsftpd_log_file={root}/log\n\
             ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_logins_ssl=YES\nforce_anon_data_ssl=YES\n\
             require_ssl_reuse=YES\nssl_ciphers=HIGH\nrsa_cert_file={certificate}\n\
             rsa_private_key_file={certificate}\n{more}\n"
        );
        let path = folder.path().join("vsftpd.conf");
        fs::write(&path, config).unwrap();
        // It says what is wrong with its configuration over what would be the connection.
        let said = fs::File::create(folder.path().join("said")).unwrap();
        let mut child = Command::new(vsftpd_program())
            .arg(&path)
            .stdin(said)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program is there");
        wait_until("vsftpd listens", || {
            assert!(
                matches!(child.try_wait(), Ok(None)),
                "{}",
                fs::read_to_string(folder.path().join("said")).unwrap_or_default()
            );
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            child,
            port,
            folder,
            lines: None,
        }
    }

    fn url(&self, scheme: &str, login: &str, path: &str) -> String {
        let at = if login.is_empty() { "" } else { "@" };
        format!("{scheme}://{login}{at}127.0.0.1:{}/{path}", self.port)
    }

    /// What the server said so far: a line for each login and transfer.
    fn said(&self) -> Vec<String> {
        match &self.lines {
            Some(lines) => lines.try_iter().collect(),
            None => fs::read_to_string(self.folder.path().join("log"))
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect(),
        }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }
}

/// A folder that servers which give up their rights can read, with these files below `root`.
fn folder(files: &[(&[u8], &Content)]) -> tempfile::TempDir {
    use std::os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, content) in files {
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().expect("it is below the root")).unwrap();
        fs::write(path, content.to_vec()).unwrap();
    }
    folder
}

/// A certificate for this machine with its key.
fn certificate(folder: &Path) -> PathBuf {
    let path = folder.join("certificate.pem");
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .arg("-keyout")
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("only.pem"))
        .output()
        .expect("these tests need openssl; tests/run installs it");
    assert!(made.status.success(), "{made:?}");
    let both = [
        fs::read(folder.join("key.pem")).unwrap(),
        fs::read(folder.join("only.pem")).unwrap(),
    ]
    .concat();
    fs::write(&path, both).unwrap();
    path
}

fn vsftpd_program() -> &'static str {
    let places = ["/usr/sbin/vsftpd", "/usr/local/sbin/vsftpd"];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.expect("these tests need vsftpd (apt-get install vsftpd); tests/run installs it")
}

fn get(place: &Place) -> Svc {
    Svc::get(place.path()).args(["--retry-wait", "0.1"])
}

#[test]
fn pyftpdlib_sends_a_file_over_four_logins() {
    let content = Content::seeded(21, 20 * MIB + 77);
    let server = Server::pyftpdlib(&[(b"large.bin", &content)], &["rate=2000000"]);
    let place = Place::new();
    let run = get(&place).arg(server.url("ftp", LOGIN, "large.bin")).run();
    run.assert_success();
    place.assert_file("large.bin", &content);
    assert!(!run.stdout.concat().contains(PASSWORD) && !run.stderr.contains(PASSWORD));
    let logins = server.said().iter().filter(|line| *line == "login").count();
    assert!(logins >= 4, "{logins} logins");
}

#[test]
fn a_server_that_allows_one_login_sends_the_file_over_it() {
    let content = Content::seeded(22, 6 * MIB + 5);
    let server = Server::pyftpdlib(&[(b"large.bin", &content)], &["logins=2", "rate=4000000"]);
    let place = Place::new();
    get(&place)
        .arg(server.url("ftp", LOGIN, "large.bin"))
        .run()
        .assert_success();
    place.assert_file("large.bin", &content);
}

#[test]
fn a_download_over_ftp_survives_being_killed_and_costs_little() {
    const KILLS: u64 = 4;
    let content = Content::seeded(23, 40 * MIB + 4321);
    let server = Server::vsftpd(&[(b"large.bin", &content)], "anon_max_rate=1500000");
    let place = Place::new();
    let url = server.url("ftpes", "", "large.bin");
    let download = || get(&place).arg("--ca-certificate").arg(server.certificate()).arg(&url);
    for kill in 0..KILLS {
        let mut running = download().spawn();
        let least = (kill + 1) * 6 * MIB;
        let seen = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(least));
        assert!(seen.is_some(), "run {kill} does not go on: {:?}", running.finish());
        running.kill();
        assert_eq!(place.finished_names(), Vec::<String>::new(), "after kill {kill}");
    }
    let run = download().run();
    run.assert_success();
    place.assert_file("large.bin", &content);
    let last = run.event("finished").and_then(|event| event["receivedBytes"].as_u64());
    // Every byte that a killed run had recorded is kept: the last run fetches what is left and what is compared.
    let left = content.len() - KILLS * 6 * MIB;
    assert!(
        last < Some(left + 4 * MIB),
        "{last:?} bytes were received where {left} were missing"
    );
}

#[test]
fn a_wrong_password_is_named_and_not_shown() {
    let content = Content::seeded(24, 100);
    let server = Server::pyftpdlib(&[(b"f.bin", &content)], &[]);
    let place = Place::new();
    let run = get(&place).arg(server.url("ftp", "me:wrong-canary", "f.bin")).run();
    assert_eq!(run.failure().as_deref(), Some("unauthorized"), "{run:?}");
    assert!(!run.stdout.concat().contains("wrong-canary") && !run.stderr.contains("wrong-canary"));
}

#[test]
fn pyftpdlib_sends_a_file_through_tls() {
    let content = Content::seeded(25, 5 * MIB + 3);
    let server = Server::pyftpdlib(&[(b"f.bin", &content)], &["tls"]);
    let place = Place::new();
    let trusting = get(&place).arg("--ca-certificate").arg(server.certificate());
    trusting.arg(server.url("ftpes", LOGIN, "f.bin")).run().assert_success();
    place.assert_file("f.bin", &content);
    let other = Place::new();
    let run = get(&other).arg(server.url("ftpes", LOGIN, "f.bin")).run();
    assert_eq!(
        run.failure().as_deref(),
        Some("tls"),
        "nobody vouches for that certificate: {run:?}"
    );
    let run = get(&other).arg(server.url("ftp", LOGIN, "f.bin")).run();
    assert_eq!(
        run.failure().as_deref(),
        Some("unauthorized"),
        "the server wants TLS: {run:?}"
    );
    assert!(run.stdout.concat().contains("try ftpes:// or ftps://"), "{run:?}");
    assert_eq!(other.finished_names(), Vec::<String>::new());
}

#[test]
fn vsftpd_sends_a_file_through_tls_of_both_kinds_and_continues_it() {
    let content = Content::seeded(26, 9 * MIB + 3);
    for (scheme, more) in [
        ("ftpes", "anon_max_rate=4000000"),
        ("ftps", "anon_max_rate=4000000\nimplicit_ssl=YES"),
    ] {
        let server = Server::vsftpd(&[(b"f.bin", &content)], more);
        let place = Place::new();
        let url = server.url(scheme, "", "f.bin");
        let started = || get(&place).arg("--ca-certificate").arg(server.certificate()).arg(&url);
        let mut running = started().spawn();
        let seen = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(2 * MIB));
        assert!(seen.is_some(), "{:?}", running.finish());
        running.kill();
        started().run().assert_success();
        place.assert_file("f.bin", &content);
        let said = server.said();
        let restarts = said
            .iter()
            .filter(|line| line.contains("FTP command") && line.contains("\"REST "))
            .count();
        assert!(restarts >= 2, "it proves REST and goes on by it: {said:?}");
        assert!(
            !said.iter().any(|line| line.contains("\"522") || line.contains("\"425")),
            "{said:?}"
        );
    }
}

#[test]
fn a_directory_becomes_a_group_and_no_answer_shows_the_password() {
    let (one, other) = (Content::seeded(27, 3000), Content::seeded(28, 50_000));
    let files: [(&[u8], &Content); 3] = [
        (b"pub/one.bin", &one),
        (b"pub/below/other file.bin", &other),
        (b"pub/\xd6\xd0\xce\xc4\xce\xc4\xbc\xfe\xc3\xfb\xb3\xc6.zip", &one),
    ];
    let server = Server::pyftpdlib(&files, &["names=bytes"]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let id = service.create(&json!({"url": server.url("ftp", LOGIN, "pub/")}));
    let tasks = || service.call("GET", "/api/v1/tasks", None);
    wait_until("every file is complete", || {
        let tasks = tasks();
        let tasks = tasks.as_array().expect("it is a list");
        tasks.len() == 3 && tasks.iter().all(|task| task["status"] == 3)
            || tasks.iter().all(|task| task["status"] == "completed") && tasks.len() == 3
    });
    let folder = home.downloads().join("pub");
    for (name, content) in [
        ("one.bin", &one),
        ("below/other file.bin", &other),
        ("中文文件名称.zip", &one),
    ] {
        assert_eq!(content.difference(&folder.join(name)).unwrap(), None, "{name}");
    }
    let first = service.task(&id);
    assert_eq!(first["taskId"], id.as_str(), "the first task is one of the files");
    let group = first["groupId"].as_str().expect("it is in a group").to_owned();
    let all = tasks();
    let all = all.as_array().expect("it is a list");
    assert!(all.iter().all(|task| task["groupId"] == group.as_str()), "{all:?}");
    let mut answers = vec![format!("{all:?}"), first.to_string()];
    answers.push(service.call("GET", "/api/v1/groups", None).to_string());
    let gid = &id.replace('-', "")[..16];
    for method in [
        "aria2.getUris",
        "aria2.getFiles",
        "aria2.tellStatus",
        "aria2.getOption",
        "aria2.getServers",
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method,
            "params": [format!("token:{}", e2e::service::KEY), gid]});
        answers.push(service.call("POST", "/jsonrpc", Some(&call)).to_string());
    }
    assert!(
        answers.iter().any(|answer| answer.contains("ftp://me:***@127.0.0.1")),
        "the user is shown: {answers:?}"
    );
    for answer in &answers {
        assert!(!answer.contains(PASSWORD), "{answer}");
    }
    let run = service.terminate();
    assert!(!run.stderr.contains(PASSWORD), "{}", run.stderr);
    assert_eq!(files_with(home.path(), PASSWORD), Vec::<String>::new());
}

#[test]
fn a_server_on_ipv6_is_reached_and_its_data_connections_too() {
    let content = Content::seeded(29, 3 * MIB + 1);
    let server = Server::pyftpdlib(&[(b"large.bin", &content)], &["host=::1"]);
    let place = Place::new();
    let url = format!("ftp://{LOGIN}@[::1]:{}/large.bin", server.port);
    get(&place).arg(&url).run().assert_success();
    place.assert_file("large.bin", &content);
    let other = Place::new();
    let refused = get(&other).args(["--retries", "0", "-4"]).arg(&url).run();
    assert_ne!(refused.code, Some(0));
    assert_eq!(other.names(), Vec::<String>::new());
}

#[test]
fn a_login_of_netrc_is_used_for_its_host_alone() {
    let content = Content::seeded(30, 4000);
    let server = Server::pyftpdlib(&[(b"f.bin", &content)], &[]);
    let place = Place::new();
    let netrc = |host: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = place.aside("netrc");
        fs::write(&path, format!("machine {host} login me password {PASSWORD}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let svc = get(&place).args(["--retries", "0", "--netrc-file"]).arg(path);
        svc.arg(server.url("ftp", "", "f.bin")).run()
    };
    assert_eq!(netrc("other.test").failure().as_deref(), Some("unauthorized"));
    netrc("127.0.0.1").assert_success();
    place.assert_file("f.bin", &content);
}

type StartProxy = fn() -> Proxy;

#[test]
fn control_and_data_connections_go_through_the_proxy() {
    let content = Content::seeded(31, 3 * MIB + 3);
    let server = Server::pyftpdlib(&[(b"large.bin", &content)], &[]);
    let kinds: [(&str, StartProxy); 3] = [
        ("http://me:proxy-canary@", || {
            Proxy::http(&[], Some(("me", "proxy-canary")))
        }),
        ("socks5://me:proxy-canary@", || {
            Proxy::socks5(&[], Some(("me", "proxy-canary")))
        }),
        ("socks4://", || Proxy::socks4(&[])),
    ];
    for (prefix, start) in kinds {
        let proxy = start();
        let place = Place::new();
        let through = format!("{prefix}127.0.0.1:{}", proxy.port());
        let run = get(&place)
            .args(["--proxy", &through])
            .arg(server.url("ftp", LOGIN, "large.bin"))
            .run();
        run.assert_success();
        place.assert_file("large.bin", &content);
        let said = format!("{:?}{}", run.stdout, run.stderr);
        assert!(!said.contains(PASSWORD) && !said.contains("proxy-canary"), "{said}");
        let targets: Vec<_> = proxy.requests().into_iter().map(|request| request.target).collect();
        let control = format!("127.0.0.1:{}", server.port);
        assert!(targets.contains(&control), "{prefix} {targets:?}");
        assert!(targets.iter().any(|target| *target != control), "{prefix} {targets:?}");
    }
    // All of the server's connections came from a proxy: it saw no others.
    assert!(server.said().iter().filter(|line| *line == "login").count() >= 3);
}

#[test]
fn a_stored_login_opens_a_site_and_a_url_of_another_site_does_not_get_it() {
    let content = Content::seeded(32, 5000);
    let server = Server::pyftpdlib(&[(b"f.bin", &content), (b"other.bin", &content)], &[]);
    let stranger = Server::pyftpdlib(&[(b"f.bin", &content)], &[]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let ends = |id: &str| {
        wait_until("the download ended", || {
            let status = &service.task(id)["status"];
            *status == 3 || *status == 4
        });
        service.task(id)["status"].clone()
    };
    let given = service.create(&json!({"url": server.url("ftp", "", "f.bin"), "httpUser": "me",
        "httpPassword": PASSWORD, "saveSiteAuth": true, "maxTries": 1}));
    assert_eq!(ends(&given), 3, "{}", service.task(&given));
    let stored = service.create(&json!({"url": server.url("ftp", "", "other.bin"), "maxTries": 1}));
    assert_eq!(ends(&stored), 3, "{}", service.task(&stored));
    let foreign = service.create(&json!({"url": stranger.url("ftp", "", "f.bin"), "maxTries": 1}));
    assert_eq!(ends(&foreign), 4, "it is another site");
    assert_eq!(stranger.said().iter().filter(|line| *line == "login").count(), 0);

    // The URL of a download is changed to one of the site that the login is stored for.
    let path = format!("/api/v1/tasks/{foreign}/url");
    service.call("POST", &path, Some(&json!({"url": server.url("ftp", "", "f.bin")})));
    service.call("PUT", &format!("/api/v1/tasks/{foreign}/continue"), None);
    wait_until("it is complete", || service.task(&foreign)["status"] == 3);

    let answers = [
        service.call("GET", "/api/v1/tasks", None),
        service.rpc().call("daemon.siteAuth.list", &json!({})).unwrap(),
    ];
    for answer in answers {
        assert!(!answer.to_string().contains(PASSWORD), "{answer}");
    }
    let run = service.terminate();
    assert!(!run.stderr.contains(PASSWORD), "{}", run.stderr);
    assert_eq!(files_with(home.path(), PASSWORD), Vec::<String>::new());
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path) {
            let is_there = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(is_there.then(|| path.display().to_string()));
        }
    }
    found
}
