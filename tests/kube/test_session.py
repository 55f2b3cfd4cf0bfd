"""What a session asks for, and what it makes of the answers, over both transports."""

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

import pytest

from arena_topo.errors import (
    ApiError,
    ArenaTopoError,
    Conflict,
    ConnectionFailed,
    DocumentError,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from arena_topo.kube.session import NotSent, Session, is_unserved
from arena_topo.model.objects import Object
from tests.kube.asking import Make, session, target
from tests.kube.server import Reply, Seen, Server, status


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", Conflict),
        (410, "Expired", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ApiError),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(
    make: Make, server: Server, code: int, reason: str, kind: type[ApiError]
) -> None:
    """With the server's words, its reason and its details."""
    server.rule = lambda _: status(code, reason, "because", name="x", kind="pods")
    with pytest.raises(kind) as caught:
        session(make(target(server))).get("/x")

    assert kind is type(caught.value)
    assert (code, reason, "x") == (caught.value.status, caught.value.reason, caught.value.details["name"])
    assert "because" in caught.value.message


@pytest.mark.parametrize("body", [b"<html>bad gateway</html>", b"", b"\xff\xfe"])
def test_a_refusal_without_a_status_is_told_as_it_is(make: Make, server: Server, body: bytes) -> None:
    """From a proxy in between, say."""
    server.rule = lambda _: Reply(502, body)
    with pytest.raises(ApiError) as caught:
        session(make(target(server))).get("/x")

    assert caught.value.message


def test_who_is_told_to_come_back_comes_back(make: Make, server: Server) -> None:
    """After the time that the server says."""
    answers = iter(
        [
            Reply(429, headers={"Retry-After": "0"}),
            Reply(503, headers={"Retry-After": "0"}),
            Reply(body=b'{"a": 1}'),
        ]
    )
    server.rule = lambda _: next(answers)

    assert {"a": 1} == session(make(target(server))).get("/x")


def test_a_retry_that_comes_too_late_is_not_sent(make: Make, server: Server) -> None:
    """Anyone who holds a Lease for a while alone must not
    write later, whenever the server asks to come back.
    """
    server.rule = lambda _: Reply(429, headers={"Retry-After": "0"})
    allowed = iter([True, True, False])
    with pytest.raises(NotSent):
        session(make(target(server))).only_while(lambda: next(allowed)).patch("/x", {"a": 1})

    assert ["PATCH", "PATCH"] == [request.method for request in server.seen]


def test_impersonation_is_sent_with_every_request(make: Make, server: Server) -> None:
    """The user and each of the groups."""
    session(make(target(server)), {"as": "bob", "as-groups": ["g1", "g2"]}).get("/x")
    seen = server.seen[0]

    assert "bob" == seen.header("Impersonate-User")
    assert ["g1", "g2"] == [
        part.strip() for value in seen.headers["impersonate-group"] for part in value.split(",")
    ]


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b"\xff"])
def test_an_answer_that_is_no_object_is_reported(make: Make, server: Server, body: bytes) -> None:
    """From a login page before the API server, say."""
    server.rule = lambda _: Reply(body=body)
    with pytest.raises(
        DocumentError, match="the server answered GET /x with something that is not an object"
    ):
        session(make(target(server))).get("/x")


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon", ""])
def test_a_time_to_come_back_that_is_none_is_no_time(make: Make, server: Server, seconds: str) -> None:
    """The refusal is an error at once."""
    server.rule = lambda _: Reply(429, headers={"Retry-After": seconds})
    with pytest.raises(TooManyRequests):
        session(make(target(server))).get("/x")
    assert 1 == len(server.seen)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (
            lambda s: s.get("/x", a="1 & 2", b=True, c=None, d=False),
            ("GET", "/x?a=1%20%26%202&b=true", "", ""),
        ),
        (
            lambda s: s.create("/x", {"é": 1}),
            ("POST", "/x?fieldValidation=Strict&fieldManager=arena-topo", "application/json", {"é": 1}),
        ),
        (
            lambda s: s.create("/x", {}, dry_run=True),
            ("POST", "/x?fieldValidation=Strict&fieldManager=arena-topo&dryRun=All", "application/json", {}),
        ),
        (
            lambda s: s.patch("/x", {"a": None}),
            ("PATCH", "/x?fieldManager=arena-topo", "application/merge-patch+json", {"a": None}),
        ),
        (
            lambda s: s.patch("/x", [{"op": "remove"}], "json"),
            ("PATCH", "/x?fieldManager=arena-topo", "application/json-patch+json", [{"op": "remove"}]),
        ),
        (
            lambda s: s.delete("/x", uid="u1"),
            (
                "DELETE",
                "/x",
                "application/json",
                {
                    "kind": "DeleteOptions",
                    "apiVersion": "v1",
                    "propagationPolicy": "Background",
                    "preconditions": {"uid": "u1"},
                },
            ),
        ),
        (
            lambda s: s.delete("/x", propagation="Foreground"),
            (
                "DELETE",
                "/x",
                "application/json",
                {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
            ),
        ),
    ],
    ids=["get", "create", "dry run", "merge", "json", "delete this one", "delete in front"],
)
def test_requests_say_what_the_api_server_understands(
    make: Make, server: Server, ask: Callable[[Session], Object], expected: tuple[str, str, str, Any]
) -> None:
    """Path, query, type and body."""
    ask(session(make(target(server))))
    seen = server.seen[0]

    assert expected == (
        seen.method,
        seen.path,
        seen.header("Content-Type"),
        json.loads(seen.body) if seen.body else "",
    )


