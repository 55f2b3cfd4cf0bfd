"""An MPIJob of every version: its API version, its pod templates, and the names and labels of its pods.

v1alpha1 has one template for launcher and workers alike, v1 and v2beta1 have one for each role. All versions
name a worker's pod by its index, which is also its line in the hostfile.

Sources: mpi-operator 0.8.2 (``workerName``, v2beta1), training-operator 1.9 (v1), Arena's own operator
(v1alpha1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from arena_topo.errors import DocumentError
from arena_topo.model import keys
from arena_topo.model.kind import Elastic, Loose, Member, Replicas
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number

_GROUP, _KIND = "kubeflow.org", "MPIJob"
_WORKER_MARKER = "-worker-"
_ROLE_LABELS = (keys.OPERATOR_JOB_ROLE, keys.OPERATOR_REPLICA_TYPE, keys.ALPHA_ROLE)
_SPECS = "/spec/mpiReplicaSpecs"


class Role(Enum):
    """What a pod of the job does, as ``mpiReplicaSpecs`` names it."""

    WORKER = "Worker"
    LAUNCHER = "Launcher"


@dataclass(frozen=True, slots=True)
class WorkerName:
    """The parts of a worker's name: its job and its index."""

    job: str
    index: int


class ApiVersion(Enum):
    """A version of the MPIJob API, each a ``Kind``; a cluster serves one, the newest is the first."""

    V2BETA1 = "v2beta1"
    V1 = "v1"
    V1ALPHA1 = "v1alpha1"

    @property
    def group(self) -> str:
        """The API group."""
        return _GROUP

    @property
    def version(self) -> str:
        """The version of the API."""
        return self.value

    @property
    def kind(self) -> str:
        """The ``kind`` of its objects."""
        return _KIND

    @property
    def plural(self) -> str:
        """The resource."""
        return "mpijobs"

    @property
    def words(self) -> tuple[str, ...]:
        """What ``submit`` and ``--type`` call it."""
        return ("mpijob", "mpi", "mj")

    @property
    def container(self) -> str:
        """The operators take any name; this one is Arena's."""
        return "mpi"

    @property
    def ranks(self) -> tuple[str, ...]:
        """The workers are planned; the launcher goes anywhere."""
        return ("worker",)

    @property
    def job_label(self) -> str:
        """The label by which a pod names its job."""
        return keys.ALPHA_JOB_NAME if self is ApiVersion.V1ALPHA1 else keys.OPERATOR_JOB_NAME

    @property
    def selector(self) -> str:
        """The label selector of the pods of all jobs of this version."""
        # The operator of v1 serves other kinds of jobs too, whose pods have the same labels: callers ask for
        # those of jobs that they know.
        return self.job_label

    @property
    def pod_spec_path(self) -> tuple[str, ...]:
        """v1alpha1 has one template for both roles."""
        if self is ApiVersion.V1ALPHA1:
            return ("spec", "template", "spec")
        return ("spec", "mpiReplicaSpecs", "*", "template", "spec")

    @property
    def suspend(self) -> tuple[str, ...]:
        """The operator of v1alpha1 cannot suspend a job."""
        return () if self is ApiVersion.V1ALPHA1 else ("runPolicy", "suspend")

    @property
    def listed(self) -> str:
        """All of them count."""
        return ""

    @property
    def loose(self) -> Loose:
        """No webhook keeps templates as they are."""
        return Loose.NOTHING if self is ApiVersion.V1ALPHA1 else Loose.EVERYTHING

    @property
    def succeeded(self) -> str:
        """The condition of a job that has ended well; v1alpha1 has none."""
        return "Succeeded"

    @property
    def failed(self) -> str:
        """The condition of a job that has failed; v1alpha1 has none."""
        return "Failed"

    @property
    def served_by(self) -> str:
        """What a cluster must have to serve it."""
        return "the Kubeflow MPI operator"

    @property
    def refused_by(self) -> Mapping[str, str]:
        """The gang back-ends whose schedulers do not take this version."""
        if self is ApiVersion.V2BETA1:
            return {}
        kueue = {"kueue": "Kueue queues MPIJobs of v2beta1 only"}
        return kueue if self is ApiVersion.V1 else {**kueue, "kai": "its pod-grouper supports v2beta1 and v1"}

    @property
    def elastic(self) -> Elastic | None:
        """Under Horovod workers may come and go; a world of plain mpirun is fixed."""
        return (
            None if self is ApiVersion.V1ALPHA1 else Elastic("worker", f"{_SPECS}/Worker/replicas", keeps=1)
        )

    @property
    def is_pinnable(self) -> str:
        """A worker, by its name: v1alpha1 gives launcher and workers one template, and no label of a role."""
        # A pod whose name is generated may have none yet when the policy sees it.
        return f"has(object.metadata.name) && object.metadata.name.matches('{_WORKER_MARKER}[0-9]+$')"

    @property
    def index(self) -> str:
        """The number at the end of its name.

        The label ``training.kubeflow.org/replica-index`` counts from one where the launcher is a worker too,
        and v1alpha1 has none.
        """
        return "int(object.metadata.name.substring(object.metadata.name.lastIndexOf('-') + 1))"

    def counts(self, job: Object) -> bool:  # noqa: ARG002  # no other kind is made of MPIJobs
        """Whether *job* was submitted by a user."""
        return True

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job*, workers first."""
        return replicas(job)

    def member(self, pod: Object) -> Member | None:
        """Return which worker *pod* is, None for a launcher."""
        worker = parse_worker_name(pod["metadata"]["name"])
        return None if worker is None else Member(worker.job, "worker", worker.index)

    def pod_name(self, member: Member) -> str:
        """Return the name of a pod."""
        return f"{member.job}-{member.role}-{member.index}"

    def is_chief(self, pod: Object) -> bool:
        """Whether *pod* is a launcher."""
        return is_launcher(pod)

    def chief_role(self, job: Object) -> str:  # noqa: ARG002  # every MPIJob has one
        """Return the launcher's."""
        return Role.LAUNCHER.value.lower()


