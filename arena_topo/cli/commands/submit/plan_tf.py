"""``arena-topo plan tf``."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import command, many, option, output_format, text
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.job_notations import LABEL, QUANTITY, TEXT, ArenaToleration
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.numbers import Whole
from arena_topo.cli.options.placement import POLICIES, topology_levels
from arena_topo.cli.snapshot_source import from_file, load_snapshot, product, unreserved
from arena_topo.cli.terminal import wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.model.cluster.scheduling import Toleration
    from arena_topo.model.plan.roles import GangDemand, Role

_FORMS = ("text", "json", "yaml")
Pairs = tuple[tuple[str, str], ...]


def _count(name: str, default: int, help: str) -> int:
    return option(name, type=Whole(), default=default, metavar="N", help=help, show_default=True)


def _quantity(name: str, help: str) -> str:
    return text(name, type=QUANTITY, help=help)


def _labels(name: str, help: str) -> Pairs:
    return many(name, type=LABEL, metavar="LABEL=VALUE", help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTfFlags:
    """What ``plan tf`` takes: those of Arena's flags that a plan depends on."""

    name: str = text("--name", type=TEXT, help="Name of the job.")
    workers: int = _count("--workers", 1, "Number of worker pods.")
    gpus: int = _count("--gpus", 0, "GPUs per worker, and of the chief.")
    worker_cpu: str = _quantity("--worker-cpu", "CPUs per worker, for example 8 or 500m.")
    worker_memory: str = _quantity("--worker-memory", "Memory per worker, for example 64Gi.")
    worker_selector: Pairs = _labels("--worker-selector", "Node label that workers need.")
    ps: int = _count("--ps", 0, "Number of parameter servers.")
    ps_cpu: str = _quantity("--ps-cpu", "CPUs per parameter server.")
    ps_memory: str = _quantity("--ps-memory", "Memory per parameter server.")
    ps_gpus: int = _count("--ps-gpus", 0, "GPUs per parameter server.")
    ps_selector: Pairs = _labels("--ps-selector", "Node label that parameter servers need.")
    chief: bool = go_flag("--chief", help="Run a chief beside the workers.")
    chief_cpu: str = _quantity("--chief-cpu", "CPUs of the chief.")
    chief_memory: str = _quantity("--chief-memory", "Memory of the chief.")
    chief_selector: Pairs = _labels("--chief-selector", "Node label that the chief needs.")
    evaluator: bool = go_flag("--evaluator", help="Run an evaluator, on any node.")
    evaluator_cpu: str = _quantity("--evaluator-cpu", "CPUs of the evaluator.")
    evaluator_memory: str = _quantity("--evaluator-memory", "Memory of the evaluator.")
    evaluator_selector: Pairs = _labels("--evaluator-selector", "Node label that the evaluator needs.")
    selector: Pairs = _labels("--selector", "Node label that all pods need.")
    toleration: "tuple[Toleration, ...]" = many(
        "--toleration",
        type=ArenaToleration(),
        metavar="KEY[=VALUE][:EFFECT][,OPERATOR]",
        help="Taint to tolerate, or all.",
    )
    topology_policy: str = option(
        "--topology-policy",
        type=click.Choice(POLICIES),
        default="best-effort",
        show_default=True,
        help="best-effort: closest level that is free; restricted: only the one that an empty cluster would give; none: any.",
    )
    require_topology: str = text(
        "--require-topology", metavar="LEVEL", help="Level that must hold all pods but the evaluator."
    )
    prefer_topology: str = text(
        "--prefer-topology", metavar="LEVEL", help="Level within which nodes count as equally close."
    )
    levels: tuple[str, ...] = topology_levels()
    file: str = from_file("-f")
    product: str = product()
    output: str = output_format(*_FORMS)
    kube: KubeFlags


@command("tf", PlanTfFlags)
def tf(flags: PlanTfFlags) -> ExitCode:
    """Show where a TensorFlow job with parameter servers would run, and why.

    All roles have a place, or none has. Parameter servers go where NIC rate is free; what they cost in a step stands
    beside an all-reduce on the same nodes. Nothing is created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan tf --workers=8 --gpus=1 --ps=2 --ps-cpu=8
      arena-topo plan tf -f cluster.json --workers=4 --gpus=4 --ps=4 --chief --evaluator
    """
    from arena_topo.model.plan.roles import GangInfeasible
    from arena_topo.output.plan.gang import render_gang
    from arena_topo.planner.roles.plan_gang import plan_gang

    gang, name = gang_of(flags), flags.name or "job"
    if flags.file:
        snapshot = load_snapshot(flags.kube, file=flags.file, product=flags.product, levels=flags.levels)
    elif flags.product:
        raise UsageError("--product names the GPUs of a matrix: it goes with --from")
    else:
        snapshot = unreserved(flags.kube, name, flags.levels)
    verdict = plan_gang(gang, snapshot)
    printed = render_gang(name, verdict, flags.output, colour=wants_colour(sys.stdout))
    # The text has its colours already, or none on purpose: click must not strip them where stdout is not a terminal.
    click.echo(printed, nl=False, color=True)
    return ExitCode.DOES_NOT_FIT if isinstance(verdict, GangInfeasible) else ExitCode.OK


def gang_of(flags: PlanTfFlags) -> "GangDemand":
    """Return the roles that *flags* describe; raises ``UsageError``."""
    from arena_topo.model.plan.demand import TopologyPolicy
    from arena_topo.model.plan.roles import GangDemand

    for flag, number, least in (
        ("--workers", flags.workers, 1),
        ("--gpus", flags.gpus, 0),
        ("--ps", flags.ps, 0),
        ("--ps-gpus", flags.ps_gpus, 0),
    ):
        if number < least:
            raise UsageError(f"{flag} is invalid: {number} is less than {least}")

    return GangDemand(
        roles=tuple(_roles(flags)),
        policy=TopologyPolicy(flags.topology_policy),
        required_level=flags.require_topology,
        preferred_level=flags.prefer_topology,
    )


def _roles(flags: PlanTfFlags) -> Iterator["Role"]:
    if flags.chief:
        asked = _requests(flags.chief_cpu, flags.chief_memory)
        yield replace(_role(flags, "chief", asked, flags.chief_selector), gpus=flags.gpus)
    asked = _requests(flags.worker_cpu, flags.worker_memory)
    worker = _role(flags, "worker", asked, flags.worker_selector)
    yield replace(worker, pods=flags.workers, gpus=flags.gpus)
    if flags.ps:
        asked = _requests(flags.ps_cpu, flags.ps_memory)
        servers = _role(flags, "ps", asked, flags.ps_selector)
        yield replace(servers, pods=flags.ps, gpus=flags.ps_gpus, serves="worker")
    if flags.evaluator:
        asked = _requests(flags.evaluator_cpu, flags.evaluator_memory)
        yield replace(_role(flags, "evaluator", asked, flags.evaluator_selector), anywhere=True)


def _role(flags: PlanTfFlags, name: str, requests: Mapping[str, int], selector: Pairs) -> "Role":
    from arena_topo.model.plan.roles import Role

    return Role(
        name=name,
        requests=requests,
        # The selector of a role goes before that of all pods.
        node_selector={**dict(flags.selector), **dict(selector)},
        tolerations=flags.toleration,
    )


def _requests(cpu: str, memory: str) -> Mapping[str, int]:
    from arena_topo.model.notation.quantity import resources

    return resources({name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount})
