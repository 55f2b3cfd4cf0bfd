"""All workers of a gang start or none: on kube-scheduler's
own PodGroups and on coscheduling, with real schedulers.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from arena_topo.gang.backends import decorate
from arena_topo.manifest.gang import decorated, gang_of
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.plan_record import Stage
from tests.controlplane.availability import require_built
from tests.controlplane.components import install
from tests.controlplane.components.options import coscheduling, native_gang
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, remove_pods
from tests.controlplane.machines.pods import MPIJOB, nodes_of
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, plan, replica
from tests.e2e.pinning import admission_policy, mpijob, running_workers

_GPU = "nvidia.com/gpu"
_GROUPS = {
    "native": ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    "coscheduling": ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
}

pytestmark = pytest.mark.controlplane("coscheduling")


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run both schedulers over two servers of eight GPUs, and an operator that makes no gangs itself."""
    require_built(pytestconfig)
    with ControlPlane(replace(native_gang(), coscheduling=True)) as plane, admission_policy(plane):
        create_nodes(plane.kube, [NodeSpec("gpu-1"), NodeSpec("gpu-2")])
        yield plane


@pytest.fixture
def space(cluster: ControlPlane) -> Iterator[str]:
    """Name of a namespace; its pods, and what its jobs reserved, are gone after the test."""
    kube, name = cluster.kube, f"t-{uuid.uuid4().hex[:8]}"
    kube.create(install.namespace(name))
    kube.wait_for("v1", "ServiceAccount", "default", name)
    yield name
    for job in kube.list(*MPIJOB, name):
        kube.delete(*MPIJOB, job["metadata"]["name"], name)
        kube.wait_gone(*MPIJOB, job["metadata"]["name"], name)
    kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(kube, name), f"the end of the pods in {name}")


def test_a_gang_of_four_starts_only_when_four_fit(cluster: ControlPlane, space: str, backend: str) -> None:
    """With room for three it waits whole; then its launcher starts too."""
    kube = cluster.kube
    kube.create(pod_of_gang("filler", 4), space)
    kube.wait_for("v1", "Pod", "filler", space, until=pods.running)
    create_decorated(kube, space, mpijob("job", 4, {_GPU: "4"}, {}), backend)
    wait_until_all_wait(kube, space, [f"job-worker-{at}" for at in range(4)])

    make_room(kube, space, "filler")
    running_workers(kube, space, "job", 4)
    eventually(lambda: pods.of_job(kube, space, "job", "launcher"), "the launcher, which no gang counts")


def test_two_gangs_that_fit_only_half_never_block_each_other(
    cluster: ControlPlane, space: str, backend: str
) -> None:
    """Their pods come in turns, three of four GPUs each, on sixteen: one runs whole, and then the other."""
    kube = cluster.kube
    come_in_turns(kube, space, backend)
    first = eventually(lambda: whole(kube, space), f"one of two gangs to run: {backend}")
    (second,) = {"a", "b"} - {first}
    wait_until_all_wait(kube, space, members(second))

    make_room(kube, space, *members(first))
    eventually(lambda: started(kube, space, second) == 3, f"the other gang to run: {backend}")


def test_without_a_gang_they_do(cluster: ControlPlane, space: str) -> None:
    """The stock scheduler starts two of each: both wait for a third that never fits."""
    kube = cluster.kube
    come_in_turns(kube, space, "")
    eventually(lambda: refused(kube, space) == {"a-worker-2", "b-worker-2"}, "the third pods to be refused")

    # Whom the scheduler has chosen gets its node a moment after the others are refused for it.
    eventually(
        lambda: (2, 2) == (started(kube, space, "a"), started(kube, space, "b")), "the others to start"
    )


def test_an_operator_that_makes_the_group_itself_is_told_its_size(pytestconfig: pytest.Config) -> None:
    """Left alone it would count the launcher, which waits for the workers, and nothing would ever start."""
    require_built(pytestconfig)
    with ControlPlane(coscheduling()) as plane:
        kube, space = plane.kube, "default"
        create_nodes(kube, [NodeSpec("gpu-1"), NodeSpec("gpu-2")])
        kube.create(pod_of_gang("filler", 4), space)
        create_decorated(
            kube, space, mpijob("job", 4, {_GPU: "4"}, {}), "coscheduling", "scheduler-plugins-scheduler"
        )
        wait_until_all_wait(kube, space, [f"job-worker-{at}" for at in range(4)])
        make_room(kube, space, "filler")
        running_workers(kube, space, "job", 4)
        group = kube.get(*_GROUPS["coscheduling"], "job", space)
        eventually(lambda: pods.of_job(kube, space, "job", "launcher"), "the launcher")
        kube.create(mpijob("alone", 4, {_GPU: "4"}, {}), space)
        alone = kube.wait_for(*_GROUPS["coscheduling"], "alone", space)

    assert (4, 5) == (group["spec"]["minMember"], alone["spec"]["minMember"])


