"""The tests' own client: raw JSON over urllib3, independent of the product's code."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import urllib3

from tests.controlplane.components.pair import Pair
from tests.controlplane.polling import TIMEOUT_SECONDS, eventually

Object = dict[str, Any]


class KubeError(Exception):
    """The API server refused; ``code`` is the HTTP status, ``status`` its Status object."""

    def __init__(self, code: int, status: Object) -> None:
        super().__init__(f"{code}: {status.get('message', status)}")
        self.code = code
        self.status = status


@contextmanager
def suppress_missing() -> Iterator[None]:
    """Ignore that an object does not exist (any more)."""
    try:
        yield
    except KubeError as error:
        if error.code != 404:
            raise


class Kube:
    """One user's connection to the API server."""

    def __init__(self, server: str, authority: Path, client: Pair | None, token: str = "") -> None:
        self.server = server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(
            maxsize=8,
            cert_file=str(client.certificate) if client else None,
            key_file=str(client.key) if client else None,
            ca_certs=str(authority),
            retries=False,
        )
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Send one request and return the answer: decoded JSON, or text; raise KubeError from 400 on."""
        response = self._pool.request(
            method,
            self._url(path, query),
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type, "Accept": "application/json", **self._headers},
            timeout=120,
        )
        text = response.data.decode(errors="replace")
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        answer = json.loads(text) if is_json else text
        if response.status >= 400:
            raise KubeError(response.status, answer if isinstance(answer, dict) else {"message": answer})
        return answer

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[urllib3.BaseHTTPResponse]:
        """Open a stream (a log, a watch) and close it on leaving."""
        response = self._pool.request("GET", self._url(path, query), preload_content=False, timeout=150)
        try:
            if response.status >= 400:
                raise KubeError(response.status, {"message": response.read().decode(errors="replace")})
            yield response
        finally:
            response.close()

    def path(self, api: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of ``kind`` in ``api`` (``v1``, ``kubeflow.org/v2beta1``), asked from discovery."""
        base = f"/api/{api}" if "/" not in api else f"/apis/{api}"
        plural, namespaced = self._kind(base, kind)
        parts = [base, *(("namespaces", namespace) if namespaced and namespace else ()), plural]
        return "/".join([*parts, name] if name else parts)

    def get(self, api: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        answer: Object = self.request("GET", self.path(api, kind, namespace, name))
        return answer

    def find(self, api: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return one object, None if it does not exist."""
        try:
            return self.get(api, kind, name, namespace)
        except KubeError as error:
            if error.code != 404:
                raise
            return None

    def list(self, api: str, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        """Return all objects, of all namespaces if none is
        given; ``labelSelector`` and the like as keywords.
        """
        items: list[Object] = self.request("GET", self.path(api, kind, namespace), query=query)["items"]
        return items

    def create(self, manifest: Object, namespace: str | None = None) -> Object:
        """Create an object with strict validation of its fields."""
        where = namespace or manifest["metadata"].get("namespace")
        path = self.path(manifest["apiVersion"], manifest["kind"], where)
        answer: Object = self.request("POST", path, manifest, query={"fieldValidation": "Strict"})
        return answer

    def apply(self, manifest: Object, namespace: str | None = None) -> Object:
        """Create or update an object by server-side apply."""
        where = namespace or manifest["metadata"].get("namespace")
        path = self.path(manifest["apiVersion"], manifest["kind"], where, manifest["metadata"]["name"])
        query = {"fieldManager": "arena-topo-tests", "force": "true"}
        answer: Object = self.request(
            "PATCH", path, manifest, content_type="application/apply-patch+yaml", query=query
        )
        return answer

    def patch(
        self, api: str, kind: str, name: str, change: Object, namespace: str | None = None, *, sub: str = ""
    ) -> Object:
        """Merge ``change`` into an object, or into its subresource ``sub`` (``status``)."""
        path = self.path(api, kind, namespace, name) + (f"/{sub}" if sub else "")
        answer: Object = self.request("PATCH", path, change, content_type="application/merge-patch+json")
        return answer

    def delete(self, api: str, kind: str, name: str, namespace: str | None = None, **query: str) -> None:
        """Delete an object if it is there; ``gracePeriodSeconds`` and the like as keywords."""
        with suppress_missing():
            self.request("DELETE", self.path(api, kind, namespace, name), query=query)

    def delete_all(self, api: str, kind: str, namespace: str) -> None:
        """Delete all objects of a kind in *namespace*, without
        those that they own, and return when there are none.
        """
        path = self.path(api, kind, namespace)
        self.request("DELETE", path, query={"propagationPolicy": "Background"})
        eventually(lambda: not self.list(api, kind, namespace), f"the end of each {kind} in {namespace}")

    def wait_for(
        self,
        api: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        until: Callable[[Object], object] = bool,
        timeout: float = TIMEOUT_SECONDS,
    ) -> Object:
        """Return the object once it exists and ``until`` holds for it."""

        def ready() -> Object | None:
            seen = self.find(api, kind, name, namespace)
            return seen if seen is not None and until(seen) else None

        return eventually(ready, f"{kind} {name}", timeout)

    def wait_gone(self, api: str, kind: str, name: str, namespace: str | None = None) -> None:
        """Return once the object no longer exists."""
        eventually(lambda: self.find(api, kind, name, namespace) is None, f"the end of {kind} {name}")

    def _kind(self, base: str, kind: str) -> tuple[str, bool]:
        if (base, kind) not in self._kinds:
            for resource in self.request("GET", base)["resources"]:
                if "/" not in resource["name"]:
                    self._kinds[base, resource["kind"]] = (resource["name"], resource["namespaced"])
        if (base, kind) not in self._kinds:
            raise KubeError(404, {"message": f"{base} serves no {kind}"})
        return self._kinds[base, kind]

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
