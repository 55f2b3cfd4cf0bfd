"""What the planner is asked is what the pods will ask of kube-scheduler, in every version of MPIJob."""

from dataclasses import replace

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import asked_roles, demand_of, question_of
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.job import PodOptions
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import Parallelism
from arena_topo.model.plan import Demand, GangDemand, Slice, Spread
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration
from tests.jobs.specs import JOB
from tests.kinds.jobs import training_job
from tests.objects import mpijob
from tests.planner.fleets import V100, cluster, node

CLUSTER = cluster([node("n", links=V100)])


@pytest.mark.parametrize("version", [ApiVersion.V2BETA1, ApiVersion.V1])
def test_a_demand_is_read_off_the_job_itself(version: ApiVersion) -> None:
    """Requests in amounts, selectors, tolerations, and the launcher's own."""
    demand = demand_of(render(JOB, RenderContext(version)).job, CLUSTER, PlanOptions())
    assert (4, 2, "nvidia.com/gpu") == (demand.workers, demand.gpus, demand.gpu_resource)
    assert {"cpu": 500, "memory": 2**30, "rdma/hca": 1, "x/y": 1} == demand.requests
    assert {"pool": "a"} == demand.node_selector
    assert (Toleration("gpu", "Exists"),) == demand.tolerations
    assert ({"cpu": 2000}, {"pool": "b"}) == (demand.launcher, demand.launcher_selector)


def test_v1alpha1_has_one_template() -> None:
    """What its launcher asks for is the operator's to decide."""
    demand = demand_of(mpijob("job", ApiVersion.V1ALPHA1), CLUSTER, PlanOptions())
    assert (4, 1, None) == (demand.workers, demand.gpus, demand.launcher)


@pytest.mark.parametrize("specs", [{}, {"Worker": {}}, {"Launcher": {"replicas": 1}}])
def test_a_job_without_pods_to_plan_asks_for_nothing_that_could_be_planned(specs: Object) -> None:
    """The API server takes one that its operator would refuse."""
    job = mpijob("odd")
    job["spec"]["mpiReplicaSpecs"] = specs
    for ask in (question_of, demand_of):
        with pytest.raises(DocumentError, match="the job odd has no pods that could be planned"):
            ask(job, cluster([]), PlanOptions())


def test_a_launcher_without_requests_is_a_pod() -> None:
    """It needs a place among the pods of some node, and nothing else."""
    assert {} == demand_of(mpijob("job"), CLUSTER, PlanOptions()).launcher


def test_a_users_affinity_counts() -> None:
    """As a template of theirs may have it."""
    job = mpijob("job")
    expression = {"key": "zone", "operator": "In", "values": ["z1"]}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }
    term = SelectorTerm(expressions=(Requirement("zone", "In", ("z1",)),))
    assert (term,) == demand_of(job, CLUSTER, PlanOptions()).affinity


@pytest.mark.parametrize(
    ("version", "host_network", "expected"),
    [
        (ApiVersion.V2BETA1, True, True),
        (ApiVersion.V2BETA1, False, False),
        (ApiVersion.V1, True, False),
    ],
)
def test_workers_that_take_a_port_of_their_node_need_one_each(
    version: ApiVersion, host_network: bool, expected: bool
) -> None:
    """The ssh servers of v2beta1 do in the node's network; without ssh nothing listens."""
    job = replace(JOB, pod=replace(JOB.pod, host_network=host_network))
    demand = demand_of(render(job, RenderContext(version)).job, CLUSTER, PlanOptions())
    assert expected is demand.one_per_node


def test_gpus_of_another_vendor_are_a_device() -> None:
    """They are counted as GPUs where nodes offer them."""
    amd = replace(CLUSTER.nodes[0], gpu_resource="amd.com/gpu", allocatable={"amd.com/gpu": 8})
    job = replace(JOB, gpus=0, pod=PodOptions(devices={"amd.com/gpu": "4"}))
    demand = demand_of(render(job, RenderContext()).job, cluster([amd]), PlanOptions())
    assert ("amd.com/gpu", 4) == (demand.gpu_resource, demand.gpus)


def test_axes_are_those_of_a_rank_for_each_gpu() -> None:
    """A job of another number of ranks is refused before anything is created."""
    parallel = Parallelism(tp=2, dp=4)
    demand = demand_of(
        render(JOB, RenderContext(ApiVersion.V2BETA1)).job, CLUSTER, PlanOptions(parallel=parallel)
    )
    assert parallel == demand.parallel
    with pytest.raises(UsageError, match="4 workers of 1 rank, 4 in all"):
        demand_of(mpijob("job"), CLUSTER, PlanOptions(parallel=parallel))


def test_a_worker_without_gpus_has_its_slots_as_ranks() -> None:
    """As its line in the hostfile says."""
    job = render(replace(JOB, gpus=0, slots=2), RenderContext(ApiVersion.V2BETA1)).job
    assert (
        8
        == (demand_of(job, CLUSTER, PlanOptions(parallel=Parallelism(dp=8))).parallel or Parallelism()).ranks
    )


