#!/usr/bin/env python3
"""Measures everything in one run and writes the published tables: `results/`, and the tables of both READMEs.

`measure` runs all benchmarks with one executable and records their output; `write` renders the documents from the record;
`check` fails if a document says something else. No published number is typed by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import link
import report
import tools
from downloads import HERE, WORKSPACE, build_svc, say

RECORDED = HERE / "results"
# Where a quick run goes, which shows that everything works and is no record.
QUICK = WORKSPACE / "target" / "bench-quick"
README = WORKSPACE / "README.md"
BENCH_README = HERE / "README.md"
GUEST = "open_directory.wasm"
WASM = "wasm32-unknown-unknown"
# Debian's packages of what only the benchmarks of the service and of torrents need; `tools.PACKAGES` has the others.
MORE_PACKAGES = {
    "wrk": "wrk",
    "ip": "iproute2",
    "opentracker": "opentracker",
    "transmission-daemon": "transmission-daemon",
}

# What the head of every record says, in this order.
RUN, MACHINE, VERSIONS = "Run: ", "Machine: ", "Versions: "

# The service's rows in the README: their titles there, and the rows of `service.py`.
SERVICE_ROWS = (
    ("Memory, no tasks", "memory, empty (agent + daemon)"),
    ("… shared pages counted once", "memory, empty (agent + daemon), shared pages counted once"),
    ("Memory, 10,000 tasks", "memory, 10,000 waiting tasks (agent + daemon)"),
    ("… shared pages counted once", "memory, 10,000 waiting tasks (agent + daemon), shared pages counted once"),
    ("Creates, one at a time, on empty hosts", "creates, one at a time, empty hosts (addUri of both)"),
    (
        "… durable in both (`saveSession`)",
        "creates, one at a time, durable in both (addUri and saveSession of both)",
    ),
    ("Creates, 8 connections", "creates, 8 connections (addUri of both)"),
    ("Creates, 1,000 in a batch", "creates, 1000 a call (addUri of both in a batch)"),
    ("Reads of one task, one connection", "reads of one task, one connection (tellStatus of both)"),
    ("Reads of one task, 8 connections", "reads of one task, 8 connections (tellStatus of both)"),
    ("Reads of a page of 100 tasks, one connection", "reads of a page of 100, one connection (tellWaiting of both)"),
    ("Reads of a page of 100 tasks, 8 connections", "reads of a page of 100, 8 connections (tellWaiting of both)"),
    ("The smallest read, 8 connections", "the smallest read, 8 connections (getVersion of both)"),
    ("Start with 100,000 tasks, to the first answer", "start with 100,000 tasks to the first answer of a read"),
    ("Processor while idle, 10,000 tasks", "processor while idle, 10,000 tasks"),
    ("Written in 60 idle seconds, 10,000 tasks", "written while idle for 60 s, 10,000 tasks"),
)

# What rows of the other benchmarks are to reach.
TARGETS = {
    "a fresh instance that lists 20 files": "100 µs",
    "a call of the host": "100 ns",
    "load, compiled before": "1 ms",
    "memory of each of 50 idle plugins": "200 KiB",
    "an endless loop is ended after its budget": "20 ms",
    "99 of 100 calls of another, beside it": "as alone",
    "50 calls at once, whose site takes 100ms": "130 ms",
    "a script: fresh engine, lists 20 files": "0.6 ms",
    "memory of each of 50 scripts that wait": "512 KiB",
    "start to the first answer, 50 plugins": "50 ms more",
    "memory of the daemon for each of 50 idle plugins; that cannot be evicted": "200 KiB",
    "preview of a directory of 10,000 entries": "200 ms",
    "the first refresh of 10,000 entries": "300 ms, 30 MiB",
    "a refresh with ten new versions": "5 % of the first",
    "a package of 207 KiB, from the request until it is in service": "250 ms",
    "1 GiB from 1 seeder, svc: wall; processor; peak memory": "53 MiB",
    "1 GiB from 4 seeders, svc: wall; processor; peak memory": "53 MiB",
    "1 GiB from 1 seeder, svc ÷ libtorrent, wall": "1.10",
    "1 GiB from 4 seeders, svc ÷ libtorrent, wall": "1.10",
    "500 idle torrents, svc: memory; processor of 60 s": "below transmission",
    "500 idle torrents, after a restart, svc: memory; processor of 60 s": "below transmission",
}


class Unpublished(Exception):
    """The record is incomplete, or a document does not say what it says."""


@dataclass(frozen=True)
class Run:
    """What one run of all benchmarks is made with."""

    svc: Path
    runs: int | None
    is_quick: bool

    def script(self, name: str) -> str:
        """What a benchmark of this folder prints."""
        counted = ["--runs", str(self.runs)] if self.runs else []
        quick = ["--quick"] if self.is_quick else []
        return printed([sys.executable, HERE / f"{name}.py", "--svc", self.svc, *counted, *quick])

    def sandbox(self) -> str:
        """What the example of `plugin-wasm` prints, as a table: it measures without a service and a network."""
        guest = WORKSPACE / "target" / "bench-guest"
        built = ["cargo", "build", "--locked", "--release", "--target", WASM, "-p", "open-directory"]
        subprocess.run([*built, "--target-dir", guest], cwd=WORKSPACE / "plugins", check=True)
        example = ["cargo", "run", "--locked", "--quiet", "--release", "-p", "plugin-wasm", "--example", "plugin_cost"]
        lines = printed([*example, "--", guest / WASM / "release" / GUEST], cwd=WORKSPACE).splitlines()
        rows = (re.split(r"\s{2,}", line.strip()) for line in lines)
        return "\n".join(
            ["| Measured | |", "|---|--:|", *(f"| {title} | {'; '.join(values)} |" for title, *values in rows)]
        )


# Each is recorded as `results/NAME.md`. The short ones come first, because one that fails makes the others worthless.
BENCHMARKS: dict[str, Callable[[Run], str]] = {
    "sandbox": Run.sandbox,
    "plugins": lambda run: run.script("plugins"),
    "market": lambda run: run.script("market"),
    "torrents": lambda run: run.script("torrents"),
    "downloads": lambda run: run.script("downloads"),
    "service": lambda run: run.script("service"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("measure", "write", "check"))
    parser.add_argument("--svc", type=Path, help="measure: the program to measure (default: build it in release)")
    parser.add_argument("--runs", type=int, help="measure: counted runs of each benchmark (default: each its own)")
    parser.add_argument(
        "--quick", action="store_true", help=f"measure: small sizes; only into {QUICK.relative_to(WORKSPACE)}"
    )
    parser.add_argument(
        "--only", choices=tuple(BENCHMARKS), help="measure: this benchmark alone; the others keep their records"
    )
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "measure":
                check_tools()
                svc = arguments.svc.resolve() if arguments.svc else build_svc()
                chosen = [arguments.only] if arguments.only else list(BENCHMARKS)
                measure(Run(svc, arguments.runs, arguments.quick), chosen)
            case "write":
                for path, text in rendered().items():
                    path.write_text(text, encoding="utf-8")
            case "check":
                for path, text in rendered().items():
                    if path.read_text(encoding="utf-8") != text:
                        shown = path.relative_to(WORKSPACE)
                        raise Unpublished(f"{shown} differs from the record; run tests/bench/publish.py write")
    except Unpublished as error:
        say(f"publish: {error}")
        return 1
    return 0


def check_tools() -> None:
    """A run without one of the compared programs is no record, and takes as long as one."""
    packages = {**tools.PACKAGES, **MORE_PACKAGES}
    missing = [name for name in packages if not (tools.is_installed(name) or shutil.which(name, path="/usr/sbin:/sbin"))]
    if missing:
        install = " ".join(packages[name] for name in missing)
        raise Unpublished(f"missing: {', '.join(missing)}; to get them: apt-get install {install}")
    if reason := link.obstacle():
        raise Unpublished(f"the rows over a link cannot be measured here: {reason}")
    libraries = ["rustc", "--print", "target-libdir", "--target", WASM]
    if not Path(printed(libraries).strip()).is_dir():
        raise Unpublished(f"plugins cannot be built: rustup target add {WASM}")


def printed(command: list[str | Path], cwd: Path | None = None) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=cwd, check=False)
    if done.returncode != 0:
        raise Unpublished(f"exit status {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def measure(run: Run, chosen: list[str]) -> None:
    """Records the results only if all of these benchmarks succeed, so that all tables are of one run and one executable."""
    folder = QUICK if run.is_quick else RECORDED
    head = head_of(run)
    with tempfile.TemporaryDirectory(prefix="svc-results-") as kept:
        for name in chosen:
            say(f"== {name}, {time.strftime('%H:%M:%S')}")
            load = os.getloadavg()[0]
            if name == chosen[0] and load > 1:
                say(f"publish: the load average is {load:.1f}: other programs take part in what is measured")
            page = BENCHMARKS[name](run).strip()
            check_complete(name, page)
            text = f"# Results: {name}\n\n{head}Load average before: {load:.1f}.\n\n{page}\n"
            Path(kept, f"{name}.md").write_text(text, encoding="utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            shutil.copy(Path(kept, f"{name}.md"), folder)
    say(f"== recorded in {folder.relative_to(WORKSPACE)}, {time.strftime('%H:%M:%S')}")
    for path, text in rendered(folder).items():
        to = folder / "-".join(("rendered", *path.relative_to(WORKSPACE).parts)) if run.is_quick else path
        to.write_text(text, encoding="utf-8")


def head_of(run: Run) -> str:
    """What every record says of the run: executable, machine, date, and the versions of what is compared."""
    digest = hashlib.sha256(run.svc.read_bytes()).hexdigest()
    commit = printed(["git", "-C", WORKSPACE, "describe", "--always", "--dirty"]).strip()
    size = "small sizes" if run.is_quick else "all sizes"
    return (
        f"{RUN}commit {commit}, executable with SHA-256 {digest}, {time.strftime('%Y-%m-%d')}, {size}.\n\n"
        f"{MACHINE}{report.processor()}, {os.cpu_count()} cores, {report.memory_gib():.0f} GiB; Linux {platform.release()}.\n\n"
        f"{VERSIONS}{'; '.join(tools.versions(run.svc))}.\n\n"
    )


def check_complete(name: str, page: str) -> None:
    for gap in ("not measured here", "not installed", "| failed |", "### Failed runs"):
        if gap in page:
            raise Unpublished(f"{name} is not complete: its output says {gap!r}:\n{page}")


def rendered(folder: Path = RECORDED) -> dict[Path, str]:
    """The documents with their tables as the record has them."""
    pages = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in BENCHMARKS}
    if stated(pages["downloads"], RUN) != stated(pages["service"], RUN):
        raise Unpublished("downloads and service are of two runs; run tests/bench/publish.py measure")
    tables = {
        README: {"downloads": downloads_table(pages["downloads"]), "service": service_table(pages["service"], folder)},
        BENCH_README: {name: targets_table(pages[name]) for name in ("sandbox", "plugins", "market", "torrents")},
    }
    return {path: with_tables(path, of_document) for path, of_document in tables.items()}


def with_tables(path: Path, tables: dict[str, str]) -> str:
    text = path.read_text(encoding="utf-8")
    for name, lines in tables.items():
        begin, end = f"<!-- figures of {name}: tests/bench/publish.py -->\n", "<!-- end of figures -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise Unpublished(f"{path.relative_to(WORKSPACE)} has no place for the figures of {name}")
        text = f"{before}{begin}{lines}{end}{after}"
    return text


def stated(page: str, what: str) -> str:
    """A line of a record's head, without its beginning and its full stop."""
    for line in page.splitlines():
        if line.startswith(what):
            return line.removeprefix(what).removesuffix(".")
    raise Unpublished(f"a record has no line {what!r}")


