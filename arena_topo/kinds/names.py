"""Which job a text names, and which of its pods is the one whose log is the job's."""

from arena_topo.errors import UsageError
from arena_topo.kinds.mpijob import is_launcher
from arena_topo.model import keys
from arena_topo.model.objects import Object
from arena_topo.model.validation import is_object_name


def named_job(text: str) -> str:
    """Return the name of the job that *text* refers to, ``NAME`` or kubectl's ``mpijob/NAME``.

    It is all that may become part of a path of the API: an empty name would stand for all jobs, and
    ``job/status`` for a part of one. Jobs that others submitted may have longer names than ours, with dots.
    Raises ``UsageError``.
    """
    kind, slash, name = text.rpartition("/")
    is_job = not slash or kind.lower() in _words_of_kinds()
    if not is_job or not is_object_name(name):
        raise UsageError(
            f"{text!r} does not name a training job",
            hint="give the name of a job, as arena-topo list prints it, or mpijob/NAME",
        )
    return name


def _words_of_kinds() -> frozenset[str]:
    """Return what may stand before the slash of KIND/NAME: what kubectl prints and takes."""
    # Most people type only the name, and every kind takes its time to import.
    from arena_topo.kinds.table import KINDS

    return frozenset(
        form
        for kind in KINDS
        for word in (kind.kind.lower(), kind.plural)
        for form in (word, f"{word}.{kind.group}", f"{word}.{kind.version}.{kind.group}")
    )


# Which pod is the one whose log is its job's, of whatever kind that is.


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
