"""What a transport does, whether its user's credentials are static or have to be asked for."""

import base64
import gzip
import json
import os
import socket
import ssl
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from arena_topo.errors import (
    ArenaTopoError,
    ConnectionFailed,
    DocumentError,
    Forbidden,
    Unauthorized,
)
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import Target, configured_target, is_static
from arena_topo.kube.remote import Starter
from arena_topo.kube.session import connect
from arena_topo.kube.transport import AnswerTooLarge, Request, Transport
from tests.controlplane.components.pki import Authority
from tests.kube.asking import Make, get, session, target
from tests.kube.exec_server import ExecServer, Remote, serving
from tests.kube.server import (
    Reply,
    Seen,
    Server,
    proxy,
    refusing_port,
    serve,
    slow_handshake,
    status,
    write_kubeconfig,
)


def data(path: Path) -> str:
    """Return a file as kubeconfigs embed it."""
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "files"])
def test_a_client_certificate_is_shown(make: Make, server: Server, embedded: bool) -> None:
    """From files and from the kubeconfig itself, and nothing of it stays in a file."""
    pair = server.authority.client("ann")
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    if embedded:
        user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    get(make(target(server, user)))

    assert "ann" == server.seen[0].peer


def test_a_client_certificate_is_shown_where_no_file_can_be_in_memory(
    static: Make, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in a file for as long as it is read."""
    pair = server.authority.client("ann")
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delattr(os, "memfd_create")
    user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    get(static(target(server, user)))

    assert "ann" == server.seen[0].peer
    assert [] == list(folder.iterdir())


@pytest.mark.parametrize(
    ("user", "header"),
    [({"token": "t1"}, "Bearer t1"), ({"username": "u", "password": "p"}, "Basic dTpw"), ({}, "")],
    ids=["token", "password", "nothing"],
)
def test_credentials_become_a_header(make: Make, server: Server, user: dict[str, str], header: str) -> None:
    """As kubectl sends them."""
    get(make(target(server, user)))

    assert header == server.seen[0].header("Authorization")


def test_a_token_is_read_from_its_file(make: Make, server: Server, tmp_path: Path) -> None:
    """Without the line's end."""
    (tmp_path / "token").write_text("from-file\n")
    get(make(target(server, {"tokenFile": str(tmp_path / "token")})))

    assert "Bearer from-file" == server.seen[0].header("Authorization")


def test_a_token_file_may_rotate(static: Make, server: Server, tmp_path: Path) -> None:
    """Every request reads it again."""
    file = tmp_path / "token"
    transport = static(target(server, {"tokenFile": str(file)}))
    for token in ("one", "two"):
        file.write_text(token)
        get(transport)

    assert ["Bearer one", "Bearer two"] == [seen.header("Authorization") for seen in server.seen]
    file.unlink()
    with pytest.raises(DocumentError, match=r"the token file .* cannot be read"):
        get(transport)


def test_an_authority_needs_no_key_identifier(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The defaults of Python 3.13 ask for one, and kubectl
    does not; the authority of this server has none.
    """

    def strict(create: Callable[..., ssl.SSLContext], *args: Any, **kwargs: Any) -> ssl.SSLContext:
        context = create(*args, **kwargs)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", partial(strict, ssl.create_default_context))
    get(make(target(server)))

    assert 1 == len(server.seen)


def test_the_authority_may_be_embedded(make: Make, server: Server) -> None:
    """As most kubeconfigs have it."""
    entry = target(server)
    cluster = {"server": server.url, "certificate-authority-data": data(server.authority.certificate)}

    assert {"ok": True} == get(make(Target("c", "d", cluster, entry.user)))


def test_a_server_of_another_name_is_not_trusted(make: Make, server: Server) -> None:
    """Unless tls-server-name says which name it has."""
    with pytest.raises(ConnectionFailed, match="is not trusted"):
        get(make(target(server, tls_server_name="wrong.example.com")))

    assert {"ok": True} == get(make(target(server, tls_server_name="other.example.com")))


def test_a_server_of_an_unknown_authority_is_not_trusted(make: Make, server: Server, tmp_path: Path) -> None:
    """Unless the user says not to look."""
    (tmp_path / "more").mkdir()
    with serve(tmp_path / "more", lambda _: Reply()) as other:
        wrong = str(server.authority.certificate)
        with pytest.raises(ConnectionFailed, match=r"the certificate of the server .* is not trusted"):
            get(make(target(other, certificate_authority=wrong)))
        insecure = Target("c", "d", {"server": other.url, "insecure-skip-tls-verify": True}, {})
        assert {} == get(make(insecure))


def test_a_refused_connection_is_reported(make: Make, server: Server) -> None:
    """With host and port."""
    with refusing_port() as port:
        expected = f"the connection to the server 127.0.0.1:{port} was refused"
        with pytest.raises(ConnectionFailed, match=expected):
            get(make(target(server, server=f"https://127.0.0.1:{port}")))


def test_a_name_that_nobody_knows_is_reported(make: Make, server: Server) -> None:
    """The invalid domain never resolves."""
    with pytest.raises(ConnectionFailed, match=r"the name of the server nowhere\.invalid cannot be resolved"):
        get(make(target(server, server="https://nowhere.invalid")))


def test_a_server_that_does_not_answer_is_reported(make: Make, server: Server) -> None:
    """After the time that the user gives it."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ConnectionFailed, match="did not answer in time"):
            get(make(target(server, server=address)), timeout=0.2)


def test_a_handshake_that_trickles_in_has_one_time_for_all_of_it(make: Make, server: Server) -> None:
    """However often a byte of it comes."""
    with slow_handshake() as address, pytest.raises(ConnectionFailed, match="did not answer in time"):
        get(make(target(server, server=address)), timeout=0.2)


def test_so_has_that_of_a_process(tmp_path: Path) -> None:
    """Its websocket has a connection of its own."""
    config = tmp_path / "config"
    config.write_text("{}")
    with slow_handshake() as address:
        connection = ConnectionFlags(
            server=address, kubeconfig=str(config), insecure=True, request_timeout=0.2
        )
        with pytest.raises(ConnectionFailed, match="did not answer in time"):
            Starter(connection).start("/api/v1/namespaces/n/pods/p", ["a"], container="c")


def test_a_path_before_the_api_is_kept(make: Make, server: Server) -> None:
    """As of a proxy that serves many clusters."""
    get(make(target(server, server=f"{server.url}/k8s/c-1")), "/api/v1/pods?limit=1")

    assert "/k8s/c-1/api/v1/pods?limit=1" == server.seen[0].path


def test_bodies_and_headers_arrive_as_they_are(make: Make, server: Server) -> None:
    """A header may come several times."""
    headers = (("Impersonate-Group", "a"), ("Impersonate-Group", "b"), ("Content-Type", "application/json"))
    make(target(server)).send(Request("POST", "/x", body="é😀".encode(), headers=headers)).read()
    seen = server.seen[0]

    assert ("POST", "é😀".encode()) == (seen.method, seen.body)
    assert ["a", "b"] == [
        part.strip() for value in seen.headers["impersonate-group"] for part in value.split(",")
    ]


def test_a_request_names_one_agent(make: Make, server: Server) -> None:
    """Whatever a client calls itself by default: servers may refuse a request with two of that header."""
    make(target(server)).send(Request("GET", "/", headers=(("User-Agent", "arena-topo"),))).read()

    assert ["arena-topo"] == server.seen[0].headers["user-agent"]


def test_a_stream_is_read_line_by_line(make: Make, server: Server) -> None:
    """However it is cut into chunks; what has no end comes last."""
    server.rule = lambda _: Reply(chunks=[b"on", b"e\ntwo\nth", b"ree\n", b"rest"])
    with closing(make(target(server)).stream(Request("GET", "/x"))) as stream:
        assert [b"one\n", b"two\n", b"three\n", b"rest", b""] == [stream.readline() for _ in range(5)]


def test_lines_come_before_the_stream_ends(make: Make, server: Server) -> None:
    """And a stream that stays silent is noticed; a busy machine has the same time to connect."""
    server.rule = lambda _: Reply(chunks=[b"one\n"], ending="silence")
    with closing(make(target(server)).stream(Request("GET", "/x", silence=1.5))) as stream:
        assert b"one\n" == stream.readline()
        with pytest.raises(TimeoutError):
            stream.readline()


def test_a_stream_that_breaks_off_is_noticed(make: Make, server: Server) -> None:
    """It has not ended."""
    server.rule = lambda _: Reply(chunks=[b"one\n", b"tw"], ending="drop")
    lines: list[bytes] = []
    with (
        closing(make(target(server)).stream(Request("GET", "/x"))) as stream,
        pytest.raises(ConnectionFailed),
    ):
        lines.extend(iter(stream.readline, b""))

    assert b"one\n" == lines[0]


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_connection_that_went_stale_is_replaced(make: Make, server: Server, method: str) -> None:
    """A server may close a kept connection just when the
    next request arrives: that one comes over a new one.
    """
    transport = make(target(server))
    server.rule = lambda seen: Reply(ending="no answer") if seen.turn > 1 else Reply(body=b"yes")
    answers = [transport.send(Request(method, f"/{number}")).read() for number in range(3)]

    assert [b"yes"] * 3 == answers
    assert ["/0", "/1", "/1", "/2", "/2"] == [seen.path for seen in server.seen]


def test_a_creation_is_not_repeated(make: Make, server: Server) -> None:
    """The server may have created the object before the connection closed."""
    transport = make(target(server))
    server.rule = lambda seen: Reply(ending="no answer") if seen.turn > 1 else Reply()
    get(transport)
    with pytest.raises(ConnectionFailed, match="broke off while an object was being created"):
        transport.send(Request("POST", "/x", body=b"{}"))

    assert ["GET", "POST"] == [seen.method for seen in server.seen]


def test_a_connection_known_to_be_closed_is_not_used(make: Make, server: Server) -> None:
    """So that a creation after a pause works as well as any request."""
    transport = make(target(server))
    server.rule = lambda _: Reply(ending="drop")
    get(transport)
    assert server.dropped.wait(20)
    transport.send(Request("POST", "/x", body=b"{}")).read()

    assert [("GET", 1), ("POST", 1)] == [(seen.method, seen.turn) for seen in server.seen]


def test_a_new_connection_without_an_answer_is_reported(make: Make, server: Server) -> None:
    """A server that closes every connection would close the next one too."""
    server.rule = lambda _: Reply(ending="no answer")
    with pytest.raises(ConnectionFailed, match=r"the connection to the server .* failed"):
        get(make(target(server)))

    assert 1 == len(server.seen)


def test_a_slow_answer_is_not_asked_for_again(make: Make, server: Server) -> None:
    """The time that the user gives a request is the time that it takes."""
    transport = make(target(server))
    arrived = threading.Event()

    def rule(seen: Seen) -> Reply:
        if seen.turn == 1:
            return Reply()
        arrived.set()
        return Reply(ending="silence")

    server.rule = rule
    get(transport)
    with pytest.raises(ConnectionFailed, match="did not answer in time"):
        get(transport, timeout=0.2)

    assert arrived.wait(20)
    assert [1, 2] == [seen.turn for seen in server.seen]


def test_a_connection_with_half_an_answer_is_not_kept(make: Make, server: Server) -> None:
    """The rest of it would be taken for the next answer."""
    transport = make(target(server))
    server.rule = lambda _: Reply(chunks=[b"one"], ending="drop")
    with pytest.raises(ConnectionFailed):
        transport.send(Request("GET", "/x")).read()
    server.rule = lambda _: Reply(body=b"two")

    assert b"two" == transport.send(Request("POST", "/x", body=b"{}")).read()


_HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        (_HEAD + b"X: ", b"y"),
        (_HEAD + b"Content-Length: 1000\r\n\r\n", b" "),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["headers", "body", "chunks", "100 Continue"],
)
def test_an_answer_that_trickles_in_has_one_time_for_all_of_it(
    make: Make, server: Server, raw: tuple[bytes, bytes]
) -> None:
    """However often something comes."""
    server.rule = lambda _: Reply(raw=chain([raw[0]], repeat(raw[1])), pace=0.02)
    with pytest.raises(ConnectionFailed, match="did not answer in time"):
        make(target(server)).send(Request("GET", "/x", timeout=0.4)).read()


def test_answers_that_never_begin_are_bounded(make: Make, server: Server) -> None:
    """Also without any limit of time."""
    server.rule = lambda _: Reply(raw=repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000))
    with pytest.raises(ConnectionFailed, match="bytes came before the answer's body"):
        make(target(server)).send(Request("GET", "/x"))


