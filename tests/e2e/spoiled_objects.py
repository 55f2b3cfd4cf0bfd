"""Objects of all kinds that an API server admits, with values spoiled by chance, as tenants may write them.

Most of what is spoiled at random the server refuses. So most values are replaced by others of their type, and
the texts of annotations, which no server reads, by whatever a hostile writer would put there.
"""

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from urllib3.exceptions import HTTPError

from arena_topo.errors import DocumentError
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import suspend
from arena_topo.model import keys
from arena_topo.model.objects import section
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines.nodes import NodeSpec
from tests.controlplane.machines.nodes import manifest as node_manifest
from tests.e2e.arena import Running
from tests.e2e.controller.planned_jobs import WAITING, job_of, specs
from tests.e2e.kueue.queues import KUEUE, delete_queue, queue
from tests.hostile_objects import JSON_TEXTS, RECORD, TEXTS, spoiled_body

_LOG = logging.getLogger(__name__)

ODD = {"odd": "yes"}
"""The label by which a test finds what is in no namespace."""

ZONE = {"zone": "z"}
"""Nodes of the tenant, and what its jobs ask for: those of honest jobs are others."""

_QUEUE = "odd"
_DRIVER = "gpu.nvidia.com"
_AT = "2026-01-01T00:00:00Z"

# Values of each type that a schema may admit.

_NUMBERS = (0, 1, 2, 7, 63, 255, 256, 10**6, 2**31 - 1, -1)
_AMOUNTS = ("0", "1", "7", "10", "1500m", "0.5", "1e3", "9Ei", "100n", "1k", "64Gi")
_WORDS = (
    "", "x", "z", "true", "false", "odd-1", "a" * 63, "node", "worker", "launcher", "Worker", "Master", keys.HOSTNAME,
    "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Always", "Never", "OnFailure", "NoSchedule", "NoExecute",
    keys.NVIDIA_GPU, "Indexed", "Ready", "Retry", "Rejected", "Pending", "True", "False", "Unknown", "Running", "Failed",
    "Succeeded", "Complete", "QuotaReserved", "Admitted", "Finished", "Evicted", _AT, keys.GANG_GATE, _QUEUE,
)  # fmt: skip
_KEYS = tuple(
    value
    for name, value in vars(keys).items()
    if name.isupper() and isinstance(value, str) and "/" in value and value != keys.PLANNED
)
_PLANS = tuple(
    encode(record)
    for record in (
        WAITING,
        RECORD,
        PlanRecord(stage=Stage.PROPOSED, slots=(Slot(0, "odd-1", (0,)), Slot(1, "odd-2", (1, 2)))),
    )
)
_PARTS = ("0:", "1:", "2:", "-1:", "odd-1", "odd-2", "GPU-a", ",", ":", ";", "|", "@", " ", "9" * 20, "0.5")
_SHORT = (
    "1:3",
    "3:1",
    "0:0",
    "true",
    "10m",
    "-10m",
    "wait",
    "fail",
    "suspend",
    "1",
    "2",
    "rack",
    "node",
    "0",
    _AT,
)


def _text(random: Random) -> str:
    """Return what somebody may write into an annotation."""
    match random.randrange(5):
        case 0:
            return random.choice(TEXTS)
        case 1:
            return random.choice(JSON_TEXTS)
        case 2:
            return spoiled_body(random.choice(_PLANS).encode(), random, []).decode()
        case 3:
            return "".join(random.choices(_PARTS, k=random.randint(0, 9)))
        case _:
            return random.choice(_SHORT)


def _alike(value: Any, random: Random) -> Any:
    """Return another value of the type of *value*."""
    match value:
        case bool():
            return not value
        case int():
            return random.choice(_NUMBERS)
        case str():
            return random.choice(_AMOUNTS if value[:1].isdigit() else _WORDS)
        case list():
            return deepcopy(random.choice(([], value[:-1], value[1:], value[::-1], [*value, *value[:1]])))
        case dict():
            gone = random.choice([*value]) if value and random.random() < 3 / 4 else None
            more = {} if gone else {random.choice(_KEYS): random.choice(_WORDS)}
            return {**{key: each for key, each in value.items() if key != gone}, **more}
        case _:
            return value


