"""The job that the flags of any kind describe, as it is submitted or only planned."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from arena_topo.cli.options.job import CommonJobFlags, TrainFlags, job_spec
from arena_topo.cli.options.kinds.tf import TfFlags, tf_job

if TYPE_CHECKING:
    from arena_topo.model.job.job_spec import JobSpec

KIND_ALIASES = {
    "mpi": ("mpijob", "mj"),
    "pytorch": ("pytorchjob", "py"),
    "tf": ("tfjob",),
    "train": ("trainjob",),
}
"""Other words for the kinds of jobs, Arena's first, by the word that the help shows."""


def described_job(
    flags: CommonJobFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job that *flags* describe, as ``job_spec`` does. Raises ``UsageError``."""
    if isinstance(flags, TfFlags):
        return tf_job(flags, words=words, argv=argv, namespace=namespace)
    return job_spec(flags, words=words, argv=argv, namespace=namespace)


def plannable_job(
    flags: CommonJobFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job; what a plan does not depend on may be left out, and gets any valid value. Raises ``UsageError``."""
    job = replace(flags, name=flags.name or "job", image=flags.image or "none")
    if isinstance(job, TrainFlags):
        from arena_topo.model.job.job_spec import RuntimeRef

        job = replace(job, runtime=job.runtime or RuntimeRef("none"))
    argv = ("true",) if argv is None and not words else argv
    return described_job(job, words=words, argv=argv, namespace=namespace or "default")
