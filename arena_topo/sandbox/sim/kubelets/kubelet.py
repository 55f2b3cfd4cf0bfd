"""The kubelets of all nodes: pods start, print, end, and are stopped."""

import asyncio
import copy
from collections.abc import Callable

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.store import Change
from arena_topo.sandbox.api.verbs.container_logs import Logbook
from arena_topo.sandbox.api.verbs.objects import Api
from arena_topo.sandbox.sim import events
from arena_topo.sandbox.sim.clock import Clock
from arena_topo.sandbox.sim.kubelets import pod_states
from arena_topo.sandbox.sim.kubelets.programs import Program

PULL_SECONDS = 0.5
START_SECONDS = 0.5
STOP_SECONDS = 0.3
BACKOFF_SECONDS = 2.0
_PODS = ("", "pods")


class Kubelet:
    """One task a pod; ``program`` says what it does, None while it waits for others."""

    def __init__(
        self, api: Api, books: Logbook, clock: Clock, program: Callable[[Object], Program | None]
    ) -> None:
        self._api = api
        self._books = books
        self._clock = clock
        self._program = program
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Task[None]] = {}

    def attach(self) -> None:
        """Begin: take over the pods there are, and every pod from now on."""
        for pod in self._api.store.values(_PODS):
            self._see(pod)
        self._api.store.listen(self._notice)

    async def stop(self) -> None:
        """Stop all tasks; the pods stay as they are."""
        tasks = [*self._lives.values(), *self._ends.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _notice(self, change: Change) -> None:
        if change.resource != _PODS:
            return
        if change.type == "DELETED":
            uid = change.after.body["metadata"]["uid"]
            for tasks in (self._lives, self._ends):
                if (task := tasks.pop(uid, None)) and task is not asyncio.current_task():
                    task.cancel()
            self._books.forget(uid)
        else:
            self._see(change.after.body)

    def _see(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in pod["metadata"]:
            if uid not in self._ends:
                self._ends[uid] = asyncio.create_task(self._end(pod))
        elif uid not in self._lives and pod["status"].get("phase") not in {"Succeeded", "Failed"}:
            self._lives[uid] = asyncio.create_task(self._live(pod))

    def _current(self, pod: Object) -> Object | None:
        meta = pod["metadata"]
        stored = self._api.store.get(_PODS, meta["namespace"], meta["name"])
        if stored is None or stored.body["metadata"]["uid"] != meta["uid"]:
            return None
        return stored.body

    def _change(self, pod: Object, change: Callable[[Object], Object]) -> Object | None:
        """Store a new status of *pod*, unless it is gone."""
        current = self._current(pod)
        if current is None:
            return None
        body = copy.deepcopy(current)
        body["status"] = change(body)
        return self._api.store.put(_PODS, body)

    async def _live(self, pod: Object) -> None:
        """Bring a pod up, run it, and run it again where its restart policy says so."""
        if pod["status"].get("phase") != "Running":
            self._change(pod, pod_states.creating)
            await self._clock.sleep(PULL_SECONDS)
            self._tell(
                pod,
                "Pulled",
                f'Container image "{pod["spec"]["containers"][0]["image"]}" already present on machine',
            )
            await self._clock.sleep(START_SECONDS)
            self._start(pod, pod_states.running)
        while True:
            code = await self._run(pod)
            current = self._current(pod)
            if current is None:
                return
            again = pod_states.restarts(current, code)
            self._books.open(*self._book_key(current)).close()
            if not again:
                self._change(pod, lambda body, code=code: pod_states.ended(body, code))  # type: ignore[misc]
                return
            self._change(pod, lambda body, code=code: pod_states.backing_off(body, code))  # type: ignore[misc]
            await self._clock.sleep(BACKOFF_SECONDS)
            self._start(pod, pod_states.running)

    def _start(self, pod: Object, state: Callable[[Object], Object]) -> None:
        current = self._current(pod)
        if current is not None:
            for container in current["spec"]["containers"]:
                uid, _, run = self._book_key(current)
                self._books.open(uid, container["name"], run)
            self._change(pod, state)
            self._tell(pod, "Started", "Container started (simulated)")

    def _tell(self, pod: Object, reason: str, message: str) -> None:
        current = self._current(pod)
        if current is not None:
            events.record(self._api, current, "kubelet", reason, message)

    @staticmethod
    def _book_key(pod: Object) -> tuple[str, str, int]:
        states = pod["status"].get("containerStatuses") or [{}]
        return pod["metadata"]["uid"], pod["spec"]["containers"][0]["name"], states[0].get("restartCount", 0)

    async def _run(self, pod: Object) -> int:
        """Print a container's lines from where it was and return its exit code; never, for a server."""
        program: Program | None = None
        while program is None:
            current = self._current(pod)
            program = self._program(current) if current is not None else Program()
            if program is None:
                await self._clock.sleep(0.2)
        current = self._current(pod)
        if current is None:
            return 0
        book = self._books.open(*self._book_key(current))
        for pause, line in program.lines[len(book.lines) :]:
            await self._clock.sleep(pause)
            book.write(line)
        if program.code is None:
            await asyncio.Event().wait()
        await self._clock.sleep(program.linger)
        return program.code or 0

    async def _end(self, pod: Object) -> None:
        """Stop a pod that is being deleted and remove it."""
        if life := self._lives.pop(pod["metadata"]["uid"], None):
            life.cancel()
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        await self._clock.sleep(min(grace, STOP_SECONDS))
        current = self._current(pod)
        if current is None:
            return
        if current["metadata"].get("finalizers"):
            self._change(pod, lambda body: pod_states.ended(body, 0))
            self._ends.pop(pod["metadata"]["uid"], None)
            return
        meta = current["metadata"]
        self._api.store.drop(_PODS, meta["namespace"], meta["name"])
