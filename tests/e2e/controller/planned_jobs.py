"""Suspended jobs of every kind, as users of theirs would write them, with a plan that waits."""

from collections.abc import Mapping

from arena_topo.model.keys import ELASTIC, PLAN, PLANNED, TRAINING_JOB
from arena_topo.model.plan_record import Enforcement, PlanRecord, Stage, encode
from tests.controlplane.kube import Object
from tests.controlplane.machines.pods import MPIJOB

WAITING = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)
TRAINJOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
JOBSET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
PYTORCHJOB = ("kubeflow.org/v1", "PyTorchJob")
TFJOB = ("kubeflow.org/v1", "TFJob")
JOB = ("batch/v1", "Job")


def template(container: str) -> Object:
    """Return a pod template of a user, with an affinity and variables of theirs."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    env = [{"name": "MINE", "value": "1"}, {"name": "NCCL_HOSTID", "value": "mine"}]
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "yes"}},
        "spec": {
            "restartPolicy": "Never",
            "affinity": {"nodeAffinity": required},
            "containers": [
                {"name": container, "image": "i", "env": env, "resources": resources},
                {"name": "side", "image": "i"},
            ],
        },
    }


def specs() -> Mapping[tuple[str, str], Object]:
    """Return the spec of a suspended job of two planned pods, of each kind."""

    def roles(container: str, **counts: int) -> Object:
        return {role: {"replicas": count, "template": template(container)} for role, count in counts.items()}

    job = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template("main")}
    node = {"name": "node", "template": {"spec": {"template": {"metadata": {"labels": {PLANNED: "true"}}}}}}
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}}}
    others = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{**node, "name": "node"}]}}}}
    run_policy = {"runPolicy": {"suspend": True}}
    return {
        MPIJOB: {"mpiReplicaSpecs": roles("mpi", Launcher=1, Worker=2), **run_policy},
        PYTORCHJOB: {
            "pytorchReplicaSpecs": roles("pytorch", Worker=2),
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 3},
            **run_policy,
        },
        TFJOB: {"tfReplicaSpecs": roles("tensorflow", PS=1, Worker=1), **run_policy},
        JOBSET: {"suspend": True, "replicatedJobs": [{"name": "node", "template": {"spec": job}}]},
        JOB: {**job, "suspend": True},
        TRAINJOB: {
            "suspend": True,
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "image": "i"},
            "runtimePatches": [
                {"manager": "example.com/other", **others},
                {"manager": "arena-topo.dev/planner", **patch},
            ],
        },
    }


def job_of(kind: tuple[str, str], name: str, *, planned: bool = True) -> Object:
    """Return a suspended job of *kind*, one of ours if it is *planned*."""
    annotations = {"mine": "yes", **({PLAN: encode(WAITING)} if planned else {})}
    if kind == MPIJOB:
        annotations[ELASTIC] = "1:3"
    labels = {"mine": "yes", TRAINING_JOB: "true", **({PLANNED: "true"} if planned else {})}
    metadata = {
        "name": name,
        "labels": labels,
        "annotations": annotations,
        "finalizers": ["example.com/mine"],
    }
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": specs()[kind]}
