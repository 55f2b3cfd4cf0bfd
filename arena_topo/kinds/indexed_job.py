"""The indexed Job of Kubernetes itself: one role, whose pods have a completion index.

Sources: k8s.io/api/batch/v1 (types.go); KEP-2926, what of a template may change while a Job is suspended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model import keys
from arena_topo.model.kind import Elastic, Loose, Member, Replicas
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number

_LABELS = "object.metadata.labels"
_ROLE = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedJobKind:
    """The ``Kind`` of batch/v1."""

    group: str = "batch"
    version: str = "v1"
    kind: str = "Job"
    plural: str = "jobs"
    words: tuple[str, ...] = ("job", "indexedjob")
    container: str = "main"
    ranks: tuple[str, ...] = (_ROLE,)
    job_label: str = keys.BATCH_JOB_NAME
    # Jobs of a JobSet are indexed too, and belong to that.
    selector: str = f"{keys.COMPLETION_INDEX},!{keys.JOBSET_NAME}"
    pod_spec_path: tuple[str, ...] = ("spec", "template", "spec")
    suspend: tuple[str, ...] = ("suspend",)
    loose: Loose = Loose.SCHEDULING
    succeeded: str = "Complete"
    failed: str = "Failed"
    served_by: str = "the Job controller of Kubernetes"
    refused_by: Mapping[str, str] = field(default_factory=dict, hash=False)
    # A cluster has batch Jobs of all sorts: only those that are labelled as training jobs are ours.
    listed: str = f"{keys.TRAINING_JOB}=true"
    # Its size is in two fields, which may only change together.
    elastic: Elastic | None = None
    is_pinnable: str = (
        f"has({_LABELS}) && '{keys.COMPLETION_INDEX}' in {_LABELS} && !('{keys.JOBSET_NAME}' in {_LABELS})"
    )
    index: str = f"int({_LABELS}['{keys.COMPLETION_INDEX}'])"

    def counts(self, job: Object) -> bool:
        """Whether *job* has the label of a training job."""
        # A malicious server may list objects without metadata.
        return ((job.get("metadata") or {}).get("labels") or {}).get(keys.TRAINING_JOB) == "true"

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job*."""
        spec = job["spec"]
        return [Replicas(_ROLE, pods_at_once(spec), spec.get("template") or {}, "/spec/template")]

    def member(self, pod: Object) -> Member | None:
        """Return which pod of its job *pod* is."""
        labels = pod["metadata"].get("labels") or {}
        index = optional_number(labels.get(keys.COMPLETION_INDEX))
        if index is None or keys.JOBSET_NAME in labels:
            return None
        return Member(str(labels.get(self.job_label, "")), _ROLE, index)

    def pod_name(self, member: Member) -> str:
        """Return what the name of a pod begins with."""
        return f"{member.job}-{member.index}-"

    def is_chief(self, pod: Object) -> bool:
        """Whether *pod* is the first."""
        member = self.member(pod)
        return member is not None and member.index == 0

    def chief_role(self, job: Object) -> str:  # noqa: ARG002  # every Job has the same
        """Return the one role that there is."""
        return _ROLE


def pods_at_once(spec: Object) -> int:
    """Return how many pods a Job with *spec* has at one time: no more than it has left to complete."""
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    return parallelism if spec.get("completions") is None else min(parallelism, int(spec["completions"]))


INDEXED_JOB = IndexedJobKind()
