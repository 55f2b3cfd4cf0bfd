"""A job that was submitted before, as it was before its submit.

It is without what the server, a plan and a gang put onto it.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import Pins, is_shared_gpu_variable, without_pins
from arena_topo.model import keys
from arena_topo.model.kind import containers
from arena_topo.model.objects import Object

_OWN_ANNOTATIONS = (keys.PLAN, "kubectl.kubernetes.io/last-applied-configuration")
_GANG_PREFIXES = (
    keys.KUEUE_QUEUE,
    keys.KAI_QUEUE,
    keys.COSCHEDULING_GROUP,
    keys.VOLCANO_GROUP,
    keys.POD_GROUP,
    keys.ACK_LEVEL,
    keys.KOORDINATOR_GANG,
    f"{keys.YUNIKORN}/",
    "kai.scheduler/topology",
    "kueue.x-k8s.io/podset-",
)
_GANG_SCHEDULERS = frozenset(
    {"volcano", "koord-scheduler", "kai-scheduler", "yunikorn", "scheduler-plugins-scheduler"}
)
_KEPT_METADATA = ("name", "namespace", "labels", "annotations")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshJob:
    """A job to be submitted again, what else it asked for, and the ConfigMap with its files if any.

    The levels are those of its gang, empty for none.
    """

    job: Object
    gang: bool
    topology: bool
    queue: str = ""
    required_level: str = ""
    preferred_level: str = ""
    files: str = ""


def as_submitted(job: Object) -> Object:
    """Return a copy of *job* without what the API server and its controllers wrote.

    Its status, uid, owners and so on.
    """
    metadata = {key: value for key, value in job["metadata"].items() if key in _KEPT_METADATA and value}
    kept = {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": job["spec"]}
    return deepcopy(kept)


def unplanned(job: Object, pins: Pins | None) -> Object:
    """Return the submitted *job* without what the server, and a plan with *pins*, put onto it."""
    bare = without_pins(as_submitted(job), pins or Pins(plan=None))
    for template in _templates(bare):
        _undo_plan(template)
        _forget(template)
    _forget(bare)
    (bare["spec"].get("runPolicy") or {}).pop("suspend", None)
    return bare


def fresh(job: Object, name: str, pins: Pins | None) -> FreshJob:
    """Return the submitted *job* under *name* as a submit would render it; *pins* are those of its plan.

    Its gang is chosen again: the cluster may have another scheduler by now.
    """
    bare = unplanned(job, pins)
    old = str(bare["metadata"]["name"])
    templates = _templates(bare)
    labels = [_of(template, "labels") for template in templates]
    gang = any(keys.GANG_NAME in each for each in labels)
    queue = _queue(bare) if gang else ""
    required, preferred = (
        _of(bare, "annotations").pop(key, "") for key in (keys.REQUIRED_LEVEL, keys.PREFERRED_LEVEL)
    )
    for item in (bare, *templates):
        if gang:
            _undo_gang(item)
        _rename(item, old, name, kind_of(bare).kind.lower())
    bare["metadata"]["name"] = name
    if gang:
        (bare["spec"].get("runPolicy") or {}).pop("schedulingPolicy", None)
    return FreshJob(
        job=bare,
        gang=gang,
        topology=any(keys.TOPOLOGY_NAME in each for each in labels),
        queue=queue,
        required_level=required,
        preferred_level=preferred,
        files=_rename_files(templates, old, name),
    )


def _templates(job: Object) -> list[Object]:
    return [pods.template for pods in kind_of(job).replicas(job)]


def _of(item: Object, field: str) -> dict[str, str]:
    values: dict[str, str] = (item.get("metadata") or {}).get(field) or {}
    return values


def _undo_plan(template: Object) -> None:
    claimed = _of(template, "annotations").pop(keys.CLAIMED_GPUS, "")
    spec = template.get("spec") or {}
    gates = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != keys.GANG_GATE]
    spec.pop("schedulingGates", None)
    if gates:
        spec["schedulingGates"] = gates
    for index, container in enumerate(containers(template)):
        env = container.get("env")
        if env:
            container["env"] = [variable for variable in env if not is_shared_gpu_variable(variable)]
        # GPUs of claims became a number in an annotation; the plan reads them as a request.
        if claimed and index == 0:
            container.setdefault("resources", {}).setdefault("limits", {})[keys.DRA_GPU] = claimed


def _queue(job: Object) -> str:
    policy = (job["spec"].get("runPolicy") or {}).get("schedulingPolicy") or {}
    named = [_of(job, "labels").get(key, "") for key in (keys.KUEUE_QUEUE, keys.KAI_QUEUE)]
    of_pods = [_of(template, "labels").get(f"{keys.YUNIKORN}/queue", "") for template in _templates(job)]
    return next(filter(None, (*named, *of_pods, str(policy.get("queue") or ""))), "")


def _undo_gang(item: Object) -> None:
    for field in ("labels", "annotations"):
        values = _of(item, field)
        for key in [key for key in values if key.startswith(_GANG_PREFIXES)]:
            del values[key]
    spec = item.get("spec") or {}
    if spec.get("schedulerName") in _GANG_SCHEDULERS:
        del spec["schedulerName"]


def _forget(item: Object) -> None:
    """Drop the labels and annotations of a plan, and of kubectl."""
    for key in (keys.PLANNED, keys.PLANNED_JOB, keys.PLANNED_KIND, keys.LAUNCHER_OF):
        _of(item, "labels").pop(key, None)
    for key in _OWN_ANNOTATIONS:
        _of(item, "annotations").pop(key, None)


def _rename(item: Object, old: str, new: str, word: str) -> None:
    labels = _of(item, "labels")
    # What was the old name is the new one; a user's own label with another value stays.
    renamed: Mapping[str, tuple[str, str]] = {
        keys.ARENA_RELEASE: (old, new),
        keys.TOPOLOGY_NAME: (old, new),
        keys.GANG_NAME: (f"{word}-{old}", f"{word}-{new}"),
    }
    for key, (before, after) in renamed.items():
        if labels.get(key) == before:
            labels[key] = after


def _rename_files(templates: Iterable[Object], old: str, new: str) -> str:
    """Let the pods mount the files of the new job.

    Return the old ConfigMap's name, empty where there are no files.
    """
    before, found = f"{old}-files", ""
    for template in templates:
        for volume in (template.get("spec") or {}).get("volumes") or ():
            config = volume.get("configMap") or {}
            if config.get("name") == before:
                config["name"], found = f"{new}-files", before
    return found
