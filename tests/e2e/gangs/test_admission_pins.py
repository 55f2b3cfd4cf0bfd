"""Workers of the real operator get their own place at creation, by the policy that a real API server runs."""

import pytest

from arena_topo.pin.run_lists import pin_annotations
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.machines.pods import nodes_of, replaced, running
from tests.controlplane.polling import eventually
from tests.e2e.pinning import HOSTNAME, mpijob, running_workers, tried

_GPU = "nvidia.com/gpu"


pytestmark = pytest.mark.usefixtures("policy")


def test_each_worker_runs_on_its_planned_node_and_comes_back_to_it(
    kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """Also when it is recreated; the launcher is left to the scheduler."""
    one, two = gpu_nodes
    planned = [two, one, one, two]
    kube.create(mpijob("job", 4, {_GPU: "2"}, pin_annotations(nodes=planned)), namespace)
    workers = running_workers(kube, namespace, "job", 4)

    assert planned == nodes_of(workers)
    assert [two, one] == nodes_of(
        [replaced(kube, namespace, workers[i]["metadata"]["name"], running) for i in (3, 1)]
    )
    launcher = eventually(lambda: pods.of_job(kube, namespace, "job", "launcher"), "the launcher")[0]
    assert "nodeSelector" not in launcher["spec"]


def test_a_job_that_is_scaled_up_gets_workers_without_a_place(
    kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """They are not refused, and run where the scheduler finds room."""
    one, _ = gpu_nodes
    kube.create(mpijob("job", 2, {_GPU: "2"}, pin_annotations(nodes=[one, one])), namespace)
    running_workers(kube, namespace, "job", 2)
    change = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}}
    kube.patch("kubeflow.org/v2beta1", "MPIJob", "job", change, namespace)
    workers = running_workers(kube, namespace, "job", 4)

    pinned = [(pod["spec"].get("nodeSelector") or {}).get(HOSTNAME) for pod in workers]
    assert [one, one, None, None] == pinned


def test_a_launcher_that_works_too_moves_nobody(kube: Kube, namespace: str, gpu_nodes: list[str]) -> None:
    """The operator then counts its workers from one in their label, and from nought in their names."""
    planned = list(reversed(gpu_nodes))
    job = mpijob("job", 2, {_GPU: "2"}, pin_annotations(nodes=planned))
    job["spec"]["runLauncherAsWorker"] = True
    kube.create(job, namespace)
    workers = running_workers(kube, namespace, "job", 2)

    assert ["1", "2"] == [pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] for pod in workers]
    assert planned == nodes_of(workers)


def test_a_node_is_named_by_its_label(kube: Kube, namespace: str) -> None:
    """Which may differ from its name."""
    label = {HOSTNAME: f"host-of-{namespace}"}
    (node,) = create_nodes(kube, [NodeSpec(f"node-of-{namespace}", labels=label)])
    kube.create(mpijob("job", 1, {_GPU: "1"}, pin_annotations(nodes=[label[HOSTNAME]])), namespace)
    workers = running_workers(kube, namespace, "job", 1)
    delete_nodes(kube, [node])

    assert [node] == nodes_of(workers)


def test_exact_gpus_are_claimed_by_index(kube: Kube, namespace: str, gpu_nodes: list[str]) -> None:
    """Two workers share a node, and each has the GPUs that it was planned, also when it is recreated."""
    prefix = namespace
    slices = [_slice(prefix, node) for node in gpu_nodes]
    kube.create(_device_class(prefix))
    for each in slices:
        kube.create(each)
    one, two = gpu_nodes
    planned = [(one, (4, 7)), (one, (0, 1)), (two, (0, 3)), (two, (5, 6))]
    for worker, (node, gpus) in enumerate(planned):
        kube.create(_claim(prefix, f"job-gpus-{worker}", [_uuid(node, gpu) for gpu in gpus]), namespace)
    wanted = pin_annotations(
        nodes=[node for node, _ in planned], claims=[f"job-gpus-{worker}" for worker in range(4)]
    )
    kube.create(mpijob("job", 4, {}, wanted), namespace)
    workers = running_workers(kube, namespace, "job", 4)

    expected = [(node, {f"gpu-{gpu}" for gpu in gpus}) for node, gpus in planned]
    assert expected == [_devices(kube, namespace, pod) for pod in workers]
    again = replaced(kube, namespace, workers[1]["metadata"]["name"], running)
    assert expected[1] == _devices(kube, namespace, again)
    used = [container["resources"]["claims"] for container in again["spec"]["containers"]]
    assert [[{"name": "gpus"}]] == used
    for each in slices:
        kube.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])
    kube.delete("resource.k8s.io/v1", "DeviceClass", prefix)


