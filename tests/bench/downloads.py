#!/usr/bin/env python3
"""Measures `svc get` against aria2c, curl and the limit of the machine. See README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import link
import measure
import report
import tools
from origin import MIB, Origin, Server, WrongFiles
from report import RowResult, Series
from rows import Row, rows
from servers import SERVERS, SshServer

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent.parent
# What is left free on a file system, for everybody else on the machine.
RESERVE_BYTES = 512 * MIB
TMPFS = Path("/dev/shm")


@dataclass(frozen=True)
class Bench:
    """What all rows share."""

    svc: Path
    runs: int
    # Where files are downloaded to, served from, and everything else is.
    target: Path
    data: Path
    scratch: Path
    programs: Path


def main() -> int:
    arguments = parse_arguments()
    # An end by signal is an end with cleaning up.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    missing = tools.missing_programs()
    if missing:
        say(f"missing: {', '.join(missing)}; to get them: {tools.apt_line(missing)}")
    if any(program in missing for program in tools.NEEDED):
        return 2
    svc = arguments.svc.resolve() if arguments.svc else build_svc()

    with contextlib.ExitStack() as stack:
        target = temporary_folder(stack, arguments.target)
        scratch = temporary_folder(stack, None)
        data = temporary_folder(stack, arguments.data)
        bench = Bench(svc, arguments.runs or (2 if arguments.quick else 5), target, data, scratch, scratch)
        for source in sorted(HERE.glob("*.c")):
            measure.compile_c(source, bench.programs / source.stem)
        selected = selected_rows(arguments, target)
        load_before = os.getloadavg()[0]
        results = []
        for index, row in enumerate(selected):
            results.append(measure_row(bench, row))
            if all(later.payload != row.payload for later in selected[index + 1 :]):
                shutil.rmtree(data / row.payload.folder, ignore_errors=True)
        about = report.method(bench.runs, target, (load_before, os.getloadavg()[0]))
        print(report.markdown(results, about, tools.versions(svc)))
    return 1 if any(is_our_fault(result) for result in results) else 0


def parse_arguments() -> argparse.Namespace:
    names = ", ".join(row.name for row in rows(quick=False, has_room=lambda _: True))
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"Rows: {names}.")
    parser.add_argument("--quick", action="store_true", help="small sizes and 2 runs, to see that everything works")
    parser.add_argument("--only", metavar="ROW,…", default="", help="only these rows")
    parser.add_argument(
        "--svc", metavar="PATH", type=Path, help="the program to measure; otherwise it is built in release"
    )
    parser.add_argument("--runs", metavar="N", type=int, help="counted runs [default: 5, with --quick 2]")
    parser.add_argument(
        "--target",
        metavar="DIR",
        type=Path,
        default=TMPFS if TMPFS.is_dir() else None,
        help=f"where to download to [default: {TMPFS}]",
    )
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="where to keep what is served [default: temporary files]"
    )
    arguments = parser.parse_args()
    unknown = set(filter(None, arguments.only.split(","))) - set(names.split(", "))
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {names}")
    if arguments.runs is not None and arguments.runs < 1:
        parser.error("at least one run")
    return arguments


def build_svc() -> Path:
    """Builds the program and asks cargo where it is."""
    say("building svc")
    command = ["cargo", "build", "--release", "-p", "host", "--bin", "svc", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=WORKSPACE, stdout=subprocess.PIPE, text=True, check=True)
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    return Path(next(path for path in reversed(built) if path))


def temporary_folder(stack: contextlib.ExitStack, parent: Path | None) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-", dir=parent)))


def has_room(folder: Path, needed_bytes: int) -> bool:
    return shutil.disk_usage(folder).free >= needed_bytes + RESERVE_BYTES


def selected_rows(arguments: argparse.Namespace, target: Path) -> list[Row]:
    wanted = set(filter(None, arguments.only.split(",")))
    every = rows(arguments.quick, lambda needed_bytes: has_room(target, needed_bytes))
    return [row for row in every if not wanted or row.name in wanted]


def measure_row(bench: Bench, row: Row) -> RowResult:
    """All rounds of one row, with a server of its own."""
    result = RowResult(row)
    result.not_measured = obstacle(bench, row) or ""
    if result.not_measured:
        say(f"{row.name}: not measured here: {result.not_measured}")
        return result
    row.payload.make(bench.data)
    with contextlib.ExitStack() as stack:
        try:
            prefix, origin = start_origin(bench, row, stack)
        except link.LinkFailed as error:
            result.not_measured = str(error)
            say(f"{row.name}: not measured here: {error}")
            return result
        work = work_of(bench, row, origin)
        work.write_lists()
        for contender in row.contenders:
            result.series.append(Series(contender, contender.shown(work)))
        present = [series for series in result.series if tools.is_present(series.contender)]
        # Over the link its rate and losses decide, which no warm-up changes; it would be the longest part of all.
        for round_number in range(row.place.loss_ppm is not None, bench.runs + 1):
            for series in present:
                when = "warm-up" if round_number == 0 else f"run {round_number}"
                say(
                    f"{row.name}: {series.contender.label}: {when}: {run_once(bench, work, prefix, series, round_number)}"
                )
    return result


def obstacle(bench: Bench, row: Row) -> str | None:
    if row.place.loss_ppm is not None and (reason := link.obstacle()):
        return reason
    server = SERVERS.get(row.place.scheme)
    if server and not tools.is_installed(server.program):
        return f"needs {tools.apt_line([server.program])}"
    needed_bytes = row.payload.total_bytes
    folder = bench.data / row.payload.folder
    if not has_room(bench.target, needed_bytes) or not (folder.exists() or has_room(bench.data, needed_bytes)):
        return f"needs {needed_bytes / MIB:,.0f} MiB both in {bench.target.parent} and {bench.data.parent}"
    return None


def start_origin(bench: Bench, row: Row, stack: contextlib.ExitStack) -> tuple[list[str], Server]:
    """The server, and what to put before a client's command so that it can reach it."""
    if row.place.loss_ppm is None:
        server = SERVERS.get(row.place.scheme, Origin)
        return [], stack.enter_context(server(bench.scratch, bench.data))
    between = stack.enter_context(link.Link(bench.programs / "link", row.place.loss_ppm))
    server = link.Link.in_namespace(between.server)
    origin = stack.enter_context(Origin(bench.scratch, bench.data, link.SERVER_ADDRESS, server))
    return link.Link.in_namespace(between.client), origin


