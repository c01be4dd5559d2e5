"""Reads the metrics with the parser of Prometheus's own client, and holds them against what Prometheus wants of names.

    metrics_check.py ADDRESS        the key is in SVC_TOKEN
"""

import os
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

EXPECTED = {
    "svc_build_info": "gauge",
    "svc_daemon_up": "gauge",
    "svc_daemon_resident_memory_bytes": "gauge",
    "process_resident_memory_bytes": "gauge",
    "svc_tasks": "gauge",
    "svc_http_requests": "counter",
    "svc_http_request_duration_seconds": "histogram",
    "svc_daemon_call_duration_seconds": "histogram",
    "svc_plugin_calls": "counter",
    "svc_plugin_faults": "counter",
    "svc_plugin_call_seconds": "counter",
}


def read(address):
    request = urllib.request.Request(
        f"http://{address}/metrics", headers={"Authorization": f"Bearer {os.environ['SVC_TOKEN']}"}
    )
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def main(address):
    # The first reading is counted in the second.
    read(address)
    families = {family.name: family for family in text_string_to_metric_families(read(address))}
    for name, kind in EXPECTED.items():
        assert families[name].type == kind, f"{name} is a {families[name].type}"
    seen = set()
    for family in families.values():
        assert family.documentation, f"{family.name} does not say what it is"
        for sample in family.samples:
            series = (sample.name, tuple(sorted(sample.labels.items())))
            assert series not in seen, f"{series} is there twice"
            seen.add(series)
        if family.type == "histogram":
            check_histogram(family)
    scrapes = families["svc_http_requests"].samples
    assert any(sample.labels == {"surface": "metrics", "status": "2xx"} and sample.value >= 1 for sample in scrapes)
    print(f"{len(families)} families, {len(seen)} series")


def check_histogram(family):
    """Buckets only grow, and the last one holds everything."""
    counts, last = {}, {}
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        if sample.name.endswith("_bucket"):
            assert sample.value >= last.get(labels, 0), f"{family.name}{labels} shrinks"
            last[labels] = sample.value
        elif sample.name.endswith("_count"):
            counts[labels] = sample.value
    assert counts and counts == last, f"{family.name}: {counts} {last}"


main(sys.argv[1])
