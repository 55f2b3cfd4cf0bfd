"""What exec plugins print is read within bounds, and whatever is wrong with it is one error.

How a plugin is asked, and what is sent of its answer, is compared with kubectl's in ``test_as_kubectl.py``.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from arena_topo import files
from arena_topo.errors import ArenaTopoError, DocumentError, Unauthorized
from arena_topo.kube import credentials
from arena_topo.kube.credentials import resolved
from arena_topo.kube.kubeconfig import Target

V1 = "client.authentication.k8s.io/v1"


def target(plugin: Any, **user: Any) -> Target:
    """Return a target whose user has *plugin*."""
    return Target("c", "default", {"server": "https://127.0.0.1:1"}, {"exec": plugin, **user})


def printing(folder: Path, text: str, code: int = 0) -> dict[str, Any]:
    """Return a plugin that prints *text* and ends with *code*."""
    (folder / "answer").write_text(text)
    program = folder / "plugin"
    program.write_text(f"#!/bin/sh\ncat {folder}/answer\nexit {code}\n")
    program.chmod(0o700)
    return {"apiVersion": V1, "command": str(program), "interactiveMode": "Never"}


def answer(status: Any, **changed: Any) -> str:
    """Return an ExecCredential with *status*."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status} | changed)


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", 0, "it printed no JSON"),
        ("[" * 100_000, 0, "it printed no JSON"),
        ("[]", 0, "it printed no ExecCredential"),
        (answer({"token": "t"}, kind="Secret"), 0, "it printed no ExecCredential"),
        (answer({"token": "t"}, apiVersion=f"{V1}beta1"), 0, "it was asked for"),
        (answer(None), 0, "it said nothing"),
        (answer([]), 0, "it said nothing"),
        (answer({"token": ""}), 0, "it said nothing"),
        (answer({"token": 7}), 0, "its credentials are no texts"),
        (answer({"clientCertificateData": "c"}), 0, "both belong together"),
        (answer({"token": "t"}), 3, "it ended with 3"),
    ],
)
def test_what_is_no_credential_is_one_error(tmp_path: Path, text: str, code: int, why: str) -> None:
    """With the plugin's name, and what to do."""
    with pytest.raises(Unauthorized, match=why) as caught:
        resolved(target(printing(tmp_path, text, code)))
    assert "kubectl get pods" in caught.value.hint


def test_a_plugin_without_an_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read up to a bound, and ended then."""
    monkeypatch.setattr(credentials, "LARGEST_SETTING", files.LARGEST_SETTING // 64)
    plugin = printing(tmp_path, "") | {"command": "yes"}
    with pytest.raises(Unauthorized, match="what it prints cannot be read"):
        resolved(target(plugin))


@pytest.mark.parametrize(
    ("plugin", "kind", "said"),
    [
        (
            {"apiVersion": V1, "command": "no-such-plugin", "installHint": "apt install it"},
            Unauthorized,
            "apt",
        ),
        ({"apiVersion": V1}, DocumentError, "names no command"),
        ("text", DocumentError, "names no command"),
        ({"apiVersion": V1, "command": 7}, DocumentError, "names no command"),
        ({"apiVersion": f"{V1}alpha1", "command": "true"}, DocumentError, "speaks"),
        ({"apiVersion": V1, "command": "true", "interactiveMode": "Always"}, Unauthorized, "no terminal"),
    ],
)
def test_a_plugin_that_cannot_be_run_is_named(plugin: Any, kind: type[ArenaTopoError], said: str) -> None:
    """With its own advice on how to install it."""
    with pytest.raises(kind) as caught:
        resolved(target(plugin))
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_a_certificate_is_given_as_a_kubeconfig_has_it(tmp_path: Path) -> None:
    """In base64, next to what else the user has."""
    pair = {"clientCertificateData": "certificate", "clientKeyData": "key", "token": "t"}
    found = resolved(target(printing(tmp_path, answer(pair)), **{"as": "bob"}))

    assert {
        "as": "bob",
        "token": "t",
        "client-certificate-data": base64.b64encode(b"certificate").decode(),
        "client-key-data": base64.b64encode(b"key").decode(),
    } == found
