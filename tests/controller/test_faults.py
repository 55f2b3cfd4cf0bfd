"""What one object makes this program do is said once at that
object, and all others are decided on as if it were not there.
"""

import resource
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arena_topo.controller.estimates import Estimator
from arena_topo.controller.objects import (
    REPEAT_AFTER,
    Faults,
    Notice,
    PatchStatus,
    WritePlan,
    trimmed_job,
    trimmed_object,
    trimmed_pod,
    trimmed_workload,
)
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.report import audit
from arena_topo.controller.state import ClusterState
from arena_topo.controller.workloads import CheckState
from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.jobs.watch import Change
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import COMPLETION_INDEX, ELASTIC, OPERATOR_JOB_NAME, PLAN, PLANNED
from arena_topo.model.kind import Kind
from arena_topo.model.objects import NODE, OBJECT, POD, TRAINING_JOB, WORKLOAD, Object
from arena_topo.model.plan_record import PlanRecord, Stage, decode, encode, plan_text
from arena_topo.model.text.documents import Part, fitted
from tests.controller.workload_objects import Cluster, check, condition, entry, flavor, workload
from tests.controller.world import GPU, START, Objects, at, server
from tests.hostile_objects import OBJECTS, RECORD, spoiled_parts
from tests.objects import mpijob

_PROFILE = settings.default or settings()


