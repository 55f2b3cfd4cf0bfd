"""What a rendered job says of its gang, whichever template made it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from arena_topo.model.job.gang import Gang
from arena_topo.model.job.mpijob import ApiVersion, Role, containers, pod_templates, version_of, worker_count
from arena_topo.model.notation.quantity import parse_quantity
from arena_topo.model.objects import Object

_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


def gang_of(job: Object) -> Gang:
    """Return the gang of the rendered MPIJob *job*; what only the cluster or the user knows is left empty."""
    templates, version = pod_templates(job), version_of(job)
    worker = templates[Role.WORKER]
    asked = _requests(worker)
    gpu = next((name for name in asked if name.endswith("/gpu")), "")
    spec = worker.get("spec") or {}
    return Gang(
        job=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        version=version,
        workers=worker_count(job),
        launcher_waits=_launcher_waits(job, version),
        gpus=int(asked.get(gpu, "0")),
        gpu_resource=gpu,
        requests=asked,
        launcher_requests=_launcher_requests(job, templates, version),
        placement={key: spec[key] for key in _PLACEMENT if spec.get(key)},
        priority=str(spec.get("priorityClassName") or ""),
    )


def _launcher_waits(job: Object, version: ApiVersion) -> bool:
    if version is ApiVersion.V1ALPHA1:
        return True
    policy = job["spec"].get("launcherCreationPolicy")
    return version is ApiVersion.V2BETA1 and bool(policy == "WaitForWorkersReady")


def _launcher_requests(job: Object, templates: Mapping[Role, Object], version: ApiVersion) -> dict[str, str]:
    if version is not ApiVersion.V1ALPHA1:
        return _requests(templates[Role.LAUNCHER])
    resources = job["spec"].get("launcherResources") or {}
    return _texts(resources.get("requests") or resources.get("limits") or {})


def _requests(template: Object) -> dict[str, str]:
    """Return what a pod of *template* asks: the sum over its containers, limits where requests are not given."""
    summed: dict[str, str] = {}
    for container in containers(template):
        resources = container.get("resources") or {}
        asked = _texts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
        for name, quantity in asked.items():
            summed[name] = _sum(summed[name], quantity) if name in summed else quantity
    return summed


def _sum(left: str, right: str) -> str:
    value: Decimal = parse_quantity(left) + parse_quantity(right)
    return f"{value.normalize():f}"


def _texts(quantities: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in quantities.items()}
