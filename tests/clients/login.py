"""Logs in to accounts of plugins over HTTP, knowing nothing but the interface. Standard library only.

    login.py --url URL [--token KEY] begin  PLUGIN [--slot SLOT] [--mode MODE] [--site SITE]
    login.py --url URL [--token KEY] poll   PLUGIN --session ID
    login.py --url URL [--token KEY] answer PLUGIN --session ID [--value KEY=VALUE]... [--input TEXT]
    login.py --url URL [--token KEY] cancel PLUGIN --session ID
    login.py --url URL [--token KEY] status PLUGIN [--session ID] [--slot SLOT]
    login.py --url URL [--token KEY] logout PLUGIN [--slot SLOT]
    login.py --url URL [--token KEY] watch  PLUGIN (--session ID | [--slot SLOT] [--mode MODE] [--site SITE])
                                            [--value KEY=VALUE]... [--limit SECONDS] [--hasty]

Each answer is a line of JSON on standard output, as the service has sent it, with its HTTP status in `httpStatus`. The
access key is else in SVC_TOKEN.

`watch` begins a login, or takes the one that is named, and polls it until its end, as often as the screen says. It fills in
fields with the values that it was given, each value once and those of one key in their order: of two values for `code` the
second one is sent if the first was wrong. A value of @FILE is what is in the file, and @- what is on standard input: other
users see the arguments of a process. With `--hasty` it polls much more often than it is asked to, for tests of those who
have to slow it down.

Ends with 0 after success, 3 if the login has ended in another way, 4 if the service refuses the request, 5 if the time is
up, and 6 if a screen has a field for which there is no value.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SUCCESS, ENDED, REFUSED, LATE, NO_VALUE = 0, 3, 4, 5, 6

# Between two polls of a screen that does not say when, in seconds: somebody else may act on the login.
USUAL_PAUSE = 1.0
HASTY_PAUSE = 0.02

# A step of a login may wait for a slow site.
REQUEST_SECONDS = 60

# What a record of the interface has; nothing else may be in an answer, least of all a credential.
RESPONSE = {"status", "sessionId", "challenge", "challengeType", "message", "authRef", "screen", "accounts"}
SCREEN = {"message", "qr", "fields", "openUrl", "pollAfterMs"}
FIELD = {"key", "label", "secret"}


class Refused(Exception):
    """The service answered with something else than the state of a login."""


class Service:
    """The one endpoint."""

    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token

    def ask(self, plugin, **request):
        """Sends a request and prints the answer; returns it."""
        address = f"{self.url}/api/v1/plugins/{urllib.parse.quote(plugin, safe='')}/auth"
        body = json.dumps({key: value for key, value in request.items() if value is not None}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        sent = urllib.request.Request(address, data=body, headers=headers, method="POST")
        # No proxy of the environment: the service is where the URL says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(sent, timeout=REQUEST_SECONDS) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            answered = json.loads(text)
        except ValueError:
            answered = {"body": text.decode("utf-8", "replace")}
        print(json.dumps({"httpStatus": status, **answered}, ensure_ascii=False), flush=True)
        if "status" not in answered:
            raise Refused(f"{status}: {answered}")
        check(answered)
        return answered


def check(answer):
    """The answer has the members of the interface, of their types, and no other ones."""
    assert set(answer) <= RESPONSE, set(answer) - RESPONSE
    assert answer["status"] in {"pending", "success", "error"}, answer
    assert isinstance(answer["message"], str) and isinstance(answer.get("sessionId", ""), str), answer
    if answer.get("challenge") is not None:
        assert answer["challengeType"] in {"qrcode", "url"}, answer
    screen = answer.get("screen")
    if screen is None:
        return
    assert set(screen) <= SCREEN, set(screen) - SCREEN
    for field in screen.get("fields", []):
        assert set(field) == FIELD and isinstance(field["secret"], bool), field
    if screen.get("qr"):
        assert screen["qr"]["payload"], screen
        assert (answer["challenge"], answer["challengeType"]) == (screen["qr"]["payload"], "qrcode"), answer


def read(value):
    """What is meant by a value of the command line."""
    if not value.startswith("@"):
        return value
    if value == "@-":
        return sys.stdin.readline().rstrip("\n")
    with open(value[1:], encoding="utf-8") as file:
        return file.read().rstrip("\n")


class Values:
    """What the user would fill in."""

    def __init__(self, pairs):
        self.queues = {}
        for pair in pairs or []:
            key, separator, value = pair.partition("=")
            if not separator:
                raise SystemExit(f"{pair} is not KEY=VALUE")
            self.queues.setdefault(key, []).append(value)

    def all(self):
        """Every value; of those of one key the first."""
        return {key: read(values[0]) for key, values in self.queues.items()}

    def take(self, keys):
        """The next value of each key; `None` if one has none left."""
        if not all(self.queues.get(key) for key in keys):
            return None
        return {key: read(self.queues[key].pop(0)) for key in keys}


def wanted(screen):
    """The keys that a screen asks for."""
    keys = [field["key"] for field in screen.get("fields", [])]
    page = screen.get("openUrl") or {}
    return keys or (["url"] if page.get("redirectPrefix") else [])


def watch(service, arguments):
    values, ends = Values(arguments.value), time.monotonic() + arguments.limit
    session = arguments.session
    if session:
        answer = service.ask(arguments.plugin, action="status", sessionId=session)
    else:
        answer = begin(service, arguments)
        session = answer["sessionId"]
    while answer["status"] == "pending":
        screen = answer.get("screen") or {}
        keys, pause = wanted(screen), screen.get("pollAfterMs")
        filled = values.take(keys) if keys else None
        if filled is not None:
            answer = service.ask(arguments.plugin, action="answer", sessionId=session, values=filled)
            continue
        if keys and pause is None:
            print(f"nothing to fill in for {', '.join(keys)}", file=sys.stderr)
            return NO_VALUE
        seconds = USUAL_PAUSE if pause is None else pause / 1000
        seconds = HASTY_PAUSE if arguments.hasty else seconds
        if time.monotonic() + seconds > ends:
            print(f"not over after {arguments.limit} s", file=sys.stderr)
            return LATE
        time.sleep(seconds)
        answer = service.ask(arguments.plugin, action="poll", sessionId=session)
    return outcome(answer)


def begin(service, arguments):
    return service.ask(
        arguments.plugin, action="begin", slot=arguments.slot, mode=arguments.mode, site=arguments.site
    )


def outcome(answer):
    return ENDED if answer["status"] == "error" else SUCCESS


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", default=os.environ.get("SVC_TOKEN", ""))
    actions = parser.add_subparsers(dest="action", required=True)
    options = {
        "begin": ["slot", "mode", "site"],
        "poll": ["session"],
        "answer": ["session", "value", "input"],
        "cancel": ["session"],
        "status": ["session", "slot"],
        "logout": ["slot"],
        "watch": ["session", "slot", "mode", "site", "value", "limit", "hasty"],
    }
    kinds = {
        "value": {"action": "append", "metavar": "KEY=VALUE"},
        "limit": {"type": float, "default": 120.0, "metavar": "SECONDS"},
        "hasty": {"action": "store_true"},
    }
    for action, names in options.items():
        command = actions.add_parser(action)
        command.add_argument("plugin")
        for name in names:
            required = name == "session" and action in {"poll", "answer", "cancel"}
            command.add_argument(f"--{name}", required=required, **kinds.get(name, {}))
    return parser.parse_args(arguments)


def main(arguments):
    arguments = parse(arguments)
    service = Service(arguments.url, arguments.token)
    try:
        if arguments.action == "watch":
            return watch(service, arguments)
        if arguments.action == "begin":
            return outcome(begin(service, arguments))
        request = {"action": arguments.action, "sessionId": getattr(arguments, "session", None)}
        if arguments.action == "answer":
            request["values"] = Values(arguments.value).all() or None
            request["input"] = read(arguments.input) if arguments.input else None
        request["slot"] = getattr(arguments, "slot", None)
        return outcome(service.ask(arguments.plugin, **request))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