def _spoil(parts: Object, random: Random) -> None:
    """Replace one value anywhere in *parts*."""
    within: Any = parts
    key: Any = random.choice([*parts])
    while isinstance(within[key], dict | list) and within[key] and random.random() < 5 / 6:
        within = within[key]
        key = random.choice([*within] if isinstance(within, dict) else range(len(within)))
    within[key] = _alike(within[key], random)


def _annotate(parts: Object, random: Random) -> None:
    """Put texts into annotations that mean something to somebody, of an object or of a template in it."""
    places: list[Object] = [parts, *_templates(parts.get("spec"))]
    for _ in range(random.randint(1, 3)):
        place = random.choice(places)
        annotations = place.setdefault("annotations", {}) if place is parts else _annotations_of(place)
        if isinstance(annotations, dict):
            annotations[random.choice(_KEYS)] = _text(random)


def _templates(value: Any) -> Iterable[Object]:
    if isinstance(value, dict):
        if isinstance(value.get("spec"), dict) and "containers" in value["spec"]:
            yield value
        for each in value.values():
            yield from _templates(each)
    elif isinstance(value, list):
        for each in value:
            yield from _templates(each)


def _annotations_of(template: Object) -> Any:
    meta = template.setdefault("metadata", {})
    return meta.setdefault("annotations", {}) if isinstance(meta, dict) else None


def spoiled(item: Object, random: Random) -> Object | None:
    """Return *item* with a few values spoiled; None where Python cannot write it.

    Its name stays, and its status is a part as all others, which the server takes by a request of its own.
    """
    kept = {key: item[key] for key in ("apiVersion", "kind")}
    meta = item["metadata"]
    parts: Any = {key: deepcopy(part) for key, part in item.items() if key not in ("metadata", *kept)}
    parts |= {"labels": dict(meta.get("labels") or {}), "annotations": dict(meta.get("annotations") or {})}
    for _ in range(random.randint(0, 3)):
        _spoil(parts, random)
    if random.random() < 3 / 4:
        _annotate(parts, random)
    if random.random() < 1 / 6:
        try:
            parts = json.loads(spoiled_body(json.dumps(parts).encode(), random, []))
        except (ValueError, RecursionError):
            return None
    if not isinstance(parts, dict):
        return None
    labels, annotations = parts.pop("labels", None), parts.pop("annotations", None)
    owners = {key: meta[key] for key in ("ownerReferences", "name") if key in meta}
    return {**kept, **parts, "metadata": {**owners, "labels": labels, "annotations": annotations}}


# The objects.

_CONTAINER = {"name": "c", "image": "i", "resources": {"limits": {keys.NVIDIA_GPU: "1"}}}
_SPEC: Object = {
    "restartPolicy": "Never",
    "nodeSelector": ZONE,
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "containers": [_CONTAINER],
}


def _condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "r", "message": "m", "lastTransitionTime": _AT}


def _job(kind: tuple[str, str], name: str, random: Random) -> Object | None:
    """Return a suspended job that waits in our own queue, or in one of Kueue's."""
    is_queued = random.random() < 1 / 3
    job = job_of(kind, name, planned=not is_queued)
    # It must go with its namespace.
    del job["metadata"]["finalizers"]
    labels = {keys.KUEUE_QUEUE: _QUEUE} if is_queued else {keys.PLANNED: "true"}
    status = {"conditions": [_condition(random.choice(("Created", "Running", "Failed", "Suspended")))]}
    made = spoiled({**job, "status": status}, random)
    if made is None:
        return None
    if isinstance(made["metadata"]["labels"], dict):
        made["metadata"]["labels"] |= labels
    # Of a million pods that one may ask for the operators would make all; JobSet makes its Jobs at once, and
    # Kueue starts what it admits.
    with suppress(DocumentError):
        suspend(kind_of(made), section(made, "spec"), suspended=True)
    if is_queued:
        _bound_counts(made)
    spec = made.get("spec")
    members = spec.get("replicatedJobs") if isinstance(spec, dict) else None
    for each in members if isinstance(members, list) else ():
        if isinstance(each, dict) and each.get("replicas") not in (None, 0, 1):
            each["replicas"] = 2
    return made


