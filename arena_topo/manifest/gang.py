"""A rendered job with what its gang's back-end adds: nothing that the user set is lost or overridden."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.gang.auto import with_cluster_facts
from arena_topo.gang.backends import decorate
from arena_topo.kinds.elastic import worker_range
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import check_templates, kind_of
from arena_topo.manifest.plan_on_job import suspend
from arena_topo.manifest.render import Manifest
from arena_topo.model.gang import ClusterFacts, Decoration, Gang
from arena_topo.model.keys import PREFERRED_LEVEL, REQUIRED_LEVEL
from arena_topo.model.kind import Kind, Replicas, is_planned
from arena_topo.model.objects import Object, section
from arena_topo.model.placement_options import GangRequest
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.quantity import Resources, quantities, resources


def with_gang(
    manifest: Manifest,
    backend: str,
    facts: ClusterFacts,
    wanted: GangRequest,
    planned: Mapping[str, str] | None = None,
) -> tuple[Manifest, tuple[str, ...]]:
    """Return *manifest* with what the *backend* of its gang adds, and what the user should know of that.

    *planned*: our planner places the gang when its queue admits it, as these annotations of its workers say.

    Raises ``UsageError`` for what the back-end cannot do, and where the job says otherwise already.
    """
    job = _with_level(manifest.job, wanted)
    gang = replace(
        gang_of(job),
        level=wanted.level,
        required=wanted.required,
        queue=wanted.queue,
        planned=planned is not None,
    )
    decoration = decorate(backend, with_cluster_facts(gang, facts))
    decoration = replace(decoration, worker_annotations={**decoration.worker_annotations, **(planned or {})})
    companions = (*manifest.companions, *decoration.companions)
    return replace(manifest, job=decorated(job, decoration), companions=companions), decoration.notes


def _with_level(job: Object, wanted: GangRequest) -> Object:
    """Return *job* annotated with the level of its gang, which each scheduler takes in a form of its own."""
    if not wanted.level:
        return job
    key = REQUIRED_LEVEL if wanted.required else PREFERRED_LEVEL
    metadata = job["metadata"]
    annotations = {**(metadata.get("annotations") or {}), key: wanted.level}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


# What a rendered job says of its gang, whichever template rendered it.

_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


def gang_of(job: Object) -> Gang:
    """Return the gang of the rendered *job*; what only the cluster or the user knows is left empty."""
    kind = kind_of(job)
    check_templates(kind, job)
    limits = worker_range(kind, job)
    pods = kind.replicas(job)
    first, *others = roles = [each for each in pods if is_planned(kind, each.role)]
    launcher = next((each for each in pods if not is_planned(kind, each.role)), None)
    launcher_waits, launcher_requests = _launcher_waits(job, kind), _launcher_requests(job, kind, launcher)
    spec = first.pods.get("spec") or {}
    requests = [quantities(pod_spec_requests(role.pods.get("spec") or {})) for role in roles]
    return Gang(
        job=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        kind=kind,
        # An elastic gang starts with its fewest, and the others come when there is room for them.
        workers=limits.least if limits else sum(role.count for role in roles),
        launcher_waits=launcher_waits,
        # What pods of unlike roles request is no multiple of what one does.
        requests=requests[0] if all(each == requests[0] for each in requests) else {},
        launcher_requests=quantities(launcher_requests),
        # A PodGroup has one placement for all its pods.
        placement={
            key: spec[key]
            for key in _PLACEMENT
            if spec.get(key) and all((role.pods.get("spec") or {}).get(key) == spec[key] for role in others)
        },
        priority=str(spec.get("priorityClassName") or ""),
    )


def _launcher_waits(job: Object, kind: Kind) -> bool:
    # The operator of v1alpha1 always waits for the workers, that of v1 never does; v2beta1 lets the job say.
    # A kind without a launcher has none that a gang could wait for.
    if kind is ApiVersion.V1:
        return False
    return (
        kind is not ApiVersion.V2BETA1 or job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    )


def _launcher_requests(job: Object, kind: Kind, launcher: Replicas | None) -> Resources:
    if kind is not ApiVersion.V1ALPHA1:
        return pod_spec_requests(launcher.pods.get("spec") or {}) if launcher else {}
    # The launcher of v1alpha1 shares the workers' template, but not their resources.
    section = job["spec"].get("launcherResources") or {}
    # As for any container, requests that are not set are those of the limits.
    return resources(section.get("requests") or section.get("limits"))


def decorated(job: Object, decoration: Decoration) -> Object:
    """Return the *job* of any kind with *decoration*; *job* itself stays as it is.

    The one template of v1alpha1 is the workers'. Raises ``UsageError`` where the job already says otherwise.
    """
    result = deepcopy(job)
    _metadata(result, "labels", "the job", decoration.job_labels)
    _metadata(result, "annotations", "the job", decoration.job_annotations)
    kind = kind_of(result)
    check_templates(kind, result)
    of_ranks = (decoration.worker_labels, decoration.worker_annotations)
    of_launcher = (decoration.launcher_labels, decoration.launcher_annotations)
    for replicas in kind.replicas(result):
        labels, annotations = of_ranks if is_planned(kind, replicas.role) else of_launcher
        template, whose = replicas.template, f"the {replicas.role}'s pods"
        _metadata(template, "labels", whose, {**decoration.pod_labels, **labels})
        _metadata(template, "annotations", whose, {**decoration.pod_annotations, **annotations})
        if decoration.scheduler_name:
            _set(section(template, "spec"), "schedulerName", whose, decoration.scheduler_name)
    if decoration.scheduling_policy:
        policy = section(section(result["spec"], "runPolicy"), "schedulingPolicy")
        for key, value in decoration.scheduling_policy.items():
            _set(policy, key, "the job's schedulingPolicy", value)
    if decoration.suspended:
        suspend(kind, result["spec"], suspended=True)
    return result


def _metadata(item: Object, field: str, whose: str, values: Mapping[str, str]) -> None:
    if not values:
        return
    present = section(section(item, "metadata"), field)
    for key, value in values.items():
        _set(present, key, whose, value)


def _set(values: Object, key: str, whose: str, value: Any) -> None:
    """Set a value that is not set yet.

    One that is set to another stops the submit, since both cannot be had.
    """
    # The user's own value could be overwritten, but then the job would not be the one that was submitted.
    if values.get(key, value) != value:
        raise UsageError(
            f"{key} of {whose} is {values[key]!r}, and the gang scheduler needs {value!r}",
            hint=f"leave {key} out of the job's flags and template, or choose another --gang-scheduler",
        )
    values[key] = value
