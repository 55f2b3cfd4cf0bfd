"""Arena's commands for what this program does not do, each refused by its name, with what to use instead."""

from typing import Any

import click

from arena_topo.errors import UsageError

_BESIDE = "use arena itself, which works beside arena-topo on the same cluster: arena {words}"
_KINDS = {
    "Horovod": ("horovodjob", "horovod", "hj"),
    "elastic training": ("etjob", "et"),
    "DeepSpeed": ("deepspeedjob", "dp"),
    "Ray": ("rayjob", "rj"),
    "Spark": ("sparkjob", "spark"),
    "Volcano": ("volcanojob", "vj"),
}

REFUSED = {
    **{
        f"submit {name}": f"arena-topo submits MPI, PyTorch and TensorFlow jobs, JobSets, TrainJobs and Jobs, and no {kind} jobs"
        for kind, names in _KINDS.items()
        for name in names
    },
    "serve": "arena-topo runs training jobs, and serves no models",
    "cron": "arena-topo has no jobs that repeat: Arena's are TensorFlow jobs only",
    "model": "arena-topo keeps no registry of models, and makes no profiles of them",
    "evaluate": "arena-topo has no jobs of evaluation, which Arena has given up as well",
    "llm": "arena-topo deploys no language models",
    "data": "arena-topo lists no data volumes",
    "scalein": "Arena scales its elastic training jobs with it",
    "scaleout": "Arena scales its elastic training jobs with it",
}
"""Why each is refused, by the words of the command."""
_INSTEAD = {
    "data": "kubectl get persistentvolumeclaims lists what --data can mount",
    "submit horovodjob": 'Horovod runs as an MPI job: arena-topo submit mpi ... "horovodrun ..." or "mpirun ..."',
    **dict.fromkeys(("scalein", "scaleout"), "arena-topo scale JOB --workers=N changes the size of a job"),
}


def refusal(words: str) -> click.Command | None:
    """Return a command that refuses *words*, such as ``submit rayjob``, with all that follows; None for other words."""
    if words not in REFUSED:
        return None

    def refuse(**_: Any) -> None:
        hint = _INSTEAD.get(words, _BESIDE.format(words=words))
        raise UsageError(f"{words!r} is not supported: {REFUSED[words]}", hint=hint)

    return click.Command(
        words.rpartition(" ")[2],
        callback=refuse,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        help=REFUSED[words],
        add_help_option=False,
    )
