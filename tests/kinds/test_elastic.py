"""Which jobs may change their size while they run, and why others may not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.elastic import (
    elastic_range,
    least_pods,
    pods_of_job,
    rank_order,
    read_range,
    worker_range,
)
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.jobset import JOBSET
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.model.job import WorkerRange
from arena_topo.model.keys import ELASTIC
from arena_topo.model.kind import BY_NUMBER, Kind, RankOrder
from arena_topo.model.objects import Object
from tests.kinds.jobs import training_job
from tests.objects import mpijob


def pytorch(workers: int, *, master: bool = False, **policy: Any) -> Object:
    """Return a PyTorchJob with an elastic policy, empty where *policy* is."""
    job = training_job(PYTORCHJOB, {**({"Master": 1} if master else {}), "Worker": workers})
    job["spec"]["elasticPolicy"] = policy
    return job


def annotated(text: str) -> Object:
    """Return an MPIJob that says its range."""
    job = mpijob("job")
    job["metadata"]["annotations"] = {ELASTIC: text}
    return job


@pytest.mark.parametrize(
    ("kind", "job", "expected"),
    [
        (PYTORCHJOB, pytorch(3, minReplicas=2, maxReplicas=8), WorkerRange(2, 8)),
        (PYTORCHJOB, pytorch(3, maxReplicas=8), WorkerRange(8, 8)),
        (PYTORCHJOB, pytorch(3), WorkerRange(3, 3)),
        (PYTORCHJOB, training_job(PYTORCHJOB, {"Worker": 3}), None),
        (TFJOB, training_job(TFJOB, {"Worker": 3}), None),
        (ApiVersion.V2BETA1, annotated("2:8"), WorkerRange(2, 8)),
        (ApiVersion.V2BETA1, mpijob("job"), None),
    ],
    ids=["both", "one bound", "no bound", "fixed", "tf", "mpi", "fixed mpi"],
)
def test_the_job_itself_says_its_range(kind: Kind, job: Object, expected: WorkerRange | None) -> None:
    """With the operator's defaults for what it leaves out."""
    assert expected == worker_range(kind, job)


@given(st.text())
def test_whatever_the_annotation_says_is_a_range_or_one_error(text: str) -> None:
    """Anybody may write it."""
    try:
        found = read_range(text, "it")
    except DocumentError:
        return
    assert 0 < found.least <= found.most


@pytest.mark.parametrize(
    ("kind", "job", "why"),
    [
        (ApiVersion.V2BETA1, mpijob("job"), "mpirun starts a fixed number of ranks"),
        (ApiVersion.V1ALPHA1, mpijob("job", ApiVersion.V1ALPHA1), "no discovery of hosts"),
        (PYTORCHJOB, training_job(PYTORCHJOB, {"Worker": 2}), "without spec.elasticPolicy"),
        (TFJOB, training_job(TFJOB, {"Worker": 2}), "from TF_CONFIG"),
        (JOBSET, {"kind": "JobSet", "metadata": {"name": "job"}, "spec": {}}, "jobset#463"),
        (PYTORCHJOB, pytorch(2, metrics=[{}]), "HorizontalPodAutoscaler"),
    ],
    ids=["mpirun", "v1alpha1", "pytorch", "tf", "jobset", "autoscaled"],
)
def test_a_job_of_a_fixed_size_says_why_and_what_instead(kind: Kind, job: Object, why: str) -> None:
    """By its name."""
    with pytest.raises(UsageError, match=why) as raised:
        elastic_range(kind, job)
    assert "job" in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("job", "least"),
    [
        (pytorch(4), 1),
        (pytorch(4, master=True), 2),
        (pytorch(4, rdzvHost="job-worker-2.ml.svc"), 3),
        (pytorch(4, rdzvHost="etcd"), 1),
        (pytorch(4, rdzvHost="job-worker-99999999"), 1),
    ],
    ids=["worker 0", "and the master", "its rendezvous", "elsewhere", "nobody"],
)
def test_the_host_at_which_ranks_meet_stays(job: Object, least: int) -> None:
    """The highest indices leave, so that all below it stay too."""
    assert least == least_pods(PYTORCHJOB, job)


def test_all_planned_pods_are_counted() -> None:
    """The master of a PyTorchJob too, and not the launcher of an MPIJob."""
    assert 5 == pods_of_job(PYTORCHJOB, pytorch(4, master=True))
    assert 4 == pods_of_job(ApiVersion.V2BETA1, mpijob("job", workers=4))


def in_node_network(job: Object) -> Object:
    """Return *job* with its workers in the network of their node."""
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = True
    return job


def indexed(*command: str) -> Object:
    """Return an indexed Job whose container runs *command*."""
    containers = [{"name": "main", "command": ["bash", "-c"], "args": list(command)}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"parallelism": 2, "template": {"spec": {"containers": containers}}},
    }


@pytest.mark.parametrize(
    ("kind", "job", "expected"),
    [
        (PYTORCHJOB, pytorch(3), RankOrder(named_from=0)),
        (PYTORCHJOB, pytorch(3, master=True), RankOrder(named_from=1)),
        (PYTORCHJOB, pytorch(3, rdzvBackend="etcd-v2"), RankOrder(named_from=0)),
        (PYTORCHJOB, pytorch(3, rdzvBackend="etcd"), BY_NUMBER),
        (PYTORCHJOB, in_node_network(pytorch(3)), BY_NUMBER),
        (PYTORCHJOB, training_job(PYTORCHJOB, {"Worker": 3}), BY_NUMBER),
        (ApiVersion.V2BETA1, annotated("2:8"), BY_NUMBER),
        (INDEXED_JOB, indexed("torchrun --rdzv-backend=c10d t.py"), RankOrder(by_command=True)),
        (
            INDEXED_JOB,
            indexed("python -m torch.distributed.run --rdzv_backend c10d t.py"),
            RankOrder(by_command=True),
        ),
        (INDEXED_JOB, indexed("torchrun --rdzv-backend=c10d-like t.py"), BY_NUMBER),
        (INDEXED_JOB, indexed("torchrun --node-rank=$JOB_COMPLETION_INDEX t.py"), BY_NUMBER),
        (INDEXED_JOB, indexed("./own --rdzv-backend=c10d"), BY_NUMBER),
        (JOBSET, {"metadata": {"name": "job"}, "spec": {}}, BY_NUMBER),
    ],
)
def test_elastic_pytorch_has_its_ranks_by_name(kind: Kind, job: Object, expected: RankOrder) -> None:
    """As torch sorts. Its first etcd backend numbers by arrival; on a host network names are the nodes."""
    assert expected == rank_order(kind, job)
