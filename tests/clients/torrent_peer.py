"""libtorrent as the other side of a swarm. Commands come as JSON lines on standard input, answers go to standard output.

    {"do": "make", "path": ..., "torrent": ..., "piece": bytes, "private": bool, "trackers": [...], "webseeds": [...],
     "version": "v1", "v2" or "hybrid"}
    {"do": "add", "torrent": ... or "magnet": ..., "directory": ..., "seed": bool, "upload": bytes per second,
     "download": bytes per second, "peers": [[host, port]], "trackers": [...]}
    {"do": "connect", "peers": [[host, port]]}
    {"do": "state"}    sums, the connected peers and the trackers
    {"do": "limit", "upload": bytes per second, "download": bytes per second}
    {"do": "announce"}    asks the trackers at once

All but the first two are about the torrent that was added last. An argument, if there is one, has settings of the session.
"""

import json
import os
import sys
import time
import warnings

import libtorrent as lt

warnings.simplefilter("ignore")

settings = {
    "listen_interfaces": "127.0.0.1:0",
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "allow_multiple_connections_per_ip": True,
    # A test does not wait until a peer is let in again.
    "min_reconnect_time": 1,
    "peer_connect_timeout": 5,
    # Every announcement of a test is made when the test wants it.
    "min_announce_interval": 1,
    "alert_mask": 0,
}
session = lt.session({**settings, **(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})})
handle = None
VERSIONS = {"v1": lt.create_torrent.v1_only, "v2": lt.create_torrent.v2_only, "hybrid": 0}
PATIENCE_SECONDS = 60


def make(command):
    storage = lt.file_storage()
    lt.add_files(storage, command["path"])
    torrent = lt.create_torrent(storage, command.get("piece", 0), VERSIONS[command.get("version", "v1")])
    torrent.set_priv(command.get("private", False))
    for tier, url in enumerate(command.get("trackers", [])):
        torrent.add_tracker(url, tier)
    for url in command.get("webseeds", []):
        torrent.add_url_seed(url)
    lt.set_piece_hashes(torrent, os.path.dirname(command["path"]))
    encoded = lt.bencode(torrent.generate())
    with open(command["torrent"], "wb") as file:
        file.write(encoded)
    hashes = lt.torrent_info(encoded).info_hashes()
    return {"hash": str(hashes.v1 if hashes.has_v1() else hashes.get_best())}


def add(command):
    global handle
    if "magnet" in command:
        parameters = lt.parse_magnet_uri(command["magnet"])
    else:
        parameters = lt.add_torrent_params()
        parameters.ti = lt.torrent_info(command["torrent"])
    parameters.save_path = command["directory"]
    # Which trackers it has is what the command says: others may not lead here.
    parameters.trackers = command.get("trackers", [])
    parameters.flags |= lt.torrent_flags.override_trackers
    # It begins at once and does not stop by itself.
    parameters.flags &= ~lt.torrent_flags.auto_managed
    parameters.flags &= ~lt.torrent_flags.paused
    if command.get("seed"):
        parameters.flags |= lt.torrent_flags.seed_mode
    parameters.upload_limit = command.get("upload", 0)
    parameters.download_limit = command.get("download", 0)
    handle = session.add_torrent(parameters)
    for host, port in command.get("peers", []):
        handle.connect_peer((host, port))
    # It refuses peers until it has looked at its files.
    wait_until(lambda: not command.get("seed") or handle.status().is_seeding)
    wait_until(lambda: not command.get("trackers") or any(one["verified"] for one in handle.trackers()))
    return {"port": session.listen_port()}


def wait_until(is_so):
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            sys.exit("it does not get there")
        time.sleep(0.01)


def connect(command):
    for host, port in command["peers"]:
        handle.connect_peer((host, port))
    return {}


def state(command):
    status = handle.status()
    peers = handle.get_peer_info()
    return {
        "progress": status.progress,
        "seeding": status.is_seeding,
        "uploaded": status.total_payload_upload,
        "downloaded": status.total_payload_download,
        "failed": status.total_failed_bytes,
        "peers": status.num_peers,
        "clients": [peer.client.decode(errors="replace") for peer in peers],
        "addresses": ["%s:%d" % peer.ip for peer in peers],
    }


def limit(command):
    for direction, change in [("upload", handle.set_upload_limit), ("download", handle.set_download_limit)]:
        if direction in command:
            change(command[direction])
    return {}


def announce(command):
    handle.force_reannounce()
    return {}


for line in sys.stdin:
    command = json.loads(line)
    print(json.dumps(globals()[command["do"]](command)), flush=True)
