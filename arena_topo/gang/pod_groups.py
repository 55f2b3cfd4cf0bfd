"""What several gang back-ends have in common."""

from collections.abc import Mapping
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.model.gang import Gang
from arena_topo.model.keys import MANAGED_BY, OWN_NAME
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object


def pod_group(gang: Gang, api_version: str, spec: Mapping[str, Any]) -> Object:
    """Return a PodGroup of *api_version* under the gang's own name.

    The operator overwrites a PodGroup that has the job's name, no matter who created it.
    """
    metadata = {"name": gang.name, "namespace": gang.namespace, "labels": {MANAGED_BY: OWN_NAME}}
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": dict(spec)}


def operator_policy(gang: Gang) -> dict[str, Any]:
    """Return ``runPolicy.schedulingPolicy`` for an operator that creates, or may create, the PodGroup itself.

    Its own default counts the launcher even if that waits for the workers, and then nothing starts. An
    operator that creates no PodGroup ignores it.
    """
    # None: the operator's flags are unknown, so that it may create one.
    may_create_one = gang.operator_gangs != "" and _has_run_policy(gang.kind)
    return {"minAvailable": gang.size} if may_create_one else {}


def operator_creates_group(gang: Gang) -> bool:
    """Whether the operator is known to create the PodGroup itself."""
    return bool(gang.operator_gangs) and _has_run_policy(gang.kind)


def _has_run_policy(kind: Kind) -> bool:
    """Whether jobs of *kind* have the part that an operator of Kubeflow reads its gang from."""
    return kind.suspend[:1] == ("runPolicy",)


def refuse_other_operator(gang: Gang, backend: str, *own: str) -> None:
    """Raise ``UsageError`` if the operator puts every job under another gang scheduler than *own*.

    It overwrites the scheduler's name and creates a PodGroup of its own. The operator of v1alpha1 does
    neither.
    """
    scheduler = gang.operator_gangs
    if not scheduler or scheduler in own or not _has_run_policy(gang.kind):
        return
    fitting = "volcano" if scheduler == "volcano" else "coscheduling"
    raise UsageError(
        f"--gang-scheduler {backend} cannot be used: this cluster's MPI operator puts every job under "
        f"{scheduler} (its --gang-scheduling)",
        hint=f"use --gang-scheduler {fitting}, or ask the cluster's admin to start the operator without "
        "that flag",
    )


def level_note(gang: Gang, backend: str) -> tuple[str, ...]:
    """Return the note for a level that *backend* cannot enforce, since it knows none."""
    if not gang.level:
        return ()
    return (f"{backend} does not know topology levels: {gang.level} is enforced by the pins only",)


def preference_note(backend: str, level: str) -> str:
    """Return the note for a level that is only preferred, while *backend* enforces only required ones."""
    return f"{backend} enforces required levels only: {level} is a preference, and only the pins honour it"