@pytest.mark.parametrize(("worker", "gpus"), [(0, "GPU-a,GPU-b"), (1, "GPU-c"), (2, None), (3, None)])
def test_hamis_gpus_are_annotated_by_index(kube: Kube, worker: int, gpus: str | None) -> None:
    """As HAMi's scheduler reads them; a worker without any is left alone."""
    wanted = pin_annotations(gpus=[["GPU-a", "GPU-b"], ["GPU-c"], []])
    made = tried(kube, f"job-worker-{worker}", wanted)

    assert gpus == (made["metadata"].get("annotations") or {}).get("nvidia.com/use-gpuuuid")


@pytest.mark.parametrize(
    ("name", "annotations"),
    [
        ("job-worker-0", {"note": "0:a,1:"}),
        ("job-launcher", pin_annotations(nodes=["a"])),
        ("job-launcher-x7k2p", pin_annotations(nodes=["a"])),
        ("job-worker-0-side", pin_annotations(nodes=["a"])),
    ],
)
def test_pods_that_are_no_pinned_workers_are_untouched(
    kube: Kube, name: str, annotations: dict[str, str]
) -> None:
    """Whatever they are called, and also where v1alpha1 gives the launcher the workers' template."""
    made = tried(kube, name, annotations)

    assert annotations == made["metadata"]["annotations"]
    assert {"nodeSelector", "resourceClaims"}.isdisjoint(made["spec"])


_REPLICA = {"training.kubeflow.org/operator-name": "pytorchjob-controller"}
_INDEX, _COMPLETION = "training.kubeflow.org/replica-index", "batch.kubernetes.io/job-completion-index"
_SET = {"jobset.sigs.k8s.io/jobset-name": "set"}
_JOB = "jobset.sigs.k8s.io/job-index"
_TWO_PER_JOB = {"arena-topo.dev/pods-per-job": "2"}


@pytest.mark.parametrize(
    ("name", "labels", "extra", "node"),
    [
        ("job-master-0", {**_REPLICA, _INDEX: "0"}, {}, "a"),
        ("job-ps-2", {**_REPLICA, _INDEX: "2"}, {}, "c"),
        ("job-worker-1", {**_REPLICA, _INDEX: "1"}, {}, "b"),
        ("job-1-", {_COMPLETION: "1"}, {}, "b"),
        ("set-node-0-1-", {**_SET, _COMPLETION: "1", _JOB: "0"}, _TWO_PER_JOB, "b"),
        ("set-node-1-1-", {**_SET, _COMPLETION: "1", _JOB: "1"}, _TWO_PER_JOB, "d"),
        ("set-node-0-3-", {**_SET, _COMPLETION: "3", _JOB: "0"}, {}, "d"),
        ("set-node-1-0-", {**_SET, _COMPLETION: "0", _JOB: "1"}, {}, None),
        ("job-4-", {_COMPLETION: "4"}, {}, None),
    ],
    ids=[
        "master",
        "parameter server",
        "worker",
        "indexed Job",
        "first Job of a set",
        "second Job of a set",
        "set of one Job",
        "set that does not tell the size of its Jobs",
        "beyond the list",
    ],
)
def test_each_kind_has_its_index(
    kube: Kube, name: str, labels: dict[str, str], extra: dict[str, str], node: str | None
) -> None:
    """By the labels that its operator puts on its pods, whatever they are called; the lists are taken off."""
    made = tried(kube, name, {**pin_annotations(nodes=["a", "b", "c", "d"]), **extra}, labels=labels)

    assert node == (made["spec"].get("nodeSelector") or {}).get(HOSTNAME)
    assert extra == (made["metadata"].get("annotations") or {})


