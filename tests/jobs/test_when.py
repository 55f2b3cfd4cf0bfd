"""When a job would start, by what an API server lists."""

from datetime import timedelta
from typing import Any

from arena_topo.cluster.published import PART_NAMES, published_parts
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import plan_spec
from arena_topo.jobs.when import read_outlook
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import MOST_AHEAD, PlanRecord, Slot, Stage, StartEstimate
from tests.fakes import Answer, Call, refusal, session
from tests.objects import mpijob, pod, ready_node, with_plan

NODE = ready_node("n1", {"nvidia.com/gpu": "8", "pods": "110"})


def pod_of(job: str) -> Object:
    """Return a pod of the MPIJob *job* with all GPUs of the node."""
    made = pod(f"{job}-worker-0")
    made["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "8"}}
    made["metadata"]["labels"]["training.kubeflow.org/job-name"] = job
    return made


def job_with_eight_gpus(name: str, *, deadline: int = 0, record: PlanRecord | None = None) -> Object:
    """Return a job of one worker with eight GPUs, with a plan where one is given."""
    found = mpijob(name, workers=1)
    worker = found["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"] = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    if deadline:
        found["spec"]["runPolicy"] = {"activeDeadlineSeconds": deadline}
    if record:
        found["metadata"]["labels"] = {PLANNED: "true"}
        found = with_plan(found, record)
    return found


WAITING = PlanRecord(stage=Stage.WAITING, waiting_reason="no place")


class Cluster:
    """A node of eight GPUs, with *pods* and *jobs*; *special*
    are other answers, by the last part of a path.
    """

    def __init__(self, jobs: list[Object], pods: list[Object], /, **special: Answer) -> None:
        self.jobs, self.pods, self.special = jobs, pods, special

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        plural = call.path.rpartition("/")[2]
        if answer := self.special.get(plural):
            return answer
        if plural == "apis":
            return Answer(
                body={
                    "groups": [
                        {"name": "kubeflow.org", "versions": [{"groupVersion": "kubeflow.org/v2beta1"}]}
                    ]
                }
            )
        if plural == "v2beta1":
            return Answer(body={"resources": [{"name": "mpijobs"}]})
        items: dict[str, list[Any]] = {"nodes": [NODE], "pods": self.pods, "mpijobs": self.jobs}
        found = items.get(plural, [])
        if call.query.get("labelSelector"):
            found = [item for item in found if PLANNED in (item["metadata"].get("labels") or {})]
        return Answer(body={"items": found, "metadata": {}})


def starts(cluster: Cluster) -> tuple[StartEstimate, timedelta | None]:
    """Return the estimate for a job of one worker with eight GPUs, and the likely time until then."""
    opened, _ = session(cluster)
    outlook = read_outlook(opened)
    spec = JobSpec(name="new", namespace="default", image="i", command=("true",), workers=1, gpus=8)
    options = PlanOptions()
    estimate = outlook.of_spec(spec, options, plan_spec(spec, outlook.left, options))
    return estimate, estimate.likely - outlook.now if estimate.likely else None


def test_a_job_that_fits_starts_now() -> None:
    """After nobody."""
    assert ((), timedelta()) == (starts(Cluster([], []))[0].after, starts(Cluster([], []))[1])


def test_a_job_without_a_plan_is_held_by_its_pods() -> None:
    """Like a job that another tool has submitted."""
    estimate, likely = starts(Cluster([job_with_eight_gpus("old", deadline=600)], [pod_of("old")]))
    assert (("default/old",), ("its deadline",)) == (estimate.after, estimate.basis)
    assert timedelta(seconds=600) == likely


def test_a_reserved_place_counts_before_its_workers_run() -> None:
    """The plan on the job tells where they will be."""
    record = PlanRecord(
        stage=Stage.CONFIRMED, slots=(Slot(0, "n1", None),), worker_requests={"nvidia.com/gpu": 8}
    )
    estimate, likely = starts(Cluster([job_with_eight_gpus("planned", deadline=600, record=record)], []))
    assert (("default/planned",), timedelta(seconds=600)) == (estimate.after, likely)


def test_the_jobs_that_wait_come_first() -> None:
    """The new one is the last in the line."""
    jobs = [
        job_with_eight_gpus("old", deadline=600),
        job_with_eight_gpus("first", deadline=60, record=WAITING),
    ]
    estimate, likely = starts(Cluster(jobs, [pod_of("old")]))
    assert ("default/old", "default/first") == estimate.after
    assert timedelta(seconds=660) == likely


def test_a_holder_without_a_known_end_is_named() -> None:
    """So that its user can be asked."""
    estimate, _ = starts(Cluster([job_with_eight_gpus("old")], [pod_of("old")]))
    assert "it is not known when default/old will end, and this job needs what it holds" == estimate.unknown


def test_garbled_plans_of_others_stop_nobody() -> None:
    """They wait for nothing."""
    garbled = job_with_eight_gpus("bad", record=WAITING)
    garbled["metadata"]["annotations"][PLAN] = "{"
    odd = job_with_eight_gpus(
        "odd", record=PlanRecord(stage=Stage.WAITING, requested_options={"policy": "none-such"})
    )
    assert timedelta() == starts(Cluster([garbled, odd], []))[1]


def test_jobs_of_other_namespaces_need_not_be_readable() -> None:
    """Then only those of the own namespace are known to end."""

    class Narrow(Cluster):
        def __call__(self, call: Call) -> Answer:
            if call.path.endswith("/mpijobs") and "/namespaces/" not in call.path:
                return refusal(403, "Forbidden", "no")
            return super().__call__(call)

    estimate, _ = starts(Narrow([job_with_eight_gpus("old", deadline=600)], [pod_of("old")]))
    assert ("default/old",) == estimate.after


def test_a_cluster_that_may_not_be_read_is_as_the_controller_published_it() -> None:
    """What others hold is in use, as it is for a plan, and the own job's end gives its place back."""
    record = PlanRecord(
        stage=Stage.CONFIRMED, slots=(Slot(0, "n1", None),), worker_requests={"nvidia.com/gpu": 8}
    )
    amounts = {"nvidia.com/gpu": 8, "pods": 110}
    full = GpuNode("n1", "n1", allocatable=amounts, requested={"nvidia.com/gpu": 8, "pods": 1})
    (part,) = published_parts(Snapshot((full,), taken="2026-11-21T01:00:00Z"))
    hidden = {
        "nodes": refusal(403, "Forbidden", "no"),
        "pods": Answer(body={"items": [], "metadata": {}}),
        PART_NAMES[0]: Answer(body=part),
    }
    own = job_with_eight_gpus("own", deadline=600, record=record)
    assert ("default/own",) == starts(Cluster([own], [], **hidden))[0].after
    assert None is starts(Cluster([], [], **hidden))[0].likely


def test_who_may_not_list_batch_jobs_is_told_of_the_others() -> None:
    """Every cluster has batch Jobs, and few of them are planned."""
    groups = [
        {"name": group, "versions": [{"groupVersion": f"{group}/{version}"}]}
        for group, version in (("kubeflow.org", "v2beta1"), ("batch", "v1"))
    ]
    narrow = {
        "apis": Answer(body={"groups": groups}),
        "v1": Answer(body={"resources": [{"name": "jobs"}]}),
        "jobs": refusal(403, "Forbidden", "no"),
    }
    estimate, _ = starts(Cluster([job_with_eight_gpus("old", deadline=600)], [pod_of("old")], **narrow))
    assert ("default/old",) == estimate.after


def test_behind_a_long_line_there_is_no_estimate() -> None:
    """Too much can happen until then."""
    jobs = [job_with_eight_gpus(f"w{at}", deadline=60, record=WAITING) for at in range(MOST_AHEAD + 1)]
    estimate, _ = starts(Cluster([job_with_eight_gpus("old", deadline=600), *jobs], [pod_of("old")]))
    assert f"{MOST_AHEAD + 1} jobs wait before it" == estimate.unknown
