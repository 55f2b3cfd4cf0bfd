"""The status of a pod in each of its states, as a kubelet reports it."""

import hashlib

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.verbs.objects import timestamp
from arena_topo.sandbox.sim.kubelets.nodes import address_of

_TERMINATED = "terminated"


def _conditions(pod: Object, *, ready: bool, reason: str = "") -> list[Object]:
    now = timestamp()
    kept = [each for each in pod["status"].get("conditions", []) if each["type"] == "PodScheduled"]
    word = "True" if ready else "False"
    why = {"reason": reason} if reason and not ready else {}
    made = [
        {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": now, **extra}
        for type_, status, extra in (
            ("Initialized", "True", {}),
            ("Ready", word, why),
            ("ContainersReady", word, why),
        )
    ]
    return made + kept


def _containers(pod: Object, state: Object, *, ready: bool) -> list[Object]:
    old = {each["name"]: each for each in pod["status"].get("containerStatuses", [])}
    return [
        {
            "name": each["name"],
            "state": state,
            "lastState": old.get(each["name"], {}).get("lastState", {}),
            "ready": ready,
            "restartCount": old.get(each["name"], {}).get("restartCount", 0),
            "image": each["image"],
            "imageID": "",
            "started": ready,
        }
        for each in pod["spec"]["containers"]
    ]


def creating(pod: Object) -> Object:
    """Return the status of a pod whose containers are being made."""
    status: Object = pod["status"] | {"phase": "Pending", "hostIP": address_of(pod["spec"]["nodeName"])}
    status.setdefault("startTime", timestamp())
    status["conditions"] = _conditions(pod, ready=False, reason="ContainersNotReady")
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return status | {"containerStatuses": _containers(pod, waiting, ready=False)}


def running(pod: Object) -> Object:
    """Return the status of a running pod."""
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    address = f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
    if pod["spec"].get("hostNetwork"):
        address = address_of(pod["spec"]["nodeName"])
    status: Object = pod["status"] | {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    status["conditions"] = _conditions(pod, ready=True)
    state = {"running": {"startedAt": timestamp()}}
    return status | {"containerStatuses": _containers(pod, state, ready=True)}


def _ending(pod: Object, code: int) -> Object:
    old = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {}).get("running", {})
    reason = "Completed" if code == 0 else "Error"
    body: Object = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
    return {_TERMINATED: body | ({"startedAt": old["startedAt"]} if old else {})}


def ended(pod: Object, code: int) -> Object:
    """Return the status of a pod that will not run again."""
    done = "PodCompleted" if code == 0 else "PodFailed"
    status: Object = pod["status"] | {"phase": "Succeeded" if code == 0 else "Failed"}
    status["conditions"] = _conditions(pod, ready=False, reason=done)
    return status | {"containerStatuses": _containers(pod, _ending(pod, code), ready=False)}


def backing_off(pod: Object, code: int) -> Object:
    """Return the status of a pod whose container ended and will be started again."""
    last = _ending(pod, code)
    states = _containers(pod, {"waiting": {"reason": "CrashLoopBackOff"}}, ready=False)
    states = [each | {"lastState": last, "restartCount": each["restartCount"] + 1} for each in states]
    conditions = _conditions(pod, ready=False, reason="ContainersNotReady")
    status: Object = pod["status"] | {"conditions": conditions, "containerStatuses": states}
    return status


def restarts(pod: Object, code: int) -> bool:
    """Whether a container that ended with *code* is started again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)
