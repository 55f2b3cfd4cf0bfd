"""The status of a pod in each of its states, as a kubelet reports it."""

import hashlib

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import timestamp
from arena_topo.sandbox.sim.objects import address_of


def _status(pod: Object, phase: str, state: Object, reason: str = "") -> Object:
    """Return a status with *state* in every container; *reason* says why the pod is not ready, if it is not."""
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


def creating(pod: Object) -> Object:
    """Return the status of a pod whose containers are being created."""
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    status = _status(pod, "Pending", waiting, "ContainersNotReady")
    status.setdefault("startTime", timestamp())
    return status | {"hostIP": address_of(pod["spec"]["nodeName"])}


def running(pod: Object) -> Object:
    """Return the status of a running pod."""
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    # 10.244.0.0/16 is the customary network of pods; a pod's uid gives it the same address after each restart.
    address = f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
    if pod["spec"].get("hostNetwork"):
        address = address_of(pod["spec"]["nodeName"])
    status = _status(pod, "Running", {"running": {"startedAt": timestamp()}})
    return status | {"podIP": address, "podIPs": [{"ip": address}]}


def ended(pod: Object, code: int) -> Object:
    """Return the status of a pod that will not run again."""
    phase, reason = ("Succeeded", "PodCompleted") if code == 0 else ("Failed", "PodFailed")
    return _status(pod, phase, _terminated(pod, code), reason)


def backing_off(pod: Object, code: int) -> Object:
    """Return the status of a pod whose container ended and will be started again."""
    last = _terminated(pod, code)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    # The phase stays as it is: a pod whose container will be restarted is still Running.
    status = _status(pod, pod["status"]["phase"], waiting, "ContainersNotReady")
    for state in status["containerStatuses"]:
        state |= {"lastState": last, "restartCount": state["restartCount"] + 1}
    return status


def _terminated(pod: Object, code: int) -> Object:
    """Return the state of a container that ran and ended with *code*."""
    # The containers of a simulated pod start and end together, so the first speaks for all.
    old = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {}).get("running", {})
    reason = "Completed" if code == 0 else "Error"
    body: Object = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
    return {"terminated": body | ({"startedAt": old["startedAt"]} if old else {})}


def restarts(pod: Object, code: int) -> bool:
    """Whether a container that ended with *code* is started again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)
