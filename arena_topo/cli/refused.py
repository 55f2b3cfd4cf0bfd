"""Words that this program does not take, each with the reason and what to use instead.

They are Arena's, of version 0.15.5, those that earlier versions of this program took, and few of other
programs. ``refusal`` is asked for a word only after nothing else has taken it, so none of them is declared
anywhere. Words of Arena that work are in ``docs/how-to/arena.md``, and so are these.
"""

from collections.abc import Mapping
from typing import NamedTuple

from arena_topo.errors import UsageError


class _Refused(NamedTuple):
    """Why a word is not taken, and what to use instead."""

    reason: str
    instead: str


def refusal(word: str) -> UsageError | None:
    """Return the error for *word*, as ``REFUSED`` has it; None for a word that is not known at all."""
    entry = REFUSED.get(word)
    return entry and UsageError(f"{word!r} is not supported: {entry.reason}", hint=entry.instead)


_KINDS = {
    "Horovod": ("horovodjob", "horovod", "hj"),
    "elastic training": ("etjob", "et"),
    "DeepSpeed": ("deepspeedjob", "dp"),
    "Ray": ("rayjob", "rj"),
    "Spark": ("sparkjob", "spark"),
    "Volcano": ("volcanojob", "vj"),
}
_OURS = "arena-topo submits MPI, PyTorch and TensorFlow jobs, JobSets, TrainJobs and Jobs"
_BESIDE = "use arena itself, which works next to arena-topo on the same cluster: arena"
_PROFILE = _Refused(
    "it observes Arena's Go program", "python3 -m cProfile -m arena_topo COMMAND shows where the time goes"
)
_SCALE = _Refused(
    "Arena scales its elastic training jobs with it",
    "arena-topo scale JOB --workers=N changes the size of a job",
)

REFUSED: Mapping[str, _Refused] = {
    # Arena's commands.
    **{
        f"submit {name}": _Refused(f"{_OURS}, and no {kind} jobs", f"{_BESIDE} submit {name}")
        for kind, names in _KINDS.items()
        for name in names
    },
    "submit horovodjob": _Refused(
        f"{_OURS}, and no Horovod jobs",
        'Horovod runs as an MPI job: arena-topo submit mpi ... "horovodrun ..." or "mpirun ..."',
    ),
    "serve": _Refused("arena-topo runs training jobs, and serves no models", f"{_BESIDE} serve"),
    "cron": _Refused(
        "arena-topo has no jobs that repeat: Arena's are TensorFlow jobs only", f"{_BESIDE} cron"
    ),
    "model": _Refused(
        "arena-topo keeps no registry of models, and makes no profiles of them", f"{_BESIDE} model"
    ),
    "evaluate": _Refused(
        "arena-topo has no jobs of evaluation, which Arena has given up as well", f"{_BESIDE} evaluate"
    ),
    "llm": _Refused("arena-topo deploys no language models", f"{_BESIDE} llm"),
    "data": _Refused(
        "arena-topo lists no data volumes",
        "kubectl get persistentvolumeclaims lists what --data can mount",
    ),
    "scalein": _SCALE,
    "scaleout": _SCALE,
    "logviewer": _Refused(
        "it opens a page of kubernetes-dashboard, which few clusters have",
        "arena-topo logs -f JOB prints the log",
    ),
    # Arena's flags.
    "--trace": _PROFILE,
    "--pprof": _PROFILE,
    "--helm-binary": _Refused("arena-topo renders jobs by itself, without Helm", "leave it out"),
    "--starting-timeout": _Refused(
        "the TFJob of the Kubeflow training operator has no such field",
        "--wait=10m waits that long for a placement, and then gives up",
    ),
    # Words of other programs.
    "--grep": _Refused("lines are chosen by --include and --exclude", "use --include=REGEX"),
    # What earlier versions of arena-topo took.
    "--output=jsonpath": _Refused(
        "jq does more", "use -o json with jq, or -o custom-columns=NAME:.name,STATUS:.status"
    ),
    "--objective=balanced": _Refused(
        "the objectives are compared one after the other and never weighed",
        "use --objective=bandwidth or --objective=pack; the plan says what the other one would give",
    ),
    "--nccl-version": _Refused("plans are made for NCCL 2.8 and later", "leave it out"),
    "--measured": _Refused(
        "plans go by the links that the nodes publish",
        "arena-topo agent run --from=FILE publishes what p2pBandwidthLatencyTest measured on a node",
    ),
}
"""By the word: a command, a flag, or a flag and its value up to an equals sign."""
