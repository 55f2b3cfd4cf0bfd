"""The life of one pod: its place, its volumes, its
containers one after another, their ends, and its removal.
"""

import json
import re
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tests.controlplane.kube import Object
from tests.ranks.agent import environment as env
from tests.ranks.agent.containers.container import Container, ContainerPlan
from tests.ranks.agent.containers.probes import answers
from tests.ranks.agent.knobs import Knob, held
from tests.ranks.agent.services import Services
from tests.ranks.agent.status import ContainerState, now, pod_status, terminated, waiting
from tests.ranks.agent.volumes import Volume, mounts, volumes
from tests.ranks.network import Attachment

_BACKOFF_SECONDS = 0.5
_LOOK_SECONDS = 0.2


class PodGone(Exception):
    """The pod is to end before it has begun."""


class RunningPod:
    """A pod bound to a node of the agent; it acts in threads of its own until nothing of it is left."""

    def __init__(self, services: Services, pod: Object, done: Callable[[], None]) -> None:
        self._services = services
        self._pod = pod
        self._done = done
        self._folder = services.folder / pod["metadata"]["uid"]
        self._changed = threading.Condition()
        self._hosts_lock = threading.Lock()
        self._place: Attachment | None = None
        self._removed = False
        self._failed = False
        self._began = now()
        self._volumes: Mapping[str, Volume] = {}
        self._states = {
            each["name"]: ContainerState()
            for each in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
        }
        self._containers: dict[str, Container] = {}
        self._reporting = threading.Lock()
        self._reported = ""
        self._since: dict[tuple[str, str], str] = {}
        for target in (self._live, self._end_in_time):
            threading.Thread(target=target, daemon=True).start()

    def update(self, pod: Object) -> None:
        """Take in a change of the pod's object."""
        with self._changed:
            self._pod = pod
            self._changed.notify_all()
        self.write_hosts()
        self._report()

    def removed(self) -> None:
        """Hear that the API server has no such pod any more: anyone who removed it did not wait."""
        with self._changed:
            self._removed = True
            self._changed.notify_all()

    def write_hosts(self) -> None:
        """Write what the pod can resolve, in place: a mounted file follows its inode."""
        place, names = self._place, self._services.names
        if place is None:
            return
        # Its files may go at any moment: what is written is heard of by other threads than the one that ends
        # the pod. One of those writes at a time, or the older of two texts may be the one that stays.
        with (
            self._hosts_lock,
            suppress(FileNotFoundError),
            (self._folder / "hosts").open("r+") as file,
        ):
            file.write(names.hosts(self._pod, place.address, resolves=not held(self._pod, Knob.NAMES)))
            file.truncate()

    def container(self, namespace: str, pod: str, name: str) -> Container | None:
        """Return the container of that name, if it is this pod's and runs."""
        meta, process = self._pod["metadata"], self._containers.get(name)
        mine = (meta["namespace"], meta["name"]) == (namespace, pod)
        return process if mine and process is not None and process.running else None

    def _live(self) -> None:
        try:
            self._run()
        except PodGone:
            pass
        except Exception as error:  # noqa: BLE001  # whatever a pod asks for that cannot be had is its own fault
            traceback.print_exc(file=sys.stdout)
            self._refuse(error)
        self._wait_until(lambda: self._leaving)
        self._clean_up()
        self._services.remove(self._pod)
        self._done()

    def _run(self) -> None:
        spec, services = self._pod["spec"], self._services
        self._report()
        (self._folder / "volumes").mkdir(parents=True)
        (self._folder / "hosts").touch()
        attach = services.network.of_node if spec.get("hostNetwork") else services.network.attach
        self._place = attach(spec["nodeName"])
        self.write_hosts()
        token = services.token(self._pod) if _wants_token(spec) else ""
        self._volumes = volumes(self._pod, self._folder / "volumes", self._data, self._field, token)
        for container in spec.get("initContainers") or []:
            self._keep(container, restart=spec.get("restartPolicy") != "Never")
            if self._states[container["name"]].exit_code:
                return
        main = [
            threading.Thread(target=self._keep_main, args=(container,), daemon=True)
            for container in spec["containers"]
        ]
        for thread in main:
            thread.start()
        for thread in main:
            thread.join()

    def _keep_main(self, container: Object) -> None:
        policy = self._pod["spec"].get("restartPolicy", "Always")
        try:
            self._keep(container, restart=policy != "Never", always=policy == "Always")
        except PodGone:
            pass
        except Exception as error:  # noqa: BLE001  # see _live
            traceback.print_exc(file=sys.stdout)
            self._refuse(error)

    def _keep(self, container: Object, *, restart: bool, always: bool = False) -> None:
        """Run *container*, again as long as its pod's policy says so."""
        name = container["name"]
        while True:
            code = self._run_once(container)
            if not (restart and (code or always)) or self._leaving:
                return
            state = self._states[name]
            again = replace(state, state=waiting("CrashLoopBackOff"), last=state.state)
            self._set(name, replace(again, restarts=state.restarts + 1))
            self._wait_until(lambda: self._leaving, _BACKOFF_SECONDS * 2 ** min(state.restarts, 4))

    def _run_once(self, container: Object) -> int:
        services, meta, spec = self._services, self._pod["metadata"], self._pod["spec"]
        name, node = container["name"], spec["nodeName"]
        gpus = services.gpus.take(node, container)
        try:
            plan = self._plan(container, tuple(gpus))
            if self._leaving:
                raise PodGone
            started_at = now()
            running = replace(
                self._states[name],
                state={"running": {"startedAt": started_at}},
                started="startupProbe" not in container,
                ready=not {"startupProbe", "readinessProbe"} & container.keys()
                and not held(self._pod, Knob.READY),
            )
            if held(self._pod, Knob.PROCESS):
                self._set(name, running)
                self._wait_until(lambda: self._leaving or not held(self._pod, Knob.PROCESS))
            log = services.logs.begin(meta["namespace"], meta["name"], name)
            self._containers[name] = process = Container(plan, log)
            self._set(name, running)
            ended = threading.Event()
            self._ask_probes(container, process, ended)
            code = process.wait()
            ended.set()
        finally:
            services.gpus.give_back(node, gpus)
        self._set(name, replace(self._states[name], state=terminated(code, started_at), ready=False))
        shutil.rmtree(plan.folder, ignore_errors=True)
        return code

    def _plan(self, container: Object, gpus: tuple[int, ...]) -> ContainerPlan:
        assert self._place is not None
        spec, images, name = self._pod["spec"], self._services.images, container["name"]
        host = spec.get("hostname") or self._pod["metadata"]["name"]
        if spec.get("hostNetwork"):
            host = spec["nodeName"]
        image = images.get(container["image"], images[""])
        own = env.environment(container, self._data, self._field)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} if gpus else {}
        given = {**env.image_environment(host), **(image.environment or {}), **visible, **own}
        return ContainerPlan(
            folder=self._folder / f"{name}-{self._states[name].restarts}",
            host=host,
            node=spec["nodeName"],
            place=self._place,
            image=image,
            directory=container.get("workingDir") or "/",
            environment=given,
            command=env.command(container, own),
            mounts=mounts(container, self._volumes),
            gpus=gpus,
        )

    def _ask_probes(self, container: Object, process: Container, ended: threading.Event) -> None:
        name = container["name"]

        def startup() -> None:
            # The others are asked from its first success on, and no more of it is asked then.
            if "startupProbe" in container:
                if not next(answers(container, "startupProbe", process, ended), False):
                    process.kill()
                    return
                self._tell(name, process, started=True, ready="readinessProbe" not in container)
            for each in (readiness, liveness):
                threading.Thread(target=each, daemon=True).start()

        def readiness() -> None:
            for good in answers(container, "readinessProbe", process, ended):
                self._tell(name, process, ready=good)

        def liveness() -> None:
            if not all(answers(container, "livenessProbe", process, ended)):
                process.kill()

        threading.Thread(target=startup, daemon=True).start()

    def _tell(self, name: str, process: Container, **changes: Any) -> None:
        if process.running:
            self._set(name, replace(self._states[name], **changes))

    def _end_in_time(self) -> None:
        """Ask the containers to end once the pod is deleted, and end them when its grace period is over."""
        self._wait_until(lambda: self._leaving)
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds", 30)
        deadline = time.monotonic() + (0 if self._removed else grace)
        for container in list(self._containers.values()):
            container.terminate()
        while time.monotonic() < deadline and any(each.running for each in self._containers.values()):
            self._wait_until(lambda: self._removed, _LOOK_SECONDS)
            if self._removed:
                break
        for container in list(self._containers.values()):
            container.kill()

    def _clean_up(self) -> None:
        for container in list(self._containers.values()):
            container.kill()
            container.wait()
        meta, place = self._pod["metadata"], self._place
        if place is not None and not self._pod["spec"].get("hostNetwork"):
            self._services.network.detach(place)
        self._place = None
        self._services.logs.forget(meta["namespace"], meta["name"])
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _leaving(self) -> bool:
        return self._removed or "deletionTimestamp" in self._pod["metadata"]

    def _wait_until(self, fact: Callable[[], bool], seconds: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(fact, seconds)

    def _refuse(self, error: Exception) -> None:
        """Report that the containers cannot be created."""
        for name, state in self._states.items():
            if "running" not in state.state and state.exit_code is None:
                self._states[name] = replace(state, state=waiting("CreateContainerConfigError", str(error)))
        self._report()

    def _set(self, name: str, state: ContainerState) -> None:
        self._states[name] = state
        self._report()

    def _report(self) -> None:
        """Write the status, unless it is the one that was written last."""
        with self._reporting:
            address = self._place.address if self._place else ""
            status = pod_status(self._pod, self._states, address, self._began, failed=self._failed)
            if status["phase"] in {"Succeeded", "Failed"} and held(self._pod, Knob.STATUS):
                return
            for condition in status["conditions"]:
                moment = condition["lastTransitionTime"]
                key = (condition["type"], condition["status"])
                condition["lastTransitionTime"] = self._since.setdefault(key, moment)
            text = json.dumps(status)
            if text != self._reported and not self._removed:
                self._reported = text
                self._services.report(self._pod, status)

    def _data(self, kind: str, name: str) -> Mapping[str, bytes]:
        """Return the data of a ConfigMap or a Secret, for which a pod waits until it is there."""
        while not self._leaving:
            found = self._services.data(kind, name, self._pod["metadata"]["namespace"])
            if found is not None:
                return found
            self._wait_until(lambda: self._leaving, _LOOK_SECONDS)
        raise PodGone

    def _field(self, path: str) -> str:
        meta, spec = self._pod["metadata"], self._pod["spec"]
        if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path):
            return str((meta.get(match[1]) or {}).get(match[2], ""))
        values = {
            "metadata.name": meta["name"],
            "metadata.namespace": meta["namespace"],
            "metadata.uid": meta["uid"],
            "spec.nodeName": spec["nodeName"],
            "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
            "status.podIP": self._place.address if self._place else "",
            "status.hostIP": "127.0.0.1",
        }
        return str(values[path])


def _wants_token(spec: Object) -> bool:
    sources = (each.get("projected", {}).get("sources", []) for each in spec.get("volumes") or [])
    return any("serviceAccountToken" in source for group in sources for source in group)
