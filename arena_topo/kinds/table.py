"""Every kind of job, in the order in which they are looked for."""

from arena_topo.errors import DocumentError
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.jobset import JOBSET
from arena_topo.kinds.mpijob import ApiVersion, pod_templates
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.kinds.trainjob import TRAINJOB
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import Object

OTHER_KINDS: tuple[Kind, ...] = (PYTORCHJOB, TFJOB, TRAINJOB, JOBSET, INDEXED_JOB)
"""Those besides MPIJob, whose versions nearly every command knows without the others."""

KINDS: tuple[Kind, ...] = (*ApiVersion, *OTHER_KINDS)


def kind_of(job: Object) -> Kind:
    """Return the kind of *job*. Raises ``DocumentError`` when it is none of ours."""
    found = (job.get("apiVersion"), job.get("kind"))
    kind = next((kind for kind in KINDS if found == (api_version(kind), kind.kind)), None)
    if kind is None:
        names = ", ".join(dict.fromkeys(kind.kind for kind in KINDS))
        raise DocumentError(
            f"unsupported kind: {job.get('kind') or 'not given'} ({job.get('apiVersion') or 'no apiVersion'})",
            hint=f"the kinds of jobs are {names}",
        )
    return kind


def check_templates(kind: Kind, job: Object) -> None:
    """Raise ``DocumentError`` if a role of *job*, one of ours, has no writable pod template."""
    if isinstance(kind, ApiVersion):
        pod_templates(job)
    elif not all(replicas.template for replicas in kind.replicas(job)):
        raise DocumentError(f"the template renders a {kind.kind} with a role that has no pod template")


def newest_kind(word: str) -> Kind:
    """Return the kind that *word* names, in its newest version. Raises ``LookupError`` if it names none."""
    return kinds_called(word)[0]


def kinds_called(word: str) -> tuple[Kind, ...]:
    """Return the kinds that *word* names, as in ``--type``; empty if it names none."""
    return tuple(kind for kind in KINDS if word.lower() in kind.words)