def examples(times: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return how many examples a property tries: *times* those of the profile, none of them shrunk."""
    return settings(
        parent=_PROFILE,
        max_examples=times * _PROFILE.max_examples,
        suppress_health_check=[*HealthCheck],
        # A job is small, and what was spoiled of it is named.
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def labelled_as_planned(job: Object, text: str = "") -> Object:
    """Return *job* labelled as planned, with a plan that waits, or with *text* for one."""
    meta = job["metadata"]
    plan = text or encode(PlanRecord(stage=Stage.WAITING, enforcement=RECORD.enforcement))
    annotations = {**(meta.get("annotations") or {}), PLAN: plan}
    labels = {**(meta.get("labels") or {}), PLANNED: "true"}
    return {**job, "metadata": {**meta, "labels": labels, "annotations": annotations}}


def honest(name: str, created: float = 100.0, gpus: int = 8) -> Object:
    """Return a job of one worker that waits."""
    job = mpijob(name, workers=1, gpus=gpus)
    job["metadata"]["creationTimestamp"] = at(created)
    return with_pins(job, suspended_with_plan(PlanRecord(stage=Stage.WAITING)))


def room(name: str) -> Object:
    """Return a node of eight GPUs, with places for all pods of the others, who ask for no GPU."""
    node = server(name)
    amounts = {**node["status"]["allocatable"], "pods": "100000000"}
    return {**node, "status": {**node["status"], "capacity": amounts, "allocatable": amounts}}


def four_nodes_with(*jobs: Object) -> Objects:
    """Return what there is: four nodes and *jobs*, by their kinds."""
    objects: Objects = {name: {} for name in ("pods", "resourcequotas")}
    objects["nodes"] = {node["metadata"]["uid"]: node for node in map(room, "abcd")}
    for job in jobs:
        objects.setdefault(kind_of(job).plural, {})[job["metadata"]["uid"]] = job
    return objects


class Course:
    """The decisions of a controller that reads all *objects*
    each time; its writes of honest plans are carried out.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects, self.seconds, self.faults = objects, 0.0, Faults(lambda: self.seconds)
        self.reconciler = PlanReconciler(Rules(timedelta(days=1)), lambda: self.seconds)
        self.estimator = Estimator(lambda: self.seconds, faults=self.faults)
        self.said: list[str] = []

    def decide(self, *names: str) -> None:
        """Decide once; the plans of jobs with these *names* are written, and writes to all others fail."""
        self.seconds += 20
        now = START + timedelta(seconds=1000 + self.seconds)
        state = ClusterState(self.objects, faults=self.faults)
        audit(state, now)
        for action in self.reconciler.decide(state, now):
            jobs = self.objects["mpijobs"]
            name = action.uid.removeprefix("uid-")
            if isinstance(action, WritePlan) and name in names:
                jobs[action.uid] = with_pins(jobs[action.uid], rewritten(jobs[action.uid], action.record, {}))
            elif not isinstance(action, Notice):
                self.reconciler.failed(action)
        if prospect := self.reconciler.prospect(self.estimator.plan):
            self.estimator.begin(prospect, [*state.ledger.jobs.values()])
            while self.estimator.step():
                pass
        self.said += [fault.message for fault in self.faults.taken()]

    def stages(self, *names: str) -> set[Stage]:
        """Return how far the jobs with these *names* have got."""
        return {decode(plan_text(self.objects["mpijobs"][f"uid-{name}"]) or "").stage for name in names}


@pytest.mark.parametrize("spec", [{}, {"Worker": {}}, {"Worker": None}, {"Launcher": {"replicas": 1}}])
def test_a_job_without_workers_waits_and_the_others_are_placed(spec: Object) -> None:
    """Its operator would refuse it, and the API server does not; why it waits is known."""
    job = mpijob("odd")
    job["spec"]["mpiReplicaSpecs"] = spec
    course = Course(
        four_nodes_with(labelled_as_planned(job, '{"v":1,"stage":"waiting","means":"gates"}'), honest("one"))
    )
    for _ in range(3):
        course.decide("one")

    assert {Stage.CONFIRMED} == course.stages("one")
    assert not course.said
    (turn,) = (course.reconciler.prospect(course.estimator.plan) or pytest.fail("nobody waits")).waiting
    assert "uid-odd" == turn.job.uid
    assert "the job odd has no pods that could be planned" == turn.plan(Snapshot()).waiting_reason


MOST = 2**31 - 1
"""The most pods that the API lets a role have."""


def of_most_pods(value: Any) -> Any:
    """Return a part of a job with the most pods wherever it gives a number of them."""
    if isinstance(value, list):
        return [of_most_pods(each) for each in value]
    if not isinstance(value, dict):
        return value
    numbers = {"replicas", "parallelism", "completions", "numNodes", "maxReplicas"}
    return {key: MOST if key in numbers else of_most_pods(part) for key, part in value.items()}


@pytest.mark.parametrize(
    "text", ["", encode(RECORD), '{"v":1,"stage":"confirmed","options":{"grow":"true"}}']
)
def test_a_job_of_two_billion_pods_takes_neither_time_nor_memory(text: str) -> None:
    """Without GPUs they would fit anywhere; it is not planned, and the others are."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for job in jobs_of_all_kinds():
        odd = labelled_as_planned(of_most_pods(job), text)
        odd["metadata"]["annotations"][ELASTIC] = f"1:{MOST}"
        course = Course(four_nodes_with(odd, honest("one")))
        for _ in range(3):
            course.decide("one")

        assert {Stage.CONFIRMED} == course.stages("one")
        assert not [said for said in course.said if "internal error" in said]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 2**10


STEPS = {
    "reading a job": "arena_topo.controller.state.limit_of",
    "the pods of a job": "arena_topo.controller.state.offsets",
    "what a job asks for": "arena_topo.controller.reconciler.question_of",
    "what its plan reserves": "arena_topo.controller.state.reserving_plan",
    "writing why it waits": "arena_topo.controller.plan_reconciler.encode",
    "an audit": "arena_topo.controller.report.plan_writers",
}
"""What is done with one job after the other."""
PLANS = {"reserving_plan": encode(RECORD), "plan_writers": encode(PlanRecord(stage=Stage.PROPOSED))}
"""The plans of jobs that get so far, where that is none that waits."""


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_whatever_a_step_raises_for_one_job_is_said_at_it_alone(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other job is placed, and the fault is said once."""
    module, _, name = step.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)

    def spoiled(*args: Any, **named: Any) -> Any:
        if any(word in repr(args) for word in ("odd", "Stage.WAITING")):
            raise AttributeError("nobody thought of this")
        return real(*args, **named)

    monkeypatch.setattr(step, spoiled)
    # It does not fit.
    odd = labelled_as_planned(mpijob("odd", workers=400), PLANS.get(name, ""))
    course = Course(four_nodes_with(odd, honest("one")))
    for _ in range(4):
        course.decide("one")

    assert {Stage.CONFIRMED} == course.stages("one")
    assert ["internal error: AttributeError: nobody thought of this"] == course.said[:1]
    assert 1 >= len(course.said[1:])


