"""What the kubelets need to know of an MPIJob's gang: its ranks, where they are, and whether all are up."""

from collections.abc import Sequence

from arena_topo.model.keys import (
    ACK_GPU,
    GPU_RESOURCES,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    RDMA,
    TOPOLOGY_NAME,
)
from arena_topo.model.notation.quantity import amount
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.verbs.objects import Api
from arena_topo.sandbox.sim.kubelets.programs import Program, program_of
from arena_topo.sandbox.sim.kubelets.throughput import Predict, RankGroup

PRODUCT = "nvidia.com/gpu.product"


class Programs:
    """Chooses what a pod does; a launcher waits until its workers run."""

    def __init__(self, api: Api, predict: Predict) -> None:
        self._api = api
        self._predict = predict

    def __call__(self, pod: Object) -> Program | None:
        """Return what *pod* does, None while it has to wait."""
        labels = pod["metadata"].get("labels") or {}
        if labels.get(OPERATOR_JOB_ROLE) != "launcher":
            return program_of(pod, [], self._predict)
        workers = self._workers(pod["metadata"]["namespace"], labels[OPERATOR_JOB_NAME])
        wanted = self._wanted(pod["metadata"]["namespace"], labels[OPERATOR_JOB_NAME])
        running = [each for each in workers if each["status"].get("phase") == "Running"]
        if len(running) < wanted:
            return None
        return program_of(pod, self._groups(running), self._predict)

    def _workers(self, namespace: str, job: str) -> list[Object]:
        return [
            stored.body
            for stored in self._api.store.scan(("", "pods"), namespace)
            if (stored.body["metadata"].get("labels") or {}).get(OPERATOR_JOB_NAME) == job
            and stored.body["metadata"]["labels"].get(OPERATOR_JOB_ROLE) == "worker"
        ]

    def _wanted(self, namespace: str, job: str) -> int:
        stored = self._api.store.get(("kubeflow.org", "mpijobs"), namespace, job)
        specs = stored.body["spec"]["mpiReplicaSpecs"] if stored else {}
        return int((specs.get("Worker") or {}).get("replicas", 0))

    def _groups(self, workers: Sequence[Object]) -> list[RankGroup]:
        return [group for each in workers if (group := self._group(each)).ranks]

    def _group(self, pod: Object) -> RankGroup:
        limits: dict[str, str] = {}
        for container in pod["spec"]["containers"]:
            limits |= container.get("resources", {}).get("limits") or {}
        node = pod["spec"]["nodeName"]
        stored = self._api.store.get(("", "nodes"), "", node)
        labels = (stored.body["metadata"].get("labels") or {}) if stored else {}
        visible = TOPOLOGY_NAME in (pod["metadata"].get("labels") or {}) and ACK_GPU in limits
        ranks = sum(amount(name, limits[name]) for name in GPU_RESOURCES if name in limits)
        return RankGroup(node, ranks, labels.get(PRODUCT, ""), visible, RDMA in limits)
