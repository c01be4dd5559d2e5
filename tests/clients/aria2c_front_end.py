"""A front end that starts aria2c itself, as they do: finds it on PATH, reads its version, gives it a port and a secret,
talks to it, asks it to save and to end.

    aria2c_front_end.py DIRECTORY-OF-ARIA2C DOWNLOADS          the secret is in SVC_TOKEN
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import aria2_reference
import aria2p_client
from aria2_reference import PATIENCE

# From its start to the first answer. What is promised is a fifth of it, for a release build on a machine that is free.
FIRST_ANSWER = 1.0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def post(port, method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/jsonrpc", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def start(downloads, *options):
    port = free_port()
    began = time.monotonic()
    line = ["aria2c", "--no-conf", "--enable-rpc", f"--rpc-listen-port={port}", "--console-log-level=warn", *options]
    child = subprocess.Popen(line, cwd=downloads, stdout=subprocess.DEVNULL)
    while True:
        try:
            post(port, "aria2.getVersion", "token:" + os.environ["SVC_TOKEN"])
            return child, port, time.monotonic() - began
        except urllib.error.URLError:
            assert child.poll() is None and time.monotonic() - began < PATIENCE, child.poll()
            time.sleep(0.002)


def leads_to(link, target):
    """Whether a link of /proc leads there. Files that were open a moment ago are gone by now."""
    try:
        return os.readlink(link) == target
    except OSError:
        return False


def owner(port):
    """The program that has the connection from this port of this machine open."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table]
    inode = next(row[9] for row in rows[1:] if row[1] == f"0100007F:{port:04X}")
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(leads_to(file, f"socket:[{inode}]") for file in (process / "fd").iterdir()):
                return os.readlink(process / "exe")
        except OSError:
            continue
    raise AssertionError(f"nobody has port {port} open")


class Watched(aria2_reference.Origin):
    """An origin that knows which program asks."""

    askers = []

    def do_GET(self):
        self.askers.append(owner(self.client_address[1]))
        super().do_GET()


def with_yt_dlp(directory, downloads):
    url = f"{aria2_reference.serve(Watched)}/fast/video.mp4"
    program = pathlib.Path(sys.executable).with_name("yt-dlp")
    line = [program, "--no-config", "--quiet", "--downloader", f"{directory}/aria2c", "--output", "video.mp4", url]
    subprocess.run(line, cwd=downloads, check=True)
    assert [(file.name, file.stat().st_size) for file in downloads.glob("video*")] == [("video.mp4", 65536)]
    # It looks at the link itself, first; the file was fetched by ours, as nobody else could have.
    assert Watched.askers[-1] == os.path.realpath(f"{directory}/aria2c"), Watched.askers


def main(directory, downloads):
    os.environ["PATH"] = directory + os.pathsep + os.environ["PATH"]
    downloads = pathlib.Path(downloads)
    secret = os.environ["SVC_TOKEN"]
    token = "token:" + secret
    said = subprocess.run(["aria2c", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"aria2 version (\d+\.\d+\.\d+)\n", said)
    assert version, said

    # A library that is not ours, from adding to removing.
    session = downloads / "session"
    child, port, first = start(downloads, f"--rpc-secret={secret}", f"--save-session={session}", f"--dir={downloads}")
    aria2p_client.main(f"127.0.0.1:{port}")
    assert post(port, "aria2.getVersion", token)["result"]["version"] == version[1]
    assert post(port, "aria2.getGlobalOption", token)["result"]["split"] == "5"
    gid = post(port, "aria2.addUri", token, ["http://127.0.0.1:1/f"], {"pause": "true", "out": "later"})["result"]
    assert post(port, "aria2.saveSession", token)["result"] == "OK"
    saved = session.read_text()
    assert f" gid={gid}\n" in saved and " pause=true\n" in saved and " out=later\n" in saved, saved
    assert post(port, "aria2.shutdown", token)["result"] == "OK"
    # The last error there was, although its result is purged.
    assert child.wait(PATIENCE) == 3, child.returncode

    # A program that starts aria2c for every file, with options, headers and cookies of its own.
    with_yt_dlp(directory, downloads)

    # The session again, without a secret; every dialect but aria2's is off.
    child, port, second = start(downloads, "-i", str(session), f"--save-session={session}")
    waiting = post(port, "aria2.tellWaiting", 0, 10, ["gid", "status"])["result"]
    assert waiting == [{"gid": gid, "status": "paused"}], waiting
    for path in ("/", "/ping", "/api/v1/tasks", "/mcp"):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE)
            raise AssertionError(path)
        except urllib.error.HTTPError as refused:
            assert refused.code == 404, (path, refused.code)
    # Another session file: a new one is written, and nothing but a session file is replaced.
    other, precious = session.with_name("other-session"), session.with_name("precious")
    precious.write_text("not a session\n")
    refused = post(port, "aria2.changeGlobalOption", {"save-session": str(precious)})
    assert "no session file" in refused["error"]["message"], refused
    assert post(port, "aria2.changeGlobalOption", {"save-session": str(other)})["result"] == "OK"
    assert post(port, "aria2.saveSession")["result"] == "OK"
    assert f" gid={gid}\n" in other.read_text() and precious.read_text() == "not a session\n"
    assert post(port, "aria2.changeGlobalOption", {"save-session": str(session)})["result"] == "OK"
    assert post(port, "aria2.forceShutdown")["result"] == "OK"
    child.wait(PATIENCE)
    assert max(first, second) < FIRST_ANSWER, (first, second)
    print(f"aria2c {version[1]}: first answers after {first * 1000:.0f} and {second * 1000:.0f} ms")

    # The same calls to it and to aria2c itself, which has an empty directory, too.
    calls = downloads / "calls"
    calls.mkdir()
    child, port, _ = start(calls, f"--rpc-secret={secret}", f"--save-session={session}")
    try:
        os.environ["PATH"] = os.environ["PATH"].removeprefix(directory + os.pathsep)
        aria2_reference.main(f"127.0.0.1:{port}")
    finally:
        child.terminate()
        child.wait(PATIENCE)


if __name__ == "__main__":
    main(*sys.argv[1:])