def work_of(bench: Bench, row: Row, origin: Server) -> tools.Work:
    ssh = {}
    if isinstance(origin, SshServer):
        ssh = {"user": origin.user, "key": origin.key, "fingerprint": origin.fingerprint}
    return tools.Work(
        host=origin.host,
        port=origin.tls_port if row.place.scheme == "https" else origin.port,
        # Over SSH the root is that of the machine.
        path=str(bench.data) if ssh else row.place.path,
        scheme=row.place.scheme,
        payload=row.payload,
        data=bench.data,
        target=bench.target / "files",
        url_list=bench.scratch / "urls.txt",
        curl_config=bench.scratch / "curl.txt",
        svc=bench.svc,
        floor=bench.programs / "floor",
        **ssh,
    )


def run_once(bench: Bench, work: tools.Work, prefix: list[str], series: Series, round_number: int) -> str:
    """One run with an empty target and an empty home, and what became of it. Round 0 is the warm-up and does not count."""
    home = bench.scratch / "home"
    for folder in (work.target, home):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    cost, failure = None, None
    try:
        cost = measure.run(bench.programs / "meter", prefix, series.contender.command(work), home)
        work.payload.check(bench.data, work.target)
    except measure.RunFailed as error:
        cost, failure = None, error
    finally:
        shutil.rmtree(work.target)
    if failure:
        series.failures.append(str(failure))
        series.has_wrong_files |= isinstance(failure, WrongFiles)
    if round_number > 0:
        series.costs.append(cost)
    return f"{cost.wall_seconds:.3f} s" if cost else f"failed: {failure}"


def is_our_fault(result: RowResult) -> bool:
    """Wrong files are never acceptable; another tool's crash is only worth a line."""
    return any(
        series.has_wrong_files or (series.failures and series.contender.kind == "svc") for series in result.series
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
