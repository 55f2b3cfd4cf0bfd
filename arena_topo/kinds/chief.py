"""Which pod is the one whose log is its job's, of whatever kind that is."""

from arena_topo.kinds.mpijob import is_launcher
from arena_topo.model import keys
from arena_topo.model.objects import Object


def is_chief(pod: Object) -> bool:
    """Whether *pod* is its job's launcher, master or first pod."""
    labels = pod["metadata"].get("labels") or {}
    # Most commands read jobs of the operators, and need not import these.
    if keys.JOBSET_NAME in labels:
        from arena_topo.kinds.jobset import JOBSET

        return JOBSET.is_chief(pod)
    if keys.COMPLETION_INDEX in labels:
        from arena_topo.kinds.indexed_job import INDEXED_JOB

        return INDEXED_JOB.is_chief(pod)
    # The training operator gives the chief of each of its kinds the role that its launchers have.
    return is_launcher(pod)
