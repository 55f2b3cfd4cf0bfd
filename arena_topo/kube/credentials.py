"""Credentials that have to be asked for: those of exec plugins and auth providers (OIDC).

The ``kubernetes`` package asks for them, as it does for everybody who uses Kubernetes from Python, and
nothing else of it is used. Its import takes about 0.2 s, so this module is imported where a user has such
credentials.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from arena_topo.errors import DocumentError, Unauthorized
from arena_topo.kube.kubeconfig import Target, check_files, token_of
from arena_topo.model.objects import Object


def resolved(target: Target) -> Object:
    """Return static credentials for the user of *target*, by the keys of a kubeconfig; a plugin runs for that.

    Raises ``DocumentError`` for entries that the package cannot use, ``Unauthorized`` when a plugin gives
    nothing.
    """
    check_files(target)
    user = dict(target.user)
    if user.pop("tokenFile", None):
        user["token"] = token_of(target.user)
    # The package writes a refreshed token of OIDC into the provider's entry, which stays the one of *target*:
    # the next refresh needs it.
    configuration, errors = _loaded(target, user)
    authorization = str(configuration.api_key.get("BearerToken") or "")
    # A plugin may give a token, or a client certificate.
    if user.get("exec") and not authorization and not configuration.cert_file:
        command = user["exec"].get("command", "") if isinstance(user["exec"], dict) else ""
        raise Unauthorized(
            f"the credential plugin {command!r} gave no credentials: {'; '.join(errors) or 'it said nothing'}",
            hint="run kubectl get pods: it uses the same plugin and shows what it prints",
            status=401,
        )
    scheme, _, token = authorization.partition(" ")
    given = {
        "token": token if scheme == "Bearer" else "",
        "username": user.get("username") if scheme == "Basic" else "",
        "password": user.get("password"),
        "client-certificate": configuration.cert_file,
        "client-key": configuration.key_file,
    }
    return {key: value for key, value in given.items() if value}


def _loaded(target: Target, user: Object) -> tuple[Any, list[str]]:
    """Return the package's configuration for *user* at *target*, and the errors that it logged.

    Raises ``DocumentError``.
    """
    from kubernetes import client, config

    document: Object = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": dict(target.cluster)}],
        "users": [{"name": "chosen", "user": user}],
    }
    configuration = client.Configuration()
    with _logged_errors() as errors:
        try:
            # Persisting would write a refreshed token into the user's kubeconfig.
            config.load_kube_config_from_dict(
                document, persist_config=False, client_configuration=configuration
            )
        except config.ConfigException as error:
            raise DocumentError(
                f"context {target.context!r} of the kubeconfig cannot be used: {error}",
                hint="kubectl config view --minify shows the entry",
            ) from error
    return configuration, errors


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Yield the errors that the package logs meanwhile: it reports a plugin's failure nowhere else."""
    errors: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(record.getMessage())  # type: ignore[method-assign]  # nothing else is needed of it
    logging.getLogger().addHandler(handler)
    try:
        yield errors
    finally:
        logging.getLogger().removeHandler(handler)