def test_a_long_list_is_read_in_parts(make: Make, server: Server) -> None:
    """The token of one part asks for the next, as it is; a part may be null."""
    parts: dict[str, tuple[list[int] | None, str]] = {
        "": ([1, 2], "a b/c=="),
        "a%20b%2Fc%3D%3D": (None, "end"),
        "end": ([3], ""),
    }

    def rule(seen: Seen) -> Reply:
        items, following = parts[seen.path.partition("continue=")[2]]
        body = {
            "metadata": {"continue": following},
            "items": [{"n": each} for each in items] if items else None,
        }
        return Reply(body=json.dumps(body).encode())

    server.rule = rule

    assert [{"n": 1}, {"n": 2}, {"n": 3}] == session(make(target(server))).list("/x", labelSelector="l=1")
    assert 3 == len(server.seen)
    assert all("limit=500" in seen.path and "labelSelector=l%3D1" in seen.path for seen in server.seen)


@pytest.mark.parametrize(
    ("reply", "unserved"),
    [
        (status(404, "NotFound", "the server could not find the requested resource"), True),
        (Reply(404, b"404 page not found\n"), True),
        (status(404, "NotFound", 'mpijobs "a" not found', name="a", kind="mpijobs"), False),
    ],
    ids=["no such type", "no such group", "no such object"],
)
def test_a_type_that_is_not_served_is_told_from_an_object_that_is_missing(
    make: Make, server: Server, reply: Reply, unserved: bool
) -> None:
    """Both are 404."""
    server.rule = lambda _: reply
    with pytest.raises(NotFound) as caught:
        session(make(target(server))).get("/x")

    assert unserved is is_unserved(caught.value)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(body=b'{"kind":"PartialObjectMetadata","metadata":{"name":"a"}}'), True),
        (status(404, "NotFound", 'secrets "a" not found', name="a", kind="secrets"), False),
        (status(404, "NotFound", "the server could not find the requested resource"), None),
        (status(403, "Forbidden", "no"), None),
    ],
    ids=["there", "missing", "no such type", "forbidden"],
)
def test_whether_an_object_exists_is_asked_without_its_data(
    make: Make, server: Server, reply: Reply, expected: bool | None
) -> None:
    """A Secret stays on the server: its metadata says enough."""
    server.rule = lambda _: reply

    assert expected is session(make(target(server))).exists("/api/v1/namespaces/n/secrets/a")
    assert "as=PartialObjectMetadata" in server.seen[0].header("Accept")


def test_a_stream_that_is_refused_is_an_error(make: Make, server: Server) -> None:
    """As any other question."""
    server.rule = lambda _: status(403, "Forbidden", "no", name="x")
    with pytest.raises(Forbidden, match="no"):
        session(make(target(server))).stream("/x", follow=True)


def test_a_session_goes_on_beside_its_stream(make: Make, server: Server) -> None:
    """A log that is followed does not hold up the rest."""

    def rule(seen: Seen) -> Reply:
        return Reply(chunks=[b"one\n"], ending="silence") if "log" in seen.path else Reply(body=b'{"a": 1}')

    server.rule = rule
    asking = session(make(target(server)))
    with closing(asking.stream("/log", timeout=60)) as stream:
        assert b"one\n" == stream.readline()
        assert {"a": 1} == asking.get("/x")


def test_a_stream_may_come_over_the_kept_connection(make: Make, server: Server) -> None:
    """One that is read to its end before anything else is
    asked needs no second handshake; dropped, it leaves none.
    """
    server.rule = lambda seen: Reply(chunks=[b"one\n", b"two\n"]) if "log" in seen.path else Reply()
    asking = session(make(target(server)))
    asking.get("/x")
    with closing(asking.stream_once("/log")) as stream:
        assert b"one\n" == stream.readline()
    asking.get("/x")

    assert [1, 2, 1] == [seen.turn for seen in server.seen]


def test_what_a_request_waits_for_is_told(make: Make, server: Server) -> None:
    """With the time and the number of the attempt; at most ten seconds, five times."""
    server.rule = lambda _: Reply(429, headers={"Retry-After": "3600"})
    told: list[str] = []
    slept: list[float] = []
    asking = Session(make(target(server)), namespace="n", notify=told.append, sleep=slept.append)
    with pytest.raises(TooManyRequests):
        asking.get("/x")

    assert ([10.0] * 5, 6) == (slept, len(server.seen))
    assert "the server asks to try again in 10 s (HTTP status 429), attempt 1 of 5" == told[0]