_COUNTS = ("replicas", "parallelism", "completions", "numNodes", "numProcPerNode")
_MOST_PODS = 50


def _bound_counts(job: Object) -> None:
    """Let no part of a job that others may start ask for more than ``_MOST_PODS``."""
    left: list[Any] = [job]
    # Not by recursion: what was spoiled may be nested as deep as Python reads.
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for key in _COUNTS:
                if isinstance(each := value.get(key), int | float) and each > _MOST_PODS:
                    value[key] = _MOST_PODS
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _workload(name: str) -> Object:
    pods = {"name": "worker", "count": 2, "template": {"metadata": {"annotations": {}}, "spec": _SPEC}}
    spec = {"queueName": _QUEUE, "podSets": [{**pods, "name": "launcher", "count": 1}, pods], "active": True}
    update = {"name": "worker", "annotations": {keys.PIN_NODES: "0:odd-1,2:"}}
    check = {"name": "arena-topo", "state": "Pending", "message": "m", "lastTransitionTime": _AT}
    flavors = {"name": "worker", "count": 2, "flavors": {keys.NVIDIA_GPU: _QUEUE}}
    status = {
        "conditions": [_condition("QuotaReserved")],
        "admission": {"clusterQueue": _QUEUE, "podSetAssignments": [flavors]},
        "admissionChecks": [{**check, "podSetUpdates": [update]}],
    }
    return _object(KUEUE, "Workload", name, spec=spec, status=status)


def _pod(name: str) -> Object:
    labels = {keys.PLANNED: "true", keys.PLANNED_JOB: "odd-1", keys.OPERATOR_JOB_NAME: "odd-1"}
    labels |= {keys.OPERATOR_JOB_ROLE: "worker", keys.OPERATOR_REPLICA_INDEX: "1"}
    spec = {**_SPEC, "schedulingGates": [{"name": keys.GANG_GATE}], "priority": 0}
    ended = {"exitCode": 137, "reason": "r", "message": "m", "finishedAt": _AT}
    container = {
        "name": "c",
        "ready": False,
        "restartCount": 1,
        "state": {"terminated": ended},
        "image": "i",
        "imageID": "",
    }
    status = {"phase": "Running", "conditions": [_condition("Ready")], "containerStatuses": [container]}
    return _object("v1", "Pod", name, labels=labels, spec=spec, status=status)


def _node(name: str) -> Object:
    made = node_manifest(NodeSpec(name, labels=ZONE | {"topology.kubernetes.io/rack": "r9"}))
    made["spec"] = {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    return made


def _slice(name: str) -> Object:
    device: Object = {
        "name": "gpu-0",
        "attributes": {"uuid": {"string": "GPU-a"}, "index": {"int": 0}, "productName": {"string": "x"}},
        "capacity": {"memory": {"value": "16Gi"}},
    }
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [device, {**device, "name": "gpu-1"}]
    spec = {"driver": _DRIVER, "nodeName": "odd-1", "pool": pool, "devices": devices}
    return _object("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)


def _claim(name: str) -> Object:
    request = {"name": "gpus", "exactly": {"deviceClassName": _DRIVER, "count": 1}}
    result = {"request": "gpus", "driver": _DRIVER, "pool": "odd-1", "device": "gpu-0"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "odd-1", "uid": "u"}],
    }
    return _object(
        "resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": [request]}}, status=status
    )


def _check(name: str) -> Object:
    parameters = {"apiGroup": keys.OUR_DOMAIN, "kind": "PlannerParameters", "name": name}
    spec = {"controllerName": keys.CHECK_CONTROLLER, "parameters": parameters}
    return _object(KUEUE, "AdmissionCheck", name, spec=spec, status={"conditions": [_condition("Active")]})


def _object(
    api: str, kind: str, name: str, *, labels: Mapping[str, str] | None = None, **parts: Any
) -> Object:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "labels": dict(labels or {})},
        **parts,
    }


