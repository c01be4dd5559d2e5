//! The packages, without a daemon of containers and without a package registry: what they consist of is made and run here.
//! Root only, as it mounts file systems and enters them.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{
    Run, Service, Svc, binary, http, python,
    service::{KEY, signal, wait_until},
};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::service::plugins::Server;

/// Enters a root file system as a runtime of containers does: read-only, with volumes, `/proc`, `/dev` and `/tmp`, as a user
/// without capabilities.
const ENTER: &str = r#"
set -e
root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for volume in data downloads; do
    mount --bind "$root.$volume" "$root/$volume"
done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -o remount,ro,bind "$root"
exec setpriv --no-new-privs chroot --userspec="$user:$user" --groups="" "$root" /usr/local/bin/svc "$@"
"#;

fn repository(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(name).canonicalize().expect("it is part of the repository")
}

/// The file system of the image, and its volumes.
struct Image {
    directory: TempDir,
}

impl Image {
    /// Built by the script that the Dockerfile uses.
    fn build() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let image = Self { directory };
        let built = Command::new(repository("host/packaging/container/rootfs"))
            .arg(binary::path())
            .arg(image.root())
            .output()
            .expect("bash is part of the system");
        assert!(built.status.success(), "{built:?}");
        for mount in ["proc", "dev"] {
            fs::create_dir(image.root().join(mount)).expect("it is writable");
        }
        for volume in ["data", "downloads"] {
            let path = image.volume(volume);
            fs::create_dir(&path).expect("it is writable");
            std::os::unix::fs::chown(&path, Some(1000), Some(1000)).expect("this test runs as root");
        }
        image
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("rootfs")
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("rootfs.{name}"))
    }

    fn svc(&self, user: u32, arguments: &[&str]) -> Svc {
        let svc = Svc::of("/usr/bin/unshare").args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "/bin/sh",
            "-c",
            ENTER,
            "sh",
        ]);
        let svc = svc.arg(self.root()).arg(user.to_string()).args(arguments);
        let environment = [
            ("SVC_DATA_DIR", "/data"),
            ("SVC_SAVE_DIR", "/downloads"),
            ("HOME", "/data"),
            ("SVC_TOKEN", KEY),
        ];
        let svc = environment
            .into_iter()
            .fold(svc, |svc, (name, value)| svc.env(name, value));
        svc.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    }

    fn run(&self, user: u32, arguments: &[&str]) -> Run {
        self.svc(user, arguments).run()
    }
}

/// Asks the first process of the container to end, as a runtime does; what entered it ends then, too.
fn stop(service: Service) {
    let entered = service.pid();
    let children = fs::read_to_string(format!("/proc/{entered}/task/{entered}/children")).expect("it runs");
    let first = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
    signal(first.expect("the container has a process"), Signal::TERM);
    assert_eq!(service.finish().code, Some(0));
}

#[test]
fn the_container_downloads_restarts_and_names_a_wrong_user() {
    let image = Image::build();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    drop(listener);
    let serve = ["serve", "--bind", &address];

    let wrong = image.run(1234, &serve);
    assert_eq!(wrong.code, Some(16), "{wrong:?}");
    let said = "/data belongs to user 1000, group 1000; this process is user 1234, group 1234";
    assert!(
        wrong.stderr.contains(said) && wrong.stderr.contains("PUID"),
        "{wrong:?}"
    );

    let doctor = image.run(1000, &["doctor"]);
    let said = doctor.stdout.join("\n");
    assert!(said.contains("in a container; a new image updates it"), "{doctor:?}");

    let server = Server::with(&[("file.bin", b"abc")]);
    let authorization = format!("Bearer {KEY}");
    let call = |method: &str, path: &str, body: Option<&serde_json::Value>| {
        let answer = http::ask(&address, method, path, &[("Authorization", &authorization)], body);
        answer.expect("it answers")
    };
    for round in 0..2 {
        let service = Service::start(image.svc(1000, &serve));
        wait_until("the service is ready", || {
            call("GET", "/api/v1/tasks", None).status == 200
        });
        if round == 0 {
            let made = call(
                "POST",
                "/api/v1/tasks",
                Some(&json!({"url": format!("{}file.bin", server.url)})),
            );
            assert_eq!(made.status, 200, "{made:?}");
        }
        let file = image.volume("downloads").join("file.bin");
        wait_until("the file is there", || {
            fs::read(&file).is_ok_and(|bytes| bytes == b"abc")
        });
        let owner = fs::metadata(&file).expect("it is there");
        assert_eq!((owner.uid(), owner.gid()), (1000, 1000));
        let tasks = call("GET", "/api/v1/tasks", None);
        assert!(tasks.body.to_string().contains("file.bin"), "kept in the volume");
        stop(service);
    }
    let names = fs::read_dir(image.root())
        .expect("it is there")
        .map(|entry| entry.expect("it is listed").file_name());
    assert!(
        names.into_iter().all(|name| name != "bin" && name != "sh"),
        "there is no shell"
    );
}

#[test]
fn the_installer_takes_what_is_signed_and_nothing_else() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let path = directory.path().to_str().expect("its path is UTF-8");
    python::client("clients/installer.py").arg(path).run().assert_success();
    // What was not installed by it is not updated by it.
    let run = Svc::new().arg("self-update").run();
    assert_eq!(run.code, Some(32), "{run:?}");
    assert!(run.stderr.contains("was not installed by install.sh"), "{run:?}");
}

#[test]
fn the_debian_package_installs_runs_upgrades_and_goes() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    // Not python::client: cargo-deb is found where cargo installs.
    let path = directory.path().to_str().expect("its path is UTF-8");
    let executable = binary::path().to_str().expect("its path is UTF-8");
    python::run("clients/debian_package.py", &[executable, path]);
}

#[test]
fn the_units_are_valid_and_confined() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    for (name, highest) in [("svc.service", 3.0), ("svc-user.service", 9.0)] {
        let unit = fs::read_to_string(repository("host/packaging/systemd").join(name)).expect("it is there");
        // Neither the executable nor its manual is installed where tests run.
        let lines = unit.replace("/usr/bin/svc", "/bin/true");
        let lines: String = lines
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("Documentation"))
            .collect();
        let path = directory.path().join(name);
        fs::write(&path, lines).expect("it is writable");
        let analyze = |arguments: &[&str]| {
            let output = Command::new("/usr/bin/systemd-analyze")
                .args(arguments)
                .arg(&path)
                .output();
            let output = output.expect("systemd-analyze is there");
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            (output.status.success(), said)
        };
        if name == "svc.service" {
            assert_eq!(analyze(&["verify"]), (true, String::new()));
        }
        let (_, said) = analyze(&["security", "--offline=true"]);
        let level = said
            .split("exposure level for ")
            .nth(1)
            .and_then(|rest| rest.split(' ').nth(1));
        let level: f64 = level
            .and_then(|level| level.parse().ok())
            .unwrap_or_else(|| panic!("{said}"));
        assert!(level <= highest, "{name} is exposed at {level}");
    }
}