@pytest.mark.parametrize("collection", ["nodes", "pods"])
def test_a_node_or_a_pod_that_fails_counts_as_if_it_were_not_there(
    collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs are placed on the other nodes."""
    import arena_topo.controller.state as module

    name = {"nodes": "node_facts", "pods": "pod_facts"}[collection]
    real = getattr(module, name)

    def spoiled(item: Object) -> Any:
        if item["metadata"]["name"] == "odd":
            raise KeyError("spec")
        return real(item)

    monkeypatch.setattr(module, name, spoiled)
    objects = four_nodes_with(honest("one"))
    objects[collection]["uid-odd"] = {
        "metadata": {"name": "odd", "namespace": "x", "uid": "uid-odd"},
        "spec": {},
    }
    course = Course(objects)
    for _ in range(3):
        course.decide("one")

    assert {Stage.CONFIRMED} == course.stages("one")
    assert ["internal error: KeyError: 'spec'"] == course.said


def test_what_fails_together_is_searched_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One object among those that the snapshot is made of; the snapshot has all others."""
    import arena_topo.topology.assemble as module

    real = module.assembled

    def spoiled(objects: Any, **named: Any) -> Any:
        if any(pod.name == "pod-7" for pod in objects.pods):
            raise TypeError("of one pod")
        return real(objects, **named)

    monkeypatch.setattr("arena_topo.controller.state.assembled", spoiled)
    objects = four_nodes_with()
    for number in range(20):
        meta = {"name": f"pod-{number}", "namespace": "x", "uid": f"pod-{number}"}
        container = {"name": "c", "resources": {"requests": {GPU: "1"}}}
        objects["pods"][meta["uid"]] = {
            "metadata": meta,
            "spec": {"nodeName": "abcd"[number % 4], "containers": [container]},
            "status": {"phase": "Running"},
        }
    faults = Faults()
    state = ClusterState(objects, faults=faults)

    assert {"a": 5, "b": 5, "c": 5, "d": 4} == {
        node.name: node.requested[GPU] for node in state.snapshot.nodes
    }
    assert [("Pod", "pod-7", "internal error: TypeError: of one pod")] == [
        (fault.item["kind"], fault.item["metadata"]["name"], fault.message) for fault in faults.taken()
    ]
    # A pod that goes costs a look at its node, and nothing is searched again.
    gone = objects["pods"].pop("pod-0")
    state.take([("pods", Change(0, gone, deleted=True))])
    assert 4 == next(node for node in state.snapshot.nodes if node.name == "a").requested[GPU]
    assert not faults.taken()


def test_a_fault_is_said_once_and_again_after_an_hour() -> None:
    """Whatever numbers are in its text; another one of the same object is said too."""
    seconds = [0.0]
    faults = Faults(lambda: seconds[0])

    def fail(text: str) -> None:
        with faults.at(mpijob("odd")):
            raise IndexError(text)

    fail("1 of 2")
    fail("2 of 2")
    with faults.at(mpijob("odd")):
        raise KeyError("x")
    assert ["internal error: IndexError: 1 of 2", "internal error: KeyError: 'x'"] == [
        fault.message for fault in faults.taken()
    ]
    seconds[0] = REPEAT_AFTER
    fail("3 of 2")
    (fault,) = faults.taken()
    assert ("odd", "MPIJob") == (fault.item["metadata"]["name"], fault.item["kind"])
    assert "test_faults.py" in fault.trace
    assert fault.is_named


def test_an_endless_recursion_has_a_short_trace() -> None:
    """And the end of the process is nobody's fault."""
    faults = Faults()

    def deeper(number: int) -> int:
        return deeper(number + 1)

    with faults.at({}):
        deeper(0)
    (fault,) = faults.taken()
    assert 100 > len(fault.trace.splitlines())
    assert not fault.is_named
    with pytest.raises(SystemExit), faults.at({}):
        raise SystemExit


def jobs_of_all_kinds() -> list[Object]:
    """Return a job of each kind and version that asks for no GPU,
    some of them with plans, as their users would write them.
    """
    pod = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"arena-topo.dev/claimed-gpus": "0"}},
        "spec": OBJECTS["mpijobs"][0]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        | {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    replicas = {"replicas": 2, "template": pod}
    indexed = {
        "completionMode": "Indexed",
        "parallelism": 2,
        "completions": 2,
        "suspend": True,
        "template": pod,
    }
    specs: dict[str, Object] = {
        "kubeflow.org/v2beta1 MPIJob": {"mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas}},
        "kubeflow.org/v1 MPIJob": {"mpiReplicaSpecs": {"Worker": replicas}, "runPolicy": {"suspend": True}},
        "kubeflow.org/v1alpha1 MPIJob": {"replicas": 2, "template": pod},
        "kubeflow.org/v1 PyTorchJob": {
            "pytorchReplicaSpecs": {"Master": {**replicas, "replicas": 1}, "Worker": replicas},
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 3},
        },
        "kubeflow.org/v1 TFJob": {"tfReplicaSpecs": {"PS": replicas, "Worker": replicas, "Chief": replicas}},
        "trainer.kubeflow.org/v1alpha1 TrainJob": {
            "suspend": True,
            "trainer": {"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "1"}}},
            "runtimePatches": [
                {
                    "manager": "arena-topo.dev/planner",
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": indexed}}]}
                        }
                    },
                }
            ],
        },
        "jobset.x-k8s.io/v1alpha2 JobSet": {
            "suspend": True,
            "replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": indexed}}],
        },
        "batch/v1 Job": {**indexed, "activeDeadlineSeconds": 100},
    }
    plans = (
        '{"v":1,"stage":"waiting","means":"gates"}',
        encode(PlanRecord(stage=Stage.WAITING, requested_options={"policy": "restricted"}, position=1)),
        encode(RECORD).replace("confirmed", "proposed"),
        encode(RECORD),
    )
    found: list[Object] = []
    for number, (named, spec) in enumerate(specs.items()):
        api, kind = named.split()
        meta = {
            "name": f"odd-{number}",
            "namespace": "odd",
            "uid": f"odd-{number}",
            "resourceVersion": "1",
            # Younger than the honest ones, unless this is spoiled.
            "creationTimestamp": at(500 + number),
            "labels": {PLANNED: "true"},
            "annotations": {"arena-topo.dev/elastic": "1:3"},
            "managedFields": OBJECTS["mpijobs"][0]["metadata"]["managedFields"],
        }
        condition = {"type": "Running", "status": "True", "lastTransitionTime": at(600)}
        status = {"conditions": [condition], "startTime": at(600)}
        job = {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec, "status": status}
        found.append(labelled_as_planned(job, plans[number % len(plans)]))
    return found


