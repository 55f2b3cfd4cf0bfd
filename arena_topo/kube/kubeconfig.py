"""Which cluster, which credentials, which namespace: kubeconfig files resolved as kubectl resolves them.

``$KUBECONFIG`` may list several files: files that do not exist are skipped, and the first file that sets a
value (the current context, or a cluster, user or context of some name) wins. ``--kubeconfig`` names one file,
which must exist. Relative paths are relative to the file that holds them. Source:
``k8s.io/client-go/tools/clientcmd``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from arena_topo.errors import DocumentError
from arena_topo.files import LARGEST_SETTING, home_folder, read_bytes
from arena_topo.kube import ConnectionFlags
from arena_topo.model.objects import Object
from arena_topo.model.text.yaml import plain_mapping

_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATH_KEYS = {"certificate-authority", "client-certificate", "client-key", "tokenFile"}
_TEXT_KEYS = _PATH_KEYS | {
    "server",
    "token",
    "username",
    "password",
    "namespace",
    "cluster",
    "user",
    "as",
    "proxy-url",
}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IDENTITY = ("as", "as-uid", "as-groups", "as-user-extra")
_CERTIFICATE = {"client-certificate", "client-certificate-data", "client-key", "client-key-data"}
_STATIC = {*_CERTIFICATE, "token", "tokenFile", "username", "password", *_IDENTITY}
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token, its namespace, and the authority of its API server."""


@dataclass(frozen=True, slots=True)
class Target:
    """One cluster and one user, by the entries of the merged kubeconfig."""

    context: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any] = field(repr=False)

    @property
    def server(self) -> str:
        """The base URL of the API server, without a slash at its end; without a scheme it is plain HTTP."""
        server = str(self.cluster.get("server") or "").rstrip("/")
        return server if not server or "://" in server else f"http://{server}"

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port of the API server; a host of IPv6 has no brackets."""
        url = urlsplit(self.server)
        return url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme]


def resolve(connection: ConnectionFlags, env: Mapping[str, str] = os.environ) -> Target | None:
    """Return the target that kubectl would use, or None where no kubeconfig names one.

    Raises ``DocumentError`` for a file that cannot be read or parsed and for names that do not exist.
    """
    merged = merge(_paths(connection, env), explicit=bool(connection.kubeconfig))
    context_name = connection.context or merged["current-context"]
    context = _entry_named(merged, "contexts", context_name, explicit=bool(connection.context))
    cluster_name = connection.cluster or context.get("cluster", "")
    user_name = connection.user or context.get("user", "")
    cluster = _entry_named(merged, "clusters", cluster_name, explicit=bool(connection.cluster))
    user = _entry_named(merged, "users", user_name, explicit=bool(connection.user))
    target = Target(
        context=context_name,
        namespace=connection.namespace or context.get("namespace") or default_namespace(env),
        cluster=_with_cluster_flags(cluster, connection),
        user=_with_user_flags(user, connection),
    )
    # Nothing names a server: in a pod the service account takes over, elsewhere there is no cluster.
    if not target.server:
        return None
    _check(target)
    # Like kubectl, no credentials over plain HTTP.
    return target if target.server.startswith("https:") else replace(target, user=_identity(target.user))


def configured_target(connection: ConnectionFlags, env: Mapping[str, str] = os.environ) -> Target:
    """Return the target that kubectl would use: in a pod without a kubeconfig, its service account.

    Raises ``DocumentError`` where there is neither, and what ``resolve`` raises.
    """
    if target := resolve(connection, env):
        return target
    if "KUBERNETES_SERVICE_HOST" in env and not connection.kubeconfig:
        return _service_account(connection, env)
    raise DocumentError(
        "no cluster is configured: neither $KUBECONFIG nor ~/.kube/config names one",
        hint="pass --kubeconfig FILE, or set KUBECONFIG; kubectl config get-contexts shows what you have",
    )


def _service_account(connection: ConnectionFlags, env: Mapping[str, str]) -> Target:
    """Return the pod's own API server and service account. Raises ``DocumentError``."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    token, authority = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    fault = "" if host and port else "Service host/port is not set."
    fault = fault or ("" if token.is_file() else "Service token file does not exist.")
    fault = fault or ("" if authority.is_file() else "Service certification file does not exist.")
    if fault:
        raise DocumentError(f"the pod's service account cannot be used: {fault}")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Target(
        context="",
        namespace=connection.namespace or default_namespace(env),
        cluster={"server": server, "certificate-authority": str(authority)},
        # The kubelet replaces the token while a command runs.
        user=_with_user_flags({"tokenFile": str(token)}, connection),
    )