def test_a_job_that_is_submitted_has_its_gang_and_its_places(
    cluster: ControlPlane, space: str, backend: str
) -> None:
    """Through the tool itself: planned, pinned by the admission policy, and its PodGroup its own."""
    kube, arena = cluster.kube, Arena(cluster.kubeconfig("root", ["system:masters"], namespace=space))
    outcome = arena(
        "submit", "mpi", "--name=job", "--image=i", "--workers=4", "--gpus=4", "--gang", "--gputopology=true",
        f"--gang-scheduler={backend}", "--pin=workers", "c",
    )  # fmt: skip
    assert 0 == outcome.code, outcome.err
    workers = running_workers(kube, space, "job", 4)
    group = kube.get(*_GROUPS[backend], "job-gang", space)

    pinned = [pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] for pod in workers]
    assert pinned == nodes_of(workers)
    assert ["gpu-1", "gpu-1", "gpu-2", "gpu-2"] == sorted(pinned)
    job = kube.get(*MPIJOB, "job", space)
    assert [job["metadata"]["uid"]] == [owner["uid"] for owner in group["metadata"]["ownerReferences"]]
    assert f"PodGroup {group['metadata']['name']}" in outcome.err


@pytest.mark.usefixtures("lease")
def test_a_gang_that_waits_for_the_controller_keeps_its_topology(
    cluster: ControlPlane, space: str, backend: str
) -> None:
    """Submitted with no room, it is not left to its own scheduler:
    it starts whole, in its PodGroup, where it was planned.
    """
    kube, arena = cluster.kube, Arena(cluster.kubeconfig("root", ["system:masters"], namespace=space))
    with replica(arena):
        assert 0 == submit_gang(arena, "first", 2, 8, f"--gang-scheduler={backend}").code
        running_workers(kube, space, "first", 2)
        late = submit_gang(arena, "late", 4, 4, f"--gang-scheduler={backend}")
        assert 0 == late.code, late.err
        assert "late waits for a placement" in late.err
        assert "starts anywhere" not in late.err
        eventually(lambda: 1 == plan(kube, space, "late").position, "its position in the queue")
        assert [] == pods.of_job(kube, space, "late", "worker")
        end(kube, space, "first")
        eventually(lambda: Stage.CONFIRMED is plan(kube, space, "late").stage, "its place")
        eventually(lambda: all_run_as_others_come(kube, space, "late", 4), "its workers to run")
        workers = running_workers(kube, space, "late", 4)
    record = plan(kube, space, "late")
    assert "admission" == record.enforcement.value
    assert [slot.node for slot in record.slots] == nodes_of(workers)
    assert nodes_of(workers) == [each["spec"]["nodeSelector"]["kubernetes.io/hostname"] for each in workers]
    group = kube.get(*_GROUPS[backend], "late-gang", space)
    names = {_group_of(each, backend) for each in workers}
    assert {"late-gang"} == names
    assert 4 == _size_of(group, backend)


def _group_of(worker: Object, backend: str) -> str:
    """Return the PodGroup that a worker's pod names."""
    if backend == "native":
        return str(worker["spec"]["schedulingGroup"]["podGroupName"])
    return str(worker["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"])


def _size_of(group: Object, backend: str) -> int:
    """Return how many pods a PodGroup starts together."""
    spec = group["spec"]
    return int(spec["schedulingPolicy"]["gang"]["minCount"] if backend == "native" else spec["minMember"])


@pytest.fixture(scope="module")
def plane(cluster: ControlPlane) -> ControlPlane:
    """Return these tests' own plane, for what every test of a controller needs."""
    return cluster


@pytest.fixture(params=list(_GROUPS))
def backend(request: pytest.FixtureRequest) -> str:
    """Return each of the two back-ends."""
    return str(request.param)


def known(gang: Gang, backend: str, operator: str = "") -> Decoration:
    """Return what *backend* adds to *gang* on these clusters."""
    return decorate(backend, replace(gang, api="v1alpha2", admission=True, operator_gangs=operator))


