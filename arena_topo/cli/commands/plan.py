"""``arena-topo plan``."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.commands.submit import FORMS, PICTURES, plan_manifest, print_plan
from arena_topo.cli.declare import argument, command, output_format, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.options.job import (
    TEXT,
    CommonJobFlags,
    IndexedJobFlags,
    JobCommand,
    JobFlags,
    JobSetFlags,
    PyTorchFlags,
    TrainFlags,
    check_elastic,
)
from arena_topo.cli.options.kinds import KIND_ALIASES, TfFlags, plannable_job
from arena_topo.cli.options.placement import (
    PlanFlags,
    objective,
    plan_options,
    prefer_topology,
    topology_levels,
    topology_policy,
)
from arena_topo.cli.snapshot_source import check_product, from_file, print_warnings, product, unreserved
from arena_topo.cli.terminal import columns, print_document, wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.options import PlanOptions
    from arena_topo.model.cluster import Snapshot
    from arena_topo.model.job import JobSpec


# ``arena-topo plan tf``.

_FORMS = ("text", "json", "yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTfFlags:
    """What ``plan tf`` takes."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="[COMMAND | -- COMMAND ARGS...]")
    argv: tuple[str, ...] | None
    job: TfFlags
    topology_policy: str = topology_policy()
    require_topology: str = text(
        "--require-topology", metavar="LEVEL", help="Level that must hold all pods but the evaluator."
    )
    prefer_topology: str = prefer_topology()
    objective: str = objective()
    levels: tuple[str, ...] = topology_levels()
    file: str = from_file("-f")
    product: str = product()
    output: str = output_format(*_FORMS)
    kube: KubeFlags


@command("tf", PlanTfFlags, cls=JobCommand)
def tf(flags: PlanTfFlags) -> ExitCode:
    """Show where a TensorFlow job with parameter servers would run, and why.

    It takes the flags of submit; name, image and command may be left out. All roles have a place, or none has. Parameter
    servers go where NIC rate is free; what they cost in a step is next to an all-reduce on the same nodes. Nothing is
    created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan tf --workers=8 --gpus=1 --ps=2 --ps-cpu=8
      arena-topo plan tf -f cluster.json --workers=4 --gpus=4 --ps=4 --chief --evaluator
    """
    from arena_topo.jobs.plan import plan_roles

    job = plannable_job(flags.job, words=flags.words, argv=flags.argv, namespace=flags.kube.namespace)
    snapshot = unreserved(flags.kube, file=flags.file, product=flags.product, levels=flags.levels)
    return print_plan(job.name, plan_roles(job, snapshot, _options(flags)), snapshot, flags.output)


def _options(flags: PlanTfFlags) -> "PlanOptions":
    from arena_topo.jobs.options import PlanOptions
    from arena_topo.model.plan import Objective, TopologyPolicy

    return PlanOptions(
        policy=TopologyPolicy(flags.topology_policy),
        required_level=flags.require_topology,
        preferred_level=flags.prefer_topology,
        objective=Objective(flags.objective),
        levels=flags.levels,
    )


plan = CommandGroup(
    name="plan",
    aliases=KIND_ALIASES,
    of_file="manifest",
    help="Show where a job would run, and why, before anything is created.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanJobFlags:
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


def _plan(flags: _PlanJobFlags) -> ExitCode:
    from arena_topo.jobs.plan import plan_spec

    if flags.compare and flags.output in PICTURES:
        raise UsageError(
            f"--compare is a table, which -o {flags.output} cannot draw",
            hint="print it as text, json or yaml",
        )
    if flags.when and (flags.file or flags.compare or flags.output in PICTURES):
        other = "--compare" if flags.compare else "--from" if flags.file else f"-o {flags.output}"
        raise UsageError(
            f"--when reads the jobs of a cluster and prints text, json or yaml, so it does not go with {other}"
        )
    options = plan_options(flags.plan)
    job = plannable_job(flags.job, words=flags.words, argv=flags.argv, namespace=flags.kube.namespace)
    check_elastic(job, options)
    outlook = None
    if flags.when:
        from arena_topo.jobs.when import read_outlook
        from arena_topo.kube.session import connect

        check_product(flags.product)
        outlook = read_outlook(connect(flags.kube), levels=options.levels)
        snapshot = outlook.left
        print_warnings(snapshot)
    else:
        snapshot = unreserved(flags.kube, file=flags.file, product=flags.product, levels=options.levels)
    if flags.compare:
        return _compare(job, snapshot, options, flags.output)
    verdict = plan_spec(job, snapshot, options)
    starts = (outlook.of_spec(job, options, verdict), outlook.now) if outlook else None
    return print_plan(job.name, verdict, snapshot, flags.output, starts)


_HELP = """Show where {job} would run, and why.

It takes the flags of submit; {optional} may be left out. {remark}Nothing is created. The exit code is 3 when the job does
not fit now.

\b
{examples}
"""


def _command(
    word: str,
    job: str,
    flags: type[CommonJobFlags],
    *examples: str,
    optional: str = "name, image and command",
    remark: str = "",
) -> click.Command:
    """Return ``plan`` *word*, which plans *job*, as its help calls it; what is *optional* may be left out there."""
    shown = "\n".join(f"  arena-topo {example}" for example in examples)
    text = _HELP.format(job=job, optional=optional, remark=remark, examples=shown)
    return command(word, _PlanJobFlags, cls=JobCommand, parts={"job": flags}, help=text)(_plan)


for planned in (
    _command(
        "mpi",
        "an MPI job",
        JobFlags,
        "plan mpi --workers=4 --gpus=1",
        "plan mpi --workers=16 --gpus=8 --require-topology=rack -o html > plan.html",
        "plan mpi --workers=4 --gpus=1 --compare",
        "topology save cluster.json; arena-topo plan mpi -f cluster.json --workers=4 --gpus=1",
    ),
    _command("pytorch", "a PyTorch job", PyTorchFlags, "plan pytorch --workers=4 --gpus=8 --rdma"),
    tf,
    _command(
        "train",
        "a TrainJob",
        TrainFlags,
        "plan train --workers=4 --gpus=8",
        optional="name, runtime, image and command",
        remark="Its pods are planned by these flags alone: what a runtime says besides, submit finds out. ",
    ),
    _command("jobset", "a JobSet", JobSetFlags, "plan jobset --workers=4 --gpus=8 --rdma"),
    _command("job", "an indexed Job", IndexedJobFlags, "plan job --workers=4 --gpus=8 --rdma"),
    plan_manifest,
):
    plan.add_command(planned)


def _compare(job: "JobSpec", snapshot: "Snapshot", options: "PlanOptions", output: str) -> ExitCode:
    from arena_topo.jobs.plan import compare_spec
    from arena_topo.output.reports import render_comparison

    comparison = compare_spec(job, snapshot, options)
    text = render_comparison(job.name, comparison, output, colour=wants_colour(sys.stdout), width=columns())
    print_document(text, output)
    return ExitCode.OK if any(scenario.fits for scenario in comparison.ways) else ExitCode.DOES_NOT_FIT
