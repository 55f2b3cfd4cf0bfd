"""YuniKorn: task groups as an annotation; placeholder pods reserve the space until all of it is free.

Source: yunikorn-k8shim 1.9 (pkg/common/constants, pkg/cache/amprotocol.go).
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from arena_topo.gang.pod_groups import level_note, refuse_other_operator
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.keys import YUNIKORN

_SCHEDULER = "yunikorn"
_PLACEHOLDER_SECONDS = 60
_LONGEST_LABEL = 63


def decorate(gang: Gang) -> Decoration:
    """Return the task groups, and for each role the name of its own.

    A launcher that waits for the workers is in none: its placeholder would time out before the launcher is
    created.
    """
    refuse_other_operator(gang, "yunikorn")
    groups = [_group("worker", gang.workers, gang.requests, gang.placement)]
    if not gang.launcher_waits:
        groups.append(_group("launcher", 1, gang.launcher_requests, {}))
    name = f"{YUNIKORN}/task-group-name"
    return Decoration(
        pod_labels={
            f"{YUNIKORN}/app-id": _application(gang),
            **({f"{YUNIKORN}/queue": gang.queue} if gang.queue else {}),
        },
        pod_annotations={
            f"{YUNIKORN}/task-groups": json.dumps(groups, separators=(",", ":")),
            # Soft, the default style, starts the pods one by one after the timeout.
            f"{YUNIKORN}/schedulingPolicyParameters": (
                f"placeholderTimeoutInSeconds={_PLACEHOLDER_SECONDS} gangSchedulingStyle=Hard"
            ),
        },
        worker_annotations={name: "worker"},
        launcher_annotations={} if gang.launcher_waits else {name: "launcher"},
        scheduler_name=_SCHEDULER,
        notes=(
            (
                f"YuniKorn starts {gang.size} pods together, once its placeholders have space for all; "
                f"after {_PLACEHOLDER_SECONDS} seconds without it gives up"
            ),
            *level_note(gang, "YuniKorn"),
        ),
    )


def _application(gang: Gang) -> str:
    """Return the application's id, unique in the whole cluster and short enough for a label."""
    name = f"{gang.kind.kind.lower()}-{gang.namespace}-{gang.job}"
    # A label ends at 63 characters; a cut name could be that of another job, so a digest of the whole
    # follows.
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = sha256(f"{gang.namespace}/{gang.job}".encode()).hexdigest()[:10]
    suffix = f"-{digest}"
    return f"{gang.kind.kind.lower()}-{gang.job}"[: _LONGEST_LABEL - len(suffix)] + suffix


def _group(
    name: str, count: int, requests: Mapping[str, str], placement: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a task group. Placeholders must fit where their pods do: it repeats the constraints of those."""
    return {"name": name, "minMember": count, "minResource": dict(requests), **placement}
