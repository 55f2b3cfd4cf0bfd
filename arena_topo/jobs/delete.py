"""Deleting jobs, with everything that was created for them."""

import time
from collections.abc import Callable

from arena_topo.errors import Forbidden, NotFound, WaitTimeout
from arena_topo.jobs.lookup import find_job, is_arena_record, record_name
from arena_topo.kube.resources import CONFIG_MAPS, jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.keys import ARENA_CREATED_BY, ARENA_CREATED_BY_VALUE, MANAGED_BY
from arena_topo.model.objects import Object
from arena_topo.model.text.words import written_duration

_PERIOD = 0.2
"""Seconds between two looks at a job that is being deleted."""


def delete_job(session: Session, name: str, *, namespace: str = "", uid: str = "") -> Callable[[], bool]:
    """Delete job *name*, and return a function that asks whether it is gone.

    It is that of the session's namespace unless another *namespace* is given, and where a *uid* is given, that very job.
    The server deletes the pods and all else that belongs to the job before the job itself (foreground deletion), so
    that the names of all of them are free once the job is gone. Raises ``NotFound``.
    """
    if namespace and namespace != session.namespace:
        session = session.within(namespace)
    served = find_job(session, name)
    path = jobs_of(served.kind).path(session.namespace, name)
    # By its uid, so that a job that somebody else created under the name meanwhile stays.
    found = str(served.job["metadata"]["uid"])
    if uid and found != uid:
        raise NotFound(f"training job {name} was created again meanwhile", status=404)
    uid = found
    session.delete(path, propagation="Foreground", uid=uid)
    if _is_arenas(served.job):
        _delete_record(session, name)

    def is_gone() -> bool:
        # A job with another uid was created after ours was gone.
        try:
            return bool(session.get(path)["metadata"]["uid"] != uid)
        except NotFound:
            return True

    return is_gone


def _is_arenas(job: Object) -> bool:
    labels = job["metadata"].get("labels") or {}
    return labels.get(ARENA_CREATED_BY) == ARENA_CREATED_BY_VALUE and MANAGED_BY not in labels


def _delete_record(session: Session, name: str) -> None:
    """Delete the record of a job that Arena made, which before 0.15.5 does not belong to the job.

    With a record that is left behind, Arena refuses to submit a job of that name again.
    """
    path = CONFIG_MAPS.path(session.namespace, record_name(name))
    try:
        record = session.get(path)
        if is_arena_record(record):
            session.delete(path, uid=record["metadata"]["uid"])
    # The job is deleted, which is what was asked for; the record may have gone with it.
    except (NotFound, Forbidden):
        return


def wait_until_gone(
    is_gone: Callable[[], bool], name: str, *, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once *is_gone* says so, asking every 0.2 s; *timeout* in seconds, 0 for no limit. Raises ``WaitTimeout``."""
    deadline = time.monotonic() + timeout
    while not is_gone():
        if timeout and time.monotonic() >= deadline:
            raise WaitTimeout(
                f"job {name} is still being deleted after {written_duration(timeout)}",
                hint="its pods may take their time to stop: kubectl get pods shows them",
            )
        sleep(_PERIOD)
