"""A cluster of realistic objects, and ways to spoil any
value in any of them as a hostile or broken writer would.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import strategies as st

from arena_topo.model import keys
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode
from arena_topo.model.text.json import cut
from tests.cluster.clusters import deployment
from tests.fakes import Answer, Call, unserved
from tests.objects import condition, mpijob
from tests.objects import pod as job_pod
from tests.topology.clusters import PRODUCT, agent_value
from tests.topology.fabrics import LEVELS, exact, hyper_node, network_topology
from tests.topology.objects import config_map, hami_register, hami_scores, koordinator_device, node, pod
from tests.topology.sources.test_dra import claim, gpu_slice
from tests.topology.sources.test_node_resource_topology import zones

HOSTILE_TEXT = "\x1b[2J\x9b\u202e\u200b\r\n\t</title><script>'\""
DEEP = "\u2bd1deep\u2bd1"
"""Stands for nesting that this program cannot write itself; ``body_of`` puts it in."""
_DEPTH = 3000

NUMBERS = (0, -1, 1, 255, 256, 10**6, 10**9, 2**31, 2**63 - 1, 2**64, 10**30, -(10**18), 0.5, 1e300, -0.0)
TEXTS = ("", "x", "-1", "0", "1e9", "9" * 30, "9" * 5000, "1e999", "NaN", "\u0663", HOSTILE_TEXT, "x" * 70_000,
         "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "(a+)+$", "a" * 300, ",".join(["1"] * 500))  # fmt: skip
VALUES: tuple[Any, ...] = (
    *NUMBERS, *TEXTS, None, True, False, [], {}, [[]], [{}], {"": None}, [1, "x", None], {"a": {"b": [1]}}, DEEP,
    list(range(3000)), {str(index): index for index in range(3000)}, ["x"] * 3000, [{}] * 3000,
)  # fmt: skip
JSON_TEXTS = (
    *(json.dumps(value) for value in VALUES),
    "1e999",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    "{",
    "\\",
    "[" * 2000,
)

RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=tuple(Slot(worker, "gpu-1", (worker,)) for worker in range(2)),
    worker_requests={keys.NVIDIA_GPU: 1},
    level="node",
    domain="gpu-1",
    hostnames={"gpu-1": "gpu-1"},
    requested_options={"policy": "restricted"},
)


def _planned_job() -> Object:
    job = mpijob("train", workers=2)
    job["metadata"]["annotations"] = {keys.PLAN: encode(RECORD), keys.ARENA_REQUESTED_GPUS: "2"}
    job["metadata"]["labels"] = {keys.PLANNED: "true"}
    fields: Object = {"f:metadata": {"f:annotations": {f"f:{keys.PLAN}": {}}}}
    job["metadata"]["managedFields"] = [{"manager": "x", "time": "2026-11-21T01:00:00Z", "fieldsV1": fields}]
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    launcher["metadata"] = {"annotations": {keys.CLAIMED_GPUS: "1"}}
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    worker["spec"] |= {
        "nodeSelector": {"kubernetes.io/hostname": "gpu-1"},
        "tolerations": [{"key": "a", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "initContainers": [
            {"name": "init", "resources": {"requests": {"cpu": "1"}}, "restartPolicy": "Always"}
        ],
        "priorityClassName": "high",
    }
    job["spec"]["runPolicy"] = {"suspend": False}
    job["status"] = {
        "conditions": [condition("Created", message="created", reason="r")],
        "startTime": "2026-11-21T01:00:00Z",
    }
    return job


def _failed_pod() -> Object:
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "m", "finishedAt": "2026-11-21T01:05:00Z"}
    status = {"name": "mpi", "ready": False, "restartCount": 1, "state": {"terminated": ended}}
    failed = job_pod("train-worker-1", phase="Failed")
    failed["status"]["containerStatuses"] = [status]
    return failed


def _pending_pod() -> Object:
    waiting = {
        "name": "mpi",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": "r", "message": "m"}},
    }
    pending = job_pod("train-worker-0", phase="Pending", node="")
    pending["status"] |= {"containerStatuses": [waiting], "initContainerStatuses": [waiting]}
    pending["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
    ]
    return pending


GPU_PODS = {
    "ack": {keys.ACK_ALLOCATION: '{"allocatedGPUs":{"0":["0"]}}'},
    "group": {keys.ACK_GPU_GROUP: "1"},
    "scheduler": {keys.KOORDINATOR_ALLOCATION: '{"allocatedGPUs":{"0":["2"]}}'},
    "koordinator": {keys.KOORDINATOR_DEVICES: '{"gpu":[{"minor":3}]}'},
    "hami": {keys.HAMI_ALLOCATED: "GPU-00000004-1111-2222-3333-444444444444,NVIDIA,1,0:;"},
}

OBJECTS: dict[str, list[Object]] = {
    "nodes": [
        node(
            labels={**PRODUCT, "topology.kubernetes.io/zone": "z", keys.ACK_SCHEDULE: keys.ACK_SCHEDULE_TOPOLOGY},
            annotations={keys.GPU_TOPOLOGY: agent_value(a=[0]), keys.HAMI_REGISTER: hami_register(count=1),
                         keys.HAMI_SCORE: hami_scores()},
        ),
        node("gpu-2", labels={**PRODUCT, "topology.kubernetes.io/zone": "z"}),
        node("cpu-1", gpus=0),
    ],
    "pods": [pod(name, annotations=annotations) for name, annotations in GPU_PODS.items()],
    "configmaps": [config_map()],
    "devices": [
        koordinator_device(
            status={"allocations": [{"type": "gpu", "entries": [{"name": "a", "namespace": "b", "minors": [0]}]}]}
        )
    ],
    "resourceslices": [gpu_slice(count=8)],
    "resourceclaims": [claim("c", ["gpu-0"], "a")],
    "noderesourcetopologies": [zones(node_0=4, node_1=4)],
    "topologies": [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": LEVELS}}
    ],
    "clusternetworktopologies": [network_topology(rack="row", row="")],
    "hypernodes": [
        hyper_node("leaf-1", 1, "Node", exact("gpu-1"), {"regexMatch": {"pattern": "^gpu-[0-9]+$"}}, tier_name="leaf"),
        hyper_node("leaf-2", 1, "Node", {"labelMatch": {"matchLabels": {"a": "b"}}}),
        hyper_node("spine", 2, "HyperNode", {"regexMatch": {"pattern": "leaf"}}),
    ],
    "mpijobs": [_planned_job()],
    "jobpods": [job_pod("train-launcher-x", role="launcher"), _pending_pod(), _failed_pod()],
    "resourcequotas": [
        {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
         "spec": {"hard": {"requests.nvidia.com/gpu": "8", "pods": "10"}}}
    ],
    "deployments": [deployment("mpi-operator", "mpioperator/mpi-operator:0.8.2", "--gang-scheduling=volcano")],
}  # fmt: skip

GROUPS = (
    "kubeflow.org/v2beta1", "resource.k8s.io/v1", "scheduling.koordinator.sh/v1alpha1", "topology.node.k8s.io/v1alpha2",
    "kueue.x-k8s.io/v1beta2", "topology.volcano.sh/v1alpha1",
)  # fmt: skip

TYPED = frozenset({"nodes", "pods", "jobpods", "deployments", "resourcequotas", "configmaps"})
"""Kinds that an API server checks itself: of these only labels,
annotations and data can hold whatever their writer likes.
"""
_FREE = frozenset({"annotations", "labels", "data"})

Path = tuple[Any, ...]


class Spoiled:
    """The objects of a cluster, the kinds among them that no API
    server would serve so, and what was done to which value.
    """

    def __init__(
        self,
        objects: Mapping[str, list[Object]],
        broken: frozenset[str] = frozenset(),
        changes: tuple[str, ...] = (),
    ) -> None:
        self.objects, self.broken, self.changes = objects, broken, changes

    def __repr__(self) -> str:
        # What a failure shows; the objects are megabytes, and of a dataclass hypothesis would show them all.
        return f"<{'; '.join(self.changes)}>"


@st.composite
def spoiled(draw: st.DrawFn, *kinds: str) -> Spoiled:
    """Return the cluster with up to three values of objects of *kinds* spoiled, or multiplied objects."""
    objects = dict(OBJECTS)
    broken: set[str] = set()
    changes: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds))
        items: list[Object] = deepcopy(objects[kind])
        path = draw(st.sampled_from(_PLACES[kind]))
        value = draw(_junk())
        how = draw(st.sampled_from(["set", "drop", "add", "text"]))
        objects[kind] = _changed(items, path, how, value, draw)
        changes.append(f"{kind} {cut(str(path))}: {how} {cut(repr(value))}")
        # Every server itself checks of any kind what it is, and its metadata but for the values of labels and
        # annotations.
        if path[1:2] in {("kind",), ("apiVersion",)} or (path[1:2] == ("metadata",) and not _is_free(path)):
            broken.add(kind)
        if kind in TYPED and not (
            _is_free(path)
            and ("json" in path or how in {"text", "drop"} or (isinstance(value, str) and value != DEEP))
        ):
            broken.add(kind)
        # What lists hold are objects, whatever these are.
        if not all(isinstance(item, dict) for item in objects[kind]):
            broken.add(kind)
    return Spoiled(objects, frozenset(broken), tuple(changes))


def _junk() -> st.SearchStrategy[Any]:
    # A copy: what is in a list or a mapping is spoiled further, and the next example draws the same ones.
    return st.sampled_from(VALUES).map(deepcopy)


def _is_free(path: Path) -> bool:
    # The value of an annotation may be any text; annotations as a whole are a mapping of texts.
    return any(step in _FREE for step in path[:-1])


def _places(value: Any, path: Path = ()) -> list[Path]:
    """Return the path of every value in *value*, also within texts that hold JSON, but for *value* itself."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return [path, *((*path, "json", *rest) for rest in _places(json.loads(value)) if rest)]
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [place for key, element in steps for place in _places(element, (*path, key))]
    return [path, *below] if path else below