def names_of(plural: str, connection: ConnectionFlags, env: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of the kubeconfig's entries of one kind: ``contexts``, ``clusters`` or ``users``."""
    return list(merge(_paths(connection, env), explicit=bool(connection.kubeconfig))[plural])


def _paths(connection: ConnectionFlags, env: Mapping[str, str]) -> list[Path]:
    if connection.kubeconfig:
        return [Path(connection.kubeconfig)]
    if listed := env.get("KUBECONFIG", ""):
        return [Path(part) for part in listed.split(os.pathsep) if part]
    return [home_folder(env) / ".kube" / "config"]


def merge(paths: list[Path], *, explicit: bool) -> Object:
    """Return the documents of *paths* as one, the first to set a value winning.

    With *explicit* a missing file is an error. Raises ``DocumentError``.
    """
    merged: Object = {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}
    # A file that $KUBECONFIG lists twice is read once.
    for path in dict.fromkeys(paths):
        document = _load(path, explicit=explicit)
        merged["current-context"] = merged["current-context"] or str(document.get("current-context") or "")
        # Entries of earlier files come last here and win.
        for plural, singular in _LISTS.items():
            merged[plural] = {**_bodies_by_name(document, plural, singular, path), **merged[plural]}
    return merged


def _load(path: Path, *, explicit: bool) -> Object:
    try:
        text = read_bytes(path, LARGEST_SETTING)
    except FileNotFoundError:
        if not explicit:
            return {}
        raise DocumentError(
            f"kubeconfig {path} does not exist", hint="check the path given with --kubeconfig or --config"
        ) from None
    except OSError as error:
        raise DocumentError(f"kubeconfig {path} cannot be read: {error.strerror}") from error
    document = plain_mapping(text)
    if document is None:
        document = _parsed(text, path)
    if not isinstance(document, dict):
        raise DocumentError(f"error loading config file {str(path)!r}: it is not a kubeconfig")
    return document


def _parsed(text: bytes, path: Path) -> Any:
    """Return the document in *text*, which is any YAML. Raises ``DocumentError``."""
    # Just its import takes a tenth of the time of `get`.
    import yaml

    from arena_topo.model.text.yaml import check_bounds

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        check_bounds(text)
        return yaml.load(text, Loader=loader) or {}  # noqa: S506  # a safe loader, the C one where built
    except yaml.YAMLError as error:
        # Only the place: PyYAML's own message quotes the text around the fault, which may be a token.
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise DocumentError(
            f"error loading config file {str(path)!r}: it is not valid YAML{line}", hint="kubectl config view"
        ) from error
    # What is out of bounds, and numbers with more digits than Python converts.
    except ValueError as error:
        raise DocumentError(f"error loading config file {str(path)!r}: {error}") from error


def _bodies_by_name(document: Object, plural: str, singular: str, path: Path) -> Object:
    """Return the entries of one list of one file by name.

    Raises ``DocumentError`` for a name that comes twice.
    """
    bodies: Object = {}
    for entry in _entries(document, plural, path):
        name = str(entry.get("name", ""))
        if name in bodies:
            raise DocumentError(
                f"error loading config file {str(path)!r}: {plural} has the name {name!r} twice",
                hint="remove one of the two entries",
            )
        body = entry.get(singular) or {}
        wrong = "" if isinstance(body, dict) else singular
        wrong = wrong or next((key for key in body if key in _TEXT_KEYS and not _is_text(body[key])), "")
        if wrong:
            raise DocumentError(
                f"error loading config file {str(path)!r}: {wrong} of {name!r} in {plural} has the wrong type",
                hint="a value of digits needs quotes",
            )
        bodies[name] = _absolute(body, path.parent)
    return bodies


def _is_text(value: object) -> bool:
    # Go reads null as an empty text, and refuses a number where it expects a text: token: 12345.
    return value is None or isinstance(value, str)


def _entries(document: Object, plural: str, path: Path) -> list[Object]:
    entries = document.get(plural) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DocumentError(f"error loading config file {str(path)!r}: {plural} is not a list of entries")
    return entries


def _absolute(body: Object, folder: Path) -> Object:
    """Return *body* with absolute paths: those of files, and of a plugin that is not looked up in $PATH."""
    absolute = {
        key: str(folder / value) if key in _PATH_KEYS and value else value for key, value in body.items()
    }
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
        absolute["exec"] = {**plugin, "command": str((folder / plugin["command"]).absolute())}
    return absolute


def _entry_named(merged: Object, plural: str, name: str, *, explicit: bool) -> Object:
    body = merged[plural].get(name)
    if body is not None:
        return dict(body)
    singular = _LISTS[plural]
    # kubectl's own words where it has them; an empty name is an entry without content, unless a flag gave it.
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


def _with_cluster_flags(cluster: Object, connection: ConnectionFlags) -> Object:
    flags: Object = {
        "server": connection.server,
        "certificate-authority": connection.certificate_authority,
        "tls-server-name": connection.tls_server_name,
        "insecure-skip-tls-verify": connection.insecure,
    }
    chosen = {key: value for key, value in flags.items() if value}
    # A flag replaces every key that would contradict it.
    replaced: set[str] = set()
    if connection.certificate_authority or connection.insecure:
        replaced |= {"certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify"}
    if connection.server:
        replaced |= {"tls-server-name"}  # it named the other server
    return {**{key: value for key, value in cluster.items() if key not in replaced}, **chosen}


def _identity(user: Mapping[str, Any]) -> Object:
    """Return the part of *user* that says whom to act as.

    Like kubectl, nothing else is sent over plain HTTP.
    """
    return {key: value for key, value in user.items() if key in _IDENTITY and value}


def is_static(user: Mapping[str, Any]) -> bool:
    """Whether *user* has credentials that can be sent as they are; those of others have to be asked for."""
    # An empty entry, such as exec: null, asks for nothing.
    return {key for key, value in user.items() if value} <= _STATIC


def token_of(user: Mapping[str, Any]) -> str:
    """Return the bearer token of *user*, empty for a user without one.

    A file is read each time, as it may rotate.
    As in kubectl, a token next to a file stands in for a file that cannot be read or is empty. Raises
    ``DocumentError``.
    """
    token, fault = str(user.get("token") or ""), ""
    if token_file := user.get("tokenFile"):
        try:
            text = read_bytes(str(token_file), LARGEST_SETTING).decode().strip()
            token, fault = text or token, "" if text else "is empty"
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            fault = "is not a text"
        if not token:
            raise DocumentError(
                f"the token file {token_file} {fault}", hint="kubectl config view --minify shows its entry"
            )
    # Such a token would end its header, or be refused by http.client with the secret in the error's text.
    if not (token.isascii() and token.isprintable()):
        raise DocumentError(
            "the token of the kubeconfig's user contains characters that are not allowed in a token (a line break?)"
        )
    return token


def check_files(target: Target) -> None:
    """Raise ``DocumentError`` for a certificate or a key in a file that cannot be read, or has no end."""
    # OpenSSL would read a device until the memory is used up.
    for entry, key in (
        (target.cluster, "certificate-authority"),
        (target.user, "client-certificate"),
        (target.user, "client-key"),
    ):
        if (path := entry.get(key)) and not entry.get(f"{key}-data"):
            try:
                read_bytes(str(path), LARGEST_SETTING)
            except OSError as error:
                raise unusable_certificates(target, f"{path}: {error.strerror}") from error


def unusable_certificates(target: Target, fault: object) -> DocumentError:
    """Return the error for certificates or keys of *target* that cannot be used because of *fault*."""
    return DocumentError(
        f"the certificates of context {target.context!r} cannot be used: {fault}",
        hint="kubectl config view --minify shows the entry",
    )


def _with_user_flags(user: Object, connection: ConnectionFlags) -> Object:
    """Return *user* with the token in place of other credentials, and the identities of the flags."""
    # The flag must not be joined by a client certificate, which may decide who the user is.
    if connection.token:
        user = {**_identity(user), "token": connection.token}
    flags: Object = {"as": connection.impersonate, "as-groups": list(connection.impersonate_groups)}
    return {**user, **{key: value for key, value in flags.items() if value}}


def _check(target: Target) -> None:
    """Raise ``DocumentError`` for a cluster's entry that kubectl refuses too."""
    if fault := _fault(target):
        raise DocumentError(
            f"the cluster of context {target.context!r} cannot be used: {fault}",
            hint="kubectl config view --minify shows the entry",
        )


def _fault(target: Target) -> str:
    # urlsplit raises for a port beyond 65535, and for brackets without an IPv6 address.
    try:
        url = urlsplit(target.server)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        # urlsplit itself drops tabs and line ends, and keeps spaces.
        usable = usable and not any(letter.isspace() or not letter.isprintable() for letter in target.server)
    except ValueError:
        usable = False
    if not usable:
        return f"server {target.server!r} is not the address of an API server"
    authority = target.cluster.get("certificate-authority") or target.cluster.get(
        "certificate-authority-data"
    )
    if authority and target.cluster.get("insecure-skip-tls-verify"):
        return "certificate-authority and insecure-skip-tls-verify exclude each other"
    return ""


def default_namespace(env: Mapping[str, str] = os.environ) -> str:
    """Return the namespace where neither a flag nor a context names one.

    In a pod the service account's, as in kubectl.
    """
    if "KUBERNETES_SERVICE_HOST" not in env:
        return "default"
    # client-go asks the downward API's usual variable first.
    if namespace := env.get("POD_NAMESPACE", ""):
        return namespace
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        # A pod may run without a service account's token.
        return "default"
