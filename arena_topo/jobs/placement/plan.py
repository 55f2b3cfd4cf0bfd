"""From a job as the API server would get it to what the planner is asked, and to its answer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from arena_topo.manifest.render import Habitat, manifest
from arena_topo.model import keys
from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_spec import Compute, JobSpec
from arena_topo.model.job.mpijob import ApiVersion, replicas
from arena_topo.model.notation.quantity import Resources, times
from arena_topo.model.objects import Object
from arena_topo.model.plan.comparison import Comparison
from arena_topo.model.plan.demand import Demand, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible, Placement, Prediction, Slot, Transport, Verdict
from arena_topo.planner.advise.compare import compare
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.plan import plan
from arena_topo.prediction.calibration import shipped_calibration
from arena_topo.prediction.transports import gang_prediction
from arena_topo.topology.pod_facts import pod_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user asks of a placement; levels are a tier's name or label key, empty for none.

    ``share_gpus`` lets the workers of a node see each other's GPUs. ``levels`` are label keys, coarse to fine, in place of the fabric ladder that the cluster shows.
    """

    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    coalesce: bool = False
    share_gpus: bool = False
    levels: tuple[str, ...] = ()
    model: BandwidthModel = DEFAULT_MODEL

    @property
    def annotation(self) -> dict[str, str]:
        """The part of it that is kept with the job's plan, for ``options_from_annotation``."""
        told = {
            "required": self.required_level,
            "preferred": self.preferred_level,
            "levels": ",".join(self.levels),
            "share": "true" if self.share_gpus else "",
            "nccl": ".".join(map(str, self.model.nccl)) if self.model.nccl != DEFAULT_MODEL.nccl else "",
        }
        return {"policy": self.policy.value, **{key: text for key, text in told.items() if text}}


def options_from_annotation(annotation: Mapping[str, str]) -> PlanOptions:
    """Return the options that were kept with a plan; the job has its shape by then."""
    return PlanOptions(
        policy=TopologyPolicy(annotation.get("policy", TopologyPolicy.BEST_EFFORT.value)),
        required_level=annotation.get("required", ""),
        preferred_level=annotation.get("preferred", ""),
        levels=tuple(key for key in annotation.get("levels", "").split(",") if key),
        share_gpus=annotation.get("share") == "true",
        model=_model(annotation.get("nccl", "")),
    )


def _model(nccl: str) -> BandwidthModel:
    major, _, minor = nccl.partition(".")
    return BandwidthModel(nccl=(int(major), int(minor))) if minor.isdecimal() else DEFAULT_MODEL


