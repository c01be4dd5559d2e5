"""Asks for everything that the interface's description allows, and for much that it does not, and holds every answer
against it: no failure of the service, no status and no body that it does not name.

    openapi_contract.py ADDRESS          the service; its key is in SVC_TOKEN. It must not reach anybody.
"""

import contextlib
import io
import itertools
import os
import sys
import tempfile
import zipfile

import schemathesis
from schemathesis.cli import schemathesis as command

KEY = os.environ["SVC_TOKEN"]

# Of what can be asked of one operation; enough for every branch of its schema.
EXAMPLES = 10

# A link that is one, so that there are tasks to ask about. Nobody listens there.
NOWHERE = "http://127.0.0.1:1/"

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
]

numbers = itertools.count()


@schemathesis.serializer("application/zip")
def archive(_, value):
    """Whatever it is, once as it is and once as a file in an archive."""
    content = value if isinstance(value, bytes) else str(value).encode(errors="replace")
    if next(numbers) % 2:
        return content
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("plugin.json", content)
    return packed.getvalue()


@schemathesis.hook
def map_body(context, body):
    """Every other source is a link."""
    if isinstance(body, dict) and isinstance(body.get("url"), str) and next(numbers) % 2:
        body["url"] = f"{NOWHERE}{next(numbers)}"
    return body


def main(address):
    keys = ["--header", f"Authorization: Bearer {KEY}", "--header", f"X-Svc-Token: {KEY}"]
    bounds = ["--max-examples", str(EXAMPLES), "--workers", "1", "--seed", "1", "--no-shrink"]
    what = ["--phases", "coverage,fuzzing,stateful", "--checks", ",".join(CHECKS), "--continue-on-failure"]
    url = f"http://{address}/api/v1/openapi.json"
    # It remembers what it tried in the directory that it stands in.
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        command(["run", url, *keys, *bounds, *what, "--warnings", "off"])


main(*sys.argv[1:])
