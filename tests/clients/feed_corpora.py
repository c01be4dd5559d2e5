"""Reads the feeds that other parsers are tested with, and hostile ones, through a running service.

    feed_corpora.py ADDRESS FOLDER PID        the key is in SVC_TOKEN

FOLDER has the fixtures of feed-rs; those of feedparser are fetched from PyPI, and feedparser says what is in a feed. Every
document is read or refused with a reason. Prints how often both say the same of a field, and fails below `AGREEMENT`.
"""

import calendar
import collections
import concurrent.futures
import functools
import html
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import urllib.request

import feedparser

# What both must say the same of, of 100; a little less than was measured (see `normal` and `theirs` for what differs on
# purpose). What is left: titles in base64, encodings that only one of them finds out, the first of several files or the
# largest, and dates in modules that nobody uses.
AGREEMENT = {"entries": 94, "guid": 90, "title": 90, "link": 90, "enclosure": 90, "date": 90}

MIB = 1024 * 1024
# The largest feed that is read, and what reading one may cost beside it.
MOST_GROWTH_MIB = 120
MOST_SECONDS = 10
HEADER = re.compile(rb"^Header:\s*Content-type:\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)


def corpora(fixtures):
    """Documents by name, each with its content type."""
    tests = pathlib.Path(sys.prefix, f"feedparser-{feedparser.__version__}", "tests")
    if not tests.exists():
        fetch(tests.parent.parent)
    documents = {}
    for origin, folder in [("feed-rs", pathlib.Path(fixtures)), ("feedparser", tests)]:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".xml", ".json"} and path.is_file():
                content = path.read_bytes()
                kind = HEADER.search(content[:1000])
                of_suffix = "application/feed+json" if path.suffix == ".json" else "application/xml"
                media_type = kind.group(1).decode() if kind else of_suffix
                documents[f"{origin}/{path.relative_to(folder)}"] = (content, media_type)
    return documents


def fetch(folder):
    """The source distribution, which has the tests; what is installed has not. Beside the installed one, below target/."""
    name = f"feedparser=={feedparser.__version__}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", folder, name]
    subprocess.run(pip, check=True)
    with tarfile.open(next(folder.glob("feedparser-*.tar.gz"))) as archive:
        # Python before 3.11.4 has no filters; the archive is that of an exact version.
        filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **filters)


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, documents, *arguments):
        self.documents = documents
        super().__init__(*arguments)

    def do_GET(self):
        content, media_type = self.documents[int(self.path.split("/")[1])]
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        size = content if isinstance(content, int) else len(content)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        try:
            self.wfile.write(b" " * size if isinstance(content, int) else content)
        except ConnectionError:
            pass  # whoever reads a hostile document may stop at any byte

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def serve(documents):
    server = Server(("127.0.0.1", 0), functools.partial(Handler, documents))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def ask(address, url):
    body = json.dumps({"url": url, "source": {"url": url, "downloadAll": True}}).encode()
    headers = {"Authorization": f"Bearer {os.environ['SVC_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{address}/api/v1/rss/validate", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def plain(text):
    """A title without markup, as both can be compared."""
    return " ".join(re.sub(r"<[^>]*>", "", html.unescape(text)).split())


def normal(url, base):
    """A URL with its base, in the letters of HTTP and with its host in small letters; of an identifier, what is no URL stays."""
    parts = urllib.parse.urlsplit(urllib.parse.urljoin(base, url))
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.lower(), path=urllib.parse.quote(parts.path, "/%:@!$&'()*+,;=~")))


def theirs(entry):
    """The fields of an entry of feedparser's that the feed names; others are made up and not compared."""
    date = entry.get("published_parsed") or entry.get("updated_parsed")
    files = [file.get("href", "") for file in entry.get("enclosures", [])]
    return {
        "guid": entry.get("id", ""),
        "title": plain(entry.get("title", "")),
        "link": entry.get("link", ""),
        "enclosure": files[0] if files else "",
        "date": calendar.timegm(date) if date else "",
    }


