"""Which cluster, which credentials, which namespace: kubeconfig files resolved as kubectl resolves them.

``$KUBECONFIG`` may list several files: files that do not exist are skipped, and the first file that sets a value
(the current context, or a cluster, user or context of some name) wins. ``--kubeconfig`` names one file, which must
exist. Relative paths are relative to the file that holds them. Source: ``k8s.io/client-go/tools/clientcmd``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from arena_topo.errors import DocumentError

Document = dict[str, Any]

_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATH_KEYS = {"certificate-authority", "client-certificate", "client-key", "tokenFile"}
_IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user chose with kubectl's flags; empty means: as the kubeconfig says.

    ``timeout`` is in seconds for one request, 0 for none.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    server: str = ""
    token: str = field(default="", repr=False)
    certificate_authority: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    impersonate: str = ""
    impersonate_groups: tuple[str, ...] = ()
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """One cluster and one user, as the merged kubeconfig tells them."""

    context: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any] = field(repr=False)

    @property
    def server(self) -> str:
        """The base URL of the API server, without a slash at its end."""
        return str(self.cluster.get("server", "")).rstrip("/")


def resolve(choice: Choice, env: Mapping[str, str] = os.environ) -> Target | None:
    """Return the target that kubectl would use, or None where no kubeconfig names one.

    Raises ``DocumentError`` for a file that cannot be read or parsed and for names that do not exist.
    """
    merged = merge(_paths(choice, env), explicit=bool(choice.kubeconfig))
    context_name = choice.context or merged["current-context"]
    context = _named(merged, "contexts", context_name, explicit=bool(choice.context))
    cluster_name = choice.cluster or context.get("cluster", "")
    user_name = choice.user or context.get("user", "")
    cluster = _named(merged, "clusters", cluster_name, explicit=bool(choice.cluster))
    user = _named(merged, "users", user_name, explicit=bool(choice.user))
    target = Target(
        context=context_name,
        namespace=choice.namespace or context.get("namespace") or _default_namespace(env),
        cluster=_with_cluster_flags(cluster, choice),
        user={"token": choice.token} if choice.token else user,
    )
    return target if target.server else None


def _paths(choice: Choice, env: Mapping[str, str]) -> list[Path]:
    if choice.kubeconfig:
        return [Path(choice.kubeconfig)]
    listed = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"]


def merge(paths: list[Path], *, explicit: bool) -> Document:
    """Return the documents of *paths* as one, the first to set a value winning.

    With *explicit* a missing file is an error. Raises ``DocumentError``.
    """
    merged: Document = {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}
    for path in dict.fromkeys(paths):
        document = _load(path, explicit=explicit)
        merged["current-context"] = merged["current-context"] or str(document.get("current-context") or "")
        for plural, singular in _LISTS.items():
            merged[plural] = {**_bodies(document, plural, singular, path), **merged[plural]}
    return merged


def _load(path: Path, *, explicit: bool) -> Document:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if not explicit:
            return {}
        raise DocumentError(
            f"kubeconfig {path} does not exist", hint="check the path given with --kubeconfig or --config"
        ) from None
    except OSError as error:
        raise DocumentError(f"kubeconfig {path} cannot be read: {error.strerror}") from error
    try:
        document = yaml.load(text, Loader=loader) or {}  # noqa: S506  # a safe loader, the C one where built
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where else ""
        raise DocumentError(
            f"error loading config file {str(path)!r}: it is not valid YAML{line}", hint="kubectl config view"
        ) from error
    if not isinstance(document, dict):
        raise DocumentError(f"error loading config file {str(path)!r}: it is not a kubeconfig")
    return document


def _bodies(document: Document, plural: str, singular: str, path: Path) -> Document:
    """Return the entries of one list of one file by name. Raises ``DocumentError`` for a name that comes twice."""
    bodies: Document = {}
    for entry in _entries(document, plural, path):
        name = str(entry.get("name", ""))
        if name in bodies:
            raise DocumentError(
                f"error loading config file {str(path)!r}: {plural} has the name {name!r} twice",
                hint="remove one of the two entries",
            )
        bodies[name] = _absolute(entry.get(singular) or {}, path.parent)
    return bodies


def _entries(document: Document, plural: str, path: Path) -> list[Document]:
    entries = document.get(plural) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DocumentError(f"error loading config file {str(path)!r}: {plural} is not a list of entries")
    return entries


def _absolute(body: Document, folder: Path) -> Document:
    return {
        key: str(folder / value) if key in _PATH_KEYS and isinstance(value, str) and value else value
        for key, value in body.items()
    }


def _named(merged: Document, plural: str, name: str, *, explicit: bool) -> Document:
    body = merged[plural].get(name)
    if body is not None:
        return dict(body)
    singular = _LISTS[plural]
    if plural == "contexts" and name:
        raise DocumentError(
            f"context was not found for specified context: {name}",
            hint="kubectl config get-contexts lists the contexts you have",
        )
    if explicit or name:
        raise DocumentError(
            f"{singular} {name!r} does not exist in the kubeconfig", hint=f"kubectl config get-{plural}"
        )
    return {}


def _with_cluster_flags(cluster: Document, choice: Choice) -> Document:
    flags: Document = {
        "server": choice.server,
        "certificate-authority": choice.certificate_authority,
        "tls-server-name": choice.tls_server_name,
        "insecure-skip-tls-verify": choice.insecure,
    }
    chosen = {key: value for key, value in flags.items() if value}
    if choice.certificate_authority or choice.insecure:
        cluster.pop("certificate-authority-data", None)
    return {**cluster, **chosen}


def _default_namespace(env: Mapping[str, str]) -> str:
    if "KUBERNETES_SERVICE_HOST" in env and _IN_CLUSTER_NAMESPACE.is_file():
        return _IN_CLUSTER_NAMESPACE.read_text().strip() or "default"
    return "default"


def with_namespace(target: Target, namespace: str) -> Target:
    """Return *target* for another namespace."""
    return replace(target, namespace=namespace)
