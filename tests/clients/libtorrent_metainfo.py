"""Compares torrents with libtorrent: what `svc torrent create` creates, and what `svc torrent show` reads.

Arguments: the executable, and a directory to work in.
"""

import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import warnings

import libtorrent as lt

# Parts of libtorrent's interface that this uses have newer ones, which say the same.
warnings.simplefilter("ignore", DeprecationWarning)

svc, work = sys.argv[1], pathlib.Path(sys.argv[2])
USAGE = 32


def run(*arguments):
    done = subprocess.run([svc, "torrent", *map(str, arguments)], capture_output=True, text=True, cwd=work)
    return done.returncode, done.stdout, done.stderr


def write(path, length, chance):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chance.randbytes(length))


def created_by_libtorrent(root, files, piece_length, is_private):
    storage = lt.file_storage()
    for path in files:
        storage.add_file(str(path.relative_to(root.parent)), path.stat().st_size)
    torrent = lt.create_torrent(storage, piece_length, lt.create_torrent.v1_only)
    torrent.set_priv(is_private)
    lt.set_piece_hashes(torrent, str(root.parent))
    return hashlib.sha1(lt.bencode(torrent.generate()[b"info"])).hexdigest()


def compare_created():
    """The same files and options have the same info hash."""
    chance = random.Random(18)
    single = work / "single.bin"
    write(single, 3_000_000, chance)
    many = work / "many"
    for path, length in [("b/2.bin", 70_000), ("b/10.bin", 1), ("a.txt", 0), ("é/ü.bin", 16_384), ("z", 3_000_000)]:
        write(many / path, length, chance)
    # In the order of their components, not of their texts.
    files = sorted((path for path in many.rglob("*") if path.is_file()), key=lambda path: path.relative_to(many).parts)
    count = 0
    for root, listed in [(single, [single]), (many, files)]:
        for piece_length in [0, 16_384, 65_536, 1 << 20]:
            for is_private in [False, True]:
                options = ["--piece-length", piece_length] if piece_length else []
                options += ["--private"] if is_private else []
                output = work / f"{count}.torrent"
                code, shown, error = run("create", root, "-o", output, "--json", "--tracker", "http://t.test/a", *options)
                assert code == 0, error
                expected = created_by_libtorrent(root, listed, piece_length, is_private)
                assert json.loads(shown)["infoHash"] == expected, (root, options)
                # And libtorrent reads what was written.
                read = lt.torrent_info(str(output))
                assert str(read.info_hash()) == expected and read.priv() == is_private
                assert [tracker.url for tracker in read.trackers()] == ["http://t.test/a"]
                count += 1
    return count


PIECE = b"0123456789abcdefghij"
SINGLE = {b"name": b"name", b"piece length": 16384, b"pieces": PIECE, b"length": 5}


def of_file(*path, length=5, **more):
    return {b"length": length, b"path": list(path), **{key.replace("_", " ").encode(): value for key, value in more.items()}}