def with_requests(job: Object, **requests: dict[str, str]) -> Object:
    """Return *job* whose pods of each role, by its key, request what is given."""
    (specs,) = [value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs")]
    for role, each in requests.items():
        specs[role]["template"]["spec"]["containers"] = [{"name": "c", "resources": {"requests": each}}]
    return job


def test_pods_that_are_alike_are_one_question() -> None:
    """A master that requests what a worker does is one more of them."""
    job = with_requests(
        training_job(PYTORCHJOB, {"Master": 1, "Worker": 3}),
        Master={"nvidia.com/gpu": "2"},
        Worker={"nvidia.com/gpu": "2"},
    )
    question = question_of(job, CLUSTER, PlanOptions())

    assert isinstance(question, Demand)
    assert (4, 2) == (question.workers, question.gpus)


def test_a_master_that_requests_more_is_a_role_of_its_own() -> None:
    """Before its workers, as in their numbers."""
    job = with_requests(
        training_job(PYTORCHJOB, {"Master": 1, "Worker": 3}),
        Master={"nvidia.com/gpu": "2", "cpu": "8"},
        Worker={"nvidia.com/gpu": "2"},
    )
    question = question_of(job, CLUSTER, PlanOptions(required_level="rack"))

    assert isinstance(question, GangDemand)
    assert "rack" == question.required_level
    assert [("master", 1, 2, {"cpu": 8000}), ("worker", 3, 2, {})] == [
        (name, demand.workers, demand.gpus, demand.requests) for name, demand in asked_roles(question)
    ]


def test_parameter_servers_serve_those_who_train() -> None:
    """The workers, or a chief alone; an evaluator goes anywhere, and a role with no pods is none."""
    with_workers = training_job(TFJOB, {"PS": 2, "Worker": 3, "Evaluator": 1, "Chief": 0})
    alone = training_job(TFJOB, {"Chief": 1, "PS": 2})
    found = [question_of(job, CLUSTER, PlanOptions()) for job in (with_workers, alone)]

    assert all(isinstance(question, GangDemand) for question in found)
    assert [
        [("worker", "", False), ("ps", "worker", False), ("evaluator", "", True)],
        [("chief", "", False), ("ps", "chief", False)],
    ] == [
        [(role.name, role.serves, role.anywhere) for role in question.roles]
        for question in found
        if isinstance(question, GangDemand)
    ]


def near_itself(rule: str, strength: str, **labels: str) -> Object:
    """Return an affinity for pods with *labels* on one node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    required = strength == "required"
    entry = term if required else {"weight": 1, "podAffinityTerm": term}
    return {rule: {f"{strength}DuringSchedulingIgnoredDuringExecution": [entry]}}


OWN = {"training.kubeflow.org/job-name": "job", "training.kubeflow.org/replica-type": "worker"}


@pytest.mark.parametrize(
    ("affinity", "spread", "slices"),
    [
        (near_itself("podAntiAffinity", "required", **OWN), Spread.REQUIRED, ()),
        (near_itself("podAntiAffinity", "preferred", **OWN), Spread.PREFERRED, ()),
        (near_itself("podAffinity", "required", **OWN), Spread.NONE, (Slice(3, "node"),)),
        (near_itself("podAffinity", "preferred", **OWN), Spread.NONE, ()),
        (near_itself("podAntiAffinity", "required", app="other"), Spread.NONE, ()),
    ],
)
def test_an_affinity_to_its_own_pods_spreads_or_packs_a_role(
    affinity: Object, spread: Spread, slices: tuple[Slice, ...]
) -> None:
    """By the labels that the operator gives them; that to other pods says nothing of the role."""
    job = training_job(TFJOB, {"PS": 1, "Worker": 3})
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = affinity
    question = question_of(job, CLUSTER, PlanOptions())

    assert isinstance(question, GangDemand)
    assert (spread, slices) == (question.roles[0].spread, question.roles[0].slices)


def test_pods_that_must_keep_apart_are_one_to_a_node() -> None:
    """Also where all are alike."""
    job = training_job(PYTORCHJOB, {"Worker": 3})
    affinity = near_itself("podAntiAffinity", "required", **OWN)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = affinity
    question = question_of(job, CLUSTER, PlanOptions())

    assert isinstance(question, Demand)
    assert question.one_per_node


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (PlanOptions(parallel=Parallelism(tp=2)), "--parallel"),
        (PlanOptions(coalesce=True), "--coalesce"),
        (PlanOptions(share_gpus=True), "--share-gpus"),
    ],
)
def test_what_roles_that_differ_cannot_have_is_refused(options: PlanOptions, flag: str) -> None:
    """With the flag, and the roles."""
    with pytest.raises(
        UsageError, match=f"{flag} is for jobs whose pods are all alike, and those of worker, ps"
    ):
        question_of(training_job(TFJOB, {"PS": 1, "Worker": 3}), CLUSTER, options)
