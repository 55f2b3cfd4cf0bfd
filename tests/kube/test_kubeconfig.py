"""A kubeconfig means to us what it means to kubectl: each situation is put to both."""

import base64
import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena_topo.errors import DocumentError
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.kubeconfig import default_namespace, merge, resolve

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"

A = """
current-context: ca
contexts:
- {name: ca, context: {cluster: k1, user: u1, namespace: na}}
- {name: both, context: {cluster: k1, user: u1}}
clusters:
- {name: k1, cluster: {server: "https://a.example.com:6443", certificate-authority: pki/ca.crt}}
users:
- {name: u1, user: {token: token-of-a}}
"""
B = """
current-context: cb
contexts:
- {name: cb, context: {cluster: k2, user: u2}}
- {name: both, context: {cluster: k2, user: u2}}
clusters:
- {name: k1, cluster: {server: "https://other.example.com"}}
- {name: k2, cluster: {server: "https://b.example.com/prefix/"}}
users:
- {name: u1, user: {token: token-of-b}}
- {name: u2, user: {client-certificate: ../u2.crt, client-key: keys/u2.key}}
"""
NO_CURRENT = A.replace("current-context: ca", "")
NULLS = "current-context: x\ncontexts: null\nclusters: null\nusers: null\n"
TWICE = A + "- {name: u1, user: {token: the-second}}\n"
JSON = json.dumps(yaml.safe_load(A))
FILES = {
    "a": A, "b": B, "no-current": NO_CURRENT, "nulls": NULLS, "empty": "", "json": JSON, "twice": TWICE,
    "no-user": A.replace("user: u1, namespace", "user: nobody, namespace"),
    "no-cluster": A.replace("cluster: k1, user: u1, namespace", "cluster: nowhere, user: u1, namespace"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with every file of FILES, each in a folder of its own."""
    for name, text in {**FILES, ".kube": A}.items():
        for inner in ("pki", "keys"):
            (tmp_path / name / inner).mkdir(parents=True)
        (tmp_path / name / "pki" / "ca.crt").write_text(f"authority of {name}")
        (tmp_path / name / "keys" / "u2.key").write_text(f"key of {name}")
        (tmp_path / name / "config").write_text(text)
    (tmp_path / "u2.crt").write_text("certificate")
    return tmp_path


def listed(folder: Path, *names: str) -> str:
    """Return a KUBECONFIG that lists the files of *names*; an empty name is an empty part."""
    return os.pathsep.join(str(folder / name / "config") if name else "" for name in names)


def by_kubectl(folder: Path, kubeconfig: str, connection: ConnectionFlags) -> Mapping[str, Any] | None:
    """Return the one entry that kubectl would use, None where it finds fault."""
    flags = [
        f"--{name}={value}"
        for name in ("kubeconfig", "context", "cluster", "user")
        if (value := getattr(connection, name))
    ]
    env = {"KUBECONFIG": kubeconfig, "HOME": str(folder), "PATH": os.environ["PATH"]}
    command: list[str] = [
        str(KUBECTL),
        *flags,
        "config",
        "view",
        "--minify",
        "--flatten",
        "--raw",
        "-o",
        "json",
    ]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, check=False, text=True)
    if done.returncode:
        return None
    view = json.loads(done.stdout)
    return {
        "context": view["current-context"],
        "cluster": (view["clusters"] or [{"cluster": {}}])[0]["cluster"],
        "user": (view["users"] or [{"user": {}}])[0]["user"],
        "namespace": view["contexts"][0]["context"].get("namespace", "default"),
    }


def by_us(folder: Path, kubeconfig: str, connection: ConnectionFlags) -> Mapping[str, Any] | None:
    """Return the entry that we would use, None where we find fault."""
    try:
        target = resolve(connection, {"KUBECONFIG": kubeconfig, "HOME": str(folder)})
    except DocumentError:
        return None
    if target is None:
        return None
    return {
        "context": target.context,
        "cluster": flattened(target.cluster),
        "user": flattened(target.user),
        "namespace": target.namespace,
    }


def flattened(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with the content of its files in place of their paths, as kubectl flattens it."""
    flat = {}
    for key, value in entry.items():
        if key in ("certificate-authority", "client-certificate", "client-key"):
            flat[f"{key}-data"] = base64.b64encode(Path(value).read_bytes()).decode()
        elif value:
            flat[key] = value
    return flat


@pytest.mark.parametrize(
    ("names", "connection"),
    [
        (["a"], ConnectionFlags()),
        (["b"], ConnectionFlags()),
        (["json"], ConnectionFlags()),
        (["a", "b"], ConnectionFlags()),
        (["b", "a"], ConnectionFlags()),
        (["missing", "a"], ConnectionFlags()),
        (["", "a", ""], ConnectionFlags()),
        (["empty", "b"], ConnectionFlags()),
        (["no-current", "b"], ConnectionFlags()),
        (["a", "a"], ConnectionFlags()),
        (["a", "b"], ConnectionFlags(context="cb")),
        (["a", "b"], ConnectionFlags(context="both")),
        (["b", "a"], ConnectionFlags(context="both")),
        (["a", "b"], ConnectionFlags(context="nothing")),
        (["nulls", "a"], ConnectionFlags()),
        (["no-cluster"], ConnectionFlags()),
        (["no-user"], ConnectionFlags()),
        (["twice"], ConnectionFlags()),
    ],
    ids=lambda value: (
        "+".join(name or "nothing" for name in value) if isinstance(value, list) else value.context or "-"
    ),
)
def test_a_list_of_files_means_what_it_means_to_kubectl(
    folder: Path, names: list[str], connection: ConnectionFlags
) -> None:
    """The first file to set a value wins, and paths are relative to their own file."""
    kubeconfig = listed(folder, *names)

    assert by_kubectl(folder, kubeconfig, connection) == by_us(folder, kubeconfig, connection)


def test_the_file_that_is_named_is_the_only_one(folder: Path) -> None:
    """KUBECONFIG does not count then."""
    connection = ConnectionFlags(kubeconfig=str(folder / "b" / "config"))

    assert by_kubectl(folder, listed(folder, "a"), connection) == by_us(
        folder, listed(folder, "a"), connection
    )


def test_the_file_that_is_named_must_exist(folder: Path) -> None:
    """Unlike those of KUBECONFIG."""
    with pytest.raises(DocumentError, match="does not exist"):
        resolve(ConnectionFlags(kubeconfig=str(folder / "nowhere")), {})
    assert None is by_kubectl(folder, "", ConnectionFlags(kubeconfig=str(folder / "nowhere")))


def test_without_a_list_the_home_folder_is_looked_into(folder: Path) -> None:
    """~/.kube/config."""
    assert None is not by_us(folder, "", ConnectionFlags())
    assert by_kubectl(folder, "", ConnectionFlags()) == by_us(folder, "", ConnectionFlags())


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        (ConnectionFlags(cluster="k2"), ("https://b.example.com/prefix", {"token": "token-of-a"}, "na")),
        (ConnectionFlags(user="u2"), ("https://a.example.com:6443", None, "na")),
        (ConnectionFlags(namespace="mine"), ("https://a.example.com:6443", {"token": "token-of-a"}, "mine")),
        (ConnectionFlags(token="t"), ("https://a.example.com:6443", {"token": "t"}, "na")),
        (ConnectionFlags(server="https://c"), ("https://c", {"token": "token-of-a"}, "na")),
    ],
    ids=["cluster", "user", "namespace", "token", "server"],
)
def test_flags_take_the_place_of_what_the_files_say(
    folder: Path, connection: ConnectionFlags, expected: tuple[str, Any, str]
) -> None:
    """One by one."""
    target = resolve(connection, {"KUBECONFIG": listed(folder, "a", "b")})
    assert target is not None
    of_b = {
        "client-certificate": str(folder / "b" / ".." / "u2.crt"),
        "client-key": str(folder / "b" / "keys" / "u2.key"),
    }

    assert (expected[0], expected[1] or of_b, expected[2]) == (
        target.server,
        dict(target.user),
        target.namespace,
    )


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (ConnectionFlags(context="zz"), "context was not found for specified context: zz"),
        (ConnectionFlags(cluster="zz"), "cluster 'zz' does not exist in the kubeconfig"),
        (ConnectionFlags(user="zz"), "user 'zz' does not exist in the kubeconfig"),
    ],
)
def test_a_name_that_does_not_exist_is_reported(
    folder: Path, connection: ConnectionFlags, message: str
) -> None:
    """With the flag's own word."""
    with pytest.raises(DocumentError, match=message):
        resolve(connection, {"KUBECONFIG": listed(folder, "a", "b")})