def test_a_role_begins_in_the_lists_where_its_template_says(kube: Kube) -> None:
    """Workers of a PyTorchJob come after the master."""
    wanted = {**pin_annotations(nodes=["a", "b", "c"]), "arena-topo.dev/pin-offset": "1"}
    made = tried(kube, "job-worker-1", wanted, labels={**_REPLICA, _INDEX: "1"})

    assert "c" == made["spec"]["nodeSelector"][HOSTNAME]
    assert not made["metadata"].get("annotations")


def test_a_worker_of_a_launcher_that_works_too_is_known_by_its_name(kube: Kube) -> None:
    """The label of the MPI operator then counts from one."""
    labels = {"training.kubeflow.org/operator-name": "mpi-operator", _INDEX: "1"}
    made = tried(kube, "job-worker-0", pin_annotations(nodes=["a", "b"]), labels=labels)

    assert "a" == made["spec"]["nodeSelector"][HOSTNAME]


def test_one_of_a_thousand_pods_of_a_set_finds_its_place(kube: Kube) -> None:
    """Also where its index is a product, within what the API server lets an expression cost."""
    names = [f"{i:063d}" for i in range(1000)]
    claims = [f"{'c' * 49}-gpus-{i:04d}" for i in range(1000)]
    wanted = {**pin_annotations(nodes=names, claims=claims), "arena-topo.dev/pods-per-job": "100"}
    made = tried(kube, "set-node-9-98-", wanted, labels={**_SET, _COMPLETION: "98", _JOB: "9"})

    assert names[998] == made["spec"]["nodeSelector"][HOSTNAME]
    assert claims[998] == made["spec"]["resourceClaims"][0]["resourceClaimName"]


def test_a_pod_without_annotations_is_untouched(kube: Kube) -> None:
    """The policy asks nothing of it."""
    assert "nodeSelector" not in tried(kube, "job-worker-0", {})["spec"]


def test_what_the_user_selects_is_kept_beside_the_pin(kube: Kube) -> None:
    """And so are other annotations; the lists are taken off."""
    made = tried(
        kube,
        "my-worker-7-worker-1",
        {"note": "x", **pin_annotations(nodes=["a", "b"])},
        nodeSelector={"pool": "v100"},
    )

    assert {"pool": "v100", HOSTNAME: "b"} == made["spec"]["nodeSelector"]
    assert {"note": "x"} == made["metadata"]["annotations"]


@pytest.mark.parametrize("chosen", ["a", "b", "elsewhere"])
def test_a_node_that_somebody_else_chose_stays(kube: Kube, chosen: str) -> None:
    """Anyone who made the pod may have set it, or a policy before ours; only the lists go."""
    made = tried(
        kube, "job-worker-1", pin_annotations(nodes=["a", "b"]), nodeSelector={HOSTNAME: chosen, "x": "y"}
    )

    assert {HOSTNAME: chosen, "x": "y"} == made["spec"]["nodeSelector"]
    assert not made["metadata"].get("annotations")


def test_a_pod_of_another_tenant_is_as_it_was_sent(kube: Kube, namespace: str) -> None:
    """Also where it is called and labelled like a worker of a
    job that is pinned, and has annotations of its own.
    """
    wanted = {"arena-topo.dev/planned": "true", "pin-nodes": "0:a", "nvidia.com/use-gpuuuid": "GPU-x"}
    sent = {"nodeSelector": {HOSTNAME: "mine"}, "containers": [{"name": "c", "image": "i", "resources": {}}]}
    labels = {**_REPLICA, _INDEX: "0", _COMPLETION: "0"}
    made = tried(kube, "job-worker-0", wanted, namespace, labels, **sent)

    assert wanted == made["metadata"]["annotations"]
    assert {HOSTNAME: "mine"} == made["spec"]["nodeSelector"]
    assert {"resourceClaims", "schedulingGroup"}.isdisjoint(made["spec"])
    assert "claims" not in made["spec"]["containers"][0].get("resources", {})


@pytest.mark.parametrize("text", ["node-a", "0:a,x:b,2:", ""])
def test_a_list_that_cannot_be_read_keeps_the_pod_from_being_made(kube: Kube, text: str) -> None:
    """A worker without its place does not slip through."""
    with pytest.raises(KubeError, match=r"policy 'arena-topo' .* denied request"):
        tried(kube, "job-worker-1", {"arena-topo.dev/pin-nodes": text})