@pytest.mark.parametrize("head", [b"\r\n", b"Content-Length: 1" + b"0" * 17 + b"\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n"], ids=["to the end", "declared", "one chunk"])  # fmt: skip
def test_a_body_without_an_end_is_too_large(
    make: Make, server: Server, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it declares, no more memory is taken than the limit."""
    monkeypatch.setattr("arena_topo.kube.transport.LARGEST_BODY", 2**21)
    server.rule = lambda _: Reply(raw=chain([_HEAD + head], repeat(b"x" * 65536)))
    with pytest.raises(AnswerTooLarge):
        make(target(server)).send(Request("GET", "/x")).read()


@pytest.mark.parametrize(
    "head", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"]
)
def test_half_a_body_is_none(make: Make, server: Server, head: bytes) -> None:
    """Whether its size was declared for all of it or for a chunk."""
    server.rule = lambda _: Reply(raw=[_HEAD + head])
    with pytest.raises(ConnectionFailed):
        make(target(server)).send(Request("GET", "/x")).read()


def test_nothing_is_compressed_that_did_not_ask_for_it(make: Make, server: Server) -> None:
    """As a log, which is read line by line."""
    get(make(target(server)))

    assert "identity" == server.seen[0].header("Accept-Encoding")


def test_a_compressed_answer_is_unpacked(make: Make, server: Server) -> None:
    """A session asks for it of whatever it reads; what is refused may come so as well."""
    body = gzip.compress(b'{"metadata": {"name": "n"}}')
    server.rule = lambda _: Reply(body=body, headers={"Content-Encoding": "gzip"})
    opened = session(make(target(server)))
    assert "n" == opened.get("/api/v1/namespaces/n")["metadata"]["name"]
    assert "gzip" == server.seen[0].header("Accept-Encoding")

    refusal = gzip.compress(b'{"kind": "Status", "reason": "Forbidden", "message": "not you"}')
    server.rule = lambda _: Reply(403, body=refusal, headers={"Content-Encoding": "gzip"})
    with pytest.raises(Forbidden, match="not you"):
        opened.get("/api/v1/namespaces/n")


def test_a_compressed_answer_is_bounded(make: Make, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one may hold a very large one."""
    monkeypatch.setattr("arena_topo.kube.transport.LARGEST_BODY", 2**20)
    bomb = gzip.compress(b" " * 2**21)
    server.rule = lambda _: Reply(body=bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(AnswerTooLarge):
        session(make(target(server))).get("/x")


@pytest.mark.parametrize("body", [b"{}", gzip.compress(b"{}" * 1000)[:-9]], ids=["not gzip", "half of it"])
def test_what_cannot_be_unpacked_is_reported(make: Make, server: Server, body: bytes) -> None:
    """Instead of half an answer."""
    server.rule = lambda _: Reply(body=body, headers={"Content-Encoding": "gzip"})
    with pytest.raises(DocumentError, match="cannot be unpacked"):
        session(make(target(server))).get("/x")


def test_each_thread_has_a_connection(make: Make, server: Server) -> None:
    """Of two requests at the same time neither waits for the other, and a connection is kept for the next."""
    both = threading.Barrier(2, timeout=120)

    def rule(_: Seen) -> Reply:
        both.wait()
        return Reply()

    server.rule = rule
    transport = make(target(server))
    for _ in range(2):
        other = threading.Thread(target=get, args=(transport,))
        other.start()
        get(transport)
        other.join()

    assert 4 == len(server.seen)
    assert [1, 1] == sorted(seen.turn for seen in server.seen)[:2]
    assert 2 in {seen.turn for seen in server.seen}


def test_a_line_without_an_end_is_too_large(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is any other answer."""
    monkeypatch.setattr("arena_topo.kube.transport.LARGEST_BODY", 2**17)
    server.rule = lambda _: Reply(raw=chain([_HEAD + b"\r\n"], repeat(b"x" * 65536)))
    with closing(make(target(server)).stream(Request("GET", "/x"))) as stream, pytest.raises(AnswerTooLarge):
        stream.readline()


def test_a_stream_may_last_longer_than_a_request(make: Make, server: Server) -> None:
    """Its headers have the time of one; after them only its pauses count."""
    lines = [b"%d\n" % number for number in range(12)]
    server.rule = lambda _: Reply(raw=[_HEAD + b"\r\n", *lines], pace=0.1)
    with closing(make(target(server)).stream(Request("GET", "/x", timeout=0.8, silence=20))) as stream:
        assert lines == list(iter(stream.readline, b""))


@pytest.mark.parametrize(
    ("content", "user", "expected"),
    [
        (b"of-file", {"token": "t"}, "Bearer of-file"),
        (b"", {"token": "t"}, "Bearer t"),
        (None, {"token": "t"}, "Bearer t"),
        (b"", {}, "is empty"),
        (b"\xff", {}, "is not a text"),
        (None, {}, "cannot be read"),
    ],
)
def test_a_token_stands_in_for_a_file_without_one(
    make: Make, server: Server, tmp_path: Path, content: bytes | None, user: dict[str, str], expected: str
) -> None:
    """As in kubectl; without either there is nothing to send."""
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    entry = target(server, {**user, "tokenFile": str(file)})
    if expected.startswith("Bearer"):
        get(make(entry))
        assert expected == server.seen[0].header("Authorization")
        return
    with pytest.raises(DocumentError, match=expected):
        get(make(entry))
    assert [] == server.seen


def test_a_certificate_beside_a_token_file_is_shown(make: Make, server: Server, tmp_path: Path) -> None:
    """Both say who the user is, and the server decides."""
    pair = server.authority.client("ann")
    (tmp_path / "token").write_text("t")
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    get(make(target(server, {**user, "tokenFile": str(tmp_path / "token")})))

    assert ("ann", "Bearer t") == (server.seen[0].peer, server.seen[0].header("Authorization"))


@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate", "client-key"])
def test_a_certificate_that_has_no_end_is_refused(make: Make, server: Server, key: str) -> None:
    """OpenSSL would read a device until the memory is used up."""
    user, cluster = ({}, {key: "/dev/zero"}) if "authority" in key else ({key: "/dev/zero"}, {})
    with pytest.raises(DocumentError, match="/dev/zero: it has more than 4 MiB"):
        make(target(server, user, **cluster))


def plugin(folder: Path, script: str) -> dict[str, Any]:
    """Return a user whose credentials come from a program."""
    program = folder / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(program),
            "interactiveMode": "Never",
        }
    }


def test_a_plugin_gives_a_token_and_a_new_one_when_it_is_refused(
    static: Make, server: Server, tmp_path: Path
) -> None:
    """A 401 makes it run again, once; the connection is recreated, as a certificate may be."""
    script = f"""n=$(cat {tmp_path}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {tmp_path}/n
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "t'$n'"}}}}'"""

    def rule(seen: Seen) -> Reply:
        return Reply() if seen.header("Authorization") == "Bearer t2" else status(401, "Unauthorized")

    server.rule = rule

    assert {} == session(static(target(server, plugin(tmp_path, script)))).get("/x")
    assert ["Bearer t1", "Bearer t2"] == [seen.header("Authorization") for seen in server.seen]