def create_decorated(kube: Kube, namespace: str, job: Object, backend: str, operator: str = "") -> None:
    """Create a job and its companions as the product does: the job first, and owner of the others."""
    rendered = {**job, "metadata": {**job["metadata"], "namespace": namespace}}
    decoration = known(gang_of(rendered), backend, operator)
    made = kube.create(decorated(rendered, decoration), namespace)
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": "job",
        "uid": made["metadata"]["uid"],
    }
    for companion in decoration.companions:
        kube.create(
            {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner]}}, namespace
        )


def pod_of_gang(name: str, gpus: int, decoration: Decoration | None = None) -> Object:
    """Return a pod of *gpus* GPUs, or none, with what *decoration* adds to a worker."""
    added = decoration or Decoration()
    container = {"name": "mpi", "image": "i", "resources": {"limits": {_GPU: str(gpus)} if gpus else {}}}
    scheduler = {"schedulerName": added.scheduler_name} if added.scheduler_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**added.pod_labels, **added.worker_labels},
            "annotations": {**added.pod_annotations, **added.worker_annotations},
        },
        "spec": {"containers": [container], **scheduler},
    }


def make_room(kube: Kube, namespace: str, *names: str) -> None:
    """Delete pods, and let a small one come.

    Coscheduling 0.34 looks at a gang that it has refused when a pod comes, and not when one goes
    (EventsToRegister).
    """
    for name in names:
        kube.delete("v1", "Pod", name, namespace, gracePeriodSeconds="0")
    for name in names:
        kube.wait_gone("v1", "Pod", name, namespace)
    kube.create(pod_of_gang("small", 0), namespace)


def all_run_as_others_come(kube: Kube, namespace: str, job: str, count: int) -> bool:
    """Whether *count* workers of *job* run; a small pod comes
    at each look, for the reason that ``make_room`` tells.
    """
    kube.create(pod_of_gang(f"small-{uuid.uuid4().hex[:8]}", 0), namespace)
    return count == sum(map(pods.running, pods.of_job(kube, namespace, job, "worker")))


def members(gang: str) -> list[str]:
    """Return the names of a gang's pods."""
    return [f"{gang}-worker-{at}" for at in range(3)]


def come_in_turns(kube: Kube, namespace: str, backend: str) -> None:
    """Create the pods of gangs ``a`` and ``b`` in turns,
    three of four GPUs each; no back-end leaves them pods.
    """
    decorations: dict[str, Decoration | None] = {"a": None, "b": None}
    for name in decorations if backend else ():
        rendered = mpijob(name, 3, {_GPU: "4"}, {})
        rendered["metadata"]["namespace"] = namespace
        decorations[name] = added = known(gang_of(rendered), backend)
        for companion in added.companions:
            kube.create(companion, namespace)
    for one, other in zip(members("a"), members("b"), strict=True):
        kube.create(pod_of_gang(one, 4, decorations["a"]), namespace)
        kube.create(pod_of_gang(other, 4, decorations["b"]), namespace)


def started(kube: Kube, namespace: str, gang: str) -> int:
    """Return how many pods of a gang have a node."""
    found = (kube.find("v1", "Pod", name, namespace) for name in members(gang))
    return sum(bool(each and each["spec"].get("nodeName")) for each in found)


def whole(kube: Kube, namespace: str) -> str:
    """Return the gang that runs whole, while the other has nothing."""
    counts = {gang: started(kube, namespace, gang) for gang in ("a", "b")}
    return next((gang for gang in counts if sorted(counts.values()) == [0, 3] and counts[gang] == 3), "")


def refused(kube: Kube, namespace: str, named: Sequence[str] = ()) -> set[str]:
    """Return the names of pods that a scheduler has looked at and found no place for."""
    return {
        each["metadata"]["name"]
        for each in kube.list("v1", "Pod", namespace)
        for condition in each["status"].get("conditions") or ()
        if (condition["type"], condition["status"]) == ("PodScheduled", "False")
        and not each["spec"].get("nodeName")
        and (not named or each["metadata"]["name"] in named)
    }


def wait_until_all_wait(kube: Kube, namespace: str, names: Sequence[str]) -> None:
    """Return once a scheduler has refused every one of *names*; none of them has a node then."""
    check: Callable[[], bool] = lambda: refused(kube, namespace, names) == set(names)  # noqa: E731
    eventually(check, f"{', '.join(names)} to be refused together")