_OTHERS: Mapping[tuple[str, str], Callable[[str], Object]] = {
    ("v1", "Pod"): _pod,
    ("v1", "Node"): _node,
    ("v1", "ResourceQuota"): lambda name: _object(
        "v1", "ResourceQuota", name, spec={"hard": {"requests.nvidia.com/gpu": "1000", "count/secrets": "10"}}
    ),
    ("resource.k8s.io/v1", "ResourceSlice"): _slice,
    ("resource.k8s.io/v1", "ResourceClaim"): _claim,
    (KUEUE, "Workload"): _workload,
    (KUEUE, "LocalQueue"): lambda name: _object(KUEUE, "LocalQueue", name, spec={"clusterQueue": "odd"}),
    (KUEUE, "ResourceFlavor"): lambda name: _object(
        KUEUE, "ResourceFlavor", name, spec={"nodeLabels": ZONE, "topologyName": name}
    ),
    (KUEUE, "Topology"): lambda name: _object(
        KUEUE,
        "Topology",
        name,
        spec={"levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": keys.HOSTNAME}]},
    ),
    (KUEUE, "AdmissionCheck"): _check,
    (f"{keys.OUR_DOMAIN}/v1alpha1", "PlannerParameters"): lambda name: _object(
        f"{keys.OUR_DOMAIN}/v1alpha1", "PlannerParameters", name, spec={"reserveAfter": "10m"}
    ),
}
_SHARE_OF_JOBS = 0.5
_SHARE_OF_STATUSES = 0.5
_AT_ONCE = 4

_Write = tuple[tuple[str, str], Object | None, Any]
"""The kind of an object, the object, None where Python cannot write it, and its status, None for none."""


