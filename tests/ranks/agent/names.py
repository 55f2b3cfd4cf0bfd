"""What cluster DNS would say, from EndpointSlices, as the hosts file of each pod."""

import threading
from collections.abc import Mapping

from tests.controlplane.kube import Object

_SERVICE = "kubernetes.io/service-name"
_HEADLESS = "service.kubernetes.io/headless"
_DOMAIN = "cluster.local"


class Names:
    """The names of all pods behind headless Services, and of these."""

    def __init__(self) -> None:
        self._slices: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()

    def set(self, found: Mapping[tuple[str, str], Object]) -> None:
        """Replace all slices."""
        with self._lock:
            self._slices = dict(found)

    def change(self, item: Object, *, deleted: bool) -> None:
        """Take in one slice, or forget it."""
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        with self._lock:
            if deleted:
                self._slices.pop(key, None)
            else:
                self._slices[key] = item

    def hosts(self, pod: Object, address: str, *, resolves: bool) -> str:
        """Return the hosts file of *pod* at *address*; unless it *resolves*, it knows itself alone."""
        namespace, spec = pod["metadata"]["namespace"], pod["spec"]
        own = [spec.get("hostname") or pod["metadata"]["name"]]
        if spec.get("subdomain"):
            own.insert(0, f"{own[0]}.{spec['subdomain']}.{namespace}.svc.{_DOMAIN}")
        lines = ["127.0.0.1 localhost", " ".join([address, *own])]
        search = (spec.get("dnsConfig") or {}).get("searches") or []
        for (where, service, host), target in sorted(self._table().items()) if resolves else ():
            near = f"{host}.{service}" if host else service
            full = f"{near}.{where}.svc"
            names = [f"{full}.{_DOMAIN}", full, *([near] if where == namespace else [])]
            if host and f"{service}.{where}.svc.{_DOMAIN}" in search:
                names.append(host)
            lines.append(" ".join([target, *names]))
        return "\n".join(lines) + "\n"

    def _table(self) -> dict[tuple[str, str, str], str]:
        """Return the addresses that have a name: (namespace, Service, host) -> address; the Service itself is
        without a host.

        That of several pods has the address of one of them here, which is enough for anyone who takes the
        first answer.
        """
        with self._lock:
            slices = list(self._slices.values())
        table = {}
        for item in slices:
            labels = item["metadata"].get("labels") or {}
            service = labels.get(_SERVICE, "")
            for endpoint in item.get("endpoints") or []:
                ready = (endpoint.get("conditions") or {}).get("ready", True)
                if not ready or not endpoint.get("addresses"):
                    continue
                hosts = [endpoint["hostname"]] if endpoint.get("hostname") else []
                for host in [*hosts, *([""] if _HEADLESS in labels else [])]:
                    table[item["metadata"]["namespace"], service, host] = endpoint["addresses"][0]
        return table
