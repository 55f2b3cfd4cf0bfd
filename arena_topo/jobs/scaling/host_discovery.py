"""Which of its workers an elastic MPIJob may use: the list in its own ConfigMap, which its launcher reads again and again."""

from arena_topo.errors import NotFound
from arena_topo.jobs.lookup import ServedJob
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import Session
from arena_topo.manifest.host_discovery import HOSTS, config_name, host_lines


def tell_framework(session: Session, served: ServedJob, workers: int) -> bool:
    """Let the launcher of the job use its first *workers*, and no others; return whether it reads our list.

    Jobs of other kinds, and those with a discovery of their own, are notified by their operator.
    """
    if not isinstance(served.kind, ApiVersion):
        return False
    path = CONFIG_MAPS.path(session.namespace, config_name(served.name))
    try:
        session.patch(path, {"data": {HOSTS: host_lines(served.job, workers)}})
    except NotFound:
        return False
    return True