def _changed(value: Any, path: Path, how: str, junk: Any, draw: st.DrawFn) -> Any:
    if path[:1] == ("json",):
        # A change before may have left another text here.
        try:
            document = json.loads(value)
        except (TypeError, ValueError, RecursionError):
            return value
        return json.dumps(_changed(document, path[1:], how, junk, draw))
    step, rest = path[0], path[1:]
    is_key, is_index = isinstance(step, str), isinstance(step, int)
    if not (is_key and isinstance(value, dict) and step in value) and not (
        is_index and isinstance(value, list) and len(value) > step
    ):
        return value
    if rest:
        value[step] = _changed(value[step], rest, how, junk, draw)
        return value
    match how:
        case "drop":
            del value[step]
        case "add" if isinstance(value, list):
            value += [deepcopy(value[step])] * draw(st.sampled_from([1, 40, 400]))
        case "add":
            value[draw(st.sampled_from(["x", "", HOSTILE_TEXT, "json"]))] = junk
        case "text" if isinstance(value[step], str):
            value[step] = draw(st.sampled_from(JSON_TEXTS))
        case _:
            value[step] = junk
    return value


def body_of(document: Any) -> bytes:
    """Return *document* as an API server would send it, with the nesting that stands for ``DEEP``."""
    deep = "[" * _DEPTH + "]" * _DEPTH
    # Within texts that hold JSON, and as a value itself; as a part of any other text it stays as it is.
    marker = json.dumps(DEEP)
    text = json.dumps(document)
    return text.replace(marker.replace("\\", "\\\\").replace('"', '\\"'), deep).replace(marker, deep).encode()