_REFUSED = {
    "a claim of another namespace": ({"pin-claims": "0:kube-system/theirs,1:"}, "job-worker-0"),
    "a claim by a path": ({"pin-claims": "0:../theirs,1:"}, "job-worker-0"),
    "a node that is no value of a label": ({"pin-nodes": "0:a b,1:"}, "job-worker-0"),
    "a node with an operator": ({"pin-nodes": "0:a' || true,1:"}, "job-worker-0"),
    "an offset that is no number": ({"pin-nodes": "0:a,1:", "pin-offset": "x"}, "job-worker-0"),
    "an offset beyond all": ({"pin-nodes": "0:a,1:", "pin-offset": "9" * 30}, "job-worker-0"),
    "an offset before the first": ({"pin-nodes": "0:a,1:", "pin-offset": "-1"}, "job-worker-0"),
    "a number beyond all in its name": ({"pin-nodes": "0:a,1:"}, "job-worker-" + "9" * 30),
}


@pytest.mark.parametrize(("lists", "name"), _REFUSED.values(), ids=_REFUSED.keys())
def test_lists_that_ask_for_what_is_not_theirs_make_no_pod(
    kube: Kube, lists: dict[str, str], name: str
) -> None:
    """Neither other namespaces nor other fields can be reached, and nothing wraps around."""
    with pytest.raises(KubeError) as refused:
        tried(kube, name, {f"arena-topo.dev/{key}": text for key, text in lists.items()})
    assert refused.value.code in (403, 422)


def test_a_pod_that_names_its_node_gets_no_other(kube: Kube) -> None:
    """Its creator went past the scheduler; where the pin differs, that node's kubelet refuses the pod."""
    made = tried(kube, "job-worker-1", pin_annotations(nodes=["a", "b"]), nodeName="elsewhere")

    assert ("elsewhere", {HOSTNAME: "b"}) == (made["spec"]["nodeName"], made["spec"]["nodeSelector"])


def test_a_claim_of_the_users_own_makes_way_for_the_planned_one(kube: Kube) -> None:
    """Under the name that the policy gives it; others stay, and so does what containers use of them."""
    own = [{"name": name, "resourceClaimName": "mine"} for name in ("gpus", "other")]
    made = tried(kube, "job-worker-0", pin_annotations(claims=["planned"]), resourceClaims=own)

    assert {"gpus": "planned", "other": "mine"} == {
        each["name"]: each["resourceClaimName"] for each in made["spec"]["resourceClaims"]
    }


@pytest.mark.parametrize("worker", [0, 7, 499, 999])
def test_one_of_a_thousand_workers_finds_its_place(kube: Kube, worker: int) -> None:
    """On host names and claims of the greatest length, within what the API server lets an expression cost."""
    names = [f"{i:063d}" for i in range(1000)]
    claims = [f"{'c' * 49}-gpus-{i:04d}" for i in range(1000)]
    made = tried(kube, f"job-worker-{worker}", pin_annotations(nodes=names, claims=claims))

    assert names[worker] == made["spec"]["nodeSelector"][HOSTNAME]
    assert claims[worker] == made["spec"]["resourceClaims"][0]["resourceClaimName"]
    assert not made["metadata"].get("annotations")


def test_gpus_of_a_thousand_workers_find_theirs(kube: Kube) -> None:
    """Four UUIDs each, eight workers a node."""
    uuids = [[f"GPU-{worker:08d}-0000-0000-0000-{gpu:012d}" for gpu in range(4)] for worker in range(1000)]
    wanted = pin_annotations(nodes=[f"{i // 8:063d}" for i in range(1000)], gpus=uuids)
    made = tried(kube, "job-worker-998", wanted)

    assert ",".join(uuids[998]) == made["metadata"]["annotations"]["nvidia.com/use-gpuuuid"]


def test_the_thousandth_and_first_is_not_refused(kube: Kube) -> None:
    """A list that ends is no error."""
    made = tried(kube, "job-worker-1000", pin_annotations(nodes=[f"n-{i}" for i in range(1000)]))

    assert "nodeSelector" not in made["spec"]


