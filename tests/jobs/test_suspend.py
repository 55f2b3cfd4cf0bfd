"""A job is suspended only where that works, and then neither its pods nor its plan hold anything."""

from copy import deepcopy
from typing import Any

import pytest

from arena_topo.errors import Conflict, Forbidden, UsageError, WaitTimeout
from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.reserve import plan_of
from arena_topo.jobs.resume import suspend_job, wait_until_stopped
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import PIN_CLAIMS, PIN_GPUS, PIN_NODES
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, refusal, session, unserved
from tests.objects import condition, mpijob, pod

SLOTS = (Slot(0, "n1", (0,)), Slot(1, "n2", (0,)))


def applied(job: Object, operations: list[Any]) -> Object:
    """Return *job* after a JSON patch, as far as a suspend needs one."""
    changed = deepcopy(job)
    for operation in operations:
        *parents, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
        place = changed
        for part in parents:
            place = place[part]
        if operation["op"] == "test":
            assert operation["value"] == place[last]
        else:
            place[last] = operation["value"]
    return changed


def opened(job: Object, version: ApiVersion = ApiVersion.V2BETA1, patched: Answer | None = None) -> Session:
    """Return a session with a cluster that has *job*; a patch is answered by *patched*, or carried out."""

    def answer(call: Call) -> Answer:
        if f"/{version.value}/" not in call.path:
            return unserved()
        if call.method == "PATCH":
            return patched or Answer(body=applied(job, call.body))
        return Answer(body=job)

    return session(answer)[0]


@pytest.mark.parametrize("enforcement", list(Enforcement))
def test_a_suspended_job_is_free_of_its_plan(enforcement: Enforcement) -> None:
    """Whatever kept it: its workers are as they were before they had places, and nothing is reserved."""
    proposed = PlanRecord(stage=Stage.PROPOSED, slots=SLOTS, enforcement=enforcement, level="rack")
    waiting = with_pins(mpijob("job", workers=2), suspended_with_plan(proposed))
    placed = with_pins(
        waiting, rewritten(waiting, PlanRecord(**{**fields(proposed), "stage": Stage.CONFIRMED}))
    )
    served = suspend_job(opened(placed), "job")
    assert served
    record = plan_of(served.job)

    assert record
    assert (Stage.SUSPENDED, (), enforcement) == (record.stage, record.slots, record.enforcement)
    assert {"suspend": True} == served.job["spec"]["runPolicy"]
    assert worker(waiting) == worker(served.job)


@pytest.mark.parametrize("gpus", [GpuEnforcement.UUIDS, GpuEnforcement.CLAIMS, GpuEnforcement.SHARED_CLAIMS])
def test_a_job_on_chosen_gpus_is_free_of_them(gpus: GpuEnforcement) -> None:
    """Which they are is on the templates, and not in the plan: it need not be known for taking them away."""
    record = PlanRecord(
        stage=Stage.CONFIRMED, slots=SLOTS, enforcement=Enforcement.ADMISSION, gpu_enforcement=gpus
    )
    waiting = with_pins(mpijob("job", workers=2), suspended_with_plan(record))
    placed = with_pins(waiting, rewritten(waiting, record, {0: ("GPU-a",), 1: ("GPU-b",)}))
    served = suspend_job(opened(placed), "job")
    assert served
    annotations = served.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"].get("annotations")

    assert not {PIN_NODES, PIN_GPUS, PIN_CLAIMS} & set(annotations or {})


def fields(record: PlanRecord) -> dict[str, Any]:
    """Return the fields of a plan."""
    return {name: getattr(record, name) for name in PlanRecord.__dataclass_fields__}


def worker(job: Object) -> Object:
    """Return the worker template of *job* without what is empty."""
    template = deepcopy(job["spec"]["mpiReplicaSpecs"]["Worker"]["template"])
    template["metadata"] = {key: value for key, value in template["metadata"].items() if value}
    return template  # type: ignore[no-any-return]  # a part of an object


def test_the_users_own_affinity_stays() -> None:
    """What was required next to the plan is still required."""
    job = mpijob("job", workers=2)
    own = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [own]}}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    record = PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, enforcement=Enforcement.AFFINITY)
    placed = with_pins(with_pins(job, suspended_with_plan(record)), rewritten(job, record))
    served = suspend_job(opened(placed), "job")
    assert served

    assert {"nodeAffinity": required} == worker(served.job)["spec"]["affinity"]


def test_a_suspended_job_stays_so() -> None:
    """Twice is once."""
    assert None is suspend_job(opened(mpijob("job") | {"spec": {"runPolicy": {"suspend": True}}}), "job")


def labelled(**labels: str) -> Object:
    """Return the job with labels."""
    job = mpijob("job")
    job["metadata"]["labels"] = {key.replace("_", "/"): value for key, value in labels.items()}
    return job


ENDED = mpijob("job", status={"conditions": [condition("Failed")]})
QUEUED = labelled(**{"kueue.x-k8s.io_queue-name": "q"})


@pytest.mark.parametrize(
    ("opened_session", "message"),
    [
        (opened(ENDED), "the job job has ended, so there is nothing to suspend"),
        (opened(QUEUED), "is in queue q of Kueue, which starts and stops it"),
        (opened(mpijob("job", ApiVersion.V1ALPHA1), ApiVersion.V1ALPHA1), "v1alpha1 .* cannot be suspended"),
        (
            opened(mpijob("job"), patched=refusal(422, "Invalid", 'unknown field "spec.runPolicy.suspend"')),
            "MPIJob v2beta1 that this cluster serves cannot be suspended",
        ),
        (opened(mpijob("job"), patched=Answer(body=mpijob("job"))), "cannot be suspended"),
    ],
)
def test_a_job_that_cannot_be_suspended_says_why(opened_session: Session, message: str) -> None:
    """And what to do instead."""
    with pytest.raises(UsageError, match=message) as caught:
        suspend_job(opened_session, "job")
    assert caught.value.hint


def test_a_job_that_changes_meanwhile_is_left_alone() -> None:
    """Its plan was confirmed between two calls, say."""
    with pytest.raises(Conflict, match="was not suspended, as it changes at this moment: the test failed"):
        suspend_job(opened(mpijob("job"), patched=refusal(422, "Invalid", "the test failed")), "job")


def test_pods_that_do_not_go_are_waited_for_and_counted() -> None:
    """Ended ones may stay."""
    left = [[pod("job-worker-0"), pod("job-worker-1")], [pod("job-worker-0", phase="Succeeded")]]
    pods, _ = session(lambda _: Answer(body={"items": left.pop(0) if len(left) > 1 else left[0]}))
    served = ServedJob(ApiVersion.V2BETA1, mpijob("job"))
    wait_until_stopped(pods, served, timeout=0, sleep=lambda _: None)

    stuck, _ = session(lambda _: Answer(body={"items": [pod("job-worker-0")]}))
    with pytest.raises(WaitTimeout, match="is suspended, and 1 pod of it still exist"):
        wait_until_stopped(stuck, served, timeout=1e-9, sleep=lambda _: None)


def test_errors_of_the_server_are_the_users() -> None:
    """Nothing hides a missing right."""
    with pytest.raises(Forbidden, match="may not"):
        suspend_job(opened(mpijob("job"), patched=refusal(403, "Forbidden", "you may not")), "job")
