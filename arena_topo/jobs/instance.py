"""One instance of a job whose container runs, for commands that are carried out in it."""

from arena_topo.errors import ArenaTopoError, NotFound
from arena_topo.jobs.logs.instances import Instances
from arena_topo.jobs.logs.wait import LogTarget, container_status
from arena_topo.jobs.lookup import find_job, pods_of
from arena_topo.jobs.status.pod_status import pod_word
from arena_topo.kube.session import Session
from arena_topo.model.objects import Object


def running_instance(session: Session, name: str, instances: Instances, container: str) -> tuple[Object, str]:
    """Return the pod of the one instance that is meant, and its container, which runs.

    Raises ``NotFound`` without such a job, instance or container, ``ArenaTopoError`` for one that does not run.
    """
    served = find_job(session, name)
    instances.check(served)
    instance = instances.name_in(name)
    target = LogTarget(instance, container)
    pod = target.pod_among(pods_of(session, served))
    if pod is None:
        raise NotFound(
            f"{target.title(served)} of job {name} does not exist yet, or any more",
            hint=f"see arena-topo get {name}",
        )
    chosen = target.container_in(pod)
    if "running" not in (container_status(pod, chosen).get("state") or {}):
        raise ArenaTopoError(
            f"container {chosen} of instance {pod['metadata']['name']} does not run: {pod_word(pod)}",
            hint=f"see arena-topo get {name}; arena-topo logs {name} shows what it printed",
        )
    return pod, chosen
