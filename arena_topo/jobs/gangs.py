"""The gang of a job: which back-end keeps it together on this cluster, and what that must know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.gang.backends import BACKENDS
from arena_topo.gang.choosing import choose, known
from arena_topo.jobs.reading import templates
from arena_topo.manifest.roles import version_of
from arena_topo.model.apiversion import ApiVersion
from arena_topo.model.clusterfacts import ClusterFacts
from arena_topo.model.gang import Gang

Object = dict[str, Any]

_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


@dataclass(frozen=True, slots=True)
class GangChoice:
    """The back-end of a gang, the gang as that sees it, and why it was chosen."""

    backend: str
    gang: Gang
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GangWishes:
    """What the user asks of the gang: the back-end's name or ``auto``, a queue, and a level of the fabric."""

    scheduler: str = "auto"
    queue: str = ""
    level: str = ""
    required: bool = False


def choose_gang(job: Object, facts: ClusterFacts, wishes: GangWishes) -> GangChoice | None:
    """Return how the MPIJob *job* is kept together, None where this cluster has nothing that could.

    Raises ``UsageError`` for a back-end that does not exist.
    """
    if wishes.scheduler not in ("auto", *BACKENDS):
        raise UsageError(
            f"--gang-scheduler: {wishes.scheduler!r} is not a gang scheduler",
            hint=f"use auto, or one of {', '.join(BACKENDS)}",
        )
    gang = known(_gang(job, wishes), facts)
    if wishes.scheduler != "auto":
        return GangChoice(wishes.scheduler, gang)
    chosen = choose(facts, version=version_of(job), queue=wishes.queue)
    return GangChoice(chosen.backend, gang, chosen.reasons[-1:]) if chosen.backend else None


def _gang(job: Object, wishes: GangWishes) -> Gang:
    shapes = templates(job)
    workers, worker = shapes[0]
    launcher = shapes[1][1] if len(shapes) > 1 else {}
    spec = worker.get("spec") or {}
    requests = _requests(worker)
    gpus = {name: quantity for name, quantity in requests.items() if name.endswith("/gpu")}
    resource = next(iter(gpus), "")
    return Gang(
        job=str(job["metadata"]["name"]),
        namespace=str(job["metadata"]["namespace"]),
        version=version_of(job),
        workers=workers,
        launcher_waits=_launcher_waits(job),
        gpus=int(gpus.get(resource, 0)),
        gpu_resource=resource,
        requests=requests,
        launcher_requests=_requests(launcher),
        placement={key: spec[key] for key in _PLACEMENT if spec.get(key)},
        level=wishes.level,
        required=wishes.required,
        queue=wishes.queue,
        priority=str(spec.get("priorityClassName") or ""),
    )


def _launcher_waits(job: Object) -> bool:
    version = version_of(job)
    waits = job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    return version is ApiVersion.V1ALPHA1 or (version is ApiVersion.V2BETA1 and waits)


def _requests(template: Object) -> Mapping[str, str]:
    """Return what the first container of *template* asks; ours has no other."""
    containers = (template.get("spec") or {}).get("containers") or [{}]
    resources = containers[0].get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: str(quantity) for name, quantity in asked.items()}
