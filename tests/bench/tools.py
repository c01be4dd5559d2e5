"""The programs that are compared, and how each is told to do the same work quietly and without configuration files."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from origin import Payload, nginx_program

PACKAGES = {
    "aria2c": "aria2",
    "axel": "axel",
    "curl": "curl",
    "gcc": "gcc",
    "lftp": "lftp",
    "nginx": "nginx-light",
    "openssl": "openssl",
    "sftp": "openssh-client",
    "sshd": "openssh-server",
    "vsftpd": "vsftpd",
}
NEEDED = ("nginx", "openssl", "gcc")

ARIA2C = ["aria2c", "--no-conf=true", "-q"]
# -q first: no configuration file.
CURL = ["curl", "-q", "-sS", "-f"]


@dataclass(frozen=True)
class Work:
    """One row's downloads as a tool sees them."""

    host: str
    port: int
    # What stands between host and folder, such as "/throttled".
    path: str
    scheme: str
    payload: Payload
    data: Path
    target: Path
    # An input list in aria2's format, and the same for curl.
    url_list: Path
    curl_config: Path
    svc: Path
    floor: Path
    # Of a server with SSH: who logs in with which key, and the key of the server.
    user: str = ""
    key: Path | None = None
    fingerprint: str = ""

    def url_path(self, name: str) -> str:
        return f"{self.path}/{self.payload.folder}/{name}"

    def url_of(self, name: str) -> str:
        login = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{login}{self.host}:{self.port}{self.url_path(name)}"

    @property
    def name(self) -> str:
        return self.payload.names[0]

    @property
    def url(self) -> str:
        return self.url_of(self.name)

    @property
    def out(self) -> Path:
        return self.target / self.name

    def write_lists(self) -> None:
        names = self.payload.names
        self.url_list.write_text("".join(f"{self.url_of(name)}\n" for name in names))
        entries = (f'url = "{self.url_of(name)}"\noutput = "{self.target / name}"\n' for name in names)
        self.curl_config.write_text("".join(entries))


@dataclass(frozen=True)
class Contender:
    """A tool with its flags. Contenders of one `kind` are variants of the same program."""

    kind: str
    label: str
    build: Callable[[Work], list[str | Path]]

    def command(self, work: Work) -> list[str]:
        return [str(part) for part in self.build(work)]

    def shown(self, work: Work) -> str:
        """The command without what differs from run to run."""
        command = shlex.join(self.command(work))
        for real, name in (
            (str(work.svc), "svc"),
            (str(work.floor), "floor"),
            (str(work.target), "DIR"),
            (str(work.data), "DATA"),
            (str(work.url_list), "LIST"),
            (str(work.curl_config), "CONFIG"),
            (str(work.key), "KEY"),
            (work.fingerprint or "SHA256:", "SHA256:…"),
            (work.url, "URL"),
            (f"{work.host} {work.port}", "HOST PORT"),
        ):
            command = command.replace(real, name)
        return command


def svc(*flags: str, label: str | None = None) -> Contender:
    return Contender(
        "svc",
        label or " ".join(("svc", *flags)),
        lambda work: [work.svc, "get", "-q", *flags, "-d", work.target, "-o", work.name, work.url],
    )


def svc_ssh(*flags: str, label: str | None = None) -> Contender:
    return Contender(
        "svc",
        label or " ".join(("svc", *flags)),
        lambda work: [
            *(work.svc, "get", "-q", "--ssh-key", work.key, "--ssh-host-key", work.fingerprint, *flags),
            *("-d", work.target, "-o", work.name, work.url),
        ],
    )


def svc_list(*flags: str) -> Contender:
    return Contender(
        "svc",
        " ".join(("svc -i", *flags)),
        lambda work: [work.svc, "get", "-q", *flags, "-d", work.target, "-i", work.url_list],
    )