def rows_of(page: str, first_columns: str) -> Iterator[list[str]]:
    """The cells of the table whose head begins with these columns."""
    is_inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if line.startswith(f"| {first_columns} |"):
            is_inside = True
        elif is_inside and not line.startswith("|"):
            return
        elif is_inside and not line.startswith("|---"):
            yield cells


@dataclass(frozen=True)
class Measured:
    """One tool's medians in a row of the downloads."""

    tool: str
    wall_seconds: float
    peak_mib: Decimal


def downloads_table(page: str) -> str:
    """A line for each way in which svc did each row, none left out."""
    titles: dict[str, str] = {}
    costs: dict[str, list[Measured]] = {}
    name = ""
    for row, title, tool, wall, _, peak in rows_of(page, "Row | Work | Tool"):
        name = row or name
        titles.setdefault(name, title)
        if peak:
            costs.setdefault(name, []).append(Measured(tool, float(wall.split(" ")[0]), Decimal(peak)))
    machine, versions = stated(page, MACHINE), stated(page, VERSIONS)
    lines = [
        f"Against aria2c {version(versions, 'aria2 version')} and curl {version(versions, 'curl')}, all rows of one run, files from "
        "and to memory, medians.",
        "Below 1 means that Svc needs less; of several variants of aria2c the fastest counts.",
        f"Measured on {machine} ({short_run(page)}).",
        "",
        "| Work | Svc | ÷ aria2c: time / processor | ÷ curl | Peak memory of Svc : aria2c : curl |",
        "|---|---|--:|--:|--:|",
    ]
    for row, tool, aria2c, curl, *_ in rows_of(page, "Row | svc, wall / CPU"):
        measured = costs[row]
        ours = next(one for one in measured if one.tool == tool)
        peaks = [ours.peak_mib, *(peak for kind in ("aria2c", "curl") if (peak := peak_of(measured, kind)))]
        memory = " : ".join(str(peak.quantize(Decimal(1), ROUND_HALF_UP)) for peak in peaks)
        how = tool.removeprefix("svc ").strip("()").replace(" --insecure", "")
        lines.append(f"| {titles[row]} | {how if how == 'automatic' else f'`{how}`'} | {aria2c} | {curl} | {memory} MiB |")
    return "\n".join(lines) + "\n"


