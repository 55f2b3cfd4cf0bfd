"""The kubelets of all nodes: pods start, print, end, and are stopped."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine
from functools import partial

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.container_logs import ContainerLog, ContainerLogs
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.api.store import Change
from arena_topo.sandbox.sim.kubelets import pod_status
from arena_topo.sandbox.sim.kubelets.programs import PodProgram
from arena_topo.sandbox.sim.loops import Clock
from arena_topo.sandbox.sim.objects import ENDED_PHASES, PODS, is_deleting, put_status, record_event

# In seconds of the simulation, of which ``Clock.speed`` pass in a real one.
PULL_SECONDS = 0.5
START_SECONDS = 0.5
STOP_SECONDS = 0.3
BACKOFF_SECONDS = 2.0
WAIT_SECONDS = 0.2
STOPPED = 143
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
        elif uid not in self._runs and pod["status"].get("phase") not in ENDED_PHASES:
            self._runs[uid] = _task(self._run_pod(pod))

    def _current(self, pod: Object) -> Object | None:
        meta = pod["metadata"]
        stored = self._api.store.get(PODS, meta["namespace"], meta["name"])
        if stored is None or stored.body["metadata"]["uid"] != meta["uid"]:
            return None
        return stored.body

    def _change(self, pod: Object, status_of: Callable[[Object], Object]) -> None:
        """Store a new status of *pod*, unless it is gone."""
        current = self._current(pod)
        if current is not None:
            put_status(self._api, PODS, current, status_of(current))

    async def _run_pod(self, pod: Object) -> None:
        """Bring a pod up, run it, and run it again where its restart policy says so."""
        # A pod that runs already was restored with the sandbox's state and goes on where it was.
        if pod["status"].get("phase") != "Running":
            self._change(pod, pod_status.creating)
            await self._clock.sleep(PULL_SECONDS)
            for container in pod["spec"]["containers"]:
                text = f'Container image "{container["image"]}" already present on machine'
                self._record(pod, "Pulled", text, container["name"])
            await self._clock.sleep(START_SECONDS)
            self._start_containers(pod)
        while True:
            code = await self._run_program(pod)
            # The pod may have been deleted while its program ran.
            current = self._current(pod)
            if current is None:
                return
            again = pod_status.restarts(current, code)
            self.log_of(current).close()
            state = pod_status.backing_off if again else pod_status.ended
            self._change(pod, partial(state, code=code))
            if not again:
                return
            self._record_back_off(pod)
            await self._clock.sleep(BACKOFF_SECONDS)
            self._start_containers(pod)

    def _start_containers(self, pod: Object) -> None:
        current = self._current(pod)
        if current is not None:
            for container in current["spec"]["containers"]:
                self.log_of(current, container["name"])
            self._change(pod, pod_status.running)
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
                await self._clock.sleep(WAIT_SECONDS)
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
        """Stop a pod that is being deleted and remove it."""
        if task := self._runs.pop(pod["metadata"]["uid"], None):
            task.cancel()
            for container in pod["spec"]["containers"]:
                text = f"Stopping container {container['name']}"
                self._record(pod, "Killing", text, container["name"])
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        # Simulated programs end as soon as they are asked to, whatever grace they have.
        await self._clock.sleep(min(grace, STOP_SECONDS))
        current = self._current(pod)
        if current is None:
            return
        # With a finalizer the object stays, as a pod that has ended, until somebody removes it.
        if current["metadata"].get("finalizers"):
            self._change(pod, partial(pod_status.ended, code=STOPPED))
            self._stops.pop(pod["metadata"]["uid"], None)
            return
        self._api.store.drop(PODS, current)


def _task(work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Return a task that prints why it failed, as nobody waits for it."""
    task = asyncio.create_task(work)
    task.add_done_callback(_print_failure)
    return task


def _print_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        traceback.print_exception(error, file=sys.stderr)