def aria2c(*flags: str, allocation: str = "none", label: str | None = None) -> Contender:
    return Contender(
        "aria2c",
        label or " ".join(("aria2c", *flags)),
        lambda work: [*ARIA2C, f"--file-allocation={allocation}", *flags, "-d", work.target, "-o", work.name, work.url],
    )


def aria2c_list(*flags: str) -> Contender:
    return Contender(
        "aria2c",
        " ".join(("aria2c -i", *flags)),
        lambda work: [*ARIA2C, "--file-allocation=none", *flags, "-d", work.target, "-i", work.url_list],
    )


def curl(*flags: str) -> Contender:
    return Contender("curl", " ".join(("curl", *flags)), lambda work: [*CURL, *flags, "-o", work.out, work.url])


def curl_ssh() -> Contender:
    return Contender(
        "curl",
        "curl",
        lambda work: [*CURL, "-k", "--key", work.key, "--pubkey", f"{work.key}.pub", "-o", work.out, work.url],
    )


def openssh() -> Contender:
    """OpenSSH's own client."""
    trusting = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
    return Contender(
        "sftp",
        "sftp",
        lambda work: [
            *("sftp", "-q", *trusting, "-i", work.key, "-P", str(work.port)),
            *(f"{work.user}@{work.host}:{work.url_path(work.name)}", work.out),
        ],
    )


def curl_list(connections: int) -> Contender:
    return Contender(
        "curl",
        f"curl -Z {connections}",
        lambda work: [*CURL, "-Z", "--parallel-max", str(connections), "-K", work.curl_config],
    )


def axel(connections: int) -> Contender:
    return Contender(
        "axel", f"axel -n{connections}", lambda work: ["axel", "-q", f"-n{connections}", "-o", work.out, work.url]
    )


def lftp(connections: int) -> Contender:
    return Contender(
        "lftp",
        f"lftp pget -n{connections}",
        lambda work: ["lftp", "--norc", "-c", f"set cmd:fail-exit yes; pget -n {connections} {work.url} -o {work.out}"],
    )


def floor(mode: str, connections: int) -> Contender:
    """The limit: see floor.c."""
    how = {"write": "recv + pwrite", "splice": "splice"}[mode]

    def build(work: Work) -> list[str | Path]:
        size = str(work.payload.size_bytes)
        return [work.floor, mode, str(connections), work.host, str(work.port), work.url_path(work.name), size, work.out]

    return Contender("limit", f"limit: {connections} × {how}", build)


def copy() -> Contender:
    """The limit for many files: no network at all."""
    return Contender(
        "limit", "limit: cp -r", lambda work: ["cp", "-r", f"{work.data / work.payload.folder}/.", work.target]
    )


def is_installed(program: str) -> bool:
    return bool(nginx_program() if program == "nginx" else shutil.which(program))


def is_present(contender: Contender) -> bool:
    """Whether a contender can run: svc and the limit always can."""
    return contender.kind not in PACKAGES or is_installed(contender.kind)


def missing_programs() -> list[str]:
    return [program for program in PACKAGES if not is_installed(program)]


def apt_line(programs: list[str]) -> str:
    return "apt-get install " + " ".join(PACKAGES[program] for program in programs)


def versions(svc_program: Path) -> list[str]:
    """The first line of what every installed program says of its version."""
    commands = [[str(svc_program), "--version"]]
    for program in PACKAGES:
        if is_installed(program):
            commands.append(
                {
                    "nginx": [nginx_program(), "-v"],
                    "openssl": ["openssl", "version"],
                    "sftp": ["ssh", "-V"],
                    "sshd": ["ssh", "-V"],
                    # It says so over what would be the connection.
                    "vsftpd": ["sh", "-c", "vsftpd -v 0>&1"],
                }.get(program)
                or [program, "--version"]
            )
    lines = []
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines.append(next((line.strip() for line in done.stdout.splitlines() if line.strip()), f"{command[0]}: silent"))
    return list(dict.fromkeys(lines))