_LISTS = ("pin-nodes", "pin-gpus", "pin-claims")
_HOSTILE = {
    "entries without a colon": ",".join(["x"] * 125_000),
    "empty entries": "," * 260_000,
    "numbers alone": "1" * 260_000,
    "a number beyond all": "0:a," + "9" * 200_000 + ":b",
    "entries that begin with another one's": ",".join(["0:a", "x:b"] * 30_000),
    "more runs than a plan has workers": ",".join(f"{i}:" for i in range(30_000)),
    "the same run": ",".join(["0:"] * 80_000),
}


@pytest.mark.parametrize("key", _LISTS)
@pytest.mark.parametrize("text", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_a_list_that_nobody_wrote_for_a_job_is_refused(kube: Kube, key: str, text: str) -> None:
    """By its form, or the number of its runs: an API server
    that looked at each entry would be busy for half a minute.
    """
    with pytest.raises(KubeError, match=r"policy 'arena-topo' .* denied request"):
        tried(kube, "job-worker-1", {f"arena-topo.dev/{key}": text})


@pytest.mark.parametrize("worker", [0, 100, 101, 102, 2_500, 4_998, 4_999])
def test_one_of_five_thousand_workers_finds_its_place(kube: Kube, worker: int) -> None:
    """With a node and a claim for each: 240 KiB."""
    names = [f"gpu-node-{i:09d}" for i in range(5_000)]
    claims = [f"job-gpus-{i}" for i in range(5_000)]
    made = tried(kube, f"job-worker-{worker}", pin_annotations(nodes=names, claims=claims))

    assert names[worker] == made["spec"]["nodeSelector"][HOSTNAME]
    assert claims[worker] == made["spec"]["resourceClaims"][0]["resourceClaimName"]


@pytest.mark.parametrize("worker", [0, 9, 101, 10_200, 123_456, 999_999])
def test_a_run_is_found_by_its_beginning_in_every_block(kube: Kube, worker: int) -> None:
    """Runs of ten workers, as many as a list may have: the
    one that begins last before the worker is its own.
    """
    names = [f"n{i}" for i in range(10_000)]
    text = ",".join([*(f"{10 * i}:{name}" for i, name in enumerate(names)), "100000:"])
    made = tried(kube, f"job-worker-{worker}", {"arena-topo.dev/pin-nodes": text})

    expected = names[worker // 10] if worker < 100_000 else None
    assert expected == (made["spec"].get("nodeSelector") or {}).get(HOSTNAME)


def _uuid(node: str, gpu: int) -> str:
    return f"GPU-{node}-{gpu}"


def _device_class(prefix: str) -> Object:
    """Return a class of the devices of one test's driver."""
    selector = {"cel": {"expression": f"device.driver == '{prefix}.example.com'"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": prefix},
        "spec": {"selectors": [selector]},
    }


def _slice(prefix: str, node: str) -> Object:
    """Return what a driver publishes of the eight GPUs of *node*."""
    devices = [
        {"name": f"gpu-{gpu}", "attributes": {"uuid": {"string": _uuid(node, gpu)}}} for gpu in range(8)
    ]
    spec = {
        "driver": f"{prefix}.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    metadata = {"name": f"{prefix}-{node}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def _claim(prefix: str, name: str, uuids: list[str]) -> Object:
    """Return a claim of exactly the GPUs *uuids*."""
    listed = ", ".join(f"'{uuid}'" for uuid in uuids)
    expression = f"device.attributes['{prefix}.example.com'].uuid in [{listed}]"
    exactly = {
        "deviceClassName": prefix,
        "count": len(uuids),
        "selectors": [{"cel": {"expression": expression}}],
    }
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def _devices(kube: Kube, namespace: str, pod: Object) -> tuple[str, set[str]]:
    """Return the node and the devices that a pod's claim got."""
    name = pod["spec"]["resourceClaims"][0]["resourceClaimName"]
    claim = kube.get("resource.k8s.io/v1", "ResourceClaim", name, namespace)
    results = claim["status"]["allocation"]["devices"]["results"]
    (pool,) = {each["pool"] for each in results}
    assert pool == pod["spec"]["nodeName"]
    return pool, {each["device"] for each in results}
