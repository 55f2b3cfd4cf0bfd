"""The status of a pod, from the states of its containers. Source: k8s.io/kubernetes/pkg/kubelet/status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.controlplane.kube import Object

_WAITING = {"waiting": {"reason": "ContainerCreating"}}
_HOST = "127.0.0.1"
"""Where the API server reaches the agent for logs: the address of all its nodes."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    """What is known of a container; ``state`` and ``last`` in the API's own shape."""

    state: Mapping[str, Any] = field(default_factory=lambda: _WAITING)
    last: Mapping[str, Any] = field(default_factory=dict)
    restarts: int = 0
    started: bool = False
    ready: bool = False

    @property
    def exit_code(self) -> int | None:
        """The exit code of a container that has ended, None before."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Return the state of a container that does not run (yet)."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def terminated(code: int, started_at: str) -> dict[str, Any]:
    """Return the state of a container that has ended."""
    reason = "Error" if code else "Completed"
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": started_at, "finishedAt": now()}}


def phase(init: Sequence[ContainerState], main: Sequence[ContainerState], *, restarts: bool) -> str:
    """Return the phase of a pod; *restarts*: a container that ends is started again."""
    if any(state.exit_code for state in init) and not restarts:
        return "Failed"
    codes = [state.exit_code for state in main]
    if all(code is not None for code in codes):
        if not any(codes):
            return "Succeeded"
        return "Running" if restarts else "Failed"
    begun = any("running" in state.state or state.exit_code is not None or state.restarts for state in main)
    return "Running" if begun else "Pending"


def pod_status(
    pod: Object, states: Mapping[str, ContainerState], address: str, started_at: str, *, failed: bool = False
) -> Object:
    """Return the status of *pod* at *address*, which is
    empty before it has one; *failed* overrides its phase.
    """
    spec = pod["spec"]
    init = [states[each["name"]] for each in spec.get("initContainers") or []]
    main = [states[each["name"]] for each in spec["containers"]]
    restarts = spec.get("restartPolicy") != "Never"
    now_in = "Failed" if failed else phase(init, main, restarts=restarts)
    ended = now_in in {"Succeeded", "Failed"}
    ready = now_in == "Running" and all(state.ready for state in main)
    initialized = all(state.exit_code == 0 for state in init)
    why = "PodCompleted" if now_in == "Succeeded" else "" if ready else "ContainersNotReady"
    status: Object = {
        "phase": now_in,
        "hostIP": _HOST,
        "startTime": started_at,
        "conditions": [
            _condition("PodReadyToStartContainers", holds=bool(address) and not ended),
            _condition("Initialized", holds=initialized),
            _condition("ContainersReady", holds=ready, reason=why),
            _condition("Ready", holds=ready, reason=why),
        ],
        "initContainerStatuses": _statuses(spec.get("initContainers") or [], states),
        "containerStatuses": _statuses(spec["containers"], states),
    }
    return {**status, "podIP": address, "podIPs": [{"ip": address}]} if address else status


def now() -> str:
    """Return this moment as the API writes it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _condition(kind: str, *, holds: bool, reason: str = "") -> Object:
    return {"type": kind, "status": str(holds), "reason": reason, "lastTransitionTime": now()}


def _statuses(containers: Sequence[Object], states: Mapping[str, ContainerState]) -> list[Object]:
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "containerID": f"namespace://{container['name']}" if state.started else "",
            "state": dict(state.state),
            "lastState": dict(state.last),
            "restartCount": state.restarts,
            "ready": state.ready,
            "started": state.started,
        }
        for container in containers
        for state in [states[container["name"]]]
    ]
