"""The simulated cluster: store, API, controllers, and its state on disk."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from arena_topo.errors import DocumentError
from arena_topo.model.objects import Object
from arena_topo.sandbox import layouts
from arena_topo.sandbox.api import crds
from arena_topo.sandbox.api.container_logs import ContainerLogs
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.requests import User
from arena_topo.sandbox.api.schema.builtins import builtin_kinds, initial_crds
from arena_topo.sandbox.api.server import Server
from arena_topo.sandbox.api.status_errors import StatusError
from arena_topo.sandbox.api.store import Change, Store
from arena_topo.sandbox.sim.controllers import (
    daemon_sets,
    garbage,
    jobs,
    jobsets,
    mpi_operator,
    training_operator,
)
from arena_topo.sandbox.sim.kubelets import devices, nodes
from arena_topo.sandbox.sim.kubelets.kubelet import Kubelet
from arena_topo.sandbox.sim.kubelets.programs import program_of
from arena_topo.sandbox.sim.loops import Clock, Loop
from arena_topo.sandbox.sim.objects import NODES, PODS
from arena_topo.sandbox.sim.scheduling.scheduler import Scheduler

NAMESPACES = ("default", "kube-system", "kube-public", "other-team")
SAVE_SECONDS = 2.0
_POD_GROUPS = frozenset({("scheduling.x-k8s.io", "podgroups"), ("scheduling.sigs.k8s.io", "podgroups")})


class Cluster:
    """Everything behind the sandbox's HTTP server; ``end`` ends the server."""

    def __init__(self, users: Mapping[str, User], clock: Clock, end: Callable[[], None]) -> None:
        self.store = Store()
        self.api = Api(self.store, Registry(builtin_kinds()))
        self.logs = ContainerLogs()
        self.clock = clock
        self.server = Server(self.api, self.logs, users, self.control)
        self.kubelet = Kubelet(self.api, self.logs, clock, partial(program_of, self.api))
        self.layout = ""
        self._end = end
        self._saved_version = 0
        self.api.after_create.append(self._complete)
        self.store.listen(self._follow_definitions)

    def create(self, layout: layouts.Layout) -> None:
        """Fill an empty cluster with the objects of a layout, after which the kubelets have reported.

        Raises ``DocumentError`` for a layout that is not valid.
        """
        self.layout = layout.name
        for name in NAMESPACES:
            self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for crd in initial_crds():
            self._create(crd)
        for obj in layout.objects:
            name = obj["metadata"]["name"]
            # An imported cluster brings its own list of namespaces, which the usual ones may be on.
            if obj["kind"] == "Namespace" and name in NAMESPACES:
                continue
            try:
                self._create(obj)
            except StatusError as error:
                text = f"the layout {layout.name}: {obj['kind']} {name}: {error.message}"
                raise DocumentError(text) from error
        # Whoever asks first must see every node Ready and no changes from before the sandbox served.
        nodes.report(self.api)
        self.store.compact()

    def _create(self, obj: Object) -> None:
        kind = self.api.kind(obj["apiVersion"], obj["kind"])
        self.api.create(kind, obj["metadata"].get("namespace", ""), obj)

    def restore(self, state: Object) -> None:
        """Take over a saved state."""
        self.layout = state["layout"]
        self.store.load(state["store"])
        self.logs.load(state["logs"])
        self._saved_version = self.store.version
        # The registry is not part of the state: what CRDs serve is derived from them again.
        for crd in self.store.values(crds.CRD_KEY):
            crds.establish(self.store, self.api.registry, crd, timestamp())

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all."""
        state = {"layout": self.layout, "store": self.store.dump(), "logs": self.logs.dump()}
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(state, separators=(",", ":")), "utf-8")
        # The state holds Secrets.
        temporary.chmod(0o600)
        temporary.replace(path)
        self._saved_version = self.store.version

    async def run(self, path: Path) -> None:
        """Let controllers and kubelets work, and keep the state on disk, until cancelled."""
        api = self.api
        loops = (
            Loop(self.store, {NODES, PODS}, partial(nodes.report, api)),
            Loop(self.store, mpi_operator.WATCHED, partial(mpi_operator.step, api)),
            Loop(self.store, training_operator.WATCHED, partial(training_operator.step, api)),
            Loop(self.store, jobsets.WATCHED, partial(jobsets.step, api)),
            Loop(self.store, {jobs.JOBS, PODS}, partial(jobs.step, api)),
            Loop(self.store, {daemon_sets.DAEMON_SETS, NODES, PODS}, partial(daemon_sets.step, api)),
            Loop(self.store, {NODES, PODS}, partial(devices.step, api)),
            Loop(self.store, {PODS, NODES, *_POD_GROUPS}, Scheduler(api).step),
            # Anything can own anything, of kinds that are defined later, too.
            Loop(self.store, None, partial(garbage.collect, api)),
        )
        # A sandbox that is killed at once finds its layout's objects again, not a new set with other uids.
        self.save(path)
        self.kubelet.attach()
        tasks = [asyncio.create_task(loop.run()) for loop in loops]
        try:
            while True:
                await asyncio.sleep(SAVE_SECONDS)
                if self._saved_version != self.store.version:
                    self.save(path)
        finally:
            await self.kubelet.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.save(path)

    def _complete(self, kind: Kind, obj: Object) -> None:
        """Do what the API server's own controllers do at once: serve a CRD, give a namespace its account."""
        if kind.key == crds.CRD_KEY:
            crds.establish(self.store, self.api.registry, obj, timestamp())
        elif kind.key == ("", "namespaces"):
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self.api.create(self.api.kind("v1", "ServiceAccount"), obj["metadata"]["name"], account)

    def _follow_definitions(self, change: Change) -> None:
        """Serve what a changed CRD defines, and what a deleted one defined no longer."""
        if change.resource != crds.CRD_KEY:
            return
        if change.type == "DELETED":
            crds.withdraw(self.store, self.api.registry, change.after.body)
        elif change.before is not None and change.before.body["spec"] != change.after.body["spec"]:
            crds.establish(self.store, self.api.registry, change.after.body, timestamp())

    def control(self, method: str, path: str, body: Object) -> Object:
        """Answer a request of the administrator about the sandbox itself."""
        match method, path:
            case "GET", "/_sandbox/status":
                pass
            case "POST", "/_sandbox/compact":
                self.store.compact()
            case "POST", "/_sandbox/stop":
                self._end()
            case "PUT", "/_sandbox/log":
                self._print(body)
            case _:
                raise StatusError(404, "NotFound", f"the sandbox has no {method} {path}")
        return self.status()

    def _print(self, body: Object) -> None:
        """Let a running pod's container print lines, for tests that need to know them."""
        pod = self.api.get(self.api.kind("v1", "Pod"), body["namespace"], body["pod"])
        for line in body["lines"]:
            self.kubelet.log_of(pod).write(line)

    def status(self) -> Object:
        """Return what ``arena-topo sandbox status`` shows."""
        return {
            "simulated": True,
            "pid": os.getpid(),
            "layout": self.layout,
            "nodes": len(self.store.values(NODES)),
            "pods": len(self.store.values(PODS)),
            "speed": self.clock.speed,
            "resourceVersion": self.store.version,
        }