class RawAnswer(Answer):
    """An answer whose body was encoded before."""

    def read(self) -> bytes:
        """Return the body."""
        return body_of(self.body)


class Server:
    """Serves the objects of a cluster, and the pods of a job for the selector of its name."""

    def __init__(self, cluster: Spoiled) -> None:
        self.cluster = cluster

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        parts = call.path.strip("/").split("/")
        plural = next((part for part in reversed(parts) if part in OBJECTS), "")
        if call.path == "/apis":
            return Answer(body={"groups": [{"versions": [{"groupVersion": group}]} for group in GROUPS]})
        if call.path == "/version":
            return Answer(body={"gitVersion": "v1.36.3"})
        if call.method == "POST":
            return Answer(body={"status": {"allowed": True}})
        if not plural:
            return unserved()
        selects_job = "labelSelector" in call.query and plural == "pods"
        items = self.cluster.objects["jobpods" if selects_job else plural]
        if parts[-1] != plural:
            return RawAnswer(body=items[0] if items else {})
        return RawAnswer(body={"items": items})


_PLACES = {kind: _places(items) for kind, items in OBJECTS.items()}


@st.composite
def spoiled_parts(draw: st.DrawFn, items: list[Object]) -> list[Object]:
    """Return a copy of *items* with one to four values anywhere in them spoiled, all but their uids."""
    copies: list[Any] = deepcopy(items)
    places = [path for path in _places(items) if path[1:] != ("metadata", "uid")]
    # Most values lie deep within, and it is whole parts whose absence readers forget.
    holding = {place[:-1] for place in places}
    parts = [path for path in places if path[1:] and path in holding]
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places) | st.sampled_from(parts))
        how = draw(st.sampled_from(["set", "drop", "add", "text"]))
        copies = _changed(copies, path, how, draw(_junk()), draw)
    # A list that was multiplied holds the same objects again, and what was added to it need not be one.
    return [item for item in copies if isinstance(item, dict)]


_DEEPER = 0.85
"""The chance that not a value itself is spoiled, but one within it."""


def spoiled_body(body: bytes, random: Random, done: list[str]) -> bytes:
    """Return *body* without a value anywhere in it, or with another one, noted in *done*; text as it is."""
    try:
        document: Any = json.loads(body)
    # What was spoiled before may nest too deep.
    except (ValueError, RecursionError):
        return body
    root: dict[str, Any] = {"": document}
    within: Any = root
    key: Any = ""
    place: list[Any] = []
    while isinstance(within[key], dict | list) and within[key] and random.random() < _DEEPER:
        within = within[key]
        key = random.choice([*within] if isinstance(within, dict) else range(len(within)))
        place.append(key)
    if within is not root and random.random() < 1 / 4:
        del within[key]
        done.append(f"{place} is gone")
    else:
        within[key] = deepcopy(random.choice(VALUES))
        done.append(f"{place} is {cut(repr(within[key]), 60)}")
    return body_of(root[""])
