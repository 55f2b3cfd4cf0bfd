"""Which launcher of a job counts: a batch Job may have created several, one after the other."""

from collections.abc import Sequence

from arena_topo.kinds.chief import is_chief
from arena_topo.model.objects import Object


def chief_pod(pods: Sequence[Object]) -> Object | None:
    """Return the newest launcher, or master, among *pods* that got beyond Pending, else the newest, None without any."""
    # The batch Job retries a failed launcher with a new pod, and a pending one has no log and no end to report yet.
    launchers = sorted(filter(is_chief, pods), key=lambda pod: (_is_beyond_pending(pod), _created(pod)))
    return launchers[-1] if launchers else None


def _is_beyond_pending(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase", "Pending") != "Pending")


def _created(pod: Object) -> str:
    return str(pod["metadata"]["creationTimestamp"])
