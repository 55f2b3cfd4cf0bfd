"""``arena-topo plan tf``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import argument, command, output_format, text
from arena_topo.cli.commands.submit.printed_plan import print_plan
from arena_topo.cli.options.job import JobCommand
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.cli.options.kinds.described import plannable_job
from arena_topo.cli.options.kinds.tf import TfFlags
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.placement import objective, prefer_topology, topology_levels, topology_policy
from arena_topo.cli.snapshot_source import from_file, product, unreserved
from arena_topo.errors import ExitCode

if TYPE_CHECKING:
    from arena_topo.jobs.placement.options import PlanOptions

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
    servers go where NIC rate is free; what they cost in a step stands beside an all-reduce on the same nodes. Nothing is
    created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan tf --workers=8 --gpus=1 --ps=2 --ps-cpu=8
      arena-topo plan tf -f cluster.json --workers=4 --gpus=4 --ps=4 --chief --evaluator
    """
    from arena_topo.jobs.placement.plan import plan_roles

    job = plannable_job(flags.job, words=flags.words, argv=flags.argv, namespace=flags.kube.namespace)
    snapshot = unreserved(flags.kube, file=flags.file, product=flags.product, levels=flags.levels)
    return print_plan(job.name, plan_roles(job, snapshot, _options(flags)), snapshot, flags.output)


def _options(flags: PlanTfFlags) -> "PlanOptions":
    from arena_topo.jobs.placement.options import PlanOptions
    from arena_topo.model.plan.demand import Objective, TopologyPolicy

    return PlanOptions(
        policy=TopologyPolicy(flags.topology_policy),
        required_level=flags.require_topology,
        preferred_level=flags.prefer_topology,
        objective=Objective(flags.objective),
        levels=flags.levels,
    )
