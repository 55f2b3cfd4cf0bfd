"""The kubelets of all nodes, and their device plugins: pods run, nodes report, GPUs are given to pods."""

import asyncio
import copy
import hashlib
import json
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import comb

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, LinkGraph
from arena_topo.model.keys import GPU_RESOURCES, GPU_TOPOLOGY, HAMI_ALLOCATED, HAMI_REGISTER, HAMI_USE_GPUS
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.resources import DeleteOptions
from arena_topo.sandbox.api.store import Change, ContainerLog, ContainerLogs
from arena_topo.sandbox.layouts import AS_PUBLISHED, LOST, link_score
from arena_topo.sandbox.sim.controllers import (
    NODES,
    PODS,
    Clock,
    current,
    delete,
    has_ended,
    is_deleting,
    put_status,
    record_event,
)
from arena_topo.sandbox.sim.programs import PodProgram
from arena_topo.topology.assemble import occupancy
from arena_topo.topology.objects import NodeFacts, PodFacts, Reading, node_facts, pod_facts
from arena_topo.topology.sources import annotation, hami

# In seconds of the simulation, of which ``Clock.speed`` pass in a real one.
_PULL_SECONDS = 0.5
_START_SECONDS = 0.5
_STOP_SECONDS = 0.1
_BACKOFF_SECONDS = 2.0
_WAIT_SECONDS = 0.2
_STOPPED = 143
"""Exit code of a container that ended because it was asked to, by SIGTERM."""


