"""What a hostile or broken server answers, in place of what it was asked for."""

import gzip
import json
from collections.abc import Callable, Mapping
from itertools import chain, repeat

from tests.kube.server import Reply, Seen, status

_HEAD = b"HTTP/1.1 200 OK\r\n"
_JSON = {"Content-Type": "application/json"}
_PAGE = b"<!DOCTYPE html><html><title>Log in</title>" + b"<p>\x1b[31mSession expired</p>" * 2000 + b"</html>"
_PACE = 0.02

EVIL = "https://127.0.0.1:1/elsewhere"
"""Where redirects lead; a test puts a server there that must see nothing."""

Answer = Callable[[Seen], Reply]


def _raw(*first: bytes, ever: bytes = b"", pace: float = 0.0) -> Answer:
    return lambda _: Reply(raw=chain(first, repeat(ever)) if ever else first, pace=pace)


def _body(body: bytes, code: int = 200, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Reply(code, body, {**_JSON, **names})


def _json(document: object) -> Answer:
    return _body(json.dumps(document).encode())


def _redirect(code: int) -> Answer:
    return lambda _: Reply(code, b"", {"Location": EVIL})


def _refusal(code: int, reason: str) -> Answer:
    return lambda _: status(code, reason, f"the server says {reason}")


SLOW: Mapping[str, Answer] = {
    "silence": lambda _: Reply(ending="silence"),
    "slow head": _raw(_HEAD, b"X-Slow: ", ever=b"x", pace=_PACE),
    "slow body": _raw(_HEAD, b"Content-Length: 100000\r\n\r\n", ever=b" ", pace=_PACE),
    "slow chunks": _raw(_HEAD, b"Transfer-Encoding: chunked\r\n\r\n", ever=b"1\r\n \r\n", pace=_PACE),
    "slow 100 Continue": _raw(ever=b"HTTP/1.1 100 Continue\r\n\r\n", pace=_PACE),
    "come back in an hour": lambda _: Reply(429, headers={"Retry-After": "3600"}),
    "down for an hour": lambda _: Reply(503, headers={"Retry-After": "3600"}),
}
"""Answers that take as long as they are waited for."""

ENDLESS: Mapping[str, Answer] = {
    "endless 100 Continue": _raw(ever=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "endless headers": _raw(_HEAD, ever=b"X: y\r\n" * 1000),
    "endless header": _raw(_HEAD, b"X: ", ever=b"y" * 65536),
    "endless status line": _raw(b"HTTP/1.1 200 ", ever=b"y" * 65536),
    "declared exabyte": _raw(_HEAD, b"Content-Length: 1" + b"0" * 18 + b"\r\n\r\n", b"{"),
    "huge chunk": _raw(_HEAD, b"Transfer-Encoding: chunked\r\n\r\nffffffffffffff\r\n", b"{"),
    "endless pages": _json({"kind": "List", "items": [], "metadata": {"continue": "again"}}),
}
"""Answers without an end, as fast as they are read."""

BROKEN: Mapping[str, Answer] = {
    "no answer": lambda _: Reply(ending="no answer"),
    "no HTTP": _raw(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "bad length": _raw(_HEAD, b"Content-Length: many\r\n\r\n{}"),
    "bad chunk": _raw(_HEAD, b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    "half a body": _raw(_HEAD, b"Content-Length: 1000\r\n\r\n", b'{"items": ['),
    "half a chunk": _raw(_HEAD, b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n", b'{"items": ['),
    "half JSON": _body(b'{"items": [{"metadata"'),
    "empty": _body(b""),
    "HTML": lambda _: Reply(200, _PAGE, {"Content-Type": "text/html"}),
    "HTML as JSON": _body(_PAGE),
    "plain text as JSON": _body(b"ok"),
    "not UTF-8": _body(b'{"metadata": {"name": "\xff\xfe"}}'),
    "gzip bomb": _body(gzip.compress(b" " * 2**24), Content_Encoding="gzip"),
    "no gzip": _body(b"{}", Content_Encoding="gzip"),
    "deep list": _body(b"[" * 200_000),
    "deep object": _body(b'{"a":' * 200_000),
    "deep items": _body(b'{"items": [' + b'{"metadata": ' * 5000),
    "long number": _body(b'{"metadata": ' + b"9" * 5000 + b"}"),
    "null": _json(None),
    "number": _json(5),
    "text": _json("text"),
    "list": _json([{}]),
    "no items": _json({"kind": "List", "items": None, "metadata": None}),
    "items are a number": _json({"items": 5}),
    "items are numbers": _json({"items": [5, None, "x"]}),
    "items are empty": _json({"items": [{}, {"metadata": {}}]}),
    "metadata is a text": _json({"metadata": "x", "items": [{"metadata": "x"}]}),
    "spec is a list": _json({"metadata": {"name": "x"}, "spec": [], "items": [{"metadata": {"name": "x"}, "spec": []}]}),
    "another object": _json({"kind": "Secret", "metadata": {"name": "x", "namespace": "y"}, "data": {"a": "b"}}),
    "a Status that is none": _json({"kind": "Status", "message": 5, "details": [], "metadata": {}}),
}  # fmt: skip
"""Answers that are no HTTP, no JSON, or no object of the API."""

REFUSING: Mapping[str, Answer] = {
    **{f"redirect {code}": _redirect(code) for code in (301, 302, 303, 307, 308)},
    "redirect to nowhere": lambda _: Reply(302, b""),
    "401": _refusal(401, "Unauthorized"),
    "403": _refusal(403, "Forbidden"),
    "404": _refusal(404, "NotFound"),
    "404 of a proxy": lambda _: Reply(404, b"no such backend"),
    "409": _refusal(409, "AlreadyExists"),
    "410": _refusal(410, "Expired"),
    "422": _refusal(422, "Invalid"),
    "429": _refusal(429, "TooManyRequests"),
    "500": _refusal(500, "InternalError"),
    "502 with HTML": lambda _: Reply(502, _PAGE, {"Content-Type": "text/html"}),
    "503": _refusal(503, "ServiceUnavailable"),
    "500 without an end": _raw(b"HTTP/1.1 500 No\r\nContent-Length: 10000\r\n\r\n", ever=b"x", pace=_PACE),
    "400 of wrong types": lambda _: Reply(
        400, b'{"kind": "Status", "message": {"a": 1}, "reason": [], "details": 5}'
    ),
}
"""Answers that refuse."""

ANSWERS: Mapping[str, Answer] = {**SLOW, **ENDLESS, **BROKEN, **REFUSING}
