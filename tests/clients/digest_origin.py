"""An origin that asks for HTTP Digest (RFC 7616), with nothing of ours in it.

Prints its port, then a line of JSON for each request: what it was asked with, and whether it was let in. Arguments are a
JSON object: algorithm, qop, user, password, stale_after (answers per nonce), next_nonce, userhash, also_basic, redirect (a
URL that /elsewhere leads to), proxy (be a forwarding proxy that asks for Digest itself).
"""

import hashlib
import json
import re
import secrets
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SETTING = {"algorithm": "SHA-256", "qop": "auth", "user": "me", "password": "open sesame", "stale_after": 0,
           "next_nonce": False, "userhash": False, "also_basic": False, "redirect": "", "proxy": False,
           **json.loads(sys.argv[1])}
BODY = bytes(i * 7 % 251 for i in range(3_000_001))
REALM = 'the "files", all'
LOCK = threading.Lock()
NONCES = {}


def digest(text):
    name = SETTING["algorithm"].upper().removesuffix("-SESS")
    return hashlib.new({"MD5": "md5", "SHA-256": "sha256"}[name], text.encode()).hexdigest()


def new_nonce():
    nonce = secrets.token_urlsafe(12)
    NONCES[nonce] = {"count": 0, "seen": set(), "key": None}
    return nonce


def check(header, method):
    """Whether the answer is right: True, False, or "stale"."""
    if not header.startswith("Digest "):
        return False
    given = {name: quoted.replace('\\"', '"') if quoted or not plain else plain
             for name, quoted, plain in re.findall(r'(\w+\*?)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))', header)}
    user, realm = SETTING["user"], REALM
    wanted = digest(f"{user}:{realm}") if SETTING["userhash"] else user
    if given.get("username") != wanted or (given.get("userhash") == "true") != SETTING["userhash"]:
        return False
    nonce = given.get("nonce")
    known = NONCES.get(nonce)
    if given.get("realm") != realm or given.get("opaque") != "op" or known is None:
        return "stale" if known is None and nonce else False
    key = digest(f"{user}:{realm}:{SETTING['password']}")
    if SETTING["algorithm"].lower().endswith("-sess"):
        # Of the first nonce of the session, which the next ones inherit.
        known["key"] = known["key"] or digest(f"{key}:{nonce}:{given['cnonce']}")
        key = known["key"]
    request = digest(f"{method}:{given['uri']}")
    if SETTING["qop"]:
        if given.get("qop") != "auth" or len(given["nc"]) != 8:
            return False
        right = digest(f"{key}:{nonce}:{given['nc']}:{given['cnonce']}:auth:{request}")
        if given["nc"] in known["seen"]:
            return False
        known["seen"].add(given["nc"])
    else:
        right = digest(f"{key}:{nonce}:{request}")
    if given["response"] != right:
        return False
    known["count"] += 1
    if SETTING["stale_after"] and known["count"] > SETTING["stale_after"]:
        del NONCES[nonce]
        return "stale"
    return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def tell(self, **what):
        with LOCK:
            print(json.dumps({"path": self.path, **what}), flush=True)

    def empty(self, status, headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        names = ("Proxy-Authorization", "Proxy-Authenticate", 407) if SETTING["proxy"] else (
            "Authorization", "WWW-Authenticate", 401)
        given = self.headers.get(names[0], "")
        if self.path == "/elsewhere":
            self.tell(given=given, answer=302)
            return self.empty(302, [("Location", SETTING["redirect"])])
        with LOCK:
            state = check(given, "GET")
            nonce = None if state is True else new_nonce()
        self.tell(given=given, answer=200 if state is True else names[2], stale=state == "stale")
        if state is not True:
            escaped = REALM.replace('"', '\\"')
            qop = f', qop="{SETTING["qop"]}"' if SETTING["qop"] else ""
            more = ", userhash=true" if SETTING["userhash"] else ""
            more += ", stale=true" if state == "stale" else ""
            challenges = [f'Digest realm="{escaped}", nonce="{nonce}", opaque="op", algorithm={SETTING["algorithm"]}{qop}{more}']
            if SETTING["also_basic"]:
                challenges.insert(0, 'Basic realm="b, c"')
            return self.empty(names[2], [(names[1], ", ".join(challenges))])
        if SETTING["proxy"]:
            fetched = urllib.request.urlopen(urllib.request.Request(self.path)).read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(fetched)))
            self.end_headers()
            return self.wfile.write(fetched)
        first, last = 0, len(BODY) - 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = int(asked[1]), min(int(asked[2] or last), last)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(BODY)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(last - first + 1))
        if SETTING["next_nonce"]:
            with LOCK:
                old = re.search(r'nonce="([^"]*)"', given)[1]
                following = new_nonce()
                NONCES[following]["key"] = NONCES[old]["key"]
            self.send_header("Authentication-Info", f'nextnonce="{following}", qop=auth')
        self.end_headers()
        self.wfile.write(BODY[first:last + 1])


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
