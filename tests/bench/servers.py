"""Servers of FTP and SFTP, in place of nginx: vsftpd and OpenSSH."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from origin import START_SECONDS, free_port

VSFTPD = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
seccomp_sandbox=NO
anonymous_enable=YES
local_enable=NO
anon_root={data}
secure_chroot_dir={prefix}/empty
"""

SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {prefix}/host
PidFile none
StrictModes no
AuthorizedKeysFile {prefix}/client.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
Subsystem sftp internal-sftp
"""


class Server:
    """A server of our own on loopback, in the foreground, for as long as the `with` lasts."""

    def __init__(self, scratch: Path, data: Path):
        self.host = "127.0.0.1"
        self.port = free_port()
        self.prefix = scratch / f"server-{self.port}"
        self.data = data
        self.process: subprocess.Popen | None = None

    def prepare(self, config: Path) -> list[str | Path]:
        """Writes the configuration; returns the command."""
        raise NotImplementedError

    def __enter__(self) -> Server:
        self.prefix.mkdir()
        log = self.prefix / "log"
        command = self.prepare(self.prefix / "config")
        # vsftpd says what is wrong with its configuration over what would be the connection.
        with open(log, "wb") as said:
            self.process = subprocess.Popen(command, stdin=said, stdout=said, stderr=said, start_new_session=True)
        try:
            self._wait_until_listening(log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_until_listening(self, log: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection((self.host, self.port)).close()
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {log.read_text()}") from error
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.prefix)


class FtpServer(Server):
    """vsftpd without encryption, which gives everybody the files."""

    def prepare(self, config: Path) -> list[str | Path]:
        (self.prefix / "empty").mkdir()
        # Anonymous clients are another user, who may not pass a private temporary folder.
        self.data.chmod(0o755)
        config.write_text(VSFTPD.format(port=self.port, data=self.data, prefix=self.prefix))
        return [shutil.which("vsftpd"), config]


class SshServer(Server):
    """OpenSSH, with a key for this user."""

    def __init__(self, scratch: Path, data: Path):
        super().__init__(scratch, data)
        self.user = getpass.getuser()
        self.key = self.prefix / "client"
        self.fingerprint = ""

    def prepare(self, config: Path) -> list[str | Path]:
        for key in (self.prefix / "host", self.key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
        told = subprocess.run(["ssh-keygen", "-lf", self.prefix / "host.pub"], check=True, capture_output=True, text=True)
        self.fingerprint = told.stdout.split()[1]
        config.write_text(SSHD.format(port=self.port, prefix=self.prefix))
        if os.geteuid() == 0:
            # Where Debian's has its privilege separation; the package makes it when the system starts.
            Path("/run/sshd").mkdir(exist_ok=True)
        return [shutil.which("sshd"), "-D", "-e", "-f", config]
