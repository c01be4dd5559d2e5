"""Runs one program and says what it cost; compares two series of such costs."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

# The slowest honest run here is one connection over the lossy link, which takes about 40 s.
LIMIT_SECONDS = 300
# What a failed program said last; enough for its error, not its life.
KEPT_ERROR_CHARACTERS = 200


@dataclass(frozen=True)
class Cost:
    """What one run of a whole process cost, including the children that it waited for."""

    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int


class RunFailed(Exception):
    """A program did not end well, or left wrong files."""


def compile_c(source: Path, program: Path) -> Path:
    """Builds one of the C programs of this folder."""
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, source], check=True)
    return program


def run(meter: Path, prefix: list[str], command: list[str], home: Path) -> Cost:
    """Runs `command` through `meter`, in the namespace that `prefix` enters, with `home` as its empty home directory."""
    report_end, meter_end = os.pipe()
    # No configuration of the user, no proxy, no locale.
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    with open(report_end, encoding="ascii") as report:
        process = subprocess.Popen(
            [*prefix, str(meter), str(meter_end), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[meter_end],
            start_new_session=True,
            env=environment,
            cwd=home,
        )
        os.close(meter_end)
        try:
            output, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"took longer than {LIMIT_SECONDS} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        fields = report.read().split()
    said = " ".join(output.split())[-KEPT_ERROR_CHARACTERS:]
    if len(fields) != 5:
        raise RunFailed(said or "could not be started")
    wall_ns, user_us, system_us, rss_kib, status = map(int, fields)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        raise RunFailed(f"{ended}: {said}" if said else ended)
    return Cost(wall_ns / 1e9, (user_us + system_us) / 1e6, rss_kib * 1024)


def pairwise_ratio(ours: list[float | None], theirs: list[float | None]) -> float | None:
    """The median of the ratios of runs made side by side; rounds in which one of the two failed do not count."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True) if a is not None and b]
    return statistics.median(ratios) if ratios else None
