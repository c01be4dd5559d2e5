"""What is measured: every row with its files, its place, its contenders and what svc is to reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import link
from origin import MIB, Payload
from tools import (
    Contender, aria2c, aria2c_list, axel, copy, curl, curl_list, curl_ssh, floor, lftp, openssh, svc, svc_list, svc_ssh,
)  # fmt: skip

KIB = 1024
GIB = 1024 * MIB

AUTOMATIC = "svc (automatic)"
SIXTEEN = ("-x16", "-s16", "-k1M")
LOSS_PPM = 1000


@dataclass(frozen=True)
class Place:
    """Where a row's files come from."""

    scheme: str = "http"
    path: str = ""
    # Losses in a million packets on the link between namespaces; `None` is the loopback.
    loss_ppm: int | None = None


LOOPBACK = Place()
THROTTLED = Place(path="/throttled")
TLS = Place(scheme="https")
FTP = Place(scheme="ftp")
SFTP = Place(scheme="sftp")
LOSSY = Place(loss_ppm=LOSS_PPM)
CLEAN = Place(loss_ppm=0)


@dataclass(frozen=True)
class Row:
    """Work that every contender does."""

    name: str
    title: str
    payload: Payload
    place: Place
    contenders: tuple[Contender, ...]
    # In words, for the table.
    reach: str
    # What no tool can beat, where it is better computed than run.
    best_case_seconds: float | None = None
    # Said below the table when the row is not measured in full.
    note: str = ""


def rows(quick: bool, has_room: Callable[[int], bool]) -> list[Row]:
    """All rows in their order; `quick` only shows that everything works. `has_room` for so many bytes to download."""
    single = Payload("single", 1, 256 * MIB if quick else 4 * GIB)
    gigabyte = Payload("one", 1, 256 * MIB if quick else GIB)
    few = Payload("few", 200 if quick else 2_000, 64 * KIB)
    many = Payload("many", 1_000 if quick else 10_000, 64 * KIB)
    note = ""
    if not has_room(many.total_bytes):
        many = Payload("many", many.count, 16 * KIB)
        note = "many: files of 16 KiB, because space is short"
    return [*one_file(single, gigabyte), *many_files(few, many, note), tls(gigabyte), *file_servers(gigabyte), *slow_link(quick, few)]


def one_file(single: Payload, gigabyte: Payload) -> list[Row]:
    one_connection = Row(
        "single",
        f"{size(single)}, one connection",
        single,
        LOOPBACK,
        (
            svc("-s", "1"),
            svc(label=AUTOMATIC),
            curl(),
            aria2c("-x1", "-s1", label="aria2c -x1 none"),
            aria2c("-x1", "-s1", allocation="falloc", label="aria2c -x1 falloc"),
            floor("write", 1),
            floor("splice", 1),
        ),
        "wall and CPU: ≤ 0.65 × aria2c, ≤ 0.85 × curl",
    )
    segments = Row(
        "segments",
        f"{size(single)}, 16 segments",
        single,
        LOOPBACK,
        (
            svc("-s", "16", "-x", "16"),
            svc(label=AUTOMATIC),
            aria2c(*SIXTEEN),
            floor("write", 16),
            floor("splice", 16),
        ),
        "≤ 0.8 × aria2c",
    )
    throttled = Row(
        "throttled",
        f"{size(gigabyte)}, 10 MiB/s per connection, 16 connections",
        gigabyte,
        THROTTLED,
        (svc("-s", "16", "-x", "16"), svc(label=AUTOMATIC), aria2c(*SIXTEEN), floor("write", 16)),
        "wall: ≤ 1.01 × limit",
    )
    return [one_connection, segments, throttled]


def many_files(few: Payload, many: Payload, note: str) -> list[Row]:
    return [
        Row(
            "small",
            title(few),
            few,
            LOOPBACK,
            (svc_list("-j", "16"), aria2c_list("-j16"), curl_list(16), copy()),
            "wall: ≤ 0.6 × aria2c",
        ),
        Row(
            "many",
            title(many),
            many,
            LOOPBACK,
            (svc_list("-j", "16"), aria2c_list("-j16"), copy()),
            "wall: ≤ 0.6 × aria2c",
            note=note,
        ),
    ]


def tls(gigabyte: Payload) -> Row:
    return Row(
        "tls",
        f"{size(gigabyte)}, TLS 1.3, one connection",
        gigabyte,
        TLS,
        (
            svc("-s", "1", "--insecure"),
            curl("-k"),
            aria2c("-x1", "-s1", "--check-certificate=false", label="aria2c -x1"),
        ),
        "no slower than curl",
    )


def file_servers(gigabyte: Payload) -> list[Row]:
    return [
        Row(
            "ftp",
            f"{size(gigabyte)}, FTP",
            gigabyte,
            FTP,
            (svc("-s", "1"), svc(label=AUTOMATIC), curl(), aria2c("-x1", "-s1"), aria2c(*SIXTEEN), lftp(1)),
            "wall: ≤ the best of the others",
        ),
        Row(
            "sftp",
            f"{size(gigabyte)}, SFTP",
            gigabyte,
            SFTP,
            (svc_ssh("-s", "1"), svc_ssh(label=AUTOMATIC), openssh(), curl_ssh()),
            "wall: ≤ the best of the others",
        ),
    ]


def slow_link(quick: bool, few: Payload) -> list[Row]:
    lossy = Payload("lossy", 1, 16 * MIB if quick else 64 * MIB)
    clean = Payload("clean", 1, 32 * MIB if quick else 256 * MIB)
    where = f"{link.ROUND_TRIP_SECONDS * 1000:.0f} ms, {link.MBIT_PER_S} Mbit/s"
    return [
        Row(
            "lossy",
            f"{size(lossy)}, {where}, {LOSS_PPM / 10_000:g} % loss",
            lossy,
            LOSSY,
            (
                svc("-s", "16", "-x", "16"),
                svc(label=AUTOMATIC),
                aria2c(*SIXTEEN),
                aria2c("-x4", "-s4", "-k1M"),
                curl(),
                axel(16),
                lftp(16),
            ),
            "wall: ≤ 0.85 × the best of the others",
            best_case_seconds=link.best_case_seconds(lossy.total_bytes),
        ),
        Row(
            "link",
            f"{size(clean)}, {where}, no loss",
            clean,
            CLEAN,
            (svc(label=AUTOMATIC), aria2c(*SIXTEEN), curl()),
            "wall: ≤ the best of the others",
            best_case_seconds=link.best_case_seconds(clean.total_bytes),
        ),
        Row(
            "link-small",
            f"{title(few)}, {where}, no loss",
            few,
            CLEAN,
            (svc_list("-j", "16"), aria2c_list("-j16"), curl_list(16)),
            "wall: ≤ the best of the others",
            # Sixteen at a time, and each file is a round trip.
            best_case_seconds=few.count / 16 * link.ROUND_TRIP_SECONDS,
        ),
    ]


def size(payload: Payload) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if payload.size_bytes >= unit:
            return f"{payload.size_bytes // unit} {name}"
    return f"{payload.size_bytes} bytes"


def title(payload: Payload) -> str:
    return f"{payload.count:,} files × {size(payload)}"
