"""The result as Markdown: the medians, the ratios of runs made side by side, and how it was measured."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import link
import tools
from measure import Cost, pairwise_ratio
from origin import MIB
from rows import Row


@dataclass
class Series:
    """All counted runs of one contender in one row; a failed run is `None`, so that rounds stay side by side."""

    contender: tools.Contender
    shown_command: str
    costs: list[Cost | None] = field(default_factory=list)
    # Why runs failed, the warm-up among them.
    failures: list[str] = field(default_factory=list)
    has_wrong_files: bool = False

    @property
    def wall(self) -> list[float | None]:
        return [cost and cost.wall_seconds for cost in self.costs]

    @property
    def cpu(self) -> list[float | None]:
        return [cost and cost.cpu_seconds for cost in self.costs]

    @property
    def good(self) -> list[Cost]:
        return [cost for cost in self.costs if cost]

    @property
    def median_wall(self) -> float:
        return statistics.median(cost.wall_seconds for cost in self.good)


@dataclass
class RowResult:
    """One row's series, or why there are none."""

    row: Row
    series: list[Series] = field(default_factory=list)
    not_measured: str = ""

    def fastest(self, is_wanted) -> Series | None:
        """Of several variants the one with the least median wall time."""
        wanted = [series for series in self.series if series.good and is_wanted(series.contender.kind)]
        return min(wanted, key=lambda series: series.median_wall, default=None)


def medians_table(results: list[RowResult]) -> list[str]:
    lines = [
        "| Row | Work | Tool | wall s (least–most) | CPU s | peak RSS MiB |",
        "|---|---|---|--:|--:|--:|",
    ]
    for result in results:
        head = f"| {result.row.name} | {result.row.title} |"
        if result.not_measured:
            lines.append(f"{head} not measured here: {result.not_measured} | | | |")
        for series in result.series:
            lines.append(f"{head} {series.contender.label} | {median_cells(series)} |")
            head = "| | |"
        if result.series and result.row.best_case_seconds:
            lines.append(f"| | | best case (computed) | {result.row.best_case_seconds:.2f} | | |")
    return lines


def median_cells(series: Series) -> str:
    if not series.good:
        kind = series.contender.kind
        return f"{'failed' if series.costs else f'not installed: {tools.apt_line([kind])}'} | |"
    walls = [cost.wall_seconds for cost in series.good]
    cpu = statistics.median(cost.cpu_seconds for cost in series.good)
    rss = statistics.median(cost.peak_rss_bytes for cost in series.good) / MIB
    spread = f"{seconds(min(walls))}–{seconds(max(walls))}"
    return f"{seconds(series.median_wall)} ({spread}) | {seconds(cpu)} | {rss:.1f}"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def ratios_table(results: list[RowResult]) -> list[str]:
    lines = [
        "| Row | svc, wall / CPU | ÷ aria2c | ÷ curl | ÷ fastest other tool | ÷ limit | to reach |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for result in results:
        other = result.fastest(lambda kind: kind not in ("svc", "limit"))
        limit = result.fastest(lambda kind: kind == "limit")
        for series in result.series:
            if series.contender.kind != "svc":
                continue
            cells = [
                ratio_cell(series, result.fastest(lambda kind, name=name: kind == name)) for name in ("aria2c", "curl")
            ]
            cells.append(f"{ratio_cell(series, other)} ({other.contender.label})" if other else "–")
            cells.append(ratio_cell(series, limit) if limit else best_case_cell(series, result.row))
            lines.append(f"| {result.row.name} | {series.contender.label} | {' | '.join(cells)} | {result.row.reach} |")
    return lines


def ratio_cell(ours: Series, theirs: Series | None) -> str:
    if theirs is None:
        return "–"
    return f"{ratio(pairwise_ratio(ours.wall, theirs.wall))} / {ratio(pairwise_ratio(ours.cpu, theirs.cpu))}"


def best_case_cell(ours: Series, row: Row) -> str:
    if row.best_case_seconds is None:
        return "–"
    return f"{ratio(pairwise_ratio(ours.wall, [row.best_case_seconds] * len(ours.wall)))} / –"


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def method(runs: int, target: Path, loads: tuple[float, float]) -> list[str]:
    """How it was measured, and on what."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", target], capture_output=True, text=True, check=True).stdout.strip()
    counted = "1 counted run" if runs == 1 else f"{runs} counted runs"
    return [
        f"One warm-up, but none over the link, then {counted}, interleaved (A B C A B C …); medians. Ratios are medians of the "
        "ratios of runs of the same round; of several variants of a tool the one with the least median wall time counts. CPU is user "
        "+ system of the whole process and its children. Every file of every run was compared with the server's.",
        "",
        f"Machine: {processor()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB; Linux {platform.release()}; "
        f"load {loads[0]:.1f} before, {loads[1]:.1f} after; target on {kind}.",
        "",
        "nginx: one worker, sendfile on, sendfile_max_chunk 0, access_log off, on loopback, files in the page cache. "
        f"Link: {link.ROUND_TRIP_SECONDS * 1000:.0f} ms round trip, {link.MBIT_PER_S} Mbit/s, queue "
        f"{link.QUEUE_BYTES:,} bytes, losses in both directions; server with {link.CONGESTION_CONTROL}. "
        "FTP: vsftpd without encryption. SFTP: OpenSSH with keys of Ed25519.",
    ]


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1024 * MIB)


def failures(results: list[RowResult]) -> list[str]:
    """What did not go well, a line each."""
    return [
        f"- {result.row.name}, {series.contender.label}: "
        f"{len(series.costs) - len(series.good)} of {len(series.costs)} counted runs failed: {series.failures[-1]}"
        for result in results
        for series in result.series
        if series.failures
    ]


def commands(results: list[RowResult]) -> list[str]:
    return [
        f"- {result.row.name}, {series.contender.label}: `{series.shown_command}`"
        for result in results
        for series in result.series
    ]


def markdown(results: list[RowResult], about: list[str], versions: list[str]) -> str:
    notes = [f"- {result.row.note}" for result in results if result.row.note]
    failed = failures(results)
    parts = [
        "## Downloads",
        "",
        *medians_table(results),
        "",
        "### Ratios",
        "",
        *ratios_table(results),
        "",
        *(["### Failed runs", "", *failed, ""] if failed else []),
        *([*notes, ""] if notes else []),
        "### How",
        "",
        *about,
        "",
        "Versions: " + "; ".join(versions) + ".",
        "",
        *commands(results),
    ]
    return "\n".join(parts)
