"""What kube-scheduler reserves for a pod.

Source: ``k8s.io/component-helpers/resource``, ``PodRequests``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arena_topo.model.notation.quantity import Resources, resources, total

_POD_LEVEL = frozenset({"cpu", "memory"})


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """What a container requests; ``sidecar`` marks an init container that keeps running (restartPolicy Always)."""

    requests: Resources
    sidecar: bool = False


def effective_requests(
    containers: Iterable[ContainerRequests],
    init_containers: Iterable[ContainerRequests] = (),
    pod_level: Resources | None = None,
    overhead: Resources | None = None,
) -> dict[str, int]:
    """Return what kube-scheduler reserves for a pod.

    Containers and sidecars run together; each other init container runs beside the sidecars that stand before it,
    and the highest of these moments counts. *pod_level* requests (cpu, memory, huge pages) replace the sum.

    For example, init containers ``[sidecar 1 cpu, setup 5 cpu, sidecar 1 cpu]`` before a container of 3 cpu have
    the moments 1, 1 + 5 and 1 + 1 while they start, and 3 + 1 + 1 afterwards: the pod reserves 6 cpu.
    """
    together = total(container.requests for container in containers)
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in init_containers:
        moment = total((container.requests, sidecars))
        if container.sidecar:
            sidecars = moment
        highest = _highest(highest, moment)
    needed = _highest(total((together, sidecars)), highest)
    for resource, amount in (pod_level or {}).items():
        # Devices cannot be requested for a pod as a whole, so theirs stays the sum.
        if resource in _POD_LEVEL or resource.startswith("hugepages-"):
            needed[resource] = amount
    return total((needed, overhead or {}))


def pod_spec_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what kube-scheduler reserves for a pod with the well-formed *spec*; raises ``ValueError``.

    Objects that a server may have garbled are read with ``topology.pod_facts``, which names the key at fault.
    """
    pod_level = (spec.get("resources") or {}).get("requests")
    return effective_requests(
        map(_container, spec.get("containers") or ()),
        map(_container, spec.get("initContainers") or ()),
        resources(pod_level) if pod_level else None,
        resources(spec.get("overhead")),
    )


def _container(container: Mapping[str, Any]) -> ContainerRequests:
    section = container.get("resources") or {}
    # The API server fills requests from limits; an object that was never there may lack them.
    requests = {**(section.get("limits") or {}), **(section.get("requests") or {})}
    return ContainerRequests(resources(requests), container.get("restartPolicy") == "Always")


def _highest(left: Resources, right: Resources) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}
