"""``arena-topo plan``."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena_topo.cli.command import argument, command, output_format, switch
from arena_topo.cli.commands.submit.manifest_file import plan_manifest
from arena_topo.cli.commands.submit.plan_tf import tf
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.job import (
    CommonJobFlags,
    IndexedJobFlags,
    JobCommand,
    JobFlags,
    JobSetFlags,
    PyTorchFlags,
    TrainFlags,
    job_spec,
)
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.cli.options.kinds.elastic import check_elastic
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.placement import PlanFlags, plan_options
from arena_topo.cli.snapshot_source import from_file, load_snapshot, print_warnings, product, unreserved
from arena_topo.cli.terminal import columns, print_out, print_page, wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.placement.options import PlanOptions
    from arena_topo.model.cluster.snapshot import Snapshot
    from arena_topo.model.job.job_spec import JobSpec

_PICTURES = ("svg", "html")
FORMS = ("text", "json", "yaml", *_PICTURES)

plan = CommandGroup(
    name="plan",
    aliases={
        "mpi": ("mpijob", "mj"),
        "pytorch": ("pytorchjob", "py"),
        "tf": ("tfjob",),
        "train": ("trainjob",),
    },
    of_file="manifest",
    help="Show where a job would run, and why, before anything is created.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJobFlags:
    """What ``plan`` takes for a job of any kind whose pods are alike."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="[COMMAND | -- COMMAND ARGS...]")
    argv: tuple[str, ...] | None
    job: CommonJobFlags
    plan: PlanFlags
    file: str = from_file("-f")
    product: str = product()
    compare: bool = switch(
        "--compare", help="Compare with other ways of asking, and with a topology-unaware scheduler."
    )
    when: bool = switch("--when", help="Say when it would start: now, or after which jobs end.")
    output: str = output_format(*FORMS)
    kube: KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMpiFlags(PlanJobFlags):
    """What ``plan mpi`` takes."""

    job: JobFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPyTorchFlags(PlanJobFlags):
    """What ``plan pytorch`` takes."""

    job: PyTorchFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJobSetFlags(PlanJobFlags):
    """What ``plan jobset`` takes."""

    job: JobSetFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanIndexedJobFlags(PlanJobFlags):
    """What ``plan job`` takes."""

    job: IndexedJobFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTrainFlags(PlanJobFlags):
    """What ``plan train`` takes."""

    job: TrainFlags


@command("mpi", PlanMpiFlags, cls=JobCommand)
def mpi(flags: PlanMpiFlags) -> ExitCode:
    """Show where an MPI job would run, and why.

    It takes the flags of submit; name, image and command may be left out. Nothing is created. The exit code is 3
    when the job does not fit now.

    \b
      arena-topo plan mpi --workers=4 --gpus=1
      arena-topo plan mpi --workers=16 --gpus=8 --require-topology=rack -o html > plan.html
      arena-topo plan mpi --workers=4 --gpus=1 --compare
      arena-topo topology save cluster.json; arena-topo plan mpi -f cluster.json --workers=4 --gpus=1
    """
    return _plan(flags)


@command("pytorch", PlanPyTorchFlags, cls=JobCommand)
def pytorch(flags: PlanPyTorchFlags) -> ExitCode:
    """Show where a PyTorch job would run, and why.

    It takes the flags of submit; name, image and command may be left out. Nothing is created. The exit code is 3
    when the job does not fit now.

    \b
      arena-topo plan pytorch --workers=4 --gpus=8 --rdma
    """
    return _plan(flags)


@command("jobset", PlanJobSetFlags, cls=JobCommand)
def jobset(flags: PlanJobSetFlags) -> ExitCode:
    """Show where a JobSet would run, and why.

    It takes the flags of submit; name, image and command may be left out. Nothing is created. The exit code is 3
    when the job does not fit now.

    \b
      arena-topo plan jobset --workers=4 --gpus=8 --rdma
    """
    return _plan(flags)


