"""The conditions of an MPIJob, with mpi-operator's reasons and texts.

Source: github.com/kubeflow/mpi-operator pkg/controller/mpi_job_controller_status.go.
"""

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.verbs.objects import timestamp

FINISHED = ("Succeeded", "Failed")


def has(status: Object, type_: str) -> bool:
    """Whether a condition holds."""
    return any(each["type"] == type_ and each["status"] == "True" for each in status.get("conditions", []))


def is_finished(status: Object) -> bool:
    """Whether the job has succeeded or failed."""
    return any(has(status, type_) for type_ in FINISHED)


def set_condition(status: Object, type_: str, reason: str, message: str, value: str = "True") -> bool:
    """Set a condition in place; a finished or suspended job runs no longer. Return whether it is new."""
    conditions = status.setdefault("conditions", [])
    old = next((each for each in conditions if each["type"] == type_), None)
    if old is not None and (old["status"], old["reason"]) == (value, reason):
        return False
    now = timestamp()
    fresh = {"type": type_, "status": value, "reason": reason, "message": message}
    fresh |= {"lastUpdateTime": now, "lastTransitionTime": now}
    if old is not None and old["status"] == value:
        fresh["lastTransitionTime"] = old["lastTransitionTime"]
    kept = [each for each in conditions if each["type"] != type_]
    if type_ in FINISHED and value == "True":
        kept = [each | {"status": "False"} if each["type"] == "Running" else each for each in kept]
    status["conditions"] = [*kept, fresh]
    return True
