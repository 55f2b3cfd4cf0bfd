"""What the planner is asked is what the pods will ask of kube-scheduler, in every version of MPIJob."""

from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration
from arena_topo.model.job.job_spec import PodOptions
from arena_topo.model.plan.parallelism import Parallelism
from tests.jobs.placement.specs import JOB
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
