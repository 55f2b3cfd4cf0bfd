"""What reaches the server is what kubectl sends: each situation is put to both, through to a real request."""

import json
import os
import socket
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.session import connect
from arena_topo.kube.transport import proxy_of
from tests.kube.server import Reply, Seen, Server, serve, write_kubeconfig

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
COMPARED = (
    "authorization",
    "impersonate-user",
    "impersonate-uid",
    "impersonate-group",
    "impersonate-extra-a%2fb",
)
FLAGS = {
    "server": "--server",
    "token": "--token",
    "certificate_authority": "--certificate-authority",
    "tls_server_name": "--tls-server-name",
    "insecure": "--insecure-skip-tls-verify",
    "impersonate": "--as",
}
GROUP = "client.authentication.k8s.io"
PLUGIN = """#!/bin/sh
printf %s "$KUBERNETES_EXEC_INFO" > "$HOME/info"
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of-plugin'$TOKEN$1'"}}'
"""
TOKEN = {"token": "t"}
EXEC = {"apiVersion": f"{GROUP}/v1", "interactiveMode": "Never"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run a server that says yes to everything."""
    with serve(tmp_path, lambda _: Reply()) as running:
        yield running


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Server]:
    """Run one that speaks plain HTTP."""
    (tmp_path / "plain").mkdir()
    with serve(tmp_path / "plain", lambda _: Reply(), secure=False) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a plugin, where both look for their kubeconfig."""
    folder = tmp_path / "home"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "plugin").write_text(PLUGIN)
    (folder / "bin" / "plugin").chmod(0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("KUBECONFIG", str(folder / "config"))
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return folder


def kubectl(*flags: str) -> int:
    """Let kubectl ask for /x and return how it ended."""
    command = [str(KUBECTL), *flags, "--request-timeout=20s", "get", "--raw", "/x"]
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode


def arena_topo(connection: ConnectionFlags) -> int:
    """Ask for /x and return how it ended."""
    try:
        session = connect(connection)
        try:
            session.get("/x")
        finally:
            session.close()
    except ArenaTopoError:
        return 1
    return 0


def identities(seen: list[Seen]) -> list[dict[str, list[str]]]:
    """Return who every request came from, and empty *seen*."""
    found = [
        {
            name: [part.strip() for value in each.headers[name] for part in value.split(",")]
            for name in COMPARED
            if name in each.headers
        }
        for each in seen
    ]
    seen.clear()
    return found


@pytest.mark.parametrize(
    ("cluster", "user", "flags"),
    [
        ({}, TOKEN, {}),
        ({}, {"username": "u", "password": "p"}, {}),
        ({}, TOKEN | {"as": "bob"}, {}),
        ({}, TOKEN | {"as": "bob", "as-groups": ["g1", "g2"], "as-uid": "7"}, {}),
        ({}, TOKEN | {"as": "bob", "as-user-extra": {"a/b": ["1", "2"]}}, {}),
        ({}, TOKEN | {"as": "bob", "as-groups": ["g1"]}, {"impersonate": "eve"}),
        ({}, TOKEN | {"as": "bob"}, {"token": "of-flag"}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin"}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin"}, "as": "bob"}, {}),
        ({}, {"exec": EXEC | {"command": "plugin"}}, {}),
        # A token next to a plugin is what is sent; one that speaks another version is not understood.
        ({}, TOKEN | {"exec": EXEC | {"command": "./bin/plugin"}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "provideClusterInfo": True}}, {}),
        (
            {
                "tls-server-name": "localhost",
                "disable-compression": True,
                "extensions": [{"name": f"{GROUP}/exec", "extension": {"audience": "a"}}],
            },
            {"exec": EXEC | {"command": "./bin/plugin", "provideClusterInfo": True}},
            {},
        ),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "apiVersion": f"{GROUP}/v1alpha1"}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "apiVersion": f"{GROUP}/v1beta1"}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "interactiveMode": "Always"}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "env": [{"name": "TOKEN", "value": "of-env"}]}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin", "args": ["of-argument"]}}, {}),
        ({}, {"exec": EXEC | {"command": "./bin/plugin"}, "auth-provider": {"name": "oidc"}}, {}),
        ({"certificate-authority": "gone"}, TOKEN, {}),
        ({"certificate-authority": "gone"}, TOKEN, {"insecure": True}),
        ({"certificate-authority": None, "insecure-skip-tls-verify": True}, TOKEN, {}),
        (
            {"certificate-authority": None, "insecure-skip-tls-verify": True},
            TOKEN,
            {"certificate_authority": "OTHER"},
        ),
        ({"insecure-skip-tls-verify": True}, TOKEN, {}),
        ({"tls-server-name": "other.example.com"}, TOKEN, {}),
        ({"tls-server-name": "other.example.com"}, TOKEN, {"server": "SERVER"}),
        ({"tls-server-name": "other.example.com"}, TOKEN, {"tls_server_name": "localhost"}),
        ({"server": "https://127.0.0.1:abc"}, TOKEN, {}),
        ({"server": "https://127.0.0.1:99999"}, TOKEN, {}),
        ({"server": "ftp://127.0.0.1"}, TOKEN, {}),
        ({"server": "PLAIN"}, TOKEN, {}),
        ({"server": "PLAIN"}, TOKEN | {"as": "bob"}, {}),
        ({"server": "PLAIN without a scheme"}, TOKEN, {}),
    ],
    ids=str,
)
def test_the_server_sees_from_us_what_it_sees_from_kubectl(
    server: Server,
    plain: Server,
    home: Path,
    cluster: dict[str, Any],
    user: dict[str, Any],
    flags: dict[str, Any],
) -> None:
    """The same credentials and identities, or no request at all; so do plugins."""
    words = {
        "SERVER": server.url,
        "PLAIN": plain.url,
        "PLAIN without a scheme": plain.url.removeprefix("http://"),
        "OTHER": str(plain.authority.certificate),
    }
    entry = {"server": server.url, "certificate-authority": str(server.authority.certificate)} | cluster
    write_kubeconfig(
        home, {key: words.get(str(value), value) for key, value in entry.items() if value is not None}, user
    )
    chosen = {key: words.get(str(value), value) for key, value in flags.items()}

    by_kubectl = kubectl(
        *(f"{FLAGS[key]}={str(value).replace('True', 'true')}" for key, value in chosen.items())
    )
    expected = by_kubectl, identities(server.seen), identities(plain.seen), asked(home)

    assert expected == (
        arena_topo(ConnectionFlags(**chosen)),
        identities(server.seen),
        identities(plain.seen),
        asked(home),
    )


