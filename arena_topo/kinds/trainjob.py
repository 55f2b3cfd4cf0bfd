"""The TrainJob of Kubeflow Trainer: an admin's runtime, made a JobSet of its name, whose role node trains.

The pod template lies in the runtime. What of it may be changed is a patch on the job, one for each manager,
and only while the job is suspended and no pod is left. Ours has the pins, and what the runtime says of nodes,
so that the job by itself says where its pods may go; what they request and how many they are is in
annotations where the job leaves it to the runtime.

Source: trainer 2.3 (pkg/apis/trainer/v1alpha1/trainjob_types.go, pkg/runtime/framework/plugins/jobset).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from arena_topo.errors import UsageError
from arena_topo.kinds.jobset import JOBSET, NODE
from arena_topo.model import keys
from arena_topo.model.kind import Elastic, Loose, Member, Replicas
from arena_topo.model.objects import Object, section
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.documents import Named, misfit, quantity
from arena_topo.model.text.json import optional_number, read_json
from arena_topo.model.text.quantity import quantities

MANAGER = f"{keys.OUR_DOMAIN}/planner"
"""By it Trainer tells our patch from those of others."""

_NO_SCHEDULER = "its runtime names the scheduler of the pods, which no TrainJob may change"
_REFUSED = ("coscheduling", "volcano", "koordinator", "kai", "yunikorn")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrainJobKind:
    """The ``Kind`` of trainer.kubeflow.org/v1alpha1."""

    group: str = "trainer.kubeflow.org"
    version: str = "v1alpha1"
    kind: str = "TrainJob"
    plural: str = "trainjobs"
    words: tuple[str, ...] = ("trainjob", "train")
    container: str = NODE
    ranks: tuple[str, ...] = (NODE,)
    # Its pods are those of its JobSet, which has its name.
    job_label: str = JOBSET.job_label
    selector: str = JOBSET.selector
    listed: str = ""
    pod_spec_path: tuple[str, ...] = (
        *("spec", "runtimePatches", "*", "trainingRuntimeSpec", "template", "spec", "replicatedJobs", "*"),
        *("template", "spec", "template", "spec"),
    )
    suspend: tuple[str, ...] = ("suspend",)
    loose: Loose = Loose.SCHEDULING
    succeeded: str = "Complete"
    failed: str = "Failed"
    served_by: str = "Kubeflow Trainer"
    refused_by: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(_REFUSED, _NO_SCHEDULER), hash=False
    )
    # Its number of nodes is immutable.
    elastic: Elastic | None = None
    is_pinnable: str = JOBSET.is_pinnable
    index: str = JOBSET.index

    def counts(self, job: Object) -> bool:  # noqa: ARG002  # no other kind is made of TrainJobs
        """Whether *job* was submitted by a user."""
        return True

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job* that train; initializers end before, and belong to the runtime."""
        template, path = _patched(job) or ({"metadata": {}, "spec": {}}, "")
        whole = {
            **template,
            "spec": {
                **(template.get("spec") or {}),
                "containers": [{"name": NODE, "resources": _resources(job)}],
            },
        }
        return [Replicas(NODE, _count(job), template, path, whole=whole)]

    def member(self, pod: Object) -> Member | None:
        """Return which pod of its job *pod* is, None for an initializer."""
        member = JOBSET.member(pod)
        return member if member and member.role == NODE else None

    def pod_name(self, member: Member) -> str:
        """Return what the name of a pod begins with."""
        return JOBSET.pod_name(member)

    def is_chief(self, pod: Object) -> bool:
        """Whether *pod* is the first of those that train."""
        return JOBSET.is_chief(pod)

    def chief_role(self, job: Object) -> str:  # noqa: ARG002  # every TrainJob has the same
        """Return the role that trains."""
        return NODE


def with_patch(job: Object) -> Object:
    """Return *job* with our patch for the pods that train, empty if it is new; nothing else is copied."""
    if _patched(job):
        return job
    template: Object = {"metadata": {"labels": {}, "annotations": {}}, "spec": {}}
    role = {"name": NODE, "template": {"spec": {"template": template}}}
    patch = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [role]}}}}
    others = [each for each in job["spec"].get("runtimePatches") or () if each.get("manager") != MANAGER]
    return {**job, "spec": {**job["spec"], "runtimePatches": [*others, patch]}}


def _patched(job: Object) -> tuple[Object, str] | None:
    """Return the pod template of our patch and the JSON pointer to it, None if there is none."""
    for number, patch in enumerate(job["spec"].get("runtimePatches") or ()):
        if patch.get("manager") != MANAGER:
            continue
        spec = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for index, role in enumerate(spec.get("replicatedJobs") or ()):
            template = ((role.get("template") or {}).get("spec") or {}).get("template")
            if role.get("name") == NODE and template:
                path = (
                    f"/spec/runtimePatches/{number}/trainingRuntimeSpec/template/spec/replicatedJobs/{index}"
                )
                return template, f"{path}/template/spec/template"
    return None