@command("train", PlanTrainFlags, cls=JobCommand)
def train(flags: PlanTrainFlags) -> ExitCode:
    """Show where a TrainJob would run, and why.

    It takes the flags of submit; name, runtime, image and command may be left out. Its pods are planned by these flags
    alone: what a runtime says besides, submit finds out. Nothing is created. The exit code is 3 when the job does not fit
    now.

    \b
      arena-topo plan train --workers=4 --gpus=8
    """
    return _plan(flags)


@command("job", PlanIndexedJobFlags, cls=JobCommand)
def job(flags: PlanIndexedJobFlags) -> ExitCode:
    """Show where an indexed Job would run, and why.

    It takes the flags of submit; name, image and command may be left out. Nothing is created. The exit code is 3
    when the job does not fit now.

    \b
      arena-topo plan job --workers=4 --gpus=8 --rdma
    """
    return _plan(flags)


def _plan(flags: PlanJobFlags) -> ExitCode:
    from arena_topo.jobs.placement.plan import plan_spec
    from arena_topo.model.plan.placement import Infeasible
    from arena_topo.output.plan.render import render_plan

    if flags.compare and flags.output in _PICTURES:
        raise UsageError(
            f"--compare is a table, which -o {flags.output} cannot draw",
            hint="print it as text, json or yaml",
        )
    if flags.when and (flags.file or flags.compare or flags.output in _PICTURES):
        other = "--compare" if flags.compare else "--from" if flags.file else f"-o {flags.output}"
        raise UsageError(
            f"--when tells of the jobs of a cluster, in text, json or yaml, and does not go with {other}"
        )
    options = plan_options(flags.plan)
    job = _job(flags)
    check_elastic(job, options)
    estimate = None
    if flags.when:
        from arena_topo.jobs.waiting.when import read_outlook
        from arena_topo.kube.session import connect

        outlook = read_outlook(connect(flags.kube), levels=options.levels)
        snapshot = outlook.left
        print_warnings(snapshot)
        estimate = outlook.of_spec(job, options), outlook.now
    elif flags.file:
        snapshot = load_snapshot(flags.kube, file=flags.file, product=flags.product, levels=options.levels)
    else:
        snapshot = unreserved(flags.kube, options.levels)
    if flags.compare:
        return _compare(job, snapshot, options, flags.output)
    verdict = plan_spec(job, snapshot, options)
    text = render_plan(
        job.name,
        verdict,
        snapshot,
        flags.output,
        colour=wants_colour(sys.stdout),
        width=columns(),
        starts=estimate,
    )
    (print_page if flags.output == "text" else print_out)(text)
    return ExitCode.DOES_NOT_FIT if isinstance(verdict, Infeasible) else ExitCode.OK


plan.add_command(mpi)
plan.add_command(pytorch)
plan.add_command(tf)
plan.add_command(train)
plan.add_command(jobset)
plan.add_command(job)
plan.add_command(plan_manifest)


def _job(flags: PlanJobFlags) -> "JobSpec":
    """Return the job; what a plan does not depend on may be left out, and gets any valid value."""
    job = replace(flags.job, name=flags.job.name or "job", image=flags.job.image or "none")
    if isinstance(job, TrainFlags):
        from arena_topo.model.job.job_spec import RuntimeRef

        job = replace(job, runtime=job.runtime or RuntimeRef("none"))
    argv = ("true",) if flags.argv is None and not flags.words else flags.argv
    return job_spec(job, words=flags.words, argv=argv, namespace=flags.kube.namespace or "default")


def _compare(job: "JobSpec", snapshot: "Snapshot", options: "PlanOptions", output: str) -> ExitCode:
    from arena_topo.jobs.placement.plan import compare_spec
    from arena_topo.output.plan.comparison import render_comparison

    comparison = compare_spec(job, snapshot, options)
    text = render_comparison(job.name, comparison, output, colour=wants_colour(sys.stdout), width=columns())
    (print_page if output == "text" else print_out)(text)
    return ExitCode.OK if any(scenario.fits for scenario in comparison.ways) else ExitCode.DOES_NOT_FIT