def test_a_plugin_gives_a_certificate_and_a_new_one_when_it_is_refused(
    static: Make, server: Server, tmp_path: Path
) -> None:
    """The first connection showed the old one."""
    for user in ("ann", "bob"):
        pair = server.authority.client(user)
        shown = {
            "clientCertificateData": pair.certificate.read_text(),
            "clientKeyData": pair.key.read_text(),
        }
        kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": shown}
        (tmp_path / user).write_text(json.dumps(kind))
    script = f"cat {tmp_path}/ann && cp {tmp_path}/bob {tmp_path}/ann"
    server.rule = lambda seen: Reply() if seen.peer == "bob" else status(401, "Unauthorized")

    assert {} == session(static(target(server, plugin(tmp_path, script)))).get("/x")
    assert [("ann", 1), ("bob", 1)] == [(seen.peer, seen.turn) for seen in server.seen]


def test_a_plugin_is_asked_again_for_a_process(tmp_path: Path) -> None:
    """Its websocket is refused as any request is."""
    script = f"""echo run >> {tmp_path}/runs
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "t"}}}}'"""
    with serving(ExecServer(echo, refusal=401), tmp_path) as server:
        cluster = {
            "server": f"https://127.0.0.1:{server.port}",
            "certificate-authority": str(server.authority),
        }
        flags = ConnectionFlags(kubeconfig=str(write_kubeconfig(tmp_path, cluster, plugin(tmp_path, script))))
        with pytest.raises(Unauthorized):
            Starter(flags).start("/api/v1/namespaces/n/pods/p", ["a"], container="c")

    assert ["Bearer t"] * 2 == [request.headers["Authorization"] for request in server.seen]
    assert ["run"] * 2 == (tmp_path / "runs").read_text().split()


