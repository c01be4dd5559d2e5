//! The service behind reverse proxies, with the configurations of `host/packaging/proxy`: path prefix, TLS, WebSocket,
//! forwarded headers, and the first key.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use e2e::{Home, Run, Service, Svc, service::KEY, service::wait_until};
use serde_json::Value;
use tempfile::TempDir;

use super::plugins::Server;

fn free_port() -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.expect("loopback has a free port").port()
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../host/packaging/proxy")
        .join(name);
    fs::read_to_string(path).expect("the example is there")
}

/// A proxy with a certificate of its own. Dropping it ends it.
struct Proxy {
    child: Child,
    own: TempDir,
    port: u16,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_been_waited_for = self.child.wait();
    }
}

impl Proxy {
    /// Starts the program that `command` makes of the directory, after `write` has put the configuration there.
    fn start(write: impl FnOnce(&Path, u16), command: impl FnOnce(&Path) -> Command) -> Self {
        let own = tempfile::tempdir().expect("there is room for a directory");
        let port = free_port();
        let made = Command::new("/usr/bin/openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args([
                "-subj",
                "/CN=nas",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
            ])
            .arg(own.path().join("nas.key"))
            .arg("-out")
            .arg(own.path().join("nas.pem"))
            .output()
            .expect("openssl is there");
        assert!(made.status.success(), "{made:?}");
        write(own.path(), port);
        let mut command = command(own.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the proxy is there");
        wait_until("the proxy listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, own, port }
    }

    fn nginx(service: &str) -> Self {
        let write = |own: &Path, port: u16| {
            let folder = own.display();
            let site = example("nginx.conf")
                .replace("127.0.0.1:17800", service)
                .replace("listen 443", &format!("listen 127.0.0.1:{port}"))
                .replace("/etc/ssl", &folder.to_string());
            let config = format!(
                "daemon off; master_process off; error_log {folder}/error.log; pid {folder}/pid; events {{}}
                http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
                fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                {site} }}"
            );
            fs::write(own.join("nginx.conf"), config).expect("it is writable");
        };
        Self::start(write, |own| {
            let mut nginx = Command::new("/usr/sbin/nginx");
            nginx
                .arg("-p")
                .arg(own)
                .arg("-c")
                .arg(own.join("nginx.conf"))
                .arg("-e")
                .arg(own.join("error.log"));
            nginx
        })
    }

    fn caddy(service: &str) -> Self {
        let write = |own: &Path, port: u16| {
            let folder = own.display();
            let site = example("Caddyfile")
                .replace("127.0.0.1:17800", service)
                // A certificate of a public authority is not to be had here.
                .replace(
                    "nas.example.com {",
                    &format!("https://127.0.0.1:{port} {{\n\ttls {folder}/nas.pem {folder}/nas.key"),
                );
            let options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n";
            fs::write(own.join("Caddyfile"), format!("{options}{site}")).expect("it is writable");
        };
        Self::start(write, |own| {
            let mut caddy = Command::new("/usr/bin/caddy");
            caddy
                .arg("run")
                .arg("--config")
                .arg(own.join("Caddyfile"))
                .args(["--adapter", "caddyfile"]);
            caddy
                .env("HOME", own)
                .env("XDG_DATA_HOME", own)
                .env("XDG_CONFIG_HOME", own);
            caddy
        })
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    fn certificate(&self) -> PathBuf {
        self.own.path().join("nas.pem")
    }

    /// Status and body of a request by curl.
    fn curl(&self, path: &str, arguments: &[&str]) -> (String, String) {
        let output = Command::new("/usr/bin/curl")
            .args([
                "--silent",
                "--show-error",
                "--max-time",
                "30",
                "--write-out",
                "\n%{http_code}",
                "--cacert",
            ])
            .arg(self.certificate())
            .args(arguments)
            .arg(self.url(path))
            .output()
            .expect("curl is there");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = said.rsplit_once('\n').unwrap_or_else(|| panic!("{output:?}"));
        (status.to_owned(), body.to_owned())
    }

    fn svc(&self, home: &Home, arguments: &[&str]) -> Run {
        let svc = Svc::new().args(arguments).args(["--url", &self.url("/svc")]);
        let svc = svc
            .arg("--ca-certificate")
            .arg(self.certificate())
            .env("SVC_TOKEN", KEY);
        svc.env("HOME", home.path()).run()
    }
}

