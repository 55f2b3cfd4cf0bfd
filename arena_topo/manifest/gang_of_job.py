"""What a rendered job says of its gang, whichever template rendered it."""

from collections.abc import Mapping

from arena_topo.kinds.mpijob import ApiVersion, Role, pod_templates, version_of, worker_count
from arena_topo.model.cluster.pod_requests import pod_spec_requests
from arena_topo.model.job.gang import Gang
from arena_topo.model.notation.quantity import Resources, resources, times
from arena_topo.model.objects import Object

_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


def gang_of(job: Object) -> Gang:
    """Return the gang of the rendered MPIJob *job*; what only the cluster or the user knows is left empty."""
    templates, version = pod_templates(job), version_of(job)
    spec = templates[Role.WORKER].get("spec") or {}
    return Gang(
        job=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        version=version,
        workers=worker_count(job),
        launcher_waits=_launcher_waits(job, version),
        requests=_quantities(pod_spec_requests(spec)),
        launcher_requests=_quantities(_launcher_requests(job, templates, version)),
        placement={key: spec[key] for key in _PLACEMENT if spec.get(key)},
        priority=str(spec.get("priorityClassName") or ""),
    )


def _launcher_waits(job: Object, version: ApiVersion) -> bool:
    # The operator of v1alpha1 always waits for the workers, that of v1 never does; v2beta1 lets the job say.
    if version is ApiVersion.V1ALPHA1:
        return True
    policy = job["spec"].get("launcherCreationPolicy")
    return version is ApiVersion.V2BETA1 and bool(policy == "WaitForWorkersReady")


def _launcher_requests(job: Object, templates: Mapping[Role, Object], version: ApiVersion) -> Resources:
    if version is not ApiVersion.V1ALPHA1:
        return pod_spec_requests(templates[Role.LAUNCHER].get("spec") or {})
    # The launcher of v1alpha1 shares the workers' template, but not their resources.
    section = job["spec"].get("launcherResources") or {}
    # As for any container, requests that are not set are those of the limits.
    return resources(section.get("requests") or section.get("limits"))


def _quantities(requests: Resources) -> dict[str, str]:
    """Return *requests* as the API writes them: cpu in cores, everything else in its own unit."""
    return {
        name: times(f"{amount}m", 1) if name == "cpu" else str(amount) for name, amount in requests.items()
    }
