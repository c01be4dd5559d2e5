"""Servers of FTP and SFTP, in place of nginx: vsftpd and OpenSSH."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from pathlib import Path

from origin import Server

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


class FtpServer(Server):
    """vsftpd without encryption, which gives everybody the files."""

    program = "vsftpd"

    def prepare(self, log: Path) -> list[str | Path]:
        config = self.prefix / "config"
        (self.prefix / "empty").mkdir()
        # Anonymous clients are another user, who may not pass a private temporary folder.
        self.data.chmod(0o755)
        config.write_text(VSFTPD.format(port=self.port, data=self.data, prefix=self.prefix))
        return [shutil.which(self.program), config]


class SshServer(Server):
    """OpenSSH, with a key for this user."""

    program = "sshd"

    def __init__(self, scratch: Path, data: Path):
        super().__init__(scratch, data)
        self.user = getpass.getuser()
        self.key = self.prefix / "client"
        self.fingerprint = ""

    def prepare(self, log: Path) -> list[str | Path]:
        config = self.prefix / "config"
        for key in (self.prefix / "host", self.key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
        told = subprocess.run(["ssh-keygen", "-lf", self.prefix / "host.pub"], check=True, capture_output=True, text=True)
        self.fingerprint = told.stdout.split()[1]
        config.write_text(SSHD.format(port=self.port, prefix=self.prefix))
        if os.geteuid() == 0:
            # Where Debian's has its privilege separation; the package makes it when the system starts.
            Path("/run/sshd").mkdir(exist_ok=True)
        return [shutil.which(self.program), "-D", "-e", "-f", config]


# By the scheme of their URLs.
SERVERS = {"ftp": FtpServer, "sftp": SshServer}
