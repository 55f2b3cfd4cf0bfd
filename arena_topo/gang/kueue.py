"""Kueue: the job waits in a queue until all of it is admitted at once, by quota and by topology.

Source: kueue 0.19 (pkg/controller/jobs/mpijob, apis/kueue/v1beta2/topology_types.go).
"""

from arena_topo.errors import UsageError
from arena_topo.gang.pod_groups import operator_policy
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.keys import KUEUE_QUEUE, PREFERRED_LEVEL, REQUIRED_LEVEL

_LEVEL = {True: "kueue.x-k8s.io/podset-required-topology", False: "kueue.x-k8s.io/podset-preferred-topology"}

_LEVEL_OF_PLAN = {True: REQUIRED_LEVEL, False: PREFERRED_LEVEL}


def decorate(gang: Gang) -> Decoration:
    """Return the queue's label for the job, and the level as an annotation of its workers.

    Raises ``UsageError`` without a queue. Without a level no annotation is set: if no flavor has a topology,
    a job with a topology request is never admitted.
    """
    if not gang.queue:
        raise UsageError(
            "--gang-scheduler kueue needs a queue",
            hint="name a LocalQueue of the namespace; kubectl get localqueues lists them",
        )
    level = _LEVEL_OF_PLAN if gang.planned else _LEVEL
    return Decoration(
        job_labels={KUEUE_QUEUE: gang.queue},
        worker_annotations={level[gang.required]: gang.level} if gang.level else {},
        # Kueue's webhook does it as well, if it is called: otherwise the operator might be quicker than
        # Kueue.
        suspended=True,
        scheduling_policy=operator_policy(gang),
        notes=_notes(gang),
    )


def _notes(gang: Gang) -> tuple[str, ...]:
    has_launcher = gang.kind.kind == "MPIJob"
    pods = f"launcher and {gang.workers} workers" if has_launcher else f"all {gang.workers} pods"
    notes = [f"Kueue admits {pods} at once, from queue {gang.queue}"]
    if gang.planned:
        notes.append("arena-topo's controller places the workers at their admission, and pins them")
    elif not gang.level:
        notes.append(
            "Kueue counts quota, not nodes, if no topology level is requested: "
            "what it admits may still wait for a node, pod by pod"
        )
    if has_launcher and not gang.launcher_requests:
        notes.append("Kueue admits pods by their requests, and the launcher has none: it counts for nothing")
    if gang.level and not gang.planned and not gang.placement.get("tolerations"):
        notes.append("Kueue checks taints itself: workers for tainted GPU nodes need explicit tolerations")
    return tuple(notes)
