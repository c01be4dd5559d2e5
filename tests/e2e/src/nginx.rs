//! nginx, as an administrator runs it.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::service::wait_until;

/// nginx in front of a directory. Dropping it ends it.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    own: TempDir,
    port: u16,
}

impl Nginx {
    /// Serves what is in this directory.
    pub fn serve(root: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("loopback has a free port").port();
        let own = tempfile::tempdir().expect("there is room for temporary files");
        let (folder, root) = (own.path().display(), root.display());
        // One process, which may read what the test may: a worker would be another user.
        let config = format!(
            "daemon off; master_process off; error_log {folder}/error.log; pid {folder}/pid; events {{}}
            http {{
                log_format sent '$request_method $uri $status $body_bytes_sent'; access_log {folder}/access.log sent;
                client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
                fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                server {{ listen 127.0.0.1:{port}; root {root}; }}
            }}"
        );
        let path = own.path().join("nginx.conf");
        fs::write(&path, config).expect("a temporary directory is writable");
        let mut nginx = Command::new(program());
        nginx.arg("-p").arg(own.path()).arg("-c").arg(&path);
        nginx.arg("-e").arg(own.path().join("error.log"));
        let child = nginx.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("the program is there");
        wait_until("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, own, port }
    }

    /// The URL of the directory, with a slash at its end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// What it was asked so far: method, path, status and bytes of the body that were sent.
    pub fn answers(&self) -> Vec<(String, String, u16, u64)> {
        let log = fs::read_to_string(self.own.path().join("access.log")).unwrap_or_default();
        let read = |line: &str| {
            let mut words = line.split(' ');
            let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some((method, path, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        log.lines().filter_map(read).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_been_waited_for = self.child.wait();
    }
}

fn program() -> &'static str {
    // It is an administrator's program on some systems, and not on everybody's path.
    let places = [
        "/usr/sbin/nginx",
        "/usr/bin/nginx",
        "/usr/local/bin/nginx",
        "/opt/homebrew/bin/nginx",
    ];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.expect("these tests need nginx (apt-get install nginx-light); tests/run installs it")
}