async def echo(remote: Remote) -> None:
    """Run until stdin ends, and print what comes."""
    while data := await remote.read():
        await remote.send(1, data)
    await remote.end(3)


def test_the_token_of_an_auth_provider_is_sent(static: Make, server: Server) -> None:
    """One of OIDC is valid until its time, and without a time forever."""
    token = f"e30.{base64.urlsafe_b64encode(b'{}').decode().rstrip('=')}.x"
    get(static(target(server, {"auth-provider": {"name": "oidc", "config": {"id-token": token}}})))

    assert f"Bearer {token}" == server.seen[0].header("Authorization")


def test_a_plugin_that_fails_is_named_with_its_words(server: Server, tmp_path: Path) -> None:
    """And nothing is sent without credentials."""
    with pytest.raises(
        Unauthorized, match=r"the credential plugin .*plugin.* gave no credentials: .*log in first"
    ):
        Transport(target(server, plugin(tmp_path, "echo log in first >&2; exit 1")))
    assert [] == server.seen


def test_a_pod_uses_its_service_account(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token, and the authority that the kubelet mounts next to it."""
    (tmp_path / "token").write_text("of-pod")
    (tmp_path / "ca.crt").write_bytes(server.authority.certificate.read_bytes())
    in_pod(tmp_path, monkeypatch, str(server.port))
    with closing(Transport(configured_target(ConnectionFlags()))) as transport:
        get(transport)

    assert "Bearer of-pod" == server.seen[0].header("Authorization")


def in_pod(account: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    """Be in a pod whose service account is mounted at *account*, without a kubeconfig."""
    monkeypatch.setattr("arena_topo.kube.kubeconfig.SERVICE_ACCOUNT", account)
    monkeypatch.setenv("KUBECONFIG", str(account / "none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)


@pytest.mark.parametrize(
    ("files", "port", "fault"),
    [
        (("token", "ca.crt"), "", "Service host/port is not set"),
        (("ca.crt",), "443", "Service token file does not exist"),
        (("token",), "443", "Service certification file does not exist"),
    ],
)
def test_a_pod_without_an_account_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], port: str, fault: str
) -> None:
    """Before anything is sent."""
    for name in files:
        (tmp_path / name).touch()
    in_pod(tmp_path, monkeypatch, port)
    with pytest.raises(DocumentError, match=f"the pod's service account cannot be used: {fault}"):
        connect(ConnectionFlags())


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_proxy_of_the_kubeconfig_is_used(make: Make, server: Server, secure: bool) -> None:
    """Over one connection, which is kept; of what is asked, and who asks, the proxy reads nothing."""
    ann, pair = server.authority.client("ann"), server.authority.server("proxy", ("127.0.0.1",), ("proxy",))
    user = {"client-certificate": str(ann.certificate), "client-key": str(ann.key)}
    with proxy(pair if secure else None) as (url, asked):
        transport = make(target(server, user, proxy_url=url.replace("//", "//u:p%40@")))
        get(transport)
        get(transport)

    assert [("ann", 1), ("ann", 2)] == [(seen.peer, seen.turn) for seen in server.seen]
    place, of_user = f"127.0.0.1:{server.port}", base64.b64encode(b"u:p@").decode()
    wanted = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", f"Proxy-Authorization: Basic {of_user}", "", ""]
    assert [wanted] == [each.split("\r\n") for each in asked]


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_stream_comes_through_a_proxy(static: Make, server: Server, secure: bool) -> None:
    """However large it is, to its end, and no further than it is read."""
    pair = server.authority.server("proxy", ("127.0.0.1",), ("proxy",))
    server.rule = lambda _: Reply(raw=chain([_HEAD + b"\r\n"], [b"x" * 65535 + b"\n"] * 100))
    with proxy(pair if secure else None) as (url, _):
        with closing(static(target(server, proxy_url=url)).stream(Request("GET", "/x"))) as stream:
            assert 100 * [65536] == [len(line) for line in iter(stream.readline, b"")]
        with closing(static(target(server, proxy_url=url)).stream(Request("GET", "/x"))) as stream:
            assert 65536 == len(stream.readline())


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_proxy_learns_for_whom_a_plain_request_is(static: Make, tmp_path: Path, secure: bool) -> None:
    """It reads the request, and who may use it; there is nothing to connect."""
    with serve(tmp_path, lambda _: Reply(), secure=secure) as server:
        url = server.url.replace("//", "//u:p@")
        cluster = {"server": "http://a.example.com/k8s", "proxy-url": url}
        cluster["certificate-authority"] = str(server.authority.certificate)
        get(static(Target("c", "d", cluster, {})))
        seen = server.seen[0]

    assert ("http://a.example.com/k8s/x", "a.example.com") == (seen.path, seen.header("Host"))
    assert "Basic dTpw" == seen.header("Proxy-Authorization")


def test_a_proxy_that_does_not_connect_is_reported(static: Make, server: Server, tmp_path: Path) -> None:
    """With its words; one that is not there is a connection that was refused."""
    (tmp_path / "more").mkdir()
    words = "Tunnel connection failed: 501 Unsupported method"
    with (
        serve(tmp_path / "more", lambda _: Reply(), secure=False) as other,
        pytest.raises(ConnectionFailed, match=words),
    ):
        get(static(target(server, proxy_url=other.url)))
    with refusing_port() as port, pytest.raises(ConnectionFailed, match="was refused"):
        get(static(target(server, proxy_url=f"http://127.0.0.1:{port}")))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_trickles_has_one_time_for_all_of_it(static: Make, server: Server, scheme: str) -> None:
    """Whether it shakes hands so or answers so."""
    with slow_handshake() as address, pytest.raises(ConnectionFailed, match="did not answer in time"):
        get(static(target(server, proxy_url=address.replace("https", scheme))), timeout=0.2)


@pytest.mark.parametrize(("scheme", "far"), [("socks5", False), ("socks5h", True)])
def test_a_socks_proxy_is_spoken_to_by_its_package(
    static: Make, server: Server, monkeypatch: pytest.MonkeyPatch, scheme: str, far: bool
) -> None:
    """Which looks up the server's name here or there."""
    asked: list[Any] = []

    def create_connection(address: tuple[str, int], **options: Any) -> socket.socket:
        asked.append((address, options.pop("timeout") is None, options))
        return socket.create_connection(address)

    package = SimpleNamespace(create_connection=create_connection, SOCKS5=2)
    monkeypatch.setitem(sys.modules, "socks", package)
    get(static(target(server, proxy_url=f"{scheme}://u:p%40@proxy.example.com")))

    names = ("proxy_type", "proxy_addr", "proxy_port", "proxy_rdns", "proxy_username", "proxy_password")
    values = (2, "proxy.example.com", 1080, far, "u", "p@")
    assert [(("127.0.0.1", server.port), True, dict(zip(names, values, strict=True)))] == asked


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_process_starts_through_a_proxy(tmp_path: Path, secure: bool) -> None:
    """And its two directions do not wait for each other."""
    text = b"x" * 2**16
    with ExitStack() as stack:
        server = stack.enter_context(serving(ExecServer(echo), tmp_path))
        authority = Authority.load(server.authority, tmp_path)
        pair = authority.server("proxy", ("127.0.0.1",), ("proxy",))
        url, asked = stack.enter_context(proxy(pair if secure else None))
        cluster = {"proxy-url": url, "certificate-authority": str(server.authority)}
        cluster["server"] = f"https://127.0.0.1:{server.port}"
        flags = ConnectionFlags(kubeconfig=str(write_kubeconfig(tmp_path, cluster, {})))
        process = Starter(flags).start("/api/v1/namespaces/n/pods/p", ["a"], container="c", stdin=True)
        stack.callback(process.close)

        def write() -> None:
            for _ in range(64):
                process.write(text)
            process.end_input()

        writer = threading.Thread(target=write)
        writer.start()
        size = sum(len(data) for _, data in process.output())
        writer.join()

    assert (1, 64 * len(text), 3) == (len(asked), size, process.exit_code())


@pytest.mark.parametrize(
    "user", [{"exec": {}}, {"auth-provider": {"name": "oidc"}}, {"token": "t", "exec": {"command": "x"}}]
)
def test_other_credentials_are_the_packages(user: dict[str, Any]) -> None:
    """Static ones are sent as they are."""
    assert (not any(user.values())) is is_static(user)


@pytest.mark.parametrize("of_user", [True, False], ids=["client", "authority"])
def test_certificates_that_are_none_are_reported(server: Server, of_user: bool) -> None:
    """With the context that has them."""
    nonsense = base64.b64encode(b"nonsense").decode()
    entry = target(server, {"client-certificate-data": nonsense})
    if not of_user:
        entry = target(server, certificate_authority_data=nonsense)
    with pytest.raises(ArenaTopoError, match="the certificates of context 'c' cannot be used"):
        Transport(entry)


@pytest.mark.parametrize("token", ["se\ncret", "se\U0001f600cret"])
def test_a_token_that_no_header_takes_is_told_without_it(static: Make, server: Server, token: str) -> None:
    """A secret is not to be printed."""
    with pytest.raises(DocumentError, match="the token of the kubeconfig's user") as caught:
        get(static(target(server, {"token": token})))
    assert "cret" not in caught.value.message


def test_an_encrypted_key_is_refused(static: Make, server: Server, tmp_path: Path) -> None:
    """Instead of asking for its password on the terminal."""
    pair = server.authority.client("ann")
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    encrypted = serialization.BestAvailableEncryption(b"password")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encrypted)
    (tmp_path / "encrypted").write_bytes(key.private_bytes(*form))
    user = {"client-certificate": str(pair.certificate), "client-key": str(tmp_path / "encrypted")}
    with pytest.raises(DocumentError, match="the client key is encrypted"):
        static(target(server, user))