def test_waiting_counts_as_time_of_the_request(make: Make, server: Server) -> None:
    """What would not come in time is an error at once."""
    server.rule = lambda _: Reply(503, headers={"Retry-After": "7"})
    slept: list[float] = []
    asking = Session(make(target(server)), namespace="n", timeout=5, sleep=slept.append)
    with pytest.raises(ApiError):
        asking.get("/x")

    assert ([], 1) == (slept, len(server.seen))


def test_all_requests_of_a_command_have_a_total_time(make: Make, server: Server) -> None:
    """Each of them is in time; the pauses of a command that
    watches begin a new count, and namespaces share one.
    """
    clock = [0.0]

    def rule(_: Seen) -> Reply:
        clock[0] += 90
        return Reply(body=b'{"a": 1}')

    server.rule = rule
    asking = Session(make(target(server)), namespace="n", timeout=100, now=lambda: clock[0])
    for _ in range(12):
        asking.within("other").get_raw("/x")
    with pytest.raises(ConnectionFailed, match="requests of this command took more than 1000 s in all"):
        asking.get("/x")
    assert 12 == len(server.seen)
    clock[0] += 0.2
    assert {"a": 1} == asking.get("/x")


@pytest.mark.parametrize(
    "date",
    [
        "",
        "yesterday",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 31 Feb 2026 08:49:37 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ],
)
def test_ages_count_by_the_clock_of_the_server(make: Make, server: Server, date: str) -> None:
    """By its last answer and what has passed since; by that of this machine where it says no time."""
    clock = [0.0]

    def dated(text: str) -> Reply:
        return Reply(raw=[f"HTTP/1.1 200 OK\r\nDate: {text}\r\nContent-Length: 2\r\n\r\n{{}}".encode()])

    server.rule = lambda _: dated("Sun, 06 Nov 1994 08:49:37 GMT")
    asking = Session(make(target(server)), namespace="n", now=lambda: clock[0])
    assert abs(asking.now() - datetime.now(UTC)) < timedelta(minutes=10)
    asking.within("other").get("/x")
    clock[0] += 90
    assert datetime(1994, 11, 6, 8, 51, 7, tzinfo=UTC) == asking.now()
    server.rule = lambda _: dated(date)
    asking.get("/x")
    clock[0] += 90
    assert abs(asking.now() - datetime.now(UTC)) < timedelta(minutes=10)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_no_redirect_is_followed(make: Make, server: Server, code: int) -> None:
    """Another host would get the credentials."""
    server.rule = lambda _: Reply(code, headers={"Location": "https://evil.example/x"})
    with pytest.raises(DocumentError, match=r"redirects to 'evil\.example' .* credentials are not sent"):
        session(make(target(server, {"token": "t"}))).get("/x")
    assert 1 == len(server.seen)


def test_a_list_without_an_end_is_left(make: Make, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a page leads to itself, to ever more or ever larger pages, or takes ever more time."""
    tokens = count()
    server.rule = lambda _: Reply(body=b'{"metadata": {"continue": "again"}}')
    with pytest.raises(DocumentError, match="the server's list of /x does not end: page 2 leads to itself"):
        session(make(target(server))).list("/x")
    assert 2 == len(server.seen)
    server.rule = lambda _: Reply(body=b'{"metadata": {"continue": "t%d"}}' % next(tokens))
    with pytest.raises(DocumentError, match="the server's list of /x does not end: 400 pages so far"):
        session(make(target(server))).list("/x")
    monkeypatch.setattr("arena_topo.kube.session.LARGEST_LIST", 2**20)
    server.rule = lambda _: Reply(
        body=b'{"metadata": {"continue": "t%d"}, "a": "%s"}' % (next(tokens), b"x" * 2**19)
    )
    with pytest.raises(DocumentError, match="the server's list of /x does not end: more than 1 MiB so far"):
        session(make(target(server))).list("/x")
    server.rule = lambda _: Reply(body=b'{"metadata": {"continue": "t%d"}}' % next(tokens))
    now = count(step=30)
    slow = Session(make(target(server)), namespace="n", timeout=100, now=lambda: float(next(now)))
    with pytest.raises(DocumentError, match="the server's list of /x does not end"):
        slow.list("/x")


def test_pages_that_are_too_large_are_asked_for_in_parts(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who writes much into his objects hides nobody else's."""
    monkeypatch.setattr("arena_topo.kube.transport.LARGEST_BODY", 100_000)

    def rule(seen: Seen) -> Reply:
        limit = int(dict(parse_qsl(seen.path.partition("?")[2]))["limit"])
        body: Object = {"items": [{"text": "x" * 1000}] * limit}
        return Reply(body=json.dumps(body).encode())

    server.rule = rule

    assert 50 == len(session(make(target(server))).list("/x"))


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"kind": "Status", "message": 5}'])
@pytest.mark.parametrize("code", [200, 500])
def test_nesting_is_no_internal_error(make: Make, server: Server, body: bytes, code: int) -> None:
    """Neither in an object nor in a refusal."""
    server.rule = lambda _: Reply(code, body)
    try:
        session(make(target(server))).get("/x")
    except ArenaTopoError as error:
        assert len(error.message) < 2100  # noqa: PT017  # it is no failure that an answer is an object
