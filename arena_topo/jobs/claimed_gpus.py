"""GPUs that pods get by ResourceClaims that somebody else wrote: no container requests them, so that claims are counted."""

from collections.abc import Mapping, Sequence

from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session
from arena_topo.model.keys import CLAIMED_GPUS
from arena_topo.model.objects import Object
from arena_topo.topology.objects import RawObject, items, mapping, read_each

_VERSIONS = ("v1", "v1beta2", "v1beta1")
_MOST = 256  # of one claim: no node has more GPUs


def with_claimed_gpus(session: Session, pods: Sequence[Object]) -> list[Object]:
    """Return *pods* with the number of GPUs of their claims in the annotation that ``submit`` writes for its own.

    Takes one call, or none where no pod has claims. Where claims may not be listed, the pods are returned as they are.
    """
    if not any(_claim_names(pod) for pod in pods):
        return list(pods)
    counts = _gpus_by_claim(_claims(session))
    return [_annotated(pod, sum(counts.get(name, 0) for name in _claim_names(pod))) for pod in pods]


def _claim_names(pod: Object) -> set[str]:
    """Return the names of the claims of *pod*: its own, and those that were made for it from templates."""
    spec, status, metadata = (pod.get(key) or {} for key in ("spec", "status", "metadata"))
    if CLAIMED_GPUS in (metadata.get("annotations") or {}):
        return set()
    named = [claim.get("resourceClaimName") for claim in spec.get("resourceClaims") or ()]
    generated = [claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()]
    return {name for name in (*named, *generated) if isinstance(name, str)}


def _claims(session: Session) -> list[Object]:
    for version in _VERSIONS:
        try:
            return session.list(
                Resource("resource.k8s.io", version, "resourceclaims").path(session.namespace)
            )
        except NotFound:
            continue
        except Forbidden:
            break
    return []


def _gpus_by_claim(claims: Sequence[RawObject]) -> Mapping[str, int]:
    # A claim that cannot be read is left out: anyone who wrote it gets no GPU counted, and nobody else is disturbed.
    return dict(read_each(claims, lambda claim: [_gpus_of(claim)], []))


def _gpus_of(claim: RawObject) -> tuple[str, int]:
    """Return the name of *claim*, and its GPUs: those that were allocated, else those that it asks for.

    Device classes and drivers of GPUs are called ``gpu.VENDOR``: gpu.nvidia.com, gpu.amd.com. A request is as in
    resource.k8s.io/v1, where ``exactly`` holds what v1beta1 has in the request itself.
    """
    name = str(mapping(claim, "metadata").get("name") or "")
    allocation = mapping(mapping(claim, "status"), "allocation")
    results = items(mapping(allocation, "devices"), "results")
    if results:
        return name, min(sum(str(result.get("driver")).startswith("gpu.") for result in results), _MOST)
    wanted = 0
    for request in items(mapping(mapping(claim, "spec"), "devices"), "requests"):
        alternatives = items(request, "firstAvailable")
        exact = alternatives[0] if alternatives else mapping(request, "exactly") or request
        count = exact.get("count")
        if str(exact.get("deviceClassName")).startswith("gpu."):
            wanted += count if type(count) is int and 0 < count <= _MOST else 1
    return name, min(wanted, _MOST)


def _annotated(pod: Object, gpus: int) -> Object:
    if not gpus:
        return pod
    metadata = pod["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CLAIMED_GPUS: str(gpus)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}