def _resources(job: Object) -> Object:
    """Return what a pod requests: as noted of runtime and job together, else as the job says."""
    if noted := _annotation(job, keys.POD_REQUESTS):
        requests = _quantities(noted)
        return {"requests": requests, "limits": requests}
    resources: Object = (job["spec"].get("trainer") or {}).get("resourcesPerNode") or {}
    return resources


def _quantities(text: str) -> Object:
    """Return the quantities in the JSON *text*, none if it is anything else: users may write annotations."""
    try:
        value = read_json(text)
    except ValueError:
        return {}
    return {} if misfit(value, Named(quantity)) else value


def _count(job: Object) -> int:
    nodes = (job["spec"].get("trainer") or {}).get("numNodes")
    if nodes is not None:
        return int(nodes)
    # Only the runtime knows it.
    return optional_number(_annotation(job, keys.POD_COUNT)) or 1


def _annotation(job: Object, key: str) -> str:
    return str((job["metadata"].get("annotations") or {}).get(key) or "")


TRAINJOB = _TrainJobKind()


# What the runtime says of placements, written onto the job.

_PLACEMENT = ("nodeSelector", "affinity", "tolerations")
"""Parts of a pod that decide where it may go, and that a patch may change."""


def write_down_runtime(job: Object, runtime: Object, name: str) -> None:
    """Add to *job*, which has our patch, what *runtime* says of placements; *name* is the runtime's.

    Of a runtime whose pods tolerate a taint and request 4 CPUs, and a job that asks for 8 GPUs a node, the
    job gets the toleration in its own patch, and the annotation ``arena-topo.dev/pod-requests:
    {"cpu":"4","nvidia.com/gpu":"8"}``.

    Raises ``UsageError`` for a runtime whose pods cannot be planned.
    """
    policy = runtime["spec"].get("mlPolicy") or {}
    if policy.get("mpi") is not None:
        raise UsageError(
            f"the {name} runs MPI with a launcher of its own, which cannot be placed",
            hint="use arena-topo submit mpi, or submit the job with kubectl",
        )
    pod = _pod_of(runtime)
    if pod is None:
        raise UsageError(
            f"the {name} has no replicated job {NODE!r} with a container {NODE!r}: its pods cannot be planned"
        )
    for patch in _patches_of_others(job):
        pod = {**pod, **_combined(pod, patch)}
    trainer = job["spec"].get("trainer") or {}
    pod = _with_resources(pod, trainer.get("resourcesPerNode") or {})
    (replicas,) = TRAINJOB.replicas(job)
    own = section(replicas.template, "spec")
    own.update(_combined(pod, own))
    annotations = section(job["metadata"], "annotations")
    requests = pod_spec_requests(pod)
    # What the job says itself need not be said twice.
    if requests != pod_spec_requests(replicas.pods["spec"]):
        annotations[keys.POD_REQUESTS] = json.dumps(
            quantities(requests), separators=(",", ":"), sort_keys=True
        )
    if trainer.get("numNodes") is None and (nodes := policy.get("numNodes")):
        annotations[keys.POD_COUNT] = str(nodes)
    if not annotations:
        del job["metadata"]["annotations"]


def _pod_of(runtime: Object) -> Object | None:
    template = runtime["spec"].get("template") or {}
    for role in (template.get("spec") or {}).get("replicatedJobs") or ():
        pod: Object = (((role.get("template") or {}).get("spec") or {}).get("template") or {}).get(
            "spec"
        ) or {}
        names = [container.get("name") for container in pod.get("containers") or ()]
        if role.get("name") == NODE and NODE in names:
            return pod
    return None


def _patches_of_others(job: Object) -> Iterator[Object]:
    """Yield the patches of other managers for the pods that train, in the order Trainer applies them."""
    for patch in job["spec"].get("runtimePatches") or ():
        spec = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for role in spec.get("replicatedJobs") or ():
            if patch.get("manager") != MANAGER and role.get("name") == NODE:
                template = ((role.get("template") or {}).get("spec") or {}).get("template") or {}
                yield template.get("spec") or {}


def _combined(pod: Object, patch: Object) -> Object:
    """Return where pods of *pod* with *patch* may go.

    Selectors add up, and the rest of a patch stands for the runtime's.
    """
    found = {key: patch.get(key) or pod.get(key) for key in _PLACEMENT}
    found["nodeSelector"] = {**(pod.get("nodeSelector") or {}), **(patch.get("nodeSelector") or {})}
    return {key: value for key, value in found.items() if value}


def _with_resources(pod: Object, asked: Object) -> Object:
    """Return *pod* with what the job asks for a node, in its container that trains.

    Each resource replaces the runtime's.
    """
    containers = [
        {**container, "resources": _merged(container.get("resources") or {}, asked)}
        if container.get("name") == NODE
        else container
        for container in pod["containers"]
    ]
    return {**pod, "containers": containers}


def _merged(base: Mapping[str, Object], asked: Mapping[str, Object]) -> Object:
    return {key: {**(base.get(key) or {}), **(asked.get(key) or {})} for key in ("requests", "limits")}
