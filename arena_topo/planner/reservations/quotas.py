"""What the ResourceQuotas of a namespace leave of what the plans of its jobs reserve.

A quota may have scopes, and then counts only the pods that match all of them. In a namespace with a quota of eight GPUs for
the priority class ``high`` and another one of sixteen for all pods, workers of class ``high`` reserve eight GPUs at most, and
the jobs of all classes together sixteen. Source: pkg/quota/v1/evaluator/core/pods.go of Kubernetes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.keys import DRA_GPU
from arena_topo.model.notation.quantity import Resources
from arena_topo.planner.reservations.conflicts import OtherPlan, WorkerTraits, requested

_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True)
class Scope:
    """A term of a quota's scopes; those of ``scopes`` have the operator ``Exists``."""

    name: str
    operator: str = "Exists"
    values: frozenset[str] = frozenset()

    def matches(self, worker: WorkerTraits) -> bool:
        """Whether pods like *worker* are in it; none is in a scope that is not known."""
        match self.name:
            case "Terminating" | "NotTerminating":
                return worker.has_deadline == (self.name == "Terminating")
            case "BestEffort" | "NotBestEffort":
                return worker.is_best_effort == (self.name == "BestEffort")
            case "CrossNamespacePodAffinity":
                return worker.is_near_other_namespaces
            case "PriorityClass":
                return self._has_class(worker.priority_class)
            case _:
                return False

    def _has_class(self, name: str) -> bool:
        # A pod that names none may get the cluster's default, which is not looked up: only of a named one it is known.
        if not name:
            return False
        return {
            "Exists": True,
            "DoesNotExist": False,
            "In": name in self.values,
            "NotIn": name not in self.values,
        }.get(self.operator, False)


@dataclass(frozen=True, slots=True)
class Quota:
    """The amounts that a ResourceQuota admits, by the resource that a pod requests, of pods that match all its scopes."""

    limits: Resources
    scopes: tuple[Scope, ...] = ()


Quotas = Mapping[str, Sequence[Quota]]
"""By namespace."""


def within_quotas(
    plans: Iterable[OtherPlan], quotas: Quotas, used: Mapping[str, Resources]
) -> Iterator[OtherPlan]:
    """Yield *plans*, older ones first, each with the workers that the quotas of its namespace leave room for.

    *used* is what running pods of a namespace request; which of them are in a scope is not known, so that it counts for
    quotas without one. A worker with a node is among those already.
    """
    left = {
        namespace: [
            (
                quota.scopes,
                {
                    name: most - (0 if quota.scopes else used.get(namespace, {}).get(name, 0))
                    for name, most in quota.limits.items()
                },
            )
            for quota in of_namespace
        ]
        for namespace, of_namespace in quotas.items()
    }
    for plan in sorted(plans, key=lambda plan: plan.order):
        rooms = [
            room
            for scopes, room in left.get(plan.namespace, ())
            if all(scope.matches(plan.traits) for scope in scopes)
        ]
        slots = tuple(
            slot
            for slot in plan.record.slots
            if slot.worker in plan.bound or _takes(rooms, requested(plan.record, (slot,)))
        )
        yield replace(plan, record=replace(plan.record, slots=slots)) if rooms else plan


def quota_of(hard: Resources) -> dict[str, int]:
    """Return the amounts of a ResourceQuota's *hard* limits, by the resource that a pod requests.

    For example, ``requests.nvidia.com/gpu`` limits ``nvidia.com/gpu``, and both ``cpu`` and ``requests.cpu`` limit cpu.
    """
    limits: dict[str, int] = {}
    for key, amount in hard.items():
        name = DRA_GPU if key == f"{DRA_GPU}{_DEVICES}" else key.removeprefix("requests.")
        # limits.cpu, count/pods and the like bound something else than what is reserved.
        if name == key and name not in {"cpu", "memory", "pods", DRA_GPU}:
            continue
        limits[name] = min(amount, limits.get(name, amount))
    return limits


def _takes(rooms: Sequence[dict[str, int]], request: Resources) -> bool:
    """Take *request* out of all *rooms*, what is left of each quota, and return True; False where one has not enough."""
    if any(room[name] < amount for room in rooms for name, amount in request.items() if name in room):
        return False
    for room in rooms:
        for name, amount in request.items():
            if name in room:
                room[name] -= amount
    return True