@pytest.mark.parametrize("address", ["https://a..example.com", f"https://{'a' * 80}.example.com"])
def test_a_name_that_cannot_be_is_reported(make: Make, server: Server, address: str) -> None:
    """Before it is looked up."""
    with pytest.raises(ConnectionFailed, match=r"the connection to the server a.* failed"):
        get(make(target(server, server=address)))


def test_an_address_of_version_six_needs_no_port(static: Make) -> None:
    """Its last part is not taken for one."""
    assert ("100::1", 443) == Target("c", "d", {"server": "https://[100::1]"}, {}).address
    with refusing_port() as port, pytest.raises(ConnectionFailed, match=rf"the server \[::1\]:{port} "):
        get(static(Target("c", "d", {"server": f"https://[::1]:{port}"}, {})))


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:9", "nonsense"])
def test_a_proxy_that_cannot_be_used_is_reported(server: Server, address: str) -> None:
    """With what would help."""
    with pytest.raises(DocumentError, match=f"the proxy {address} cannot be used"):
        Transport(target(server, proxy_url=address))


@pytest.mark.parametrize(("flag", "expected"), [("", "team-a"), ("mine", "mine")])
def test_a_session_in_a_pod_is_in_its_namespace(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, expected: str
) -> None:
    """Without a kubeconfig, and unless a flag names another."""
    (tmp_path / "namespace").write_text("team-a")
    (tmp_path / "token").write_text("of-pod")
    (tmp_path / "ca.crt").write_bytes(server.authority.certificate.read_bytes())
    in_pod(tmp_path, monkeypatch, str(server.port))
    with closing(connect(ConnectionFlags(namespace=flag))) as session:
        assert expected == session.namespace


