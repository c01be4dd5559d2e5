"""Installs with host/packaging/install.sh from a release that is made here, and shows what it refuses.

    installer.py DIRECTORY

The archive has a small program in place of the service, because only what the installer does with it counts.
"""

import functools
import http.server
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "#!/bin/sh\necho svc {version}\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def run(*command, check=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done


def sign(key, file, comment):
    run("minisign", "-S", "-s", key, "-m", file, "-t", comment)


def publish(directory, key, version, target, latest=True):
    """An archive as the release script packs it."""
    name = f"svc-{version}-{target}.tar.gz"
    with tarfile.open(directory / name, "w:gz") as archive:
        for path, text, mode in [("bin/svc", PROGRAM.format(version=version), 0o755), ("share/man/man1/svc.1.gz", "page", 0o644)]:
            entry = tarfile.TarInfo(f"svc-{version}/{path}")
            entry.size, entry.mode = len(text), mode
            archive.addfile(entry, io.BytesIO(text.encode()))
    sign(key, directory / name, f"svc {version} {target}")
    if latest:
        (directory / "latest").write_text(version + "\n")
        sign(key, directory / "latest", f"svc {version} latest")
    return directory / name


def main(directory):
    directory = pathlib.Path(directory)
    release = directory / "release"
    release.mkdir()
    target = f"{os.uname().machine}-unknown-linux-gnu"
    for name in ["own", "other"]:
        run("minisign", "-G", "-W", "-p", directory / f"{name}.pub", "-s", directory / f"{name}.key")
    key = directory / "own.key"
    handler = functools.partial(Quiet, directory=release)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script = directory / "install.sh"
    text = (ROOT / "host/packaging/install.sh").read_text()
    text = text.replace("@PUBLIC_KEY@", (directory / "own.pub").read_text().splitlines()[1])
    script.write_text(text.replace("from='@BASE_URL@'", f"from='http://127.0.0.1:{server.server_address[1]}'"))

    # Two sets of programs: with minisign, and with openssl only.
    programs = directory / "programs"
    programs.mkdir()
    for name in "sh curl openssl base64 sed head tail od tr wc sort grep mktemp rm mkdir cp mv tar gzip find dirname basename cat uname sleep".split():
        (programs / name).symlink_to(shutil.which(name))
    for path in [os.environ["PATH"], str(programs)]:
        prefix = directory / f"prefix-{len(path)}"

        def install(*options, check=True, script=script):
            environment = {"PATH": path, "HOME": str(directory)}
            return run("/bin/sh", script, "--prefix", prefix, *options, check=check, env=environment)

        def refused(word, *options, **more):
            done = install(*options, check=False, **more)
            assert done.returncode == 1 and word in done.stderr, (word, done)

        for file in release.iterdir():
            file.unlink()
        archive = publish(release, key, "1.0.0", target)
        install()
        svc = prefix / "bin/svc"
        assert run(svc).stdout == "svc 1.0.0\n"
        assert "installed already" in install().stdout
        newer = publish(release, key, "1.10.0", target)
        # The same script, from where it was installed: what svc self-update runs.
        install(script=prefix / "share/svc/install.sh")
        assert run(svc).stdout == "svc 1.10.0\n"
        refused("is older", "--version", "1.0.0")
        install("--version", "1.0.0", "--allow-older")

        bytes_ = newer.read_bytes()
        newer.write_bytes(bytes_[:-1] + bytes([bytes_[-1] ^ 1]))
        refused("not valid")
        newer.write_bytes(bytes_)
        signature = pathlib.Path(f"{newer}.minisig")
        good = signature.read_text()
        sign(directory / "other.key", newer, f"svc 1.10.0 {target}")
        refused("not valid")
        # The comment is signed, too.
        signature.write_text(good.replace("svc 1.10.0", "svc 1.11.0"))
        refused("not valid")
        # A valid signature and archive of another version under this name.
        newer.write_bytes(archive.read_bytes())
        signature.write_text(pathlib.Path(f"{archive}.minisig").read_text())
        refused("is of")
        assert run(svc).stdout == "svc 1.0.0\n", "what was refused left the installation alone"

        install("--remove")
        left = [file for file in prefix.rglob("*") if file.is_file()]
        assert left == [], left
        refused("was not installed", "--remove")
        svc.parent.mkdir(parents=True, exist_ok=True)
        svc.write_text("of a package")
        newer.write_bytes(bytes_)
        signature.write_text(good)
        refused("was not installed by install.sh")
        assert svc.read_text() == "of a package"
    server.shutdown()
    print("installed, updated, refused and removed, with minisign and with openssl")


main(sys.argv[1])