def odd_pods() -> list[Object]:
    """Return pods of such jobs, and others, that ask for no GPU of the nodes of the honest jobs."""
    labels: tuple[dict[str, str], ...] = (
        {PLANNED: "true", OPERATOR_JOB_NAME: "odd-0"},
        {PLANNED: "true", "arena-topo.dev/planned-kind": "pytorchjob", OPERATOR_JOB_NAME: "odd-3",
         "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1"},
        {PLANNED: "true", "arena-topo.dev/planned-kind": "jobset", "jobset.sigs.k8s.io/jobset-name": "odd-6",
         "jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "1", COMPLETION_INDEX: "1"},
        {PLANNED: "true", "arena-topo.dev/planned-kind": "job", "batch.kubernetes.io/job-name": "odd-7",
         COMPLETION_INDEX: "0"},
        {},
    )  # fmt: skip
    names = ("odd-0-worker-1", "odd-3-worker-1", "odd-6-node-1-1-x", "odd-7-0-x", "other")
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return [
        {
            "metadata": {
                "name": name,
                "namespace": "odd",
                "uid": f"pod-{name}",
                "resourceVersion": "1",
                "creationTimestamp": at(600),
                "labels": each,
                "annotations": {"arena-topo.dev/pods-per-job": "2"},
            },
            "spec": {"containers": [container], "nodeName": "gpu-1", "nodeSelector": {"a": "b"}},
            "status": {"phase": "Running"},
        }
        for name, each in zip(names, labels, strict=True)
    ]


def odd_nodes() -> list[Object]:
    """Return nodes with the annotations and labels of every source."""
    return [
        {**node, "metadata": {**node["metadata"], "uid": f"odd-{number}"}}
        for number, node in enumerate(OBJECTS["nodes"])
    ]


_OPTIONAL = {
    "devices": "devices",
    "slices": "resourceslices",
    "claims": "resourceclaims",
    "zones": "noderesourcetopologies",
    "volcano": "hypernodes",
    "kueue": "topologies",
}
"""Sources of topology that are watched where they are served,
by our words for them and by those of the tests' objects.
"""


def others() -> dict[str, list[Object]]:
    """Return objects of everything else that is watched."""
    found = {word: OBJECTS[name] for word, name in _OPTIONAL.items()}
    found["resourcequotas"] = OBJECTS["resourcequotas"]
    return {
        word: [
            {**item, "metadata": {**item.get("metadata", {}), "uid": f"{word}-{number}"}}
            for number, item in enumerate(items)
        ]
        for word, items in found.items()
    }


ODD: list[tuple[str, Part, list[Object]]] = [
    ("jobs", TRAINING_JOB, jobs_of_all_kinds()),
    ("pods", POD, odd_pods()),
    ("nodes", NODE, odd_nodes()),
    *((word, OBJECT, items) for word, items in others().items()),
]


_READ: dict[str, Callable[[Object, Kind | None], Object]] = defaultdict(
    lambda: lambda item, _: trimmed_object(item),
    jobs=lambda item, kind: trimmed_job(kind or ApiVersion.V2BETA1, item),
    pods=lambda item, _: trimmed_pod(item),
    nodes=lambda item, _: item,
)
"""What is kept of each object."""


@st.composite
def odd_objects(draw: st.DrawFn) -> list[tuple[str, Object]]:
    """Return objects of all kinds, most of them spoiled, each
    with its collection, as far as they are as their API says.
    """
    found: list[tuple[str, Object]] = []
    for word, shape, items in ODD:
        if word not in {"jobs", "pods"} and not draw(st.booleans()):
            continue
        for number, item in enumerate(draw(spoiled_parts(items))):
            # Whatever a job calls itself: it was listed among those of a kind.
            kind = kind_of(items[number % len(items)]) if word == "jobs" else None
            seen = fitted(item, shape)
            # What cannot be read is left out by the watch.
            with Faults().at(seen):
                found.append((kind.plural if kind else word, _READ[word](seen, kind)))
    return found


@examples(3)
@given(odd=odd_objects())
def test_the_honest_are_placed_among_whatever_there_is(odd: list[tuple[str, Object]]) -> None:
    """And nothing is raised: jobs of all kinds, pods, nodes,
    quotas and topologies with spoiled parts, two honest jobs.
    """
    objects = four_nodes_with(honest("one", 100), honest("two", 101))
    for collection, item in odd:
        objects.setdefault(collection, {})[item["metadata"]["uid"]] = item
    course = Course(objects)
    for _ in range(4):
        course.decide("one", "two")

    assert {Stage.CONFIRMED} == course.stages("one", "two")


def parameters() -> Object:
    """Return the parameters that our check names."""
    return {"metadata": {"name": "gang", "uid": "parameters"}, "spec": {"reserveAfter": "10m"}}


def odd_of_kueue() -> Iterator[tuple[str, Part, list[Object]]]:
    """Yield Workloads in every state, and the checks and parameters of
    others, with the collection and the shape of each.
    """
    ready: dict[str, Any] = {"admissionChecks": [{"name": "planner", "state": "Ready", "message": "m", "podSetUpdates": [
        {"name": "worker", "annotations": {"arena-topo.dev/pin-nodes": "0:a,2:"}}]}]}  # fmt: skip
    jobs = [
        workload("odd-0", gpus=0),
        workload("odd-1", gpus=0, **ready),
        workload("odd-2", gpus=0, priority=3, maximumExecutionTimeSeconds=60),
        workload("odd-3", gpus=0, owner={"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2"}),
        workload("odd-4", gpus=0, owner={"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1"}),
    ]
    yield "workloads", WORKLOAD, jobs
    names = {"apiGroup": "arena-topo.dev", "kind": "PlannerParameters", "name": "gang"}
    yield "admissionchecks", OBJECT, [check("other", parameters=names)]
    yield (
        "resourceflavors",
        OBJECT,
        [{**flavor(nodeLabels={"a": "b"}), "metadata": {"name": "odd", "uid": "odd"}}],
    )
    yield "plannerparameters", OBJECT, [parameters()]


@examples(3)
@given(odd=st.tuples(*(spoiled_parts(items) for _, _, items in odd_of_kueue())))
def test_honest_workloads_are_answered_among_whatever_there_is(odd: tuple[list[Object], ...]) -> None:
    """Workloads, checks, flavors and parameters with spoiled parts, and two honest Workloads."""
    honest_ones = [workload(name, workers=1, created=at(100)) for name in ("one", "two")]
    seen = Cluster(*honest_ones, nodes=[room(name) for name in "abcd"])
    for (collection, shape, _), items in zip(odd_of_kueue(), odd, strict=True):
        read = trimmed_workload if collection == "workloads" else trimmed_object
        for item in items:
            with Faults().at(item):
                seen.put(collection, read(fitted(item, shape)))
    estimator = Estimator(lambda: seen.seconds, faults=seen.reconciler.faults)
    for _ in range(3):
        seen.seconds += 20
        for action in seen.decide():
            if isinstance(action, PatchStatus) and action.uid in {"w-one", "w-two"}:
                seen.carry_out([action])
            elif isinstance(action, PatchStatus):
                seen.reconciler.failed(action)
        if prospect := seen.reconciler.prospect(estimator.plan):
            estimator.begin(prospect, [*seen.reconciler.jobs])
            while estimator.step():
                pass

    states = [
        seen.objects["workloads"][f"w-{name}"]["status"]["admissionChecks"][0]["state"]
        for name in ("one", "two")
    ]
    assert [CheckState.READY.value] * 2 == states


def test_a_running_workload_whose_start_is_unreadable_keeps_no_other_one_waiting() -> None:
    """When it ends is unknown then, and the error is reported at it."""
    odd = workload(
        "odd",
        conditions=[condition("QuotaReserved"), condition("Admitted", "soon")],
        admissionChecks=[entry("Ready", nodes="0:a,1:b,2:")],
        maximumExecutionTimeSeconds=60,
    )
    one, large = workload("one", created=at(100)), workload("large", workers=3, created=at(200))
    seen = Cluster(odd, one, large, reserve_after=0)
    assert "Ready" == seen.answers()["one"][0]
    assert {"mpijob-odd"} == {fault.item["metadata"]["name"] for fault in seen.reconciler.faults.taken()}


def test_the_objects_are_good_to_begin_with() -> None:
    """Unspoiled, nothing fails at any of them, and each kind
    of job is planned for: the properties try what they say.
    """
    objects = four_nodes_with(*jobs_of_all_kinds())
    for word, _, items in ODD[1:]:
        objects.setdefault(word, {}).update({item["metadata"]["uid"]: item for item in items})
    course = Course(objects)
    course.decide()

    assert [] == course.said
    assert 8 == len(ClusterState(objects).ledger.jobs)
    assert ApiVersion.V1ALPHA1.plural in objects
