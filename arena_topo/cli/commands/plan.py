"""``arena-topo plan``."""

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from arena_topo.cli.commands.submit import (
    FORMS,
    PICTURES,
    flags_file,
    plan_manifest,
    print_plan,
    submit,
)
from arena_topo.cli.declare import argument, command, output_format, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.options.flags_file import FileCommand, TypedFlags, command_of_file
from arena_topo.cli.options.job import TEXT, CommonJobFlags
from arena_topo.cli.options.kinds import (
    JOB_KINDS,
    KIND_ALIASES,
    JobKind,
    TfFlags,
    plannable_job,
)
from arena_topo.cli.options.placement import (
    PlanFlags,
    objective,
    plan_options,
    prefer_topology,
    topology_levels,
    topology_policy,
    why,
)
from arena_topo.cli.snapshot_source import check_product, from_file, print_warnings, product, unreserved
from arena_topo.cli.terminal import columns, print_document, wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.options import PlanOptions
    from arena_topo.model.cluster import Snapshot
    from arena_topo.model.job import JobSpec


class _PlanCommand(FileCommand):
    """A ``plan`` of what the ``submit`` of the same name submits; what that requires may be left out here."""

    def build_params(self) -> list[click.Parameter]:
        """Build the parameters, none of which is required."""
        for param in (params := super().build_params()):
            if isinstance(param, click.Option) and param.help:
                param.help = param.help.replace(" (required).", ".")
        return params

    def passes_over(self) -> frozenset[str]:
        """Return the flags of a saved submit that say how it is created, which does not change its plan."""
        own = {name for param in self.params for name in param.opts}
        submitted = submit.commands[str(self.name)].params
        return frozenset(name for param in submitted for name in param.opts if name not in own)


# ``arena-topo plan tf``.

_FORMS = ("text", "json", "yaml")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanTfFlags:
    """What ``plan tf`` takes."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="[COMMAND | -- COMMAND ARGS...]")
    argv: tuple[str, ...] | None
    typed: TypedFlags
    file: str = flags_file()
    job: TfFlags
    topology_policy: str = topology_policy()
    require_topology: str = text(
        "--require-topology",
        metavar="LEVEL",
        help="All pods but the evaluator must be within one LEVEL, such as rack.",
    )
    prefer_topology: str = prefer_topology()
    objective: str = objective()
    levels: tuple[str, ...] = topology_levels()
    snapshot: str = from_file()
    product: str = product()
    why: bool = why()
    output: str = output_format(*_FORMS)
    kube: KubeFlags


@command("tf", PlanTfFlags, cls=_PlanCommand)
def tf(flags: PlanTfFlags) -> ExitCode:
    """Show where a TensorFlow job with parameter servers would run, and why.

    It takes the flags of submit; name, image and command may be left out. All roles have a place, or none
    has. Parameter servers go where NIC rate is free; what they cost in a step is next to an all-reduce on the
    same nodes. Nothing is created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan tf --workers=8 --gpus=1 --ps=2 --ps-cpu=8
      arena-topo plan tf --from cluster.json --workers=4 --gpus=4 --ps=4 --chief --evaluator
    """
    from arena_topo.jobs.plan import plan_roles

    job = plannable_job(
        JOB_KINDS["tf"], flags.job, words=flags.words, argv=flags.argv, namespace=flags.kube.namespace
    )
    snapshot = unreserved(flags.kube, file=flags.snapshot, product=flags.product, levels=flags.levels)
    verdict = plan_roles(job, snapshot, _options(flags))
    submit = "" if flags.file else _with_same_flags("tf")
    return print_plan(job.name, verdict, snapshot, flags.output, why=flags.why, submit=submit)


def _with_same_flags(word: str) -> str:
    """Return the command that submits what was planned, of the kind that *word* names."""
    return f"arena-topo submit {word} with the same flags"


def _options(flags: PlanTfFlags) -> "PlanOptions":
    from arena_topo.jobs.options import PlanOptions
    from arena_topo.model.placement_options import Objective, TopologyPolicy

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
    of_file=partial(command_of_file, verb="plan", kinds=JOB_KINDS),
    help="Show where a job would run, before it is created.",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class _PlanJobFlags:
    """What ``plan`` takes for a job of any kind whose pods are alike."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="[COMMAND | -- COMMAND ARGS...]")
    argv: tuple[str, ...] | None
    typed: TypedFlags
    file: str = flags_file()
    job: CommonJobFlags
    plan: PlanFlags
    snapshot: str = from_file()
    product: str = product()
    compare: bool = switch(
        "--compare", help="Compare with other ways of asking, and with a topology-unaware scheduler."
    )
    why: bool = why()
    when: bool = switch("--when", help="Say when it would start: now, or after which jobs end.")
    output: str = output_format(*FORMS)
    kube: KubeFlags