MANY = b"".join(b"%d %b\n" % (number, b"x" * (number * 35_993)) for number in range(20))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (MANY, 2**20),
        (MANY, 2**18),
        (MANY, 2**18 - 1),
        (b"one\n" + b"y" * 10 * 2**20 + b"\ntwo\n", 2**20),
        (b"z" * 3 * 2**20, 2**20),
        (b"z" * 2**18, 2**18),
        (b"\n" * 1000, 999),
    ],
    ids=[
        "1 MiB chunks",
        "chunks of the limit",
        "chunks below it",
        "10 MiB in a line",
        "no line break",
        "the limit",
        "empty lines",
    ],
)
def test_a_line_beyond_the_limit_comes_in_pieces(make: Make, server: Server, text: bytes, size: int) -> None:
    """Whatever the chunks are: no piece is longer, none holds two lines, and nothing is lost."""
    limit = 2**18
    server.rule = lambda _: Reply(chunks=[text[at : at + size] for at in range(0, len(text), size)])
    with closing(make(target(server)).stream(Request("GET", "/x"))) as stream:
        pieces = list(iter(lambda: stream.readline(limit), b""))

    assert text == b"".join(pieces)
    expected = [
        line[at : at + limit] for line in text.splitlines(keepends=True) for at in range(0, len(line), limit)
    ]
    assert expected == pieces


