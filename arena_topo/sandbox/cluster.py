"""The simulated cluster: store, API, controllers, and its state on disk."""

import asyncio
import contextlib
import json
from pathlib import Path

from arena_topo.errors import DocumentError
from arena_topo.model.objects import Object
from arena_topo.sandbox import layouts
from arena_topo.sandbox.api.access import User
from arena_topo.sandbox.api.http.server import Server
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.refusals import Refusal, bad_request
from arena_topo.sandbox.api.schema.builtins import builtin_kinds, initial_crds
from arena_topo.sandbox.api.store import Change, Store
from arena_topo.sandbox.api.verbs import crds
from arena_topo.sandbox.api.verbs.container_logs import Logbook
from arena_topo.sandbox.api.verbs.objects import Api, timestamp
from arena_topo.sandbox.sim.clock import Clock
from arena_topo.sandbox.sim.controllers import garbage, jobs, mpi_operator
from arena_topo.sandbox.sim.kubelets import nodes, throughput
from arena_topo.sandbox.sim.kubelets.kubelet import Kubelet
from arena_topo.sandbox.sim.kubelets.pod_programs import Programs
from arena_topo.sandbox.sim.loops import Loop
from arena_topo.sandbox.sim.scheduling import ack_topology
from arena_topo.sandbox.sim.scheduling.scheduler import Scheduler

NAMESPACES = ("default", "kube-system", "kube-public", "other-team")
SAVE_SECONDS = 2.0
_POD_GROUP_KEYS = frozenset({("scheduling.x-k8s.io", "podgroups"), ("scheduling.sigs.k8s.io", "podgroups")})
_PODS_AND_NODES = frozenset({("", "pods"), ("", "nodes")})


class Cluster:
    """Everything behind the sandbox's HTTP server."""

    def __init__(self, users: dict[str, User], clock: Clock, predict: throughput.Predict) -> None:
        self.store = Store()
        self.api = Api(self.store, Registry(builtin_kinds()))
        self.books = Logbook()
        self.clock = clock
        self.server = Server(self.api, self.books, users, self.control)
        self.kubelet = Kubelet(self.api, self.books, clock, Programs(self.api, predict))
        self.layout = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._saved = 0
        self.api.after_create.append(self._born)
        self.store.listen(self._noticed)

    def create(self, layout: layouts.Layout) -> None:
        """Fill an empty cluster with the objects of a layout, its kubelets having reported.

        Raises ``DocumentError`` for a layout that is not valid.
        """
        self.layout = layout.name
        for name in NAMESPACES:
            self._make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for crd in initial_crds():
            self._make(crd)
        for obj in layout.objects:
            if obj["kind"] != "Namespace" or obj["metadata"]["name"] not in NAMESPACES:
                self._make_of(layout, obj)
        nodes.keep_ready(self.api)
        self.store.compact()

    def _make_of(self, layout: layouts.Layout, obj: Object) -> None:
        try:
            self._make(obj)
        except Refusal as refusal:
            what = f"{obj['kind']} {obj['metadata']['name']}"
            raise DocumentError(f"the layout {layout.name}: {what}: {refusal.message}") from refusal

    def _make(self, obj: Object) -> None:
        kind = self.api.kind(obj["apiVersion"], obj["kind"])
        self.api.create(kind, obj["metadata"].get("namespace", ""), obj)

    def restore(self, state: Object) -> None:
        """Take over a saved state."""
        self.layout = state["layout"]
        self.store.load(state["store"])
        self.books.load(state["logs"])
        self._saved = self.store.version
        for crd in self.store.values(crds.CRD_KEY):
            crds.establish(self.store, self.api.registry, crd, timestamp())

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all."""
        state = {"layout": self.layout, "store": self.store.dump(), "logs": self.books.dump()}
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(state, separators=(",", ":")), "utf-8")
        temporary.chmod(0o600)
        temporary.replace(path)
        self._saved = self.store.version

    async def run(self, path: Path) -> None:
        """Let controllers and kubelets work, and keep the state on disk, until cancelled."""
        api = self.api
        loops = (
            Loop(self.store, {("", "nodes"), ("", "pods")}, lambda: nodes.keep_ready(api)),
            Loop(self.store, mpi_operator.WATCHED, lambda: mpi_operator.step(api)),
            Loop(self.store, {("batch", "jobs"), ("", "pods")}, lambda: jobs.step(api)),
            Loop(self.store, _PODS_AND_NODES | _POD_GROUP_KEYS, Scheduler(api, ack_topology.arrange).step),
            Loop(self.store, {kind.key for kind in api.registry}, self._collect),
        )
        self.save(path)
        self.kubelet.attach()
        self._tasks = [asyncio.create_task(loop.run()) for loop in loops]
        try:
            while True:
                await asyncio.sleep(SAVE_SECONDS)
                if self._saved != self.store.version:
                    self.save(path)
        finally:
            await self.kubelet.stop()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.save(path)

    def _collect(self) -> None:
        with contextlib.suppress(Refusal):
            garbage.collect(self.api)

    def _born(self, kind: Kind, obj: Object) -> None:
        """Do what the API server's own controllers do at once: serve a CRD, furnish a namespace."""
        name = obj["metadata"]["name"]
        if kind.key == crds.CRD_KEY:
            crds.establish(self.store, self.api.registry, obj, timestamp())
        elif kind.key == ("", "namespaces"):
            accounts = self.api.kind("v1", "ServiceAccount")
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self.api.create(accounts, name, account)

    def _noticed(self, change: Change) -> None:
        if change.resource == crds.CRD_KEY and change.type == "DELETED":
            crds.withdraw(self.store, self.api.registry, change.after.body)

    def control(self, method: str, path: str, body: Object) -> Object:
        """Answer a request of the administrator about the sandbox itself."""
        match method, path:
            case "GET", "/_sandbox/status":
                pass
            case "PUT", "/_sandbox/faults":
                self.server.faults.change(body)
            case "PUT", "/_sandbox/speed":
                speed = body.get("speed")
                if not isinstance(speed, int | float) or isinstance(speed, bool) or speed <= 0:
                    raise bad_request(f"speed is a number above 0, not {speed!r}")
                self.clock.speed = float(speed)
            case "POST", "/_sandbox/compact":
                self.store.compact()
            case "PUT", "/_sandbox/log":
                self._print(body)
            case _:
                raise Refusal(404, "NotFound", f"the sandbox has no {method} {path}")
        return self.status()

    def _print(self, body: Object) -> None:
        """Let a running pod's container print lines, for tests that need to know them."""
        pod = self.api.get(self.api.kind("v1", "Pod"), body["namespace"], body["pod"])
        container = pod["spec"]["containers"][0]["name"]
        states = pod["status"].get("containerStatuses") or [{}]
        book = self.books.open(pod["metadata"]["uid"], container, states[0].get("restartCount", 0))
        for line in body["lines"]:
            book.write(line)

    def status(self) -> Object:
        """Return what ``arena-topo sandbox status`` tells."""
        return {
            "simulated": True,
            "layout": self.layout,
            "nodes": len(self.store.values(("", "nodes"))),
            "pods": len(self.store.values(("", "pods"))),
            "speed": self.clock.speed,
            "resourceVersion": self.store.version,
        }
