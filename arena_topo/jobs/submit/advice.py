"""What would help a job that is about to be created: things that the API server accepts, and that then do not work."""

import re
from collections.abc import Iterator

from arena_topo.cluster.capabilities.detect import has_ack, uses_device_plugin
from arena_topo.errors import Forbidden
from arena_topo.kube.session import Session
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU

_ONE_DASH = re.compile(r"(?<!\S)-((?:bind-to|map-by|rank-by)(?:-\w+)*)(?!\S)")
"""Options of mpirun that Open MPI 4 takes with one dash as well."""


def advice_on_command(job: JobSpec) -> Iterator[str]:
    """Yield what the command of *job* should say in place of what only an old mpirun takes."""
    text = " ".join(job.command)
    options = dict.fromkeys(_ONE_DASH.findall(text)) if "mpirun" in text or "mpiexec" in text else {}
    if options:
        old, new = (" and ".join(f"{dashes}{option}" for option in options) for dashes in ("-", "--"))
        yield f"note: mpirun of Open MPI 5 ends with an error at {old}: write {new}, which Open MPI 4 takes too"


def advice_on_gpus(session: Session, job: JobSpec) -> Iterator[str]:
    """Yield that the nodes offer their GPUs by another name than the one by which *job* requests them."""
    # With --gputopology they are requested by the vendor's name already, where there are nodes of the vendor.
    if not job.gpus or job.topology or ACK_GPU in job.pod.devices:
        return
    try:
        is_unserved = has_ack(session) and uses_device_plugin(session) is False
    except Forbidden:
        # The advice is a courtesy: a user who may not list nodes submits without it.
        return
    if is_unserved:
        yield (
            f"no node offers {NVIDIA_GPU}, and the workers will stay pending: this cluster offers its GPUs as {ACK_GPU}, "
            "which --gputopology requests"
        )