def asked(home: Path) -> Any:
    """Return what the plugin was asked, None if it did not run, and forget it."""
    file = home / "info"
    info = json.loads(file.read_text()) if file.exists() else None
    file.unlink(missing_ok=True)
    return info


def test_a_list_of_nothing_is_not_the_home_folder(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBECONFIG is set, if to empty parts alone."""
    write_kubeconfig(
        home, {"server": server.url, "certificate-authority": str(server.authority.certificate)}, TOKEN
    )
    (home / ".kube").mkdir()
    (home / "config").rename(home / ".kube" / "config")
    monkeypatch.setenv("KUBECONFIG", "")
    assert (0, 0) == (kubectl(), arena_topo(ConnectionFlags()))
    monkeypatch.setenv("KUBECONFIG", os.pathsep)

    assert (1, 1) == (kubectl(), arena_topo(ConnectionFlags()))


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("token", '"t"'),
        ("token", "t"),
        ("token", "12345"),
        ("token", "017"),
        ("username", "[u]"),
    ],
)
def test_types_are_those_of_kubectl(server: Server, home: Path, part: str, text: str) -> None:
    """A token of digits without quotes is a number, and a number may have lost its zeros."""
    write_kubeconfig(
        home, {"server": server.url, "certificate-authority": str(server.authority.certificate)}, {"TEXT": 1}
    )
    config = home / "config"
    config.write_text(config.read_text().replace('"TEXT": 1', f"{part}: {text}"))

    assert kubectl() == arena_topo(ConnectionFlags())


def test_an_entry_of_another_type_is_reported(home: Path) -> None:
    """As kubectl tells it."""
    write_kubeconfig(home, {}, {})
    config = home / "config"
    config.write_text(config.read_text().replace('"cluster": {}', '"cluster": "text"'))

    assert (1, 1) == (kubectl(), arena_topo(ConnectionFlags()))


@contextmanager
def refusing_proxy() -> Iterator[tuple[str, list[str]]]:
    """Run a proxy that connects nobody; yield its address, and whom it was asked for."""
    asked: list[str] = []

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client:
                    asked.append(client.recv(4096).decode().split(" ")[1])
                    client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("address", "env"),
    [
        ("https://a.example.com", {"HTTPS_PROXY": "http://PROXY"}),
        ("https://a.example.com", {"https_proxy": "http://PROXY"}),
        ("https://a.example.com", {"HTTPS_PROXY": "PROXY"}),
        ("https://a.example.com", {"HTTP_PROXY": "http://PROXY"}),
        ("https://a.example.com", {"ALL_PROXY": "http://PROXY"}),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "http://PROXY"}),
        ("https://127.3.2.1:1", {"HTTPS_PROXY": "http://PROXY"}),
        ("https://localhost:1", {"HTTPS_PROXY": "http://PROXY"}),
        ("https://[::1]:1", {"HTTPS_PROXY": "http://PROXY"}),
        *(
            (address, {"HTTPS_PROXY": "http://PROXY", "NO_PROXY": rule})
            for address, rule in [
                ("https://a.example.com", "example.com"),
                ("https://example.com", "example.com"),
                ("https://example.com", ".example.com"),
                ("https://a.example.com", ".example.com"),
                ("https://a.example.com", "*.example.com"),
                ("https://example.com", "*.example.com"),
                ("https://anexample.com", "example.com"),
                ("https://a.example.com", "example.org, EXAMPLE.com"),
                ("https://a.example.com:6443", "example.com:6443"),
                ("https://a.example.com:6443", "example.com:443"),
                ("https://a.example.com", "example.com:443"),
                # The unspecified addresses are no loopback to Go, and anyone who connects to them is refused
                # at once.
                ("https://0.0.0.0", "0.0.0.0/24"),
                ("https://0.0.0.0", "0.0.1.0/24"),
                ("https://0.0.0.0", "0.0.0.0"),
                ("https://0.0.0.0:6443", "0.0.0.0:443"),
                ("https://[::]", "::"),
                ("https://[::]", "[::]:443"),
                ("https://[::]", "::/32"),
                ("https://a.example.com", "nonsense/8"),
                ("https://a.example.com", "*"),
                ("https://a.example.com", ",,"),
            ]
        ),
    ],
    ids=str,
)
def test_a_proxy_stands_where_kubectl_sees_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, address: str, env: dict[str, str]
) -> None:
    """Never before this machine, nor before what NO_PROXY names."""
    write_kubeconfig(home, {"server": address}, TOKEN)
    with refusing_proxy() as (proxy, asked):
        given = {name: value.replace("PROXY", proxy) for name, value in env.items()}
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        subprocess.run(
            [str(KUBECTL), "--request-timeout=5s", "get", "--raw", "/x"], capture_output=True, check=False
        )
        target = Target("c", "d", {"server": address}, TOKEN)

        assert (f"http://{proxy}" if asked else "") == proxy_of(target, given)


def test_a_plugin_does_not_bring_the_proxy_back(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package that runs it would use the environment's before this machine too."""
    entry = {"server": server.url, "certificate-authority": str(server.authority.certificate)}
    write_kubeconfig(home, entry, {"exec": EXEC | {"command": "./bin/plugin"}})
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

    assert (0, 0) == (kubectl(), arena_topo(ConnectionFlags()))
