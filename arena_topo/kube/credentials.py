"""Credentials that have to be asked for: those of exec plugins, and of auth providers (OIDC).

Exec plugins are what GKE, EKS and AKS write into a kubeconfig. Their protocol is a process, a variable and a
document (``client.authentication.k8s.io``): they are run here as kubectl runs them. Auth providers are older,
and deprecated by Kubernetes; the ``kubernetes`` package, whose import takes 0.2 s, asks for those.
Source: ``k8s.io/client-go/plugin/pkg/client/auth/exec`` and ``tools/clientcmd``.
"""

import json
import os
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from arena_topo.errors import DocumentError, Unauthorized
from arena_topo.files import LARGEST_SETTING, read_bytes, read_stream
from arena_topo.kube.kubeconfig import Target, check_files, token_of
from arena_topo.model.objects import Object

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_CLUSTER_KEYS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
_EXTENSION = f"{_GROUP}/exec"
_MOST_WORDS = 2000
"""Characters of what a plugin said about its failure that are shown."""


def resolved(target: Target) -> Object:
    """Return static credentials for the user of *target*, by the keys of a kubeconfig; a plugin may run.

    Raises ``DocumentError`` for entries that cannot be used, ``Unauthorized`` when a plugin gives nothing.
    """
    check_files(target)
    user = {key: value for key, value in target.user.items() if value}
    plugin, provider = user.pop("exec", None), user.pop("auth-provider", None)
    if plugin and provider:
        raise _unusable(target, "exec and auth-provider exclude each other")
    if user.pop("tokenFile", None):
        user["token"] = token_of(target.user)
    if provider:
        return _of_provider(target, {**user, "auth-provider": provider})
    # As in kubectl, a plugin has nothing to add to a token or a password.
    if not plugin or user.get("token") or user.get("username"):
        return user
    return {**user, **_of_plugin(target, plugin)}


def _unusable(target: Target, fault: object) -> DocumentError:
    return DocumentError(
        f"context {target.context!r} of the kubeconfig cannot be used: {fault}",
        hint="kubectl config view --minify shows the entry",
    )


# A plugin: it gets the cluster in a variable, and prints a token or a certificate.


def _of_plugin(target: Target, plugin: Any) -> Object:
    if (
        not isinstance(plugin, Mapping)
        or not isinstance(command := plugin.get("command"), str)
        or not command
    ):
        raise _unusable(target, "its user's exec names no command")
    version, mode = plugin.get("apiVersion"), plugin.get("interactiveMode") or "IfAvailable"
    if version not in _VERSIONS:
        raise _unusable(target, f"its plugin speaks {version!r}, and {' and '.join(_VERSIONS)} are known")
    is_interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not is_interactive:
        raise Unauthorized(
            f"the credential plugin {command!r} has to ask questions, and there is no terminal",
            hint="log in on a terminal first, with any command of kubectl",
            status=401,
        )
    spec: Object = {"interactive": is_interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster(target)
    info = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
    own = {str(one.get("name")): str(one.get("value", "")) for one in _mappings(plugin.get("env"))}
    words = [command, *map(str, plugin.get("args") or ())]
    env = {**os.environ, **own, "KUBERNETES_EXEC_INFO": info}
    code, out, said = _run(words, env, plugin, is_interactive=is_interactive)
    if code:
        raise _nothing(command, f"it ended with {code}; {said}" if said else f"it ended with {code}")
    return _given(command, str(version), out)


def _cluster(target: Target) -> Object:
    """Return what a plugin learns about the cluster, if it wants to."""
    entry = target.cluster
    shown = {key: entry[key] for key in _CLUSTER_KEYS if entry.get(key)}
    if data := entry.get("certificate-authority-data"):
        shown["certificate-authority-data"] = data
    elif file := entry.get("certificate-authority"):
        shown["certificate-authority-data"] = b64encode(read_bytes(str(file), LARGEST_SETTING)).decode()
    own = [
        one.get("extension") for one in _mappings(entry.get("extensions")) if one.get("name") == _EXTENSION
    ]
    return {**shown, "config": own[0] if own else None}


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, Mapping))


