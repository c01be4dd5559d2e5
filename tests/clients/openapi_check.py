"""Holds the interface's description against OpenAPI 3.1 itself.

    openapi_check.py ADDRESS
"""

import json
import sys
import urllib.request

from openapi_spec_validator import OpenAPIV31SpecValidator


def main(address):
    with urllib.request.urlopen(f"http://{address}/api/v1/openapi.json") as answer:
        document = json.load(answer)
    OpenAPIV31SpecValidator(document).validate()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)), "an operation's id is not its own"
    print(f"{len(operations)} operations, {len(document['components']['schemas'])} schemas")


main(sys.argv[1])
