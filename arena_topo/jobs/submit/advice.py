"""What would help a job that is about to be created: things that the API server accepts, and that then do not work."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from arena_topo.errors import Forbidden
from arena_topo.manifest.host_discovery import FOLDER, SCRIPT
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.object_shapes import NODE
from arena_topo.model.keys import ACK_GPU, GPU_RESOURCES, NVIDIA_GPU
from arena_topo.model.notation.quantity import amount
from arena_topo.model.notation.shapes import fitted
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    # What is said of the command alone is said without a cluster too, and goes without what talks to one.
    from arena_topo.kube.session import Session

_ONE_DASH = re.compile(r"(?<!\S)-((?:bind-to|map-by|rank-by)(?:-\w+)*)(?!\S)")
"""Options of mpirun that Open MPI 4 takes with one dash as well."""

_KARPENTER = "karpenter.sh/nodepool"
"""The label of nodes that are created for pods that wait, and removed again."""


def advice_on_command(job: JobSpec) -> Iterator[str]:
    """Yield what the command of *job* should say in place of what only an old mpirun takes."""
    line = " ".join(job.command)
    if job.elastic and job.kind == "MPIJob" and SCRIPT not in line:
        yield (
            "note: only a framework that looks for its hosts again can grow and shrink: "
            f"horovodrun --min-np ... --max-np ... --host-discovery-script {FOLDER}/{SCRIPT}"
        )
    options = dict.fromkeys(_ONE_DASH.findall(line)) if "mpirun" in line or "mpiexec" in line else {}
    if options:
        old, new = (" and ".join(f"{dashes}{option}" for option in options) for dashes in ("-", "--"))
        yield f"note: mpirun of Open MPI 5 ends with an error at {old}: write {new}, which Open MPI 4 takes too"


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """What the nodes offer a job by the name by which it requests GPUs: how many, and room for how many workers.

    Counting ends once there is room for all. ``is_vendors``: a node offers GPUs by ACK's name. ``may_grow``: nodes come
    and go with the pods that wait for them.
    """

    gpus: int = 0
    places: int = 0
    is_vendors: bool = False
    may_grow: bool = False


def gpu_offer(session: "Session", job: JobSpec, resource: str) -> GpuOffer | None:
    """Return what the nodes offer *job* by the name *resource*, None where it needs none or the user may not list nodes."""
    if not job.gpus or resource not in GPU_RESOURCES:
        return None
    from arena_topo.kube.resources import NODES
    from arena_topo.kube.session import items_of

    offer = GpuOffer()
    try:
        for node in chain.from_iterable(map(items_of, session.pages(NODES.path()))):
            offer = _with(offer, fitted(node, NODE), job.gpus, resource)
            if offer.places >= job.workers:
                break
    except Forbidden:
        # What is said of nodes is a courtesy: a user who may not list them submits without it.
        return None
    return offer


def _count(quantities: Object, resource: str) -> int:
    return max(amount(resource, quantities.get(resource, 0)), 0)


def _with(offer: GpuOffer, node: Object, gpus: int, resource: str) -> GpuOffer:
    status, labels = node.get("status") or {}, (node.get("metadata") or {}).get("labels") or {}
    # The capacity counts broken GPUs too, which are replaced one day.
    quantities = {**(status.get("allocatable") or {}), **(status.get("capacity") or {})}
    has = _count(quantities, resource)
    return GpuOffer(
        offer.gpus + has,
        offer.places + has // gpus,
        offer.is_vendors or _count(quantities, ACK_GPU) > 0,
        offer.may_grow or _KARPENTER in labels or labels.get("type") == "virtual-kubelet",
    )


def never_fits(job: JobSpec, offer: GpuOffer) -> str:
    """Return why the GPUs of all nodes are too few for *job*, empty where they are not.

    For example, 20 workers of 1 GPU never fit on 16 GPUs, and two of 16 not on four nodes of 8. Where there are none at all,
    nodes with GPUs may well come with the pods that need them.
    """
    fewest = job.elastic.least if job.elastic else job.workers
    if not offer.gpus or offer.may_grow or offer.places >= fewest:
        return ""
    workers = f"{offer.places} of {plural(fewest, 'worker')} with {plural(job.gpus, 'GPU')}"
    return f"the cluster has {plural(offer.gpus, 'GPU')}, which hold {workers} even when it is idle"


def advice_on_gpus(job: JobSpec, offer: GpuOffer) -> Iterator[str]:
    """Yield that the nodes offer their GPUs by another name than the one by which *job* requests them."""
    # With --gputopology they are requested by the vendor's name already, where there are nodes of the vendor.
    if job.topology or ACK_GPU in job.pod.devices:
        return
    if offer.is_vendors and not offer.gpus:
        yield (
            f"no node offers {NVIDIA_GPU}, and the workers will stay pending: this cluster offers its GPUs as {ACK_GPU}, "
            "which --gputopology requests"
        )