def peak_of(measured: list[Measured], kind: str) -> Decimal | None:
    """The peak memory of the fastest variant of a tool, which is the one that the ratio compares."""
    variants = [one for one in measured if one.tool.startswith(kind)]
    return min(variants, key=lambda one: one.wall_seconds).peak_mib if variants else None


def version(versions: str, program: str) -> str:
    found = re.search(rf"(?:^|; ){re.escape(program)} (\S+)", versions)
    if not found:
        raise Unpublished(f"a record names no version of {program}")
    return found.group(1).rstrip(";,.")


def short_run(page: str) -> str:
    commit, *_, date, _ = stated(page, RUN).split(", ")
    return f"{commit}, {date}"


def service_table(page: str, folder: Path) -> str:
    """Chosen rows, all of which are in a record; a quick run has other sizes, so that some are not."""
    rows: dict[str, list[str]] = {}
    above = ""
    for title, *cells in rows_of(page, "Measured | svc"):
        above = above if title.startswith("… ") else title
        rows[f"{above}, {title.removeprefix('… ')}" if title.startswith("… ") else title] = cells
    missing = [row for _, row in SERVICE_ROWS if row not in rows]
    if missing and folder == RECORDED:
        raise Unpublished(f"the record of the service has no row {missing[0]!r}")
    lines = [
        "| The service (agent and daemon) against aria2c, both over aria2's JSON-RPC | Svc | aria2c | Svc ÷ aria2c |",
        "|---|--:|--:|--:|",
    ]
    return "\n".join([*lines, *(f"| {title} | {' | '.join(rows[row])} |" for title, row in SERVICE_ROWS if row in rows)]) + "\n"


def targets_table(page: str) -> str:
    """A benchmark's own table, and what its rows are to reach."""
    lines = [f"Measured on {stated(page, MACHINE)} ({short_run(page)}).", "", "| Measured | | Target |", "|---|--:|--:|"]
    rows = rows_of(page, "Measured")
    return "\n".join([*lines, *(f"| {title} | {value} | {TARGETS.get(title, '')} |" for title, value, *_ in rows)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
