"""What is downloaded, and the nginx that serves it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from measure import RunFailed

CHUNK_BYTES = 4 * 1024 * 1024
START_SECONDS = 10
MIB = 1024 * 1024

CONFIG = """
{user}
worker_processes 1;
pid {prefix}/nginx.pid;
error_log {prefix}/log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    sendfile_max_chunk 0;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    root {data};
    client_body_temp_path {prefix}/body;
    proxy_temp_path {prefix}/proxy;
    fastcgi_temp_path {prefix}/fastcgi;
    scgi_temp_path {prefix}/scgi;
    uwsgi_temp_path {prefix}/uwsgi;
    server {{
        listen {host}:{port};
        location / {{ }}
        location /throttled/ {{
            alias {data}/;
            limit_rate 10m;
        }}
    }}
    server {{
        listen {host}:{tls_port} ssl;
        ssl_protocols TLSv1.3;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
    }}
}}
"""


@dataclass(frozen=True)
class Payload:
    """Files of one size in one folder."""

    folder: str
    count: int
    size_bytes: int

    @property
    def names(self) -> list[str]:
        return [f"{index:05}.bin" for index in range(self.count)]

    @property
    def total_bytes(self) -> int:
        return self.count * self.size_bytes

    def make(self, data: Path) -> None:
        """Writes the files, unless they are there: pseudo-random, and the same on every machine."""
        folder = data / self.folder
        if folder.exists():
            return
        folder.mkdir(parents=True)
        # The key stream of AES in counter mode is the fastest pseudo-random data that a shell has.
        command = ["openssl", "enc", "-aes-128-ctr", "-K", "5" * 32, "-iv", "0" * 32, "-in", "/dev/zero"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as stream:
            try:
                for name in self.names:
                    write_exactly(stream.stdout, folder / name, self.size_bytes)
            finally:
                stream.kill()
        # Writing back what was just made would run beside the first measurements.
        os.sync()

    def check(self, data: Path, target: Path) -> None:
        """Compares what was downloaded, byte for byte. Fails too if anything else was left beside it."""
        expected, found = set(self.names), {entry.name for entry in os.scandir(target)}
        if missing := sorted(expected - found):
            raise WrongFiles(f"{len(missing)} files are missing, such as {missing[0]}")
        if extra := sorted(found - expected):
            raise WrongFiles(f"{len(extra)} files too many, such as {extra[0]}")
        for name in self.names:
            if not is_same(data / self.folder / name, target / name):
                raise WrongFiles(f"{name} is not what the server has")


class WrongFiles(RunFailed):
    """A tool said that it had downloaded everything, and had not."""


def write_exactly(stream, path: Path, size_bytes: int) -> None:
    with open(path, "wb") as file:
        left = size_bytes
        while left > 0:
            chunk = stream.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise RuntimeError("openssl ended early")
            file.write(chunk)
            left -= len(chunk)


def is_same(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    with open(one, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        while chunk := a.read(CHUNK_BYTES):
            if chunk != b.read(len(chunk)):
                return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return certificate, key


class Server:
    """A server of our own, in the foreground, for as long as the `with` lasts."""

    def __init__(self, scratch: Path, data: Path, host: str = "127.0.0.1", prefix_command: list[str] | None = None):
        self.host = host
        self.port = free_port()
        self.prefix = scratch / f"server-{self.port}"
        self.data = data
        self.prefix_command = prefix_command or []
        self.process: subprocess.Popen | None = None

    def prepare(self, log: Path) -> list[str | Path]:
        """Writes the configuration; returns the command."""
        raise NotImplementedError

    def is_listening(self) -> bool:
        try:
            socket.create_connection((self.host, self.port)).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Server:
        self.prefix.mkdir()
        log = self.prefix / "log"
        command = self.prepare(log)
        # vsftpd says what is wrong with its configuration over what would be the connection.
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                [*self.prefix_command, *command], stdin=said, stdout=said, stderr=said, start_new_session=True
            )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not self.is_listening():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {log.read_text() or 'no reason given'}")
                time.sleep(0.02)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.prefix)


class Origin(Server):
    """nginx."""

    def __init__(self, scratch: Path, data: Path, host: str = "127.0.0.1", prefix_command: list[str] | None = None):
        super().__init__(scratch, data, host, prefix_command)
        self.tls_port = free_port()

    def prepare(self, log: Path) -> list[str | Path]:
        certificate, key = make_certificate(self.prefix)
        config = self.prefix / "nginx.conf"
        config.write_text(
            CONFIG.format(
                # Otherwise the worker is a user who may not read the data.
                user="user root;" if os.geteuid() == 0 else "",
                prefix=self.prefix,
                data=self.data,
                host=self.host,
                port=self.port,
                tls_port=self.tls_port,
                certificate=certificate,
                key=key,
            )
        )
        return [nginx_program(), "-p", self.prefix, "-c", config, "-e", log, "-g", "daemon off;"]

    def is_listening(self) -> bool:
        """nginx writes its process id once its sockets listen. It cannot be asked from outside its namespace."""
        return (self.prefix / "nginx.pid").exists()


def nginx_program() -> str | None:
    """Debian keeps nginx where only root's path leads."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