def plan_object(job: Object, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return where the workers of the MPIJob *job* go in *snapshot*, or why they cannot. Raises ``UsageError``."""
    verdict = plan(demand_of(job, snapshot, options), snapshot, options.model)
    if not isinstance(verdict, Placement) or not verdict.gpus:
        return verdict
    requests = worker_requests(job)
    prediction = gang_prediction(
        verdict.shares,
        {node.name: node for node in snapshot.nodes},
        gpus_per_pod=verdict.gpus,
        pods_see_each_other=keys.ACK_GPU in requests or options.share_gpus,
        host_network_rdma=any(name.startswith("rdma/") for name in requests),
        calibration=shipped_calibration(),
    )
    return replace(verdict, prediction=prediction, notes=(*verdict.notes, *_advice(verdict, prediction)))


def plan_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Verdict:
    """Return the plan of *job* as it would be submitted today. Raises ``UsageError``."""
    return plan_object(_rendered(job, snapshot), snapshot, options)


def compare_spec(job: JobSpec, snapshot: Snapshot, options: PlanOptions) -> Comparison:
    """Return what other ways of asking for *job* would give, and a blind scheduler. Raises ``UsageError``."""
    return compare(demand_of(_rendered(job, snapshot), snapshot, options), snapshot, options.model)


def _rendered(job: JobSpec, snapshot: Snapshot) -> Object:
    return manifest(job, Habitat(ApiVersion.V2BETA1, gpu_resource(job, snapshot))).job


def gpu_resource(job: JobSpec, snapshot: Snapshot) -> str:
    """Return the resource by which *job* asks for its GPUs: the vendor's where a node is set up for it.

    Where GPUs are handed out by DRA claims alone it is their device class.
    """
    vendor = any(node.labels.get(keys.ACK_SCHEDULE) == keys.ACK_SCHEDULE_TOPOLOGY for node in snapshot.nodes)
    if job.topology and vendor:
        return keys.ACK_GPU
    return keys.DRA_GPU if _by_claims_alone(snapshot) else keys.NVIDIA_GPU


def _by_claims_alone(snapshot: Snapshot) -> bool:
    """Whether the cluster hands out its GPUs by DRA claims, and none by NVIDIA's device plugin."""
    offered = {node.gpu_resource for node in snapshot.nodes if node.gpu_total}
    return keys.DRA_GPU in offered and keys.NVIDIA_GPU not in offered


def _advice(verdict: Placement, prediction: Prediction) -> Iterator[str]:
    """Yield what ``--coalesce`` would change where the links between pods of a node lie idle."""
    best = max((share.busbw for share in verdict.shares if share.busbw), default=0.0)
    if prediction.inside is Transport.ISOLATED and best > prediction.busbw.high:
        instead = "" if prediction.across else f" instead of {prediction.busbw.likely:.3g}"
        yield (
            "the links of these GPUs lie idle between pods: --coalesce packs the ranks of a node into one pod, "
            f"which gives up to {best:.3g} GB/s inside a node{instead}"
        )


def demand_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Demand:
    """Return what the pods of the MPIJob *job*, of any version, ask of the cluster in *snapshot*."""
    pods = replicas(job)
    workers, worker = pods[0].count, pods[0].template
    spec = worker.get("spec") or {}
    requests = _requests(worker)
    resource, gpus = _gpus(requests, snapshot)
    launcher = pods[1].template if len(pods) > 1 else None
    return Demand(
        workers=workers,
        gpus=gpus,
        requests={name: asked for name, asked in requests.items() if name != resource},
        launcher=_requests(launcher) if launcher else {},
        launcher_selector=(launcher.get("spec") or {}).get("nodeSelector") or {} if launcher else {},
        gpu_resource=resource,
        node_selector=spec.get("nodeSelector") or {},
        affinity=_required(spec),
        tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        coalesce=options.coalesce,
    )


def reshaped(job: JobSpec, verdict: Placement) -> JobSpec:
    """Return *job* in the shape that *verdict* has: fewer, larger pods that ask in proportion, as many slots in all."""
    if verdict.workers == job.workers or not job.gpus:
        return job
    larger = verdict.gpus, job.gpus
    return replace(
        job,
        workers=verdict.workers,
        gpus=verdict.gpus,
        slots=job.slots * larger[0] // larger[1],
        compute=Compute(cpu=_larger(job.compute.cpu, larger), memory=_larger(job.compute.memory, larger)),
        pod=replace(
            job.pod, devices={name: _larger(asked, larger) for name, asked in job.pod.devices.items()}
        ),
    )


def hostnames_of(slots: Iterable[Slot], snapshot: Snapshot) -> dict[str, str]:
    """Return the hostname labels of the nodes of *slots*, where they differ from the nodes' names."""
    chosen = {slot.node for slot in slots}
    named = {node.name: node.hostname or node.name for node in snapshot.nodes if node.name in chosen}
    return {name: named[name] for name in sorted(named) if named[name] != name}


def refusal(verdict: Infeasible) -> str:
    """Return in one sentence why a job waits."""
    return "; ".join((verdict.summary, *(reason.text for reason in verdict.reasons[:2])))


def _larger(quantity: str, shares: tuple[int, int]) -> str:
    return times(quantity, *shares) if quantity else ""


def worker_requests(job: Object) -> Resources:
    """Return what kube-scheduler will reserve for a worker of the MPIJob *job*."""
    return _requests(replicas(job)[0].template)


def _requests(template: Object) -> Resources:
    """Return what kube-scheduler will reserve for a pod of *template*."""
    pod = {"metadata": {"name": "pod", "namespace": "default"}, "spec": template.get("spec") or {}}
    claimed = ((template.get("metadata") or {}).get("annotations") or {}).get(keys.CLAIMED_GPUS, "")
    return {**pod_facts(pod).requests, **({keys.DRA_GPU: int(claimed)} if claimed.isdecimal() else {})}


def _gpus(requests: Resources, snapshot: Snapshot) -> tuple[str, int]:
    """Return the GPU resource that a worker asks for, and how many."""
    offered = {node.gpu_resource for node in snapshot.nodes}
    named = [name for name in requests if name in offered or name.endswith("/gpu")]
    resource = max(named, key=lambda name: requests[name], default="")
    return resource, requests.get(resource, 0)


def _toleration(raw: Object) -> Toleration:
    return Toleration(
        key=raw.get("key") or "",
        operator=raw.get("operator") or "Equal",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
    )


def _required(spec: Object) -> tuple[SelectorTerm, ...]:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return tuple(
        SelectorTerm(
            expressions=_requirements(term.get("matchExpressions")),
            fields=_requirements(term.get("matchFields")),
        )
        for term in affinity.get("nodeSelectorTerms") or ()
    )


def _requirements(raw: list[Object] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(str(each.get("key")), str(each.get("operator")), tuple(each.get("values") or ()))
        for each in raw or ()
    )