def _run(
    words: list[str], env: Mapping[str, str], plugin: Mapping[str, Any], *, is_interactive: bool
) -> tuple[int, bytes, str]:
    """Return a plugin's exit code, what it printed, and its words on stderr unless a terminal shows them."""
    # Most users have no plugin.
    import subprocess
    from tempfile import TemporaryFile

    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603  # the user's kubeconfig names it
                words,
                env=dict(env),
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_interactive else errors,
            )
        except OSError as error:
            advice = str(plugin.get("installHint") or "").strip()
            raise Unauthorized(
                f"the credential plugin {words[0]!r} cannot be run: {error.strerror}",
                hint=advice[:_MOST_WORDS] or "install it, or kubectl get pods says what it needs",
                status=401,
            ) from error
        with process:
            try:
                out = read_stream(process.stdout, LARGEST_SETTING)  # type: ignore[arg-type]  # a pipe
            except OSError as error:
                process.kill()
                raise _nothing(words[0], f"what it prints cannot be read: {error.strerror}") from error
        errors.seek(0)
        said = errors.read(_MOST_WORDS).decode(errors="replace").strip()
    return process.returncode, out, said


def _given(command: str, version: str, out: bytes) -> Object:
    """Return the credentials in what a plugin printed, by the keys of a kubeconfig."""
    try:
        document = json.loads(out)
    except (ValueError, RecursionError) as error:
        raise _nothing(command, "it printed no JSON") from error
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise _nothing(command, "it printed no ExecCredential")
    if document.get("apiVersion") != version:
        raise _nothing(command, f"it was asked for {version}, and printed {document.get('apiVersion')!r}")
    status = document.get("status")
    texts = {
        key: status.get(key) for key in ("token", "clientCertificateData", "clientKeyData")
    } if isinstance(status, dict) else {}  # fmt: skip
    if any(not isinstance(text, str | None) for text in texts.values()):
        raise _nothing(command, "its credentials are no texts")
    token, certificate, key = (
        texts.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        raise _nothing(command, "it gave a certificate or a key, and both belong together")
    if not (token or certificate):
        raise _nothing(command, "it said nothing")
    if not certificate:
        return {"token": token}
    pair = {"client-certificate-data": certificate, "client-key-data": key}
    shown = {name: b64encode(str(text).encode()).decode() for name, text in pair.items()}
    return {**shown, **({"token": token} if token else {})}


def _nothing(command: str, why: str) -> Unauthorized:
    return Unauthorized(
        f"the credential plugin {command!r} gave no credentials: {why}",
        hint="run kubectl get pods: it uses the same plugin and shows what it prints",
        status=401,
    )


# An auth provider: the package's own.


def _of_provider(target: Target, user: Object) -> Object:
    # The package writes a refreshed token of OIDC into the provider's entry, which stays the one of *target*:
    # the next refresh needs it.
    configuration = _loaded(target, user)
    scheme, _, token = str(configuration.api_key.get("BearerToken") or "").partition(" ")
    given = {
        "token": token if scheme == "Bearer" else "",
        "username": user.get("username") if scheme == "Basic" else "",
        "password": user.get("password"),
        "client-certificate": configuration.cert_file,
        "client-key": configuration.key_file,
    }
    return {key: value for key, value in given.items() if value}


def _loaded(target: Target, user: Object) -> Any:
    """Return the package's configuration for *user* at *target*. Raises ``DocumentError``."""
    from kubernetes import client, config

    document: Object = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": dict(target.cluster)}],
        "users": [{"name": "chosen", "user": user}],
    }
    configuration = client.Configuration()
    with _quiet():
        try:
            # Persisting would write a refreshed token into the user's kubeconfig.
            config.load_kube_config_from_dict(
                document, persist_config=False, client_configuration=configuration
            )
        except config.ConfigException as error:
            raise _unusable(target, error) from error
    return configuration


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the package logs from stderr."""
    import logging

    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