def test_a_line_without_an_end_takes_no_memory(make: Make, server: Server) -> None:
    """Who reads it in pieces holds one at a time."""
    limit, chunk = 2**18, b"x" * 2**20
    server.rule = lambda _: Reply(chunks=[chunk] * 64)
    with closing(make(target(server)).stream(Request("GET", "/x"))) as stream:
        stream.readline(limit)
        tracemalloc.start()
        try:
            total = sum(len(piece) for piece in iter(lambda: stream.readline(limit), b""))
            # The server in this process sends one chunk at a time.
            assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
        finally:
            tracemalloc.stop()
    assert 64 * 2**20 - limit == total


def test_a_request_that_ctrl_c_interrupts_leaves_a_transport_that_works(
    server: Server, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submit undoes what it has begun by the same session."""

    def interrupted(_: HTTPConnection) -> HTTPResponse:
        raise KeyboardInterrupt

    transport = make(target(server, {}))
    transport.send(Request("GET", "/first"))
    # A signal would come before the wait for the answer now and then, and wake nothing.
    with monkeypatch.context() as patch:
        patch.setattr(HTTPConnection, "getresponse", interrupted)
        with pytest.raises(KeyboardInterrupt):
            transport.send(Request("GET", "/second"))
    server.rule = lambda _: Reply(body=b"{}")

    assert b"{}" == transport.send(Request("POST", "/third", b"{}")).read()