def of_files(*files, **more):
    total = sum(file[b"length"] for file in files)
    info = {b"name": b"dir", b"piece length": 16384, b"pieces": PIECE * -(-total // 16384), b"files": list(files)}
    return {**info, **{key.replace("_", " ").encode(): value for key, value in more.items()}}


def infos():
    """Info dictionaries: a name, the dictionary, and whether we refuse it though libtorrent does not."""
    yield "single", SINGLE, False
    for length in [0, -1, 1, 7, (1 << 28) + 1, 32_767 << 14, (32_767 << 14) + 1, 1 << 29, 1 << 31, 1 << 62]:
        yield f"piece length {length}", {**SINGLE, b"piece length": length, b"pieces": PIECE * max(1, min(5, -(-5 // max(length, 1))))}, False
    for count in [0, 1, 19, 21, 40]:
        yield f"{count} bytes of hashes", {**SINGLE, b"pieces": (PIECE * 2)[:count] if count != 21 else PIECE + b"x"}, False
    for length in [0, -1, 1 << 48, (1 << 63) - 1]:
        yield f"length {length}", {**SINGLE, b"length": length, b"piece length": 1 << 28}, False
    yield "length 0 without hashes", {**SINGLE, b"length": 0, b"pieces": b""}, False
    for key in SINGLE:
        yield f"without {key.decode()}", {other: value for other, value in SINGLE.items() if other != key}, False
        yield f"a list as {key.decode()}", {**SINGLE, key: [b"x"]}, False
    yield "name.utf-8", {**SINGLE, b"name.utf-8": "é".encode()}, False
    yield "private", {**SINGLE, b"private": 1, b"source": b"S"}, False
    yield "private 0", {**SINGLE, b"private": 0}, False
    yield "files and length", {**of_files(of_file(b"a")), b"length": 5}, False
    yield "files", of_files(of_file(b"d", b"a"), of_file(b"d", b"b", length=20_000), of_file(b"c", length=0)), False
    yield "path.utf-8", of_files({**of_file(b"x"), b"path.utf-8": ["é".encode()]}), False
    yield "padding", of_files(of_file(b"a"), of_file(b".pad", b"11", length=11, attr=b"p"), of_file(b"b", attr=b"x")), False
    yield "no files", of_files(), False
    yield "empty files", of_files(of_file(b"a", length=0)), False
    yield "no path", of_files(of_file()), False
    yield "an unknown version", {**SINGLE, b"meta version": 3}, False
    yield "hybrid", {**SINGLE, b"meta version": 1}, False
    # What leaves a directory or meets another file, libtorrent renames; we refuse it by name.
    for path in [[b"..", b"a"], [b"a/../b"], [b"/a"], [b"", b"a"], [b".", b"a"], [b"a\0b"], [b"con"], [b"C:\\a"]]:
        yield f"path {path}", of_files(of_file(*path)), True
    for name in [b"../x", b"a/b", b"/x", b"a\0b", b"nul"]:
        yield f"name {name}", {**SINGLE, b"name": name}, True
    for name in [b"", b".", b".."]:
        yield f"name {name}", {**SINGLE, b"name": name}, False
    yield "twice", of_files(of_file(b"a"), of_file(b"a")), True
    yield "case", of_files(of_file(b"a"), of_file(b"A")), True
    yield "file and directory", of_files(of_file(b"a"), of_file(b"a", b"b")), True
    yield "a link", of_files(of_file(b"b"), {**of_file(b"a", length=0, attr=b"l"), b"symlink path": [b"b"]}), True


def torrents():
    for name, info, is_stricter in infos():
        yield name, lt.bencode({b"info": info}), is_stricter
    info = lt.bencode(SINGLE)
    rest = b"d4:info" + info + b"e"
    yield "something behind it", rest + b"\n", False
    yield "keys out of order", b"d4:infod4:name4:name6:lengthi5e12:piece lengthi16384e6:pieces20:" + PIECE + b"ee", False
    yield "a key twice", b"d4:infod4:name4:name4:name5:other6:lengthi5e12:piece lengthi016384e6:pieces20:" + PIECE + b"ee", False
    yield "leading zeros", b"d4:infod6:lengthi005e4:name04:name12:piece lengthi16384e6:pieces20:" + PIECE + b"ee", False
    yield "a number beyond 64 bits", b"d13:creation datei99999999999999999999e4:info" + info + b"e", False
    yield "too deep", b"d1:a" + b"l" * 101 + b"e" * 101 + b"4:info" + info + b"e", False
    for end in [10, 50, len(rest) - 1]:
        yield f"its first {end} bytes", rest[:end], False
    yield "no torrent", b"<html>", False
    tiers = [[b"http://a.test/x", b"udp://b.test:1/y"], [b"https://c.test/"]]
    many = {b"announce": b"http://first.test/", b"announce-list": tiers, b"url-list": [b"http://w.test/"], b"info": SINGLE}
    many |= {b"nodes": [[b"r.test", 6881]], b"comment": b"c", b"created by": b"p", b"creation date": 1_600_000_000}
    yield "everything beside it", lt.bencode(many), False
    yield "only announce", lt.bencode({b"announce": b"http://first.test/a", b"info": SINGLE}), False
    yield "url-list as a text", lt.bencode({b"url-list": b"http://w.test/x", b"info": SINGLE}), False


def read_by_libtorrent(bytes_):
    try:
        torrent = lt.torrent_info(bytes_)
    except RuntimeError:
        return None
    files = torrent.files()
    padding = lt.file_storage.flag_pad_file
    listed = [at for at in range(files.num_files()) if not files.file_flags(at) & padding]
    tiers = {}
    for tracker in torrent.trackers():
        tiers.setdefault(tracker.tier, []).append(tracker.url)
    return {
        "infoHash": str(torrent.info_hash()),
        "name": torrent.name(),
        "pieceBytes": torrent.piece_length(),
        "pieces": torrent.num_pieces(),
        "isPrivate": torrent.priv(),
        "files": [{"index": at, "path": files.file_path(at), "bytes": files.file_size(at)} for at in listed],
        "trackers": [tiers[tier] for tier in sorted(tiers)],
        "webseeds": [seed["url"] for seed in torrent.web_seeds()],
        "comment": torrent.comment() or None,
        "createdBy": torrent.creator() or None,
    }


def compare_read():
    """What libtorrent refuses we refuse; what it reads we read alike, unless it is stricter on purpose."""
    count = 0
    for name, bytes_, is_stricter in torrents():
        path = work / "read.torrent"
        path.write_bytes(bytes_)
        expected = read_by_libtorrent(bytes_)
        code, shown, error = run("show", path, "--json")
        if expected is None or is_stricter:
            assert is_stricter <= (expected is not None), f"{name}: libtorrent refuses it, too"
            assert code == USAGE and "torrent" in error, f"{name}: {code} {shown} {error}"
        else:
            assert code == 0, f"{name}: {error}"
            ours = json.loads(shown)
            assert {key: ours[key] for key in expected} == expected, f"{name}: {ours} is not {expected}"
        count += 1
    return count


def compare_magnets():
    hexadecimal = "c12fe1c06bba254a9dc9f519b335aa7c1367a88a"
    count = 0
    for link in [
        f"magnet:?xt=urn:btih:{hexadecimal}",
        f"magnet:?xt=urn:btih:{hexadecimal.upper()}&dn=a+b%20c",
        "magnet:?xt=urn:btih:YEX6DQDLXISUVHOJ6UM3GNNKPQJWPKEK&tr=http%3A%2F%2Ft.test%2Fa&tr.1=udp://u.test:1",
        f"magnet:?dn=x&xt=urn:btmh:1220{'a' * 64}&xt=urn:btih:{hexadecimal}&ws=http://w.test/&x.pe=1.2.3.4:5&x.pe=[::1]:6",
        "magnet:?dn=x",
        "magnet:?xt=urn:btih:123",
        "http://x.test/",
    ]:
        try:
            read = lt.parse_magnet_uri(link)
        except RuntimeError:
            read = None
        code, shown, error = run("show", link, "--json")
        # Without the scheme it is the name of a file.
        if read is None:
            assert code != 0, link
        else:
            assert code == 0, f"{link}: {error}"
            ours = json.loads(shown)
            assert ours["infoHash"] == str(read.info_hashes.v1) and (ours["name"] or "") == read.name
            assert [url for tier in ours["trackers"] for url in tier] == read.trackers
            assert ours["webseeds"] == read.url_seeds
            peers = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in read.peers]
            assert ours["peers"] == peers
        count += 1
    return count


os.makedirs(work, exist_ok=True)
print(json.dumps({"created": compare_created(), "read": compare_read(), "magnets": compare_magnets()}))
