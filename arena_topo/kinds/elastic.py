"""Jobs that grow and shrink while they run: which may, between which numbers of pods, and why others may not.

A PyTorchJob says so in its ``elasticPolicy``, as the operator and torchrun read it. An MPIJob has no field
for it: the annotation ``arena-topo.dev/elastic: 2:8`` says that its launcher starts a framework that looks
for its hosts again.

Sources: training-operator 1.9 (pkg/apis/kubeflow.org/v1/pytorch_types.go, pytorch_defaults.go,
pkg/controller.v1/pytorch/elastic.go), torch 2.12 (elastic/rendezvous/dynamic_rendezvous.py), Horovod 0.28
(docs/elastic.rst), JobSet 0.12 (keps/463-ElasticJobsets), Trainer 2.3
(pkg/apis/trainer/v1alpha1/trainjob_types.go).
"""

import re

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job import WorkerRange
from arena_topo.model.keys import ELASTIC
from arena_topo.model.kind import (
    BY_NUMBER,
    Kind,
    Member,
    RankOrder,
    Replicas,
    containers,
    offsets,
    planned_replicas,
)
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import MOST_WORKERS
from arena_topo.model.text.json import optional_number, shown

_FIXED = {
    "MPIJob": "v1alpha1 has no discovery of hosts",
    "TFJob": "each of its pods read the addresses of all others from TF_CONFIG when it started",
    "TrainJob": "the API keeps spec.trainer as it was created (trainer#2903)",
    "JobSet": "the API keeps the number of its pods as it was created (jobset#463)",
}
_INSTEAD = "arena-topo submit --dry-run=client --save keeps its flags, and arena-topo rerun starts it in another size"


def worker_range(kind: Kind, job: Object) -> WorkerRange | None:
    """Return how many pods *job* may have in all, None if their number is fixed. Raises ``DocumentError``."""
    if kind.elastic is None:
        return None
    if isinstance(kind, ApiVersion):
        text = str((job["metadata"].get("annotations") or {}).get(ELASTIC, ""))
        what = f"the annotation {ELASTIC} of {job['metadata']['name']}"
        found = read_range(text, what) if text else None
    elif (policy := job["spec"].get("elasticPolicy")) is None:
        found = None
    else:
        # A single bound stands for both, and without any the number is the one that the job has: the
        # operator's defaults.
        least, most = policy.get("minReplicas"), policy.get("maxReplicas")
        now = pods_of_job(kind, job)
        found = WorkerRange(least or most or now, most or least or now)
    # No more pods than a plan may have: the writer of the job may name any number.
    return found and WorkerRange(min(found.least, MOST_WORKERS), min(found.most, MOST_WORKERS))


def read_range(text: str, what: str) -> WorkerRange:
    """Return the range that *text* gives as ``2:8``, least and most. Raises ``DocumentError``."""
    least, colon, most = text.partition(":")
    bounds = optional_number(least), optional_number(most)
    if not colon or bounds[0] is None or bounds[1] is None or not 0 < bounds[0] <= bounds[1]:
        raise DocumentError(f"{what} is {shown(text)}, expected two numbers of workers such as 2:8")
    return WorkerRange(bounds[0], bounds[1])


def pods_of_job(kind: Kind, job: Object) -> int:
    """Return how many planned pods *job* asks for."""
    return sum(role.count for role in planned_replicas(kind, job))


def elastic_range(kind: Kind, job: Object) -> WorkerRange:
    """Return how many pods *job* may have in all. Raises ``UsageError``, with the reason, if it is fixed."""
    name = job["metadata"]["name"]
    found = worker_range(kind, job)
    if found is not None:
        _check_autoscaler(job)
        return found
    if kind.elastic is None:
        why = _FIXED.get(kind.kind, f"the pods of a {kind.kind} stay as many as they are")
        hint = _INSTEAD
    elif isinstance(kind, ApiVersion):
        why = "mpirun starts a fixed number of ranks, and new workers would hold GPUs that nothing uses"
        hint = (
            "submit it with --min-workers and --max-workers if it runs horovodrun; "
            f"if its launcher finds new hosts already: kubectl annotate {kind.kind.lower()} {name} {ELASTIC}=MIN:MAX"
        )
    else:
        why = "without spec.elasticPolicy its pods learned their number when they started"
        hint = "submit it with --min-workers and --max-workers"
    raise UsageError(f"the {kind.kind} {name} cannot grow or shrink: {why}", hint=hint)


def _check_autoscaler(job: Object) -> None:
    """Raise ``UsageError`` for a job whose size an autoscaler decides."""
    if (job["spec"].get("elasticPolicy") or {}).get("metrics"):
        name = job["metadata"]["name"]
        raise UsageError(
            f"the size of {name} is decided by its HorizontalPodAutoscaler, from the metrics of its elasticPolicy",
            hint=f"change minReplicas and maxReplicas there: kubectl edit pytorchjob {name}",
        )


def least_pods(kind: Kind, job: Object) -> int:
    """Return how many pods *job* keeps at least: worker 0, and all up to the one at which its ranks meet."""
    elastic = kind.elastic
    if elastic is None:
        return pods_of_job(kind, job)
    others = sum(role.count for role in planned_replicas(kind, job) if role.role != elastic.role)
    return others + max(elastic.keeps, _meeting_point(kind, job, elastic.role) + 1)


def _meeting_point(kind: Kind, job: Object, role: str) -> int:
    """Return the index of the worker that ``rdzvHost`` names, -1 if it names none."""
    host = str((job["spec"].get("elasticPolicy") or {}).get("rdzvHost") or "")
    prefix = kind.pod_name(Member(str(job["metadata"]["name"]), role, 0)).removesuffix("0")
    found = re.fullmatch(rf"{re.escape(prefix)}([0-9]{{1,6}})", host.partition(".")[0])
    return int(found[1]) if found else -1


# Which pod is which rank, where the job does not say so itself.
#
# torch's dynamic rendezvous sorts those that take part by the text of their host's name: ``worker-10`` comes
# before ``worker-2`` (``_NodeDesc``, ``_mark_rendezvous_complete``; pytorch issue 191190). The operator has
# elastic jobs use it.

_DYNAMIC = ("c10d", "etcd-v2")
_STARTS_DYNAMIC = r"--rdzv[-_]backend(?:=|\s+)(?:c10d|etcd-v2)(?![\w-])"


def rank_order(kind: Kind, job: Object) -> RankOrder:
    """Return in which order the pods of *job* become ranks."""
    replicas = planned_replicas(kind, job)
    policy = job["spec"].get("elasticPolicy")
    if policy is None or kind.elastic is None or isinstance(kind, ApiVersion):
        return RankOrder(by_command=any(map(_starts_dynamic, replicas)))
    # In the network of its node a pod has the name of the node.
    named = all(not (pods.pods.get("spec") or {}).get("hostNetwork") for pods in replicas)
    if str(policy.get("rdzvBackend") or _DYNAMIC[0]) not in _DYNAMIC or not named:
        return BY_NUMBER
    # The master, if there is one, is before the workers by its name too.
    return RankOrder(named_from=offsets(kind, job).get(kind.elastic.role))


def _starts_dynamic(pods: Replicas) -> bool:
    """Whether the command of *pods* starts torchrun with a dynamic rendezvous."""
    words = (
        str(word)
        for container in containers(pods.pods)
        for part in ("command", "args")
        for word in container.get(part) or ()
    )
    line = " ".join(words)
    return ("torchrun" in line or "torch.distributed" in line) and bool(re.search(_STARTS_DYNAMIC, line))
