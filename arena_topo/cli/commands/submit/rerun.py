"""``arena-topo rerun``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import argument, command, option, text
from arena_topo.cli.commands.submit.creation import (
    Ending,
    create_and_wait,
    follow,
    print_dry_run,
    printed_objects,
)
from arena_topo.cli.options.dry_run import DryRun, DryRunMode
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import JobName
from arena_topo.cli.options.placement import Wait, wait_goal
from arena_topo.cli.snapshot_source import read_text
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.submit.rerun import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunFlags:
    """What ``rerun`` takes."""

    job: str | None = argument(metavar="[JOB]", required=False, type=JobName())
    file: str = text(
        "-f",
        "--file",
        metavar="FILE",
        help="The job as get -o json, kubectl get -o yaml or submit -o yaml printed it; - for stdin.",
    )
    name: str = text("--name", help="Name of the new job; the old one by default.")
    wait: Wait | None = wait_goal()
    follow: bool = follow()
    dry_run: DryRun = option(
        "--dry-run", type=DryRunMode(), default=DryRun.NONE, metavar="MODE", help="none or server."
    )
    output: str | None = printed_objects()
    kube: KubeFlags


@command("rerun", RerunFlags)
def rerun(flags: RerunFlags) -> None:
    """Submit a job again: one that has ended, or one that was deleted and that a file has.

    Its specification is the same; what the server, its plan and its gang scheduler put onto it is dropped, and it is
    planned anew. While the old job exists, the new one needs another name.

    \b
      arena-topo rerun vgg16 --name=vgg16-2
      arena-topo get vgg16 -o json > vgg16.json; arena-topo delete vgg16; arena-topo rerun -f vgg16.json
    """
    from arena_topo.jobs.submit.options import PlaceOptions
    from arena_topo.jobs.submit.rerun import prepare_rerun, source_from_cluster
    from arena_topo.kube.session import connect
    from arena_topo.model.job.job_view import Goal

    if bool(flags.job) == bool(flags.file):
        raise UsageError(
            "rerun takes the name of a job, or -f FILE", hint="for example arena-topo rerun vgg16"
        )
    if flags.dry_run is DryRun.CLIENT:
        raise UsageError("rerun has no --dry-run=client: it asks the cluster", hint="use --dry-run=server")
    session = connect(flags.kube)
    source = _from_file(flags.file) if flags.file else source_from_cluster(session, flags.job or "")
    goal = Goal.SUCCEEDED if flags.follow else flags.wait.goal if flags.wait else None
    place = PlaceOptions(
        timeout=flags.wait.timeout if flags.wait else 0.0 if flags.follow else None, goal=goal
    )
    prepared = prepare_rerun(session, source, flags.name, place)
    if flags.dry_run is DryRun.SERVER:
        print_dry_run(session, prepared, place, flags.output, planned=False)
        return
    create_and_wait(
        session, prepared, place, Ending(output=flags.output, follow=flags.follow, connection=flags.kube)
    )


def _from_file(file: str) -> "Source":
    from arena_topo.jobs.submit.rerun import source_from_documents
    from arena_topo.model.notation.yaml_documents import load_all

    shown = "stdin" if file == "-" else file
    return source_from_documents(load_all(read_text(file, "--file"), name=shown), shown)
