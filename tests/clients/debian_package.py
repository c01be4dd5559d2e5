"""Installs, runs, upgrades, removes and purges the Debian package, in a root file system of its own above this machine's.

    debian_package.py EXECUTABLE DIRECTORY

Root only. It enters a mount namespace, so that dpkg's database, users and files of this machine stay as they are. No systemd
runs there: the unit is checked by systemd-analyze, and its command is started as its user with its environment.
"""

import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "a-key-of-the-package-test-0123456789"


def run(*command, code=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert code is None or done.returncode == code, f"{command}: {done.returncode}: {done.stdout}"
    return done.stdout


def package(executable, directory, version):
    out = directory / version
    out.mkdir()
    run(ROOT / "host/packaging/package", executable, "--fast", "--deb-version", version, "--output", f"{out}/")
    [made] = out.glob("*.deb")
    return made


class System:
    """This machine's files, with a layer above them that takes every change."""

    def __init__(self, directory):
        layer = directory / "layer"
        layer.mkdir()
        run("mount", "--make-rprivate", "/")
        run("mount", "-t", "tmpfs", "tmpfs", layer)
        for name in ["upper", "work", "root"]:
            (layer / name).mkdir(mode=0o755)
        self.root = layer / "root"
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={layer}/upper,workdir={layer}/work", self.root)
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "run")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "tmp")

    def run(self, *command, **options):
        return run("chroot", self.root, *command, **options)

    def install(self, made):
        shutil.copy(made, self.root / "tmp" / made.name)
        return self.run("dpkg", "-i", f"/tmp/{made.name}", env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})

    def path(self, name):
        return self.root / name.lstrip("/")

    def exists(self, name):
        return os.path.lexists(self.path(name))


def settings(unit):
    """What a unit says, and the values of its environment."""
    lines = [line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#")]
    environment = dict(word.split("=", 1) for name, value in lines if name == "Environment" for word in value.split())
    return dict(lines), environment


class Service:
    """The unit's command, as systemd starts it: its user, its environment, without capabilities."""

    def __init__(self, system):
        unit, environment = settings(system.path("/usr/lib/systemd/system/svc.service").read_text())
        default = system.path(unit["EnvironmentFile"].lstrip("-")).read_text()
        environment |= dict(line.split("=", 1) for line in default.splitlines() if re.match("[A-Z_]+=", line))
        assert environment["SVC_BIND"] == "127.0.0.1:17800", environment
        environment |= {"SVC_BIND": "127.0.0.1:0", "SVC_TOKEN": KEY, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
        user = unit["User"]
        self.log = open(system.root / "tmp/service.log", "w+")
        enter = ["chroot", system.root, "setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs", "--inh-caps=-all"]
        command = unit["ExecStart"].split()
        self.process = subprocess.Popen([*enter, *command], env=environment, stdout=self.log, stderr=self.log)
        self.address = self.greeted()

    def greeted(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            text = pathlib.Path(self.log.name).read_text()
            found = re.search(r"http://127\.0\.0\.1:(\d+)", text)
            if found:
                return found[0]
            assert self.process.poll() is None, text
            time.sleep(0.05)
        raise AssertionError(text)

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method, data=body and json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {KEY}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, pathlib.Path(self.log.name).read_text()


def tasks(service):
    return [(task["taskId"], task["url"]) for task in service.call("GET", "/api/v1/tasks")]


def main(executable, directory):
    directory = pathlib.Path(directory)
    # As releases are; symbols only make the package large.
    stripped = directory / "svc"
    run("strip", "-o", stripped, executable)
    first, second = (package(stripped, directory, version) for version in ["0.1.0-1", "0.1.1-1"])
    fields = run("dpkg-deb", "--field", first)
    for field in ["Package: svc", "Version: 0.1.0-1", "Section: net", "adduser", "Description: Download service"]:
        assert field in fields, fields
    system = System(directory)
    assert not system.exists("/usr/bin/svc"), "this machine has svc already"

    said = system.install(first)
    assert "is installed and not started" in said, said
    entry = next(line for line in system.path("/etc/passwd").read_text().splitlines() if line.startswith("svc:"))
    _, _, user, *_, home, shell = entry.split(":")
    assert home == "/var/lib/svc" and shell.endswith("nologin"), entry
    status = system.path("/var/lib/svc").stat()
    assert (str(status.st_uid), status.st_mode & 0o777) == (user, 0o750), status
    assert not any(account.pw_name == "svc" for account in pwd.getpwall()), "the test changed this machine"
    for name in ["man/man1/svc.1.gz", "man/man1/svc-get.1.gz", "bash-completion/completions/svc", "zsh/vendor-completions/_svc", "fish/vendor_completions.d/svc.fish", "applications/svc.desktop", "doc/svc/copyright"]:
        assert system.exists(f"/usr/share/{name}"), name
    system.run("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/svc.service")
    run("desktop-file-validate", system.path("/usr/share/applications/svc.desktop"))
    assert system.run("/usr/bin/svc", "--version").startswith("svc ")
    assert "from the Debian package" in system.run("/usr/bin/svc", "doctor", code=None)

    service = Service(system)
    service.call("POST", "/api/v1/tasks", {"url": "http://127.0.0.1:9/kept.bin", "startPaused": True})
    kept = tasks(service)
    assert len(kept) == 1, kept
    # The administrator's change of a configuration file outlives upgrades.
    default = system.path("/etc/default/svc")
    default.write_text(default.read_text() + "\n# changed here\n")
    service.stop()

    said = system.install(second)
    assert "is installed and not started" not in said, said
    assert "# changed here" in default.read_text()
    assert "0.1.1-1" in system.run("dpkg-query", "-W", "svc")
    service = Service(system)
    assert tasks(service) == kept
    service.stop()
    saved = system.path("/var/lib/svc/downloads/file.bin")
    saved.write_bytes(b"downloaded")

    system.run("dpkg", "-r", "svc")
    assert not system.exists("/usr/bin/svc") and not system.exists("/usr/lib/systemd/system/svc.service")
    assert default.exists() and [path for path in system.path("/var/lib/svc").iterdir() if path.name != "downloads"]
    said = system.run("dpkg", "-P", "svc")
    assert "Downloads stay in /var/lib/svc/downloads" in said, said
    assert not default.exists() and saved.read_bytes() == b"downloaded"
    assert [path.name for path in system.path("/var/lib/svc").iterdir()] == ["downloads"]
    print("installed, ran, upgraded, removed, purged")


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.environ.get("SVC_TEST_NAMESPACE") != "1":
        os.environ["SVC_TEST_NAMESPACE"] = "1"
        # What is started here ends with it, whatever becomes of this process.
        os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, *sys.argv])
    main(*sys.argv[1:])
