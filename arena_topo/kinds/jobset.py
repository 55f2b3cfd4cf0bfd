"""The JobSet: roles that the job itself names, each some Jobs alike, each of which has some pods.

A pod knows the index of its Job in the role and its own index in the Job, and not how many pods a Job has: an
annotation of the template says it. With two pods a Job, pod 1 of Job 1 has index 3 in its role.

Sources: JobSet 0.12 (api/jobset/v1alpha2/jobset_types.go, pkg/webhooks/jobset_webhook.go).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.kinds.indexed_job import pods_at_once
from arena_topo.model import keys
from arena_topo.model.kind import Elastic, Loose, Member, Replicas
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number

_LABELS, _ANNOTATIONS = "object.metadata.labels", "object.metadata.annotations"
NODE = "node"
"""What Trainer calls the role whose pods train, and their container."""
_INITIALIZERS = ("dataset-initializer", "model-initializer")
"""Roles of Trainer whose pods fetch what is trained, and end before training begins."""
_UNPINNED = 1_000_000_000
"""Pods per Job if unknown: a pod of any other Job than the first is then beyond the end of every list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetKind:
    """The ``Kind`` of jobset.x-k8s.io/v1alpha2."""

    group: str = "jobset.x-k8s.io"
    version: str = "v1alpha2"
    kind: str = "JobSet"
    plural: str = "jobsets"
    words: tuple[str, ...] = ("jobset", "js")
    container: str = "main"
    ranks: tuple[str, ...] = ()
    job_label: str = keys.JOBSET_NAME
    selector: str = keys.JOBSET_NAME
    pod_spec_path: tuple[str, ...] = ("spec", "replicatedJobs", "*", "template", "spec", "template", "spec")
    suspend: tuple[str, ...] = ("suspend",)
    loose: Loose = Loose.SCHEDULING
    succeeded: str = "Completed"
    failed: str = "Failed"
    served_by: str = "the JobSet controller"
    refused_by: Mapping[str, str] = field(default_factory=dict, hash=False)
    listed: str = ""
    # The gate by which its Jobs may grow is off.
    elastic: Elastic | None = None
    is_pinnable: str = (
        f"has({_LABELS}) && '{keys.COMPLETION_INDEX}' in {_LABELS} && '{keys.JOBSET_JOB_INDEX}' in {_LABELS}"
    )
    index: str = (
        f"int({_LABELS}['{keys.JOBSET_JOB_INDEX}']) * ('{keys.PODS_PER_JOB}' in {_ANNOTATIONS}"
        f" ? int({_ANNOTATIONS}['{keys.PODS_PER_JOB}']) : {_UNPINNED}) + int({_LABELS}['{keys.COMPLETION_INDEX}'])"
    )

    def counts(self, job: Object) -> bool:
        """Whether Trainer did not create *job* from a TrainJob, which has the same name and the same pods."""
        owners = job["metadata"].get("ownerReferences") or ()
        return not any(isinstance(owner, dict) and owner.get("kind") == "TrainJob" for owner in owners)

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job*, by role in the order in which it names them."""
        return [
            Replicas(
                str(role.get("name")),
                _jobs(role) * pods_at_once(_job_spec(role)),
                _job_spec(role).get("template") or {},
                f"/spec/replicatedJobs/{number}/template/spec/template",
                {keys.PODS_PER_JOB: str(pods_at_once(_job_spec(role)))} if _jobs(role) > 1 else {},
            )
            for number, role in enumerate(job["spec"].get("replicatedJobs") or ())
        ]

    def member(self, pod: Object) -> Member | None:
        """Return which pod of its job *pod* is, None for one of a second Job whose size is unknown."""
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        index = optional_number(labels.get(keys.COMPLETION_INDEX))
        job = optional_number(labels.get(keys.JOBSET_JOB_INDEX))
        size = optional_number((metadata.get("annotations") or {}).get(keys.PODS_PER_JOB))
        if index is None or job is None or (job and size is None):
            return None
        number = job * (size or 0) + index
        return Member(str(labels.get(self.job_label, "")), str(labels.get(keys.JOBSET_ROLE, "")), number)

    def pod_name(self, member: Member) -> str:
        """Return what the name of a pod begins with, in the first Job of its role."""
        return f"{member.job}-{member.role}-0-{member.index}-"

    def is_chief(self, pod: Object) -> bool:
        """Whether *pod* is the first of all; in a set that Trainer created, the first of those that train."""
        labels = pod["metadata"].get("labels") or {}
        if labels.get(keys.COMPLETION_INDEX) != "0" or labels.get(keys.JOBSET_ROLE) in _INITIALIZERS:
            return False
        if labels.get(keys.JOBSET_GLOBAL_INDEX) == "0":
            return True
        # Behind initializers the first that trains is not the first of all. Trainer calls its role, and the
        # container, node.
        names = [container.get("name") for container in (pod.get("spec") or {}).get("containers") or ()]
        is_first_node = (labels.get(keys.JOBSET_ROLE), labels.get(keys.JOBSET_JOB_INDEX)) == (NODE, "0")
        return is_first_node and NODE in names

    def chief_role(self, job: Object) -> str:
        """Return the first role that has pods and trains."""
        roles = (replicas.role for replicas in self.replicas(job) if replicas.count)
        return next((role for role in roles if role not in _INITIALIZERS), "pod")


def _jobs(role: Object) -> int:
    return 1 if role.get("replicas") is None else int(role["replicas"])


def _job_spec(role: Object) -> Object:
    spec: Object = (role.get("template") or {}).get("spec") or {}
    return spec


JOBSET = JobSetKind()
