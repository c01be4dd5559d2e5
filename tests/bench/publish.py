#!/usr/bin/env python3
"""Measures everything in one run and writes the published tables: `results/`, and the tables of the project's README.

`measure` runs the four benchmarks with one executable and keeps their output; `write` renders the README from it; `check`
fails if the README says something else. No published number is typed by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from downloads import HERE, WORKSPACE, build_svc, say

RESULTS = HERE / "results"
README = WORKSPACE / "README.md"
BENCHMARKS = ("downloads", "service", "plugins", "market")
PROGRAM_LINE = "Executable: "

# What a user notices of the service, in this order; the other rows stand in `results/service.md`.
SERVICE_ROWS = (
    "memory, empty (agent + daemon)",
    "memory, 10,000 waiting tasks (agent + daemon)",
    "creates, one at a time, empty hosts (addUri of both)",
    "creates, one at a time, durable in both (addUri and saveSession of both)",
    "creates, 8 connections (addUri of both)",
    "creates, 1000 a call (addUri of both in a batch)",
    "reads of one task, one connection (tellStatus of both)",
    "reads of one task, 8 connections (tellStatus of both)",
    "reads of a page of 100, 8 connections (tellWaiting of both)",
    "the smallest read, 8 connections (getVersion of both)",
    "processor while idle, 10,000 tasks",
)


class Unpublished(Exception):
    """The results are incomplete, or a document does not say what they say."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "write", "check"))
    parser.add_argument("--svc", type=Path, help="measure: the program to measure (default: build it in release)")
    parser.add_argument("--runs", type=int, help="measure: counted runs of each benchmark (default: each its own)")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "measure":
                measure(arguments.svc.resolve() if arguments.svc else build_svc(), arguments.runs)
                README.write_text(rendered())
            case "write":
                README.write_text(rendered())
            case "check":
                if README.read_text() != rendered():
                    raise Unpublished("README.md differs from results/; run tests/bench/publish.py write")
    except Unpublished as error:
        say(f"publish: {error}")
        return 1
    return 0


def measure(svc: Path, runs: int | None) -> None:
    """Keeps the results only if all benchmarks succeed, so that all tables are of one run and one executable."""
    digest = hashlib.sha256(svc.read_bytes()).hexdigest()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=WORKSPACE, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    head = f"{PROGRAM_LINE}commit {commit}, SHA-256 {digest}, measured on {time.strftime('%Y-%m-%d')}.\n\n"
    with tempfile.TemporaryDirectory(prefix="svc-results-") as kept:
        for name in BENCHMARKS:
            command = [sys.executable, HERE / f"{name}.py", "--svc", svc, *(["--runs", str(runs)] if runs else [])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise Unpublished(f"{name}.py failed with exit status {done.returncode}")
            Path(kept, f"{name}.md").write_text(f"# {name.capitalize()}\n\n{head}{done.stdout.rstrip()}\n")
        RESULTS.mkdir(exist_ok=True)
        for name in BENCHMARKS:
            (RESULTS / f"{name}.md").write_text(Path(kept, f"{name}.md").read_text())


def rendered() -> str:
    """The README with its tables as the results have them."""
    pages = {name: (RESULTS / f"{name}.md").read_text() for name in BENCHMARKS}
    programs = {line for page in pages.values() for line in page.splitlines() if line.startswith(PROGRAM_LINE)}
    if len(programs) != 1:
        raise Unpublished(f"the results are of {len(programs)} runs; run tests/bench/publish.py measure")
    text = README.read_text()
    for name, lines in (("downloads", downloads_table(pages)), ("service", service_table(pages))):
        begin, end = f"<!-- figures of {name} -->\n", "<!-- end of figures -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise Unpublished(f"README.md has no place for the figures of {name}")
        text = f"{before}{begin}{lines}{end}{after}"
    return text


def rows_of(page: str, first_column: str) -> Iterator[list[str]]:
    """The cells of the table whose head begins with `first_column`."""
    is_inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith(f"| {first_column} |"):
            is_inside = True
        elif is_inside and not line.startswith("|"):
            return
        elif is_inside and not line.startswith("|---"):
            yield cells


def downloads_table(pages: dict[str, str]) -> str:
    """One line per row: ratios of time and processor, and the peak memory of each tool."""
    page = pages["downloads"]
    memory: dict[tuple[str, str], str] = {}
    titles: dict[str, str] = {}
    name = ""
    for row, title, tool, *costs in rows_of(page, "Row | Work | Tool"):
        name = row or name
        titles.setdefault(name, title)
        if len(costs) == 3 and costs[2]:
            memory[name, tool] = f"{float(costs[2]):.0f}"
    lines = [
        "| Work | Svc ÷ aria2c: time / processor | Svc ÷ curl | Peak memory of Svc : aria2c : curl |",
        "|---|--:|--:|--:|",
    ]
    done = set()
    automatic = {row for row, tool, *_ in rows_of(page, "Row | svc, wall / CPU") if "automatic" in tool}
    for row, tool, aria2c, curl, *_ in rows_of(page, "Row | svc, wall / CPU"):
        if row in done or (row in automatic and "automatic" not in tool):
            continue
        done.add(row)
        peaks = [memory.get((row, tool), "–"), peak_of(memory, row, "aria2c"), peak_of(memory, row, "curl")]
        lines.append(f"| {titles[row]} | {aria2c} | {curl} | {' : '.join(peaks)} MiB |")
    return "\n".join(lines) + "\n"


def peak_of(memory: dict[tuple[str, str], str], row: str, tool: str) -> str:
    """The least peak of the variants of a tool."""
    peaks = [peak for (of_row, of_tool), peak in memory.items() if of_row == row and of_tool.startswith(tool)]
    return min(peaks, key=int, default="–")


def service_table(pages: dict[str, str]) -> str:
    rows = {row[0]: row for row in rows_of(pages["service"], "Measured")}
    missing = [title for title in SERVICE_ROWS if title not in rows]
    if missing:
        raise Unpublished(f"results/service.md has no row {missing[0]!r}")
    lines = ["| The service against aria2c's RPC | Svc | aria2c | Svc ÷ aria2c |", "|---|--:|--:|--:|"]
    return "\n".join([*lines, *(f"| {' | '.join(rows[title])} |" for title in SERVICE_ROWS)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