def _plan(kind: JobKind, flags: _PlanJobFlags) -> ExitCode:
    from arena_topo.jobs.options import check_elastic
    from arena_topo.jobs.plan import plan_spec

    if flags.compare and flags.output in PICTURES:
        raise UsageError(
            f"--compare is a table, which -o {flags.output} cannot draw",
            hint="print it as text, json or yaml",
        )
    if flags.when and (flags.snapshot or flags.compare or flags.output in PICTURES):
        other = "--compare" if flags.compare else "--from" if flags.snapshot else f"-o {flags.output}"
        raise UsageError(
            f"--when reads the jobs of a cluster and prints text, json or yaml, so it does not go with {other}"
        )
    options = plan_options(flags.plan)
    job = plannable_job(kind, flags.job, words=flags.words, argv=flags.argv, namespace=flags.kube.namespace)
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
        snapshot = unreserved(flags.kube, file=flags.snapshot, product=flags.product, levels=options.levels)
    if flags.compare:
        return _compare(job, snapshot, options, flags.output)
    verdict = plan_spec(job, snapshot, options)
    starts = (outlook.of_spec(job, options, verdict), outlook.now) if outlook else None
    submit = "" if flags.file else _with_same_flags(kind.word)
    return print_plan(job.name, verdict, snapshot, flags.output, starts, why=flags.why, submit=submit)


_HELP = """Show where {job} would run, and why.

It takes the flags of submit, typed or saved; {optional} may be left out. {remark}Nothing is created. The exit code is 3 when the job does
not fit now.

\b
{examples}
"""


def _command(
    word: str,
    job: str,
    *examples: str,
    optional: str = "name, image and command",
    remark: str = "",
) -> click.Command:
    """Return ``plan WORD``, which plans *job*, as its help calls it; *optional* flags may be left out."""
    shown = "\n".join(f"  arena-topo {example}" for example in examples)
    kind, text = JOB_KINDS[word], _HELP.format(job=job, optional=optional, remark=remark, examples=shown)
    return command(word, _PlanJobFlags, cls=_PlanCommand, parts={"job": kind.flags}, help=text)(
        partial(_plan, kind)
    )


for planned in (
    _command(
        "mpi",
        "an MPI job",
        "plan mpi --workers=4 --gpus=1",
        "plan mpi --workers=16 --gpus=8 --require-topology=rack -o html > plan.html",
        "plan mpi --workers=4 --gpus=1 --compare",
        "topology save cluster.json; arena-topo plan mpi --from cluster.json --workers=4 --gpus=1",
        "plan -f saved.yaml --workers=8",
    ),
    _command("pytorch", "a PyTorch job", "plan pytorch --workers=4 --gpus=8 --rdma"),
    tf,
    _command(
        "train",
        "a TrainJob",
        "plan train --workers=4 --gpus=8",
        optional="name, runtime, image and command",
        remark="Only these flags are planned with; submit also reads the runtime. ",
    ),
    _command("jobset", "a JobSet", "plan jobset --workers=4 --gpus=8 --rdma"),
    _command("job", "an indexed Job", "plan job --workers=4 --gpus=8 --rdma"),
):
    plan.add_command(planned)
plan.add_command(plan_manifest)


def _compare(job: "JobSpec", snapshot: "Snapshot", options: "PlanOptions", output: str) -> ExitCode:
    from arena_topo.jobs.plan import compare_spec
    from arena_topo.output.reports import render_comparison

    comparison = compare_spec(job, snapshot, options)
    text = render_comparison(job.name, comparison, output, colour=wants_colour(sys.stdout), width=columns())
    print_document(text, output)
    return ExitCode.OK if any(scenario.fits for scenario in comparison.ways) else ExitCode.DOES_NOT_FIT
