"""Which launcher or first pod of a job counts: a batch Job may have created several, one after the other."""

from collections.abc import Sequence

from arena_topo.kinds.chief import is_chief
from arena_topo.model.objects import Object


def chief_pod(pods: Sequence[Object]) -> Object | None:
    """Return the newest launcher, master or first pod among *pods* that got beyond Pending, else the newest, None without any."""
    # A batch Job retries what failed with a new pod, and a pending one has no log and no end to report yet.
    chiefs = sorted(filter(is_chief, pods), key=lambda pod: (_is_beyond_pending(pod), _created(pod)))
    return chiefs[-1] if chiefs else None


def _is_beyond_pending(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase", "Pending") != "Pending")


def _created(pod: Object) -> str:
    return str(pod["metadata"]["creationTimestamp"])
