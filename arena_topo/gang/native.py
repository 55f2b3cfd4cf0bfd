"""kube-scheduler's own gangs: a PodGroup of scheduling.k8s.io, reached through the admission policy.

The served MPIJobs drop ``spec.schedulingGroup`` from their templates; the policy sets it on each worker's pod
from an annotation. Sources: k8s.io/api/scheduling (v1alpha2 of 1.36, v1beta1 of 1.37), KEP-4671, KEP-5732.
"""

from typing import Any

from arena_topo.errors import UsageError
from arena_topo.gang.pod_groups import pod_group, preference_note, refuse_other_operator
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.keys import POD_GROUP


def decorate(gang: Gang) -> Decoration:
    """Return the PodGroup of the workers, without the launcher. Raises ``UsageError`` if it has no effect."""
    refuse_other_operator(gang, "native")
    if not gang.api:
        raise UsageError(
            "--gang-scheduler native cannot be used: this cluster serves no PodGroup of scheduling.k8s.io",
            hint="it needs Kubernetes >= 1.36 with the feature GangScheduling and its API switched on",
        )
    if not gang.admission:
        raise UsageError(
            "--gang-scheduler native cannot be used: MPIJob templates drop the pods' schedulingGroup, and "
            "the admission policy that sets it is not installed, or is an old one",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply",
        )
    return Decoration(
        worker_annotations={POD_GROUP: gang.name},
        companions=(pod_group(gang, f"scheduling.k8s.io/{gang.api}", _spec(gang)),),
        notes=(
            f"kube-scheduler starts the {gang.workers} workers together, in PodGroup {gang.name}",
            *_level_note(gang),
        ),
    )


def _spec(gang: Gang) -> dict[str, Any]:
    policy = {"schedulingPolicy": {"gang": {"minCount": gang.workers}}}
    # Its topology constraint always binds: a preferred level must not become a required one.
    if not (gang.level and gang.required):
        return policy
    return {**policy, "schedulingConstraints": {"topology": [{"key": gang.level}]}}


def _level_note(gang: Gang) -> tuple[str, ...]:
    if not gang.level or gang.required:
        return ()
    return (preference_note("kube-scheduler", gang.level),)