class Kubelet:
    """One task per pod; ``program`` says what a pod does, None while it waits for others."""

    def __init__(
        self, api: Api, logs: ContainerLogs, clock: Clock, program: Callable[[Object], PodProgram | None]
    ) -> None:
        self._api = api
        self._logs = logs
        self._clock = clock
        self._program = program
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, asyncio.Task[None]] = {}

    def attach(self) -> None:
        """Begin: take over the pods there are, and every pod from now on."""
        for pod in self._api.store.values(PODS):
            self._start_tasks(pod)
        self._api.store.listen(self._notice)

    async def stop(self) -> None:
        """Stop all tasks; the pods stay as they are."""
        tasks = [*self._runs.values(), *self._stops.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _notice(self, change: Change) -> None:
        if change.resource != PODS:
            return
        if change.type == "DELETED":
            uid = change.after.body["metadata"]["uid"]
            for tasks in (self._runs, self._stops):
                # The task that stops a pod removes the object itself and must not be cancelled by that.
                if (task := tasks.pop(uid, None)) and task is not asyncio.current_task():
                    task.cancel()
            self._logs.forget(uid)
        else:
            self._start_tasks(change.after.body)

    def _start_tasks(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        # No kubelet is responsible for a pod until the scheduler has bound it.
        if not pod["spec"].get("nodeName"):
            return
        if is_deleting(pod):
            if uid not in self._stops:
                self._stops[uid] = _task(self._stop(pod))
        elif uid not in self._runs and not has_ended(pod):
            self._runs[uid] = _task(self._run_pod(pod))

    def _current(self, pod: Object) -> Object | None:
        return current(self._api, PODS, pod)

    def _change(self, pod: Object, status_of: Callable[[Object], Object]) -> None:
        """Store a new status of *pod*, unless it is gone."""
        current = self._current(pod)
        if current is not None:
            put_status(self._api, PODS, current, status_of(current))

    async def _run_pod(self, pod: Object) -> None:
        """Bring a pod up, run it, and run it again where its restart policy says so."""
        # A pod that runs already was restored with the sandbox's state and continues where it was.
        if pod["status"].get("phase") != "Running":
            self._change(pod, _creating)
            await self._clock.sleep(_PULL_SECONDS)
            for container in pod["spec"]["containers"]:
                text = f'Container image "{container["image"]}" already present on machine'
                self._record(pod, "Pulled", text, container["name"])
            await self._clock.sleep(_START_SECONDS)
            self._start_containers(pod)
        while True:
            code = await self._run_program(pod)
            # The pod may have been deleted while its program ran.
            current = self._current(pod)
            if current is None:
                return
            again = _restarts(current, code)
            self.log_of(current).close()
            state = _backing_off if again else _ended
            self._change(pod, partial(state, code=code))
            if not again:
                return
            self._record_back_off(pod)
            await self._clock.sleep(_BACKOFF_SECONDS)
            self._start_containers(pod)

    def _start_containers(self, pod: Object) -> None:
        current = self._current(pod)
        if current is not None:
            for container in current["spec"]["containers"]:
                self.log_of(current, container["name"])
            self._change(pod, _running)
            for container in current["spec"]["containers"]:
                self._record(pod, "Created", "Container created (simulated)", container["name"])
                self._record(pod, "Started", "Container started (simulated)", container["name"])

    def _record_back_off(self, pod: Object) -> None:
        meta = pod["metadata"]
        for container in pod["spec"]["containers"]:
            name = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
            text = f"Back-off restarting failed container {container['name']} in pod {name}"
            self._record(pod, "BackOff", text, container["name"], warning=True)

    def _record(
        self, pod: Object, reason: str, message: str, container: str, *, warning: bool = False
    ) -> None:
        current = self._current(pod)
        if current is not None:
            record_event(self._api, current, "kubelet", reason, message, container=container, warning=warning)

    def log_of(self, pod: Object, container: str = "") -> ContainerLog:
        """Return the log of the present run of a container, by default the first."""
        states = pod["status"].get("containerStatuses") or [{}]
        name = container or pod["spec"]["containers"][0]["name"]
        return self._logs.open(pod["metadata"]["uid"], name, states[0].get("restartCount", 0))

    async def _run_program(self, pod: Object) -> int:
        """Print a container's lines from where it was and return its exit code; a server never returns."""
        program: PodProgram | None = None
        while program is None:
            current = self._current(pod)
            program = self._program(current) if current is not None else PodProgram()
            # Until all workers run, a launcher's mpirun would only repeat its connections.
            if program is None:
                await self._clock.sleep(_WAIT_SECONDS)
        current = self._current(pod)
        if current is None:
            return 0
        log = self.log_of(current)
        # After a restart of the sandbox, the lines that were printed before it are there.
        for pause, line in program.lines[len(log.lines) :]:
            await self._clock.sleep(pause)
            log.write(line)
        # A server ends only with its pod, whose deletion cancels this task.
        if program.code is None:
            await asyncio.Event().wait()
        await self._clock.sleep(program.linger)
        return program.code or 0

    async def _stop(self, pod: Object) -> None:
        if task := self._runs.pop(pod["metadata"]["uid"], None):
            task.cancel()
            for container in pod["spec"]["containers"]:
                text = f"Stopping container {container['name']}"
                self._record(pod, "Killing", text, container["name"])
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        # Simulated programs end as soon as they are asked to, whatever grace they have.
        await self._clock.sleep(min(grace, _STOP_SECONDS))
        current = self._current(pod)
        if current is None:
            return
        # With a finalizer the object stays, as a pod that has ended, until the finalizer is removed.
        if current["metadata"].get("finalizers"):
            self._change(pod, partial(_ended, code=_STOPPED))
            self._stops.pop(pod["metadata"]["uid"], None)
            return
        self._api.store.drop(PODS, current)


def _task(work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Return a task that prints why it failed, since nothing awaits it."""
    task = asyncio.create_task(work)
    task.add_done_callback(_print_failure)
    return task


def _print_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        traceback.print_exception(error, file=sys.stderr)


# The status of a pod in each of its states.


def _creating(pod: Object) -> Object:
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    status = _status(pod, "Pending", waiting, "ContainersNotReady")
    status.setdefault("startTime", timestamp())
    return status | {"hostIP": _address_of(pod["spec"]["nodeName"])}


def _running(pod: Object) -> Object:
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    # 10.244.0.0/16 is the customary network of pods; a pod's uid gives it the same address after each
    # restart.
    address = f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
    if pod["spec"].get("hostNetwork"):
        address = _address_of(pod["spec"]["nodeName"])
    status = _status(pod, "Running", {"running": {"startedAt": timestamp()}})
    return status | {"podIP": address, "podIPs": [{"ip": address}]}


def _ended(pod: Object, code: int) -> Object:
    phase, reason = ("Succeeded", "PodCompleted") if code == 0 else ("Failed", "PodFailed")
    return _status(pod, phase, _terminated(pod, code), reason)


def _backing_off(pod: Object, code: int) -> Object:
    """Return the status of a pod whose container ended and will be started again."""
    last = _terminated(pod, code)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    # The phase stays as it is: a pod whose container will be restarted is still Running.
    status = _status(pod, pod["status"]["phase"], waiting, "ContainersNotReady")
    for state in status["containerStatuses"]:
        state |= {"lastState": last, "restartCount": state["restartCount"] + 1}
    return status


def _restarts(pod: Object, code: int) -> bool:
    """Whether a container that ended with *code* is started again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _status(pod: Object, phase: str, state: Object, reason: str = "") -> Object:
    """Return a status with *state* in every container; *reason* says why the pod is not ready."""
    now, old = timestamp(), {state["name"]: state for state in pod["status"].get("containerStatuses", [])}
    ready = {"status": "False", "reason": reason} if reason else {"status": "True"}
    times = {"lastProbeTime": None, "lastTransitionTime": now}
    states = {"Initialized": {"status": "True"}, "Ready": ready, "ContainersReady": ready}
    conditions = [{"type": name, **value, **times} for name, value in states.items()]
    # The scheduler's condition is not the kubelet's to write.
    conditions += [c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"]
    containers = [
        {
            "name": container["name"],
            "state": state,
            "lastState": old.get(container["name"], {}).get("lastState", {}),
            "ready": not reason,
            "restartCount": old.get(container["name"], {}).get("restartCount", 0),
            "image": container["image"],
            "imageID": "",
            "started": not reason,
        }
        for container in pod["spec"]["containers"]
    ]
    status: Object = pod["status"] | {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": containers,
    }
    return status


def _terminated(pod: Object, code: int) -> Object:
    # The containers of a simulated pod start and end together, so the first speaks for all.
    old = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {}).get("running", {})
    reason = "Completed" if code == 0 else "Error"
    body: Object = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
    return {"terminated": body | ({"startedAt": old["startedAt"]} if old else {})}


def _address_of(name: str) -> str:
    """Return a node's address: the one in its name (``cn.192.168.16.172``), or one derived from it."""
    parts = [part.rpartition("-")[2] for part in name.split(".")[-4:]]
    if len(parts) == 4 and all(part.isdigit() for part in parts):
        return ".".join(parts)
    digest = hashlib.sha256(name.encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"


# What a kubelet reports of its node.

_UNREACHABLE = "node.kubernetes.io/unreachable"
_CORDONED = "node.kubernetes.io/unschedulable"
_AT_ONCE = DeleteOptions(grace=0)
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_GONE = ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
_INFO = {
    "kubeletVersion": "v1.36.3",
    "kubeProxyVersion": "v1.36.3",
    "osImage": "arena-topo sandbox",
    "operatingSystem": "linux",
    "architecture": "amd64",
    "kernelVersion": "simulated",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "containerRuntimeVersion": "simulated://1",
}


def report(api: Api) -> None:
    """Give every node the status its kubelet would, and delete the pods of nodes that are gone."""
    names = set()
    for node in api.store.values(NODES):
        names.add(node["metadata"]["name"])
        is_lost = LOST in (node["metadata"].get("annotations") or {})
        ready = "Unknown" if is_lost else "True"
        conditions = node.get("status", {}).get("conditions", [])
        # Written only when it changes: this step is woken by every change of a node, its own included.
        if not any((c["type"], c["status"]) == ("Ready", ready) for c in conditions):
            api.store.put(NODES, _reported(node, is_lost=is_lost))
    for pod in api.store.values(PODS):
        if (node := pod["spec"].get("nodeName")) and node not in names:
            delete(api, pod, _AT_ONCE)


def _reported(node: Object, *, is_lost: bool) -> Object:
    body, now = copy.deepcopy(node), timestamp()
    name, status, spec = body["metadata"]["name"], body.setdefault("status", {}), body.setdefault("spec", {})
    status["conditions"] = [
        {"type": type_, "status": value, "reason": reason, "message": message}
        | {"lastHeartbeatTime": now, "lastTransitionTime": now}
        for type_, value, reason, message in (*_CONDITIONS, _GONE if is_lost else _READY)
    ]
    # What a layout says of its machines stays; a node that was created by hand gets the figures of a small
    # one.
    status.setdefault("capacity", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    status.setdefault("allocatable", status["capacity"])
    addresses = [{"type": "InternalIP", "address": _address_of(name)}, {"type": "Hostname", "address": name}]
    status.setdefault("addresses", addresses)
    status.setdefault("nodeInfo", _INFO)
    taints = [taint for taint in spec.pop("taints", []) if taint["key"] != _UNREACHABLE]
    if is_lost:
        taints += [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    # The node lifecycle controller does the same where a node is cordoned by its spec.
    if spec.get("unschedulable") and not any(taint["key"] == _CORDONED for taint in taints):
        taints.append({"key": _CORDONED, "effect": "NoSchedule"})
    spec |= {"taints": taints} if taints else {}
    return body


# Which GPUs the device plugins give to pods, and what is published of it: by our agent, and by HAMi.
#
# NVIDIA's plugin gives a pod the free GPUs with the best links between them and knows nothing of other pods
# of its job; our agent then reads the allocation from the kubelet and writes it into the node's annotation.
# HAMi chooses by the same scores, takes a pod's own list of UUIDs first, and writes the allocation on the
# pod. Where only labels are published, which GPUs a pod holds is not visible, as on such a cluster.
#
# Example: on a DGX-1 whose GPU 0 is taken, a pod with two GPUs gets 1 and 2, the first of the free pairs with
# two NVLinks, and the annotation's users gain ``"team/job-worker-0": [1, 2]``.
#
# Source: NVIDIA/go-gpuallocator, policy best-effort; HAMi 2.8 docs/develop/protocol.md.

_MOST_SETS = 20_000
"""Sets of GPUs that are compared: all of a machine with sixteen, eight of which are asked for (12,870)."""


def allocate(api: Api) -> None:
    """Give every bound pod its GPUs, and publish which pods hold which."""
    pods: dict[str, list[Object]] = {}
    for pod in sorted(api.store.values(PODS), key=_age):
        node = pod["spec"].get("nodeName")
        if node and not has_ended(pod):
            pods.setdefault(node, []).append(pod)
    for node in api.store.values(NODES):
        published = node["metadata"].get("annotations") or {}
        try:
            if HAMI_REGISTER in published:
                _allocate_by_hami(api, node_facts(node), pods.get(node["metadata"]["name"], []))
            elif GPU_TOPOLOGY in published:
                _publish(api, node, pods.get(node["metadata"]["name"], []))
        # A user may write anything into an annotation: then nothing is published for its node.
        except DocumentError:
            continue


def _age(pod: Object) -> tuple[str, str]:
    return (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])


def _publish(api: Api, node: Object, pods: Sequence[Object]) -> None:
    """Write into our annotation which pods hold which GPUs."""
    reading = next(annotation.read_annotation(node_facts(node)))
    facts = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in pods}
    # The entry without names is of GPUs that no pod holds: a layout reserves them.
    users = {
        f"{namespace}/{name}": list(gpus)
        for (namespace, name), gpus in reading.users.items()
        if f"{namespace}/{name}" in facts or not name
    }
    for key, pod in facts.items():
        if key not in users and (gpus := _chosen(pod, reading, [i for held in users.values() for i in held])):
            users[key] = list(gpus)
    text = node["metadata"]["annotations"][GPU_TOPOLOGY]
    document = json.loads(text)
    if document.get("users", {}) != users:
        document |= {"at": timestamp(), "users": dict(sorted(users.items()))}
        body = copy.deepcopy(node)
        body["metadata"]["annotations"][GPU_TOPOLOGY] = json.dumps(document, separators=(",", ":"))
        api.store.put(NODES, body)


def _allocate_by_hami(api: Api, node: NodeFacts, pods: Sequence[Object]) -> None:
    """Write on each pod with GPUs which ones HAMi has given it."""
    reading = next(hami.read_node(node))
    held = occupancy(map(pod_facts, pods), _resource(pods), reading.gpus, [reading], [])
    taken = [index for holder in held.holders for index in holder.indices or ()]
    for pod in pods:
        meta = pod["metadata"]
        own = (meta.get("annotations") or {}).get(HAMI_USE_GPUS, "")
        if HAMI_ALLOCATED in (meta.get("annotations") or {}):
            continue
        gpus = _chosen(pod, reading, taken, only=own.split(",") if own else None)
        if gpus:
            taken += gpus
            body = copy.deepcopy(pod)
            shares = ":".join(f"{reading.gpus[i].uuid},NVIDIA,{reading.gpus[i].memory},0" for i in gpus)
            body["metadata"].setdefault("annotations", {})[HAMI_ALLOCATED] = f"{shares}:;"
            api.store.put(PODS, body)


def _resource(pods: Iterable[Object]) -> str:
    asked = {name for pod in pods for name in pod_facts(pod).requests}
    return next((name for name in GPU_RESOURCES if name in asked), GPU_RESOURCES[0])


def _count(pod: PodFacts) -> int:
    return sum(pod.requests.get(name, 0) for name in GPU_RESOURCES)


def _chosen(
    pod: Object, reading: Reading, taken: Iterable[int], only: Sequence[str] | None = None
) -> tuple[int, ...]:
    """Return the GPUs that a new pod gets, none where it asks for none, or where they are not free."""
    # What was there before the sandbox holds what the layout says, which may be nothing at all.
    if AS_PUBLISHED in (pod["metadata"].get("annotations") or {}):
        return ()
    count = _count(pod_facts(pod))
    usable = [gpu for gpu in reading.gpus if gpu.healthy and (only is None or gpu.uuid in only)]
    free = [gpu.index for gpu in usable if gpu.index not in set(taken)]
    return best_set(free, count, _scores(reading.gpus, reading.links)) if 0 < count <= len(free) else ()


def _scores(gpus: Sequence[Gpu], links: LinkGraph | None) -> Mapping[tuple[int, int], int]:
    if links is None:
        return {}
    return {(a.index, b.index): link_score(links.between(a.index, b.index)) for a, b in combinations(gpus, 2)}


def best_set(free: Sequence[int], count: int, scores: Mapping[tuple[int, int], int]) -> tuple[int, ...]:
    """Return the *count* GPUs of *free* with the highest sum of *scores*; of equals, the first."""
    if comb(len(free), count) > _MOST_SETS:
        return tuple(free[:count])
    return max(
        combinations(free, count), key=lambda gpus: sum(scores.get(p, 0) for p in combinations(gpus, 2))
    )
