"""How ``arena-topo plan`` ends, whatever described its job: the plan is printed, and the exit code says whether it fits."""

import sys
from typing import TYPE_CHECKING

from arena_topo.cli.terminal import columns, print_document, wants_colour
from arena_topo.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from arena_topo.model.cluster.snapshot import Snapshot
    from arena_topo.model.job.start_estimate import StartEstimate
    from arena_topo.model.plan.placement import Verdict
    from arena_topo.model.plan.roles import GangVerdict

PICTURES = ("svg", "html")
FORMS = ("text", "json", "yaml", *PICTURES)


def print_plan(
    name: str,
    verdict: "Verdict | GangVerdict",
    snapshot: "Snapshot",
    form: str,
    starts: "tuple[StartEstimate, datetime] | None" = None,
) -> ExitCode:
    """Print the plan of the job *name*, with when it *starts*, and return whether it fits. Raises ``UsageError``."""
    from arena_topo.model.plan.placement import Infeasible, Placement
    from arena_topo.model.plan.roles import GangInfeasible
    from arena_topo.output.plan.gang import render_gang
    from arena_topo.output.plan.render import render_plan

    colour = wants_colour(sys.stdout)
    if isinstance(verdict, Placement | Infeasible):
        printed = render_plan(name, verdict, snapshot, form, colour=colour, width=columns(), starts=starts)
    elif form in PICTURES:
        raise UsageError(
            f"-o {form} draws jobs whose pods are all alike, and those of {name} differ by role",
            hint="print the plan as text, json or yaml",
        )
    else:
        printed = render_gang(name, verdict, form, colour=colour)
    print_document(printed, form)
    return ExitCode.DOES_NOT_FIT if isinstance(verdict, Infeasible | GangInfeasible) else ExitCode.OK