def ours(item):
    return {
        "guid": item["guid"],
        "title": plain(item["title"]),
        "link": item["link"],
        "enclosure": item["enclosureUrl"],
        "date": item["pubDate"],
    }


def compare(address, documents):
    base = serve([document for _, document in sorted(documents.items())])
    urls = {name: f"{base}/{number}/feed" for number, name in enumerate(sorted(documents))}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = dict(zip(urls, pool.map(lambda url: ask(address, url), urls.values())))
    same, all_of, differences = collections.Counter(), collections.Counter(), []
    errors = collections.Counter()
    for name, answer in answers.items():
        assert answer["error"] == "" or not answer["items"], f"{name}: an error and items: {answer}"
        if answer["error"]:
            errors[answer["error"][:70]] += 1
        content, media_type = documents[name]
        headers = {"content-type": media_type, "content-location": urls[name]}
        entries = [] if media_type == "application/feed+json" else feedparser.parse(content, response_headers=headers).entries
        # What has neither a title nor anything to download is no item.
        entries = [entry for entry in entries if entry.get("title") or entry.get("link") or entry.get("enclosures")]
        if not entries:
            continue
        all_of["entries"] += 1
        if len(entries) != len(answer["items"]):
            differences.append(f"entries {name}: {len(entries)}, ours {len(answer['items'])} {answer['error']}")
            continue
        same["entries"] += 1
        for entry, item in zip(entries, answer["items"]):
            mine = ours(item)
            for field, value in theirs(entry).items():
                if value == "":
                    continue
                all_of[field] += 1
                if field in ("guid", "link", "enclosure"):
                    mine[field], value = normal(mine[field], urls[name]), normal(value, urls[name])
                if mine[field] == value:
                    same[field] += 1
                else:
                    differences.append(f"{field} {name}: {value!r}, ours {mine[field]!r}")
    print("\n".join(differences))
    print(f"{len(documents)} documents; {sum(errors.values())} refused: {dict(errors)}")
    print("; ".join(f"{field}: {same[field]} of {all_of[field]}" for field in AGREEMENT))
    assert len(documents) > 2000 and all_of["guid"] > 100, "the corpora are not whole"
    for field, least in AGREEMENT.items():
        assert 100 * same[field] >= least * all_of[field], f"{field}: {same[field]} of {all_of[field]}, wanted {least} %"


def resident(pid):
    """The memory of a process at its largest, and now, in MiB."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{name}:\s+(\d+)", text).group(1)) // 1024 for name in ["VmHWM", "VmRSS"]]


def hostile(address, pid):
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE rss [<!ENTITY e0 "lol">{entities}]><rss><channel><item><title>&e11;</title></item></channel></rss>'
    deep = "<rss><channel>" + "<a>" * 1_000_000
    items = "<rss version='2.0'><channel>" + "<item><title>t</title></item>" * 280_000 + "</channel></rss>"
    cases = [
        ("50 MB", 50 * MIB, "larger than"),
        ("a million elements inside each other", deep.encode(), "deeper than"),
        ("an entity of 300 GB", bomb.encode(), "entities"),
        ("280,000 items", items.encode(), ""),
    ]
    base = serve([(content, "application/rss+xml") for _, content, _ in cases])
    for number, (name, _, reason) in enumerate(cases):
        before, started = resident(pid)[1], time.monotonic()
        answer = ask(address, f"{base}/{number}/feed")
        seconds, growth = time.monotonic() - started, resident(pid)[0] - before
        print(f"{name}: {answer['error'] or len(answer['items'])} after {seconds:.2f} s, {growth} MiB")
        assert reason in answer["error"] and bool(answer["error"]) == bool(reason), f"{name}: {answer['error']}"
        assert seconds < MOST_SECONDS and growth < MOST_GROWTH_MIB, f"{name}: {seconds} s, {growth} MiB"


def main(address, fixtures, pid):
    compare(address, corpora(fixtures))
    hostile(address, pid)


main(*sys.argv[1:])
