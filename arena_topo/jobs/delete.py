"""Deleting jobs, with everything that was created for them."""

import time
from collections.abc import Callable

from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.lookup import find_job
from arena_topo.kube.resources import mpijobs
from arena_topo.kube.session import Session

_PERIOD = 0.2
"""Seconds between two looks at a job that is being deleted."""


def delete_job(session: Session, name: str) -> Callable[[], bool]:
    """Delete job *name*, and return a function that asks whether it is gone.

    The server deletes the pods and all else that belongs to the job before the job itself (foreground deletion), so
    that the names of all of them are free once the job is gone. Raises ``NotFound``.
    """
    served = find_job(session, name)
    path = mpijobs(served.version).path(session.namespace, name)
    # By its uid, so that a job that somebody else created under the name meanwhile stays.
    uid = served.job["metadata"]["uid"]
    session.delete(path, propagation="Foreground", uid=uid)

    def is_gone() -> bool:
        # A job with another uid was created after ours was gone.
        try:
            return bool(session.get(path)["metadata"]["uid"] != uid)
        except NotFound:
            return True

    return is_gone


def wait_until_gone(
    is_gone: Callable[[], bool], name: str, *, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once *is_gone* says so, asking every 0.2 s; *timeout* in seconds, 0 for no limit. Raises ``WaitTimeout``."""
    deadline = time.monotonic() + timeout
    while not is_gone():
        if timeout and time.monotonic() >= deadline:
            raise WaitTimeout(
                f"job {name} is still being deleted after {timeout:g} seconds",
                hint="its pods may take their time to stop: kubectl get pods shows them",
            )
        sleep(_PERIOD)