@dataclass
class Tenant:
    """Writes spoiled objects into *namespace*, and into the cluster, and counts them by their kinds."""

    kube: Kube
    namespace: str
    random: Random
    tried: Counter[str] = field(default_factory=Counter)
    admitted: Counter[str] = field(default_factory=Counter)
    statuses: int = 0
    _written: int = 0

    def __post_init__(self) -> None:
        """Find what is served."""
        self._jobs = [kind for kind in specs() if self._serves(kind)]
        self._others = [kind for kind in _OTHERS if self._serves(kind)]
        # Where one of Kueue's queues takes them, as many as can be.
        if (KUEUE, "Workload") in self._others:
            flavor = {"nodeLabels": ZONE}
            queue(self.kube, self.namespace, 10**6, checks=["arena-topo"], flavor=flavor)
            local = _object(KUEUE, "LocalQueue", _QUEUE, spec={"clusterQueue": self.namespace})
            self.kube.create(local, self.namespace)

    def __str__(self) -> str:
        """How many objects of each kind were admitted, of how many."""
        kinds = ", ".join(
            f"{kind} {self.admitted[kind]}/{tried}" for kind, tried in sorted(self.tried.items())
        )
        return f"{self.admitted.total()}/{self.tried.total()} admitted, {self.statuses} statuses: {kinds}"

    @property
    def kinds(self) -> set[str]:
        """The kinds that are written."""
        return {kind for _, kind in (*self._jobs, *self._others)}

    def write(self, count: int) -> None:
        """Try to create *count* objects, a few at once."""
        chosen = [self._next() for _ in range(count)]
        self.tried.update(kind for (_, kind), *_ in chosen)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for (_, kind), answers in zip(
                (kind for kind, *_ in chosen), pool.map(self._create, chosen), strict=True
            ):
                self.admitted[kind] += answers > 0
                self.statuses += answers > 1

    def _next(self) -> _Write:
        self._written += 1
        name = f"odd-{self._written}"
        if self.random.random() < _SHARE_OF_JOBS:
            kind = self.random.choice(self._jobs)
            made = _job(kind, name, self.random)
        else:
            kind = self.random.choice(self._others)
            made = spoiled(_OTHERS[kind](name), self.random)
        status = made.pop("status", None) if made else None
        is_written = self.random.random() < _SHARE_OF_STATUSES and not _stops_others(kind, status)
        return kind, made, status if is_written else None

    def _create(self, write: _Write) -> int:
        """Return how many of the object and its status the server takes."""
        kind, made, status = write
        if made is None:
            return 0
        if isinstance(labels := made["metadata"]["labels"], dict):
            labels |= ODD
        taken = 0
        # A warning may be more than Python reads, and a value more than it writes.
        with suppress(KubeError, RecursionError, HTTPError, ValueError):
            self.kube.request("POST", self.kube.path(*kind, self.namespace), made)
            taken += 1
            if status is not None:
                name = made["metadata"]["name"]
                self.kube.patch(*kind, name, {"status": status}, self.namespace, sub="status")
                taken += 1
        return taken

    def sweep(self) -> None:
        """Delete what was written, and what the operators made of it."""
        for kind in (*self._jobs, *self._others):
            path = self.kube.path(*kind, self.namespace)
            query = {"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
            if self.namespace not in path:
                query["labelSelector"] = "odd=yes"
            with suppress(KubeError):
                self.kube.request("DELETE", path, query=query)

    def end(self) -> None:
        """Delete the queue too."""
        self.sweep()
        if (KUEUE, "Workload") in self._others:
            delete_queue(self.kube, self.namespace)

    def _serves(self, kind: tuple[str, str]) -> bool:
        try:
            self.kube.path(*kind)
        except KubeError:
            return False
        return True


def _stops_others(kind: tuple[str, str], status: object) -> bool:
    """Whether programs that are not ours end, or stand still, by a *status*.

    Kueue 0.19.2 reads the admission of each Workload whose QuotaReserved is true
    (``WorkloadReconciler.Update``). The server takes ``lastTransitionTime: [{}]``, by which Kueue and the MPI
    operator cannot decode their list of all MPIJobs any more, and reconcile none.
    """
    if kind == (KUEUE, "Workload"):
        return not (isinstance(status, dict) and isinstance(status.get("admission"), dict))
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return isinstance(conditions, list) and any(
        isinstance(each, dict) and not isinstance(each.get("lastTransitionTime", ""), str)
        for each in conditions
    )


OBJECTS = int(os.environ.get("HOSTILE_EXAMPLES", "0")) or 100
"""How many objects the server has to admit: ten thousand take ten minutes of CPU."""

TIMEOUT = 600 + OBJECTS
"""Seconds that a test with so many objects may take."""

SEED = int(os.environ.get("HOSTILE_SEED", "0")) or Random().randrange(2**32)
_ROUND = max(150, OBJECTS // 20)
"""Objects between two honest jobs."""


def among(tenant: Tenant, running: Running, place: Callable[[int], None]) -> None:
    """Write objects until enough are admitted, and *place* an honest job again and again.

    The controller *running* must continue, without an error that it did not foresee. What was written, and
    how long the honest jobs took, is logged: ``--log-cli-level=info`` shows it.
    """
    took: list[float] = []

    def timed() -> None:
        began = time.monotonic()
        try:
            place(len(took))
        except ControlPlaneError as error:
            raise AssertionError(f"seed {SEED}: {error}; the controller said {running.err}") from error
        took.append(time.monotonic() - began)

    timed()
    while tenant.admitted.total() < OBJECTS:
        tenant.write(_ROUND)
        timed()
        _LOG.info("seed %d, %s; then a job in %.1f s", SEED, tenant, took[-1])
        _no_faults(tenant, running)
        tenant.sweep()
    _LOG.info("honest jobs %d: first %.1f s, longest %.1f s", len(took), took[0], max(took))
    assert tenant.kinds <= {*tenant.admitted}, f"seed {SEED}: {tenant}"


def _no_faults(tenant: Tenant, running: Running) -> None:
    faults = {
        event["message"]
        for where in (tenant.namespace, "default")
        for event in tenant.kube.list("v1", "Event", where)
        if event["reason"] == "InternalError" and event["source"].get("component") == keys.CONTROLLER
    }
    assert set() == faults, f"seed {SEED}: {running.err}"
    assert not running.said("Traceback"), f"seed {SEED}: {running.err}"
    assert running.process.poll() is None, running.err
    assert 1 == sum("leading" in line for line in running.err), running.err
