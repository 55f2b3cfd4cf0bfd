"""Whether the API server applies the admission policy: it learns of a new one about a second after it is stored."""

import time
from collections.abc import Callable

from arena_topo.errors import ArenaTopoError, WaitTimeout
from arena_topo.kube.resources import PODS
from arena_topo.kube.session import Session
from arena_topo.model.keys import COMPLETION_INDEX, HOSTNAME
from arena_topo.model.notation.words import written_duration
from arena_topo.model.objects import Object
from arena_topo.pin.run_lists import pin_annotations

_NODE = "arena-topo-probe"
_SECONDS, _PAUSE = 30.0, 0.2


def wait_until_applied(
    session: Session,
    namespace: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Return once the API server pins a worker that is tried out in *namespace*; nothing is stored there.

    False where nothing shows it, as whoever asks may not create pods. Raises ``WaitTimeout`` where it still does not.
    """
    deadline = clock() + _SECONDS
    while True:
        try:
            tried = session.create(PODS.path(namespace), _worker(namespace), dry_run=True)
        except ArenaTopoError:
            # A quota, or the policy of another tool, that refuses such a pod says nothing of ours.
            return False
        if (tried["spec"].get("nodeSelector") or {}).get(HOSTNAME) == _NODE:
            return True
        if clock() > deadline:
            raise WaitTimeout(
                f"the API server does not apply the admission policy after {written_duration(_SECONDS)}",
                hint="workers that are created now are not pinned; look again with: arena-topo doctor",
            )
        sleep(_PAUSE)


def _worker(namespace: str) -> Object:
    """Return a pod with a pin, which every Pod Security Standard admits.

    It is known by its label, as a policy from before other kinds of jobs than MPIJobs would not: while that one is
    replaced, it must not pass for the new one.
    """
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    annotations = pin_annotations(nodes=[_NODE])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _NODE,
            "namespace": namespace,
            "labels": {COMPLETION_INDEX: "0"},
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "mpi", "image": "probe", "securityContext": restricted}]},
    }