def version_of(job: Object) -> ApiVersion:
    """Return the version of the MPIJob *job*. Raises ``DocumentError`` when it is something else."""
    group, _, version = str(job.get("apiVersion", "")).partition("/")
    if group != _GROUP or job.get("kind") != _KIND:
        raise DocumentError(
            f"the template renders a {job.get('kind')} of {job.get('apiVersion')}, not an MPIJob",
            hint="the first object of a template must be kubeflow.org/v2beta1, v1 or v1alpha1 MPIJob",
        )
    try:
        return ApiVersion(version)
    except ValueError as error:
        raise DocumentError(f"the template renders an MPIJob of the unknown version {version}") from error


def pod_templates(job: Object) -> Mapping[Role, Object]:
    """Return the pod template of each role of a job of ours; v1alpha1 has one for both, called the worker's.

    Raises ``DocumentError`` if one is missing.
    """
    version = version_of(job)
    try:
        spec = job["spec"]
        if version is ApiVersion.V1ALPHA1:
            return {Role.WORKER: spec["template"]}
        return {role: spec["mpiReplicaSpecs"][role.value]["template"] for role in Role}
    # A key without a value reads as None, which has no keys in turn.
    except (KeyError, TypeError) as error:
        raise DocumentError(
            "the template renders an MPIJob without a pod template for launcher and workers",
            hint="compare it with the packaged one: arena-topo submit mpi --dry-run=client -o yaml",
        ) from error


def replicas(job: Object) -> list[Replicas]:
    """Return the pods of *job*, workers first. A role or a template may be missing: nothing is raised."""
    spec = job["spec"]
    # Only v1alpha1 has a template at the top; jobs of others are not asked for their apiVersion, which may be
    # unknown.
    if "template" in spec:
        return [Replicas("worker", int(spec.get("replicas") or 1), spec["template"], "/spec/template")]
    specs = spec.get("mpiReplicaSpecs") or {}
    return [
        Replicas(
            role.value.lower(),
            int(specs[role.value].get("replicas") or 1),
            specs[role.value].get("template") or {},
            f"{_SPECS}/{role.value}/template",
        )
        for role in Role
        if specs.get(role.value)
    ]


def worker_count(job: Object) -> int:
    """Return the number of workers that *job* asks for; jobs of others may have none."""
    spec = job["spec"]
    # Only v1alpha1 has a template at the top.
    if "template" in spec:
        return int(spec.get("replicas") or 0)
    return int(((spec.get("mpiReplicaSpecs") or {}).get(Role.WORKER.value) or {}).get("replicas") or 0)


def worker_name(job: str, index: int) -> str:
    """Return the name of worker number *index* of *job*."""
    return f"{job}{_WORKER_MARKER}{index}"


def parse_worker_name(pod: str) -> WorkerName | None:
    """Return the job and the index that the name *pod* holds, None if it is not a worker's name.

    A job's own name may contain the marker: ``my-worker-0-worker-3`` is worker 3 of ``my-worker-0``.
    """
    job, marker, index = pod.rpartition(_WORKER_MARKER)
    number = optional_number(index)
    return WorkerName(job, number) if marker and number is not None else None


def launcher_name(job: str) -> str:
    """Return the name of the launcher of *job*; the pods of a batch Job add a suffix to it."""
    return f"{job}-launcher"


def launchers_selector(version: ApiVersion, *, workers: bool = False) -> str:
    """Return the label selector of the launchers of all jobs of *version*, or of their *workers*."""
    role = keys.ALPHA_ROLE if version is ApiVersion.V1ALPHA1 else keys.OPERATOR_JOB_ROLE
    # The operator of v1 gives its launchers the role master, and its workers none.
    chosen = "notin" if workers else "in"
    return f"{version.job_label},{role} {chosen} (launcher,master)"


def is_launcher(pod: Object) -> bool:
    """Whether *pod* is a launcher, in any version."""
    labels = pod["metadata"].get("labels") or {}
    # The operator of v1 gives the launcher the role master.
    return any(labels.get(label) in ("launcher", "master") for label in _ROLE_LABELS)
