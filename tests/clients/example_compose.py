"""Runs what examples/compose describes, without containers: the entry point of its image with the environment of image and
compose file, a temporary directory for each volume, the health check, and the stop.

    example_compose.py COMPOSE_FILE EXECUTABLE DIRECTORY
"""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import yaml

TOKEN = "choose-a-key-1"


def seconds(text):
    """The compose format's durations, of which this file uses these."""
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def image(dockerfile):
    """The environment, and the command line, of the last stage."""
    text = dockerfile.read_text().replace("\\\n", " ")
    stage = text[text.rindex("\nFROM ") :]
    environment = dict(pair.split("=", 1) for line in re.findall(r"^ENV (.*)$", stage, re.M) for pair in shlex.split(line))
    command = [yaml.safe_load(re.search(rf"^{word} (.*)$", stage, re.M)[1]) for word in ("ENTRYPOINT", "CMD")]
    return environment, command[0] + command[1]


def main(file, executable, directory):
    file, directory = pathlib.Path(file), pathlib.Path(directory)
    document = yaml.safe_load(file.read_text())
    service = document["services"]["svc"]
    context = (file.parent / service["build"]["context"]).resolve()
    environment, command = image(context / service["build"]["dockerfile"])
    for name, value in service["environment"].items():
        assert re.fullmatch(r"\$\{SVC_TOKEN:\?.+\}", value), f"{name} is to come from the user"
        environment[name] = TOKEN
    # A volume's path in the container becomes a directory here.
    for volume in service["volumes"]:
        source, mount = volume.split(":")
        assert source.startswith("./") or source in document["volumes"], f"{source} is declared nowhere"
        used = [name for name, value in environment.items() if value == mount]
        assert used, f"nothing uses the volume at {mount}"
        (directory / mount.strip("/")).mkdir(parents=True)
        environment.update({name: str(directory / mount.strip("/")) for name in used})
    address, outside, inside = service["ports"][0].rsplit(":", 2)
    assert (address, outside, inside) == ("127.0.0.1", "17800", "17800"), service["ports"]

    assert command == ["svc", "serve"], command
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), **environment}
    # The image listens on its usual port; here a free one, which is the only difference.
    running = subprocess.Popen(
        [executable, "serve", "--bind", "127.0.0.1:0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        url = next(line.split()[1] for line in running.stdout if line.strip().startswith("Address"))
        request = urllib.request.Request(f"{url}/api/v1/tasks", headers={"Authorization": f"Bearer {TOKEN}"})
        assert urllib.request.urlopen(request).read() == b"[]"
        kind, *check = service["healthcheck"]["test"]
        assert (kind, check[0]) == ("CMD", "svc"), check
        health = subprocess.run([executable, *check[1:]], env=environment, capture_output=True, text=True)
        assert health.returncode == 0, health
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=seconds(service["stop_grace_period"])) == 0
        assert (directory / "data").iterdir(), "nothing was kept in the volume"
    finally:
        running.kill()
        running.wait()
    print("started, answered, healthy, stopped")


main(*sys.argv[1:])
