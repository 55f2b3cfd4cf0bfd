"""How an elastic MPIJob tells its framework which workers it may use: a ConfigMap of our own, mounted in its launcher.

mpi-operator's own script names the workers that run, and loses one only when its pod is deleted: then it is too late to tell
the framework. So the launcher has both. Our script prints the hosts of our list, in the order of the plan and with their
slots, as far as the operator's script names them as well. Take a job of three workers with eight slots each, of which
worker 2 is to leave, and worker 1 does not run yet::

    our list          the operator's script     what Horovod reads
    job-worker-0...   job-worker-0...           job-worker-0.job.ns.svc:8
    job-worker-1...   job-worker-2...

Sources: mpi-operator 0.8.2 (``updateDiscoverHostsInConfigMap``), Horovod 0.28 (docs/elastic.rst).
"""

from dataclasses import replace

from arena_topo.kinds.mpijob import worker_name
from arena_topo.manifest.pods import PodParts
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.objects import Object

FOLDER = "/etc/elastic"
SCRIPT, HOSTS = "discover_hosts.sh", "hosts"
_VOLUME = "elastic"

# The operator's ConfigMap and ours reach the launcher at different times: a host must be on both lists. Horovod bars a host
# for good that it cannot reach once, so that a name which does not resolve yet is left out as well.
_DISCOVER = r"""#!/bin/sh
running=$(/bin/sh /etc/mpi/discover_hosts.sh)
while IFS= read -r line; do
  host=${line%:*}
  case "
$running
" in
  *"
$host
"*) ;;
  *) continue ;;
  esac
  ! command -v getent > /dev/null || getent hosts "$host" > /dev/null || continue
  echo "$line"
done < "${0%/*}/hosts"
"""


def config_name(job: str) -> str:
    """Return the name of the ConfigMap of *job*."""
    return f"{job}-elastic"


def host_lines(job: Object, workers: int) -> str:
    """Return the list of the first *workers* of *job*, an MPIJob: a line for each, as Horovod's discovery prints it.

    By index, which is the order of the plan: neighbours in it are close to each other, and those who leave are its end.
    """
    meta = job["metadata"]
    return _lines(
        str(meta["name"]), str(meta["namespace"]), workers, int(job["spec"].get("slotsPerWorker") or 1)
    )


def config_map(job: JobSpec, labels: dict[str, str]) -> Object:
    """Return the ConfigMap of *job*, with all workers that it may ever have: those that do not run are left out."""
    most = job.elastic.most if job.elastic else job.workers
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_name(job.name), "namespace": job.namespace, "labels": labels},
        "data": {SCRIPT: _DISCOVER, HOSTS: _lines(job.name, job.namespace, most, job.slots)},
    }


def launcher(pod: PodParts, job: str) -> PodParts:
    """Return *pod*, the launcher of *job*, with the ConfigMap in a folder: a file that is mounted alone never changes."""
    volume = {"name": _VOLUME, "configMap": {"name": config_name(job), "defaultMode": 0o555}}
    mount = {"name": _VOLUME, "mountPath": FOLDER}
    return replace(pod, volumes=[*pod.volumes, volume], mounts=[*pod.mounts, mount])


def _lines(name: str, namespace: str, workers: int, slots: int) -> str:
    hosts = (f"{worker_name(name, index)}.{name}.{namespace}.svc" for index in range(workers))
    return "".join(f"{host}:{slots}\n" for host in hosts)
