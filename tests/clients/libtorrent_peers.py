"""A client with libtorrent that announces one torrent and prints, a line of JSON each, where it listens and the peers that
it finds.

Arguments: the info hash, its own port (0 for one that is free), the port of its node of the hash table (0 for none), that
of another node (0 for none), and trackers. It runs until its standard input is closed.
"""

import json
import sys
import threading
import time

import libtorrent as lt

info_hash, port, node, other, *trackers = sys.argv[1:]
session = lt.session(
    {
        "listen_interfaces": f"127.0.0.1:{port}",
        # A port that is taken is an error, not a reason to listen on the next one.
        "max_retry_port_bind": 0,
        "listen_system_port_fallback": False,
        "enable_dht": node != "0",
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "dht_bootstrap_nodes": f"127.0.0.1:{other}" if other != "0" else "",
        # Several nodes of one address, which is not a public one.
        "dht_restrict_routing_ips": False,
        "dht_restrict_search_ips": False,
        "dht_enforce_node_id": False,
        "alert_mask": lt.alert.category_t.all_categories,
        "allow_multiple_connections_per_ip": True,
    }
)
if other != "0":
    session.add_dht_node(("127.0.0.1", int(other)))
parameters = lt.add_torrent_params()
parameters.info_hashes = lt.info_hash_t(lt.sha1_hash(bytes.fromhex(info_hash)))
parameters.trackers = trackers
parameters.save_path = "/nonexistent"
handle = session.add_torrent(parameters)

closed = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()
seen = set()
again = time.monotonic() + 2
while not closed.is_set():
    session.wait_for_alert(200)
    for alert in session.pop_alerts():
        if isinstance(alert, lt.tracker_reply_alert):
            print(json.dumps({"tracker": alert.tracker_url(), "peers": alert.num_peers}), flush=True)
        elif isinstance(alert, lt.listen_succeeded_alert) and alert.socket_type == lt.socket_type_t.tcp:
            print(json.dumps({"listening": alert.port}), flush=True)
        elif isinstance(alert, (lt.tracker_error_alert, lt.listen_failed_alert)):
            print(json.dumps({"error": alert.message()}), flush=True)
        elif isinstance(alert, lt.dht_get_peers_reply_alert):
            for address, found in alert.peers():
                print(json.dumps({"dht": f"{address}:{found}"}), flush=True)
    for peer in handle.get_peer_info():
        if peer.ip not in seen:
            seen.add(peer.ip)
            print(json.dumps({"connected": "%s:%d" % peer.ip}), flush=True)
    if node != "0" and time.monotonic() >= again:
        again = time.monotonic() + 2
        session.dht_get_peers(lt.sha1_hash(bytes.fromhex(info_hash)))
        handle.force_dht_announce()
