"""``arena-topo plan tf``."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import command, many, option, output_format, text
from arena_topo.cli.options.job_notations import LABEL, TEXT, ArenaToleration
from arena_topo.cli.options.kinds.tf_roles import AllPods, TfRoleFlags, tf_roles
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.numbers import Whole
from arena_topo.cli.options.placement import objective, prefer_topology, topology_levels, topology_policy
from arena_topo.cli.snapshot_source import from_file, load_snapshot, product, unreserved
from arena_topo.cli.terminal import print_out, print_page, wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.model.cluster.scheduling import Toleration
    from arena_topo.model.plan.roles import GangDemand

_FORMS = ("text", "json", "yaml")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTfFlags:
    """What ``plan tf`` takes: those of Arena's flags that a plan depends on."""

    name: str = text("--name", type=TEXT, help="Name of the job.")
    workers: int = option(
        "--workers", type=Whole(), default=1, metavar="N", help="Number of worker pods.", show_default=True
    )
    gpus: int = option(
        "--gpus",
        type=Whole(),
        default=0,
        metavar="N",
        help="GPUs per worker, and of the chief.",
        show_default=True,
    )
    roles: TfRoleFlags
    selector: Pairs = many(
        "--selector", type=LABEL, metavar="LABEL=VALUE", help="Node label that all pods need."
    )
    toleration: "tuple[Toleration, ...]" = many(
        "--toleration",
        type=ArenaToleration(),
        metavar="KEY[=VALUE][:EFFECT][,OPERATOR]",
        help="Taint to tolerate, or all.",
    )
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
        snapshot = unreserved(flags.kube, flags.levels)
    verdict = plan_gang(gang, snapshot)
    printed = render_gang(name, verdict, flags.output, colour=wants_colour(sys.stdout))
    (print_page if flags.output == "text" else print_out)(printed)
    return ExitCode.DOES_NOT_FIT if isinstance(verdict, GangInfeasible) else ExitCode.OK


def gang_of(flags: PlanTfFlags) -> "GangDemand":
    """Return the roles that *flags* describe; raises ``UsageError``."""
    from arena_topo.model.plan.demand import Objective, TopologyPolicy
    from arena_topo.model.plan.roles import GangDemand

    pods = AllPods(
        workers=flags.workers,
        gpus=flags.gpus,
        selector=dict(flags.selector),
        tolerations=flags.toleration,
    )
    return GangDemand(
        roles=tf_roles(flags.roles, pods),
        policy=TopologyPolicy(flags.topology_policy),
        required_level=flags.require_topology,
        preferred_level=flags.prefer_topology,
        objective=Objective(flags.objective),
    )