/// What an administrator expects of a proxy.
fn check(start: impl FnOnce(&str) -> Proxy) {
    let home = Home::new();
    let mut service = Service::start(home.new_server().args(["--trusted-proxy", "127.0.0.1"]));
    let code = service.line_with("#setup=").expect("a new server prints its code");
    let code = code.split("#setup=").nth(1).expect("it was found").trim().to_owned();
    let proxy = start(service.address());

    let (status, page) = proxy.curl("/svc/", &[]);
    assert_eq!(status, "200");
    assert!(page.contains("<html"), "{page}");
    assert!(
        proxy.curl("/svc", &[]).0.starts_with("30"),
        "the prefix leads to the page"
    );
    assert_eq!(proxy.curl("/svc/ping", &[]).0, "200");
    // The proxy is on this machine, and its clients are not.
    let json = ["--header", "Content-Type: application/json", "--data"];
    let key = format!("{{\"token\":\"{KEY}\"}}");
    let without_code = proxy.curl("/svc/api/v1/setup", &[&json[..], &[&key]].concat());
    assert_eq!(without_code.0, "403", "{without_code:?}");
    let takeover = [
        "--header",
        "X-Svc-Client: test",
        "--data",
        "{\"url\":\"http://192.0.2.1/f\"}",
    ];
    let early = proxy.curl("/svc/download", &takeover);
    assert_eq!(early.0, "403", "{early:?}");
    assert!(early.1.contains("setup required"), "{early:?}");
    let with_code = format!("{{\"token\":\"{KEY}\",\"code\":\"{code}\"}}");
    let set = proxy.curl("/svc/api/v1/setup", &[&json[..], &[&with_code]].concat());
    assert_eq!(set.0, "200", "{set:?}");

    assert_eq!(proxy.curl("/svc/download", &takeover).0, "401", "now the key is wanted");
    let token = format!("X-Svc-Token: {KEY}");
    let taken = proxy.curl("/svc/download", &[&["--header", &token], &takeover[..]].concat());
    assert_eq!(taken.0, "200", "{taken:?}");
    let foreign = ["--header", "Origin: https://evil.test", "--header", &token];
    assert_eq!(
        proxy.curl("/svc/download", &[&foreign, &takeover[..]].concat()).0,
        "403"
    );
    let origin = format!("Origin: {}", proxy.url(""));
    let own = ["--header", &origin, "--header", &token];
    assert_eq!(
        proxy.curl("/svc/download", &[&own, &takeover[..]].concat()).0,
        "200",
        "its own page"
    );

    // The WebSocket, and a download from there to the client.
    let server = Server::with(&[("file.bin", b"abc")]);
    let added = proxy.svc(&home, &["add", "--wait", &format!("{}file.bin", server.url)]);
    added.assert_success();
    let list = proxy.svc(&home, &["list", "--json"]);
    list.assert_success();
    let tasks: Value = serde_json::from_str(&list.stdout.join("\n")).expect("--json prints JSON");
    let file = tasks
        .as_array()
        .expect("it is a list")
        .iter()
        .find(|task| task["fileName"] == "file.bin");
    let id = file
        .and_then(|task| task["taskId"].as_str())
        .expect("the task is listed");
    let authorization = format!("Authorization: Bearer {KEY}");
    let fetched = proxy.curl(&format!("/svc/api/web/files/tasks/{id}"), &["--header", &authorization]);
    assert_eq!(fetched, ("200".to_owned(), "abc".to_owned()));
}

#[test]
fn behind_nginx_everything_works_below_a_prefix_with_tls() {
    check(Proxy::nginx);
}

#[test]
fn behind_caddy_everything_works_below_a_prefix_with_tls() {
    check(Proxy::caddy);
}
