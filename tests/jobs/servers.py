"""A scripted API server for submits: it serves MPIJobs of one version, and not much else."""

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job import ConfigFile, JobSpec, PodOptions
from tests.fakes import Answer, Call, missing, unserved

JOB = JobSpec(name="job", namespace="default", image="i", command=("c",), workers=2, gpus=1)
FILES = PodOptions(files=(ConfigFile("/a", b"a"),))

_NODE = {"metadata": {"name": "n"}}
_BODIES = frozenset({"nodes", "deployments", "version", "apis"})
_PLURALS = ("mpijobs", "configmaps", "priorityclasses", "nodes", "deployments", "version", "apis")


class Server:
    """Serves MPIJobs of *version*; *vendor*: its nodes are
    ACK's. *refuse* maps "METHOD plural" to an answer.
    """

    def __init__(
        self, version: ApiVersion = ApiVersion.V2BETA1, *, vendor: bool = False, **refuse: Answer
    ) -> None:
        self.version, self.vendor, self.refuse = version, vendor, refuse

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        plural = next(plural for plural in _PLURALS if f"/{plural}" in call.path)
        dry = "_dry" if "dryRun" in call.query else ""
        if answer := self.refuse.get(f"{call.method.lower()}_{plural}{dry}"):
            return answer
        if plural == "mpijobs" and f"/{self.version.value}/" not in call.path:
            return unserved()
        if plural in _BODIES:
            return Answer(body={"items": [_NODE]} if plural == "nodes" and self.vendor else {})
        if call.method == "GET":
            return missing("job")
        body = dict(call.body or {})
        return Answer(body={**body, "metadata": {**body.get("metadata", {}), "uid": "u1"}})
