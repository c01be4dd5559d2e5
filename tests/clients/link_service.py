"""Services for tests of the device link: started, killed and started again."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from link_peer import LINK, Service  # noqa: E402

KEY = os.environ.get("SVC_TOKEN", "the-access-key-1")


class Running:
    """`svc serve` with a data directory of its own, on an address that stays the same."""

    def __init__(self, program, name, root=None, bind="127.0.0.1:0", prefix=(), save=None):
        self.program, self.name, self.bind, self.prefix = program, name, bind, list(prefix)
        self.root = root or tempfile.mkdtemp(prefix="svc-link-")
        self.save = save or os.path.join(self.root, "downloads")
        os.makedirs(self.save, exist_ok=True)
        self.process = None
        self.start()

    def start(self, **environment):
        variables = {"PATH": os.environ["PATH"], "HOME": self.root, "SVC_TOKEN": KEY, "SVC_LINK_NAME": self.name}
        arguments = ["serve", "--bind", self.bind, "--data-dir", os.path.join(self.root, "data"), "--save-dir", self.save]
        self.log = open(os.path.join(self.root, "stderr"), "ab")
        self.process = subprocess.Popen(
            self.prefix + [self.program] + arguments, env=variables | environment, stdout=subprocess.PIPE,
            stderr=self.log, text=True,
        )
        for line in self.process.stdout:
            found = re.search(r"Address\s+(?:http://)?(\S+)", line)
            if found:
                break
        else:
            raise AssertionError(f"{self.name} did not start: {open(self.log.name).read()}")
        self.address = found.group(1).removeprefix("http://").rstrip("/")
        self.bind = self.bind.rsplit(":", 1)[0] + ":" + self.address.rsplit(":", 1)[1]
        self.port = int(self.address.rsplit(":", 1)[1])
        self.api = Service("http://127.0.0.1:%d" % self.port, KEY)
        if not self.prefix:
            self.wait_until_ready()
        return self

    def wait_until_ready(self):
        """Until the agent has its daemon."""
        for _ in range(400):
            if self.api.send("GET", LINK + "/devices", b"", {"Authorization": "Bearer " + KEY})[0] == 200:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} has no daemon")

    def daemon_pid(self):
        return json.load(open(os.path.join(self.root, "data", "daemon.json")))["pid"]

    def kill(self, also_daemon=True):
        """As a crash does: with SIGKILL."""
        daemon = self.daemon_pid() if also_daemon else None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()
        if daemon:
            try:
                os.kill(daemon, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def devices(self):
        return {entry["fingerprint"]: entry for entry in self.api.manage("GET", LINK + "/devices")["devices"]}

    def fingerprint(self):
        return json.loads(self.api.send("GET", "/ping")[2])["linkFingerprint"]
