"""Drives the service with aria2p, a library for aria2 that is not ours: add, pause, resume, move, options, remove, and what
is told meanwhile.

    aria2p_client.py ADDRESS             the service; its key is in SVC_TOKEN
"""

import os
import pathlib
import sys
import time

import aria2p

from aria2_reference import PATIENCE, serve


def until(what, is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def main(address):
    base = serve()
    host, port = address.rsplit(":", 1)
    api = aria2p.API(aria2p.Client(host=f"http://{host}", port=int(port), secret=os.environ["SVC_TOKEN"]))
    told = []
    tell = {f"on_download_{kind}": lambda _, gid, kind=kind: told.append((kind, gid))
            for kind in ("start", "pause", "stop", "complete", "error")}
    api.listen_to_notifications(threaded=True, timeout=1, handle_signals=False, **tell)

    # Until the connection is there, nothing is told: a first download shows that it is.
    def is_listening():
        probe = api.add_uris([f"{base}/fast/probe"], {"out": f"probe-{time.monotonic_ns()}"})
        time.sleep(0.1)
        return ("complete", probe.gid) in told
    until("the listener hears", is_listening)
    api.purge()

    def hears(kind, download):
        until(f"{kind} of {download.gid} is told", lambda: (kind, download.gid) in told)

    done = api.add(f"{base}/fast/done")[0]
    hears("complete", done)
    done.update()
    assert done.is_complete and done.progress == 100.0 and done.total_length == 65536, done
    assert pathlib.Path(done.files[0].path).stat().st_size == 65536
    assert [kind for kind, gid in told if gid == done.gid] == ["start", "complete"]

    failed = api.add_uris([f"{base}/missing/x"], {"max-tries": "1"})
    hears("error", failed)
    failed.update()
    assert failed.has_failed and failed.error_code == "3" and failed.error_message, failed

    # Adding, pausing, resuming.
    options = aria2p.Options(api, {"max-download-limit": "64K", "split": "2", "dir": str(done.dir / "sub")})
    slow = api.add_uris([f"{base}/slow/s"], options)
    hears("start", slow)
    assert slow.live.is_active and slow.live.dir == done.dir / "sub"
    assert slow.options.max_download_limit == 65536 and slow.options.split == 2
    assert api.pause([slow]) == [True]
    hears("pause", slow)
    assert slow.live.is_paused
    told.remove(("start", slow.gid))
    assert api.resume([slow]) == [True]
    hears("start", slow)

    # Options of one and of all.
    assert api.set_options({"max-download-limit": "128K"}, [slow]) == [True]
    assert api.get_options([slow])[0].max_download_limit == 131072
    assert api.set_global_options({"max-concurrent-downloads": "1"})
    assert api.get_global_options().max_concurrent_downloads == 1

    # The order of those that wait.
    waiting = [api.add_uris([f"{base}/slow/{number}"]) for number in range(4)]
    until("four wait", lambda: api.get_stats().num_waiting == 4)
    order = lambda: [waiting.index(download) for download in api.get_downloads() if download in waiting]
    assert order() == [0, 1, 2, 3]
    assert api.move_to_top(waiting[3]) == 0
    assert order() == [3, 0, 1, 2]
    assert api.move_down(waiting[3], 2) == 2
    assert order() == [0, 1, 3, 2]
    assert api.move_to_bottom(waiting[0]) == 3
    assert order() == [1, 3, 2, 0]

    # Removing, all of it.
    assert api.remove([slow]) == [True]
    hears("stop", slow)
    assert api.pause_all()
    until("nothing runs", lambda: api.get_stats().num_active == 0)
    assert api.remove(waiting) == [True] * 4
    assert api.purge()
    assert api.get_downloads() == []
    api.stop_listening()
    print("aria2p", aria2p.__name__, "has what it needs:", len(told), "notifications")


if __name__ == "__main__":
    main(*sys.argv[1:])