@pytest.mark.parametrize("text", ["a: [", "- 1", "clusters: 1", "contexts: [1]", "\x00"])
def test_a_broken_file_is_named(folder: Path, text: str) -> None:
    """As kubectl names it."""
    (folder / "a" / "config").write_text(text)
    with pytest.raises(DocumentError, match="error loading config file"):
        resolve(ConnectionFlags(), {"KUBECONFIG": listed(folder, "a")})
    assert None is by_kubectl(folder, listed(folder, "a"), ConnectionFlags())


def test_a_file_that_may_not_be_read_is_named(folder: Path) -> None:
    """A folder cannot be read as a file either."""
    with pytest.raises(DocumentError, match="cannot be read"):
        resolve(ConnectionFlags(), {"KUBECONFIG": str(folder / "a")})


def test_nothing_is_made_up_without_a_server(folder: Path) -> None:
    """No file, or an empty one, names no cluster."""
    assert None is resolve(ConnectionFlags(), {"KUBECONFIG": listed(folder, "missing")})
    assert None is resolve(ConnectionFlags(), {"KUBECONFIG": listed(folder, "empty")})


def test_secrets_do_not_show(folder: Path) -> None:
    """In the text of neither value."""
    target = resolve(ConnectionFlags(token="secret-1"), {"KUBECONFIG": listed(folder, "a")})

    assert "secret-1" not in repr(target) + repr(ConnectionFlags(token="secret-1"))


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "default"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "team-a"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "team-b"}, "team-b"),
        ({"POD_NAMESPACE": "team-b"}, "default"),
    ],
)
def test_in_a_pod_the_namespace_is_the_service_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: str
) -> None:
    """As in kubectl; the downward API's variable comes
    before the file, and outside of a pod neither counts.
    """
    (tmp_path / "namespace").write_text("team-a\n")
    monkeypatch.setattr("arena_topo.kube.kubeconfig.SERVICE_ACCOUNT", tmp_path)

    assert expected == default_namespace(env)


def test_a_pod_without_a_service_account_has_the_usual_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token may not be mounted."""
    monkeypatch.setattr("arena_topo.kube.kubeconfig.SERVICE_ACCOUNT", tmp_path)

    assert "default" == default_namespace({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[" * 200_000, "it is nested deeper than 100 levels"),
        ("a: &a [*a]", "the alias *a stands for what it is part of"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
    ],
)
def test_a_kubeconfig_out_of_bounds_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """PyYAML's C code would end the process."""
    (tmp_path / "config").write_text(text)
    with pytest.raises(DocumentError) as caught:
        merge([tmp_path / "config"], explicit=True)

    assert fault in caught.value.message


def test_a_kubeconfig_that_is_a_device_is_refused_or_empty() -> None:
    """One without an end, and the one that people name to have none."""
    with pytest.raises(DocumentError, match="it has more than 4 MiB"):
        merge([Path("/dev/zero")], explicit=True)
    assert "" == merge([Path("/dev/null")], explicit=True)["current-context"]
