"""``arena-topo get``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import command, option, switch
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.cli.terminal import say
from arena_topo.model.notation.printable import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFlags:
    """What ``get`` takes."""

    name: str = job_name()
    type: str = job_type()
    output: str | None = option(
        "-o",
        "--output",
        type=click.Choice(["wide", "json", "yaml", "name"]),
        help="Output format; wide adds when the job was created and when it ended.",
    )
    events: bool = switch("-e", "--events", help="Show what happened to the job and its pods.")
    gpus: bool = switch("-g", "--gpus", help="Show how busy the GPUs are, as Prometheus has measured it.")
    kube: KubeFlags


@command("get", GetFlags)
def get(flags: GetFlags) -> None:
    """Show a job and its instances.

    \b
      arena-topo get vgg16 --type mpijob
      arena-topo get vgg16 -o json | jq -r .status
    """
    from arena_topo.jobs.lookup import fetch_job_view
    from arena_topo.kube.session import connect
    from arena_topo.output.job import job_document, job_table

    session = connect(flags.kube)
    job = fetch_job_view(session, flags.name)
    # As kubectl prints it, for pipes into kubectl.
    if flags.output == "name":
        click.echo(f"mpijob.kubeflow.org/{job.name}")
        return
    if flags.output in ("json", "yaml"):
        from arena_topo.output.documents import document

        click.echo(document(job_document(job), flags.output), nl=False)
        return
    click.echo(job_table(job, wide=flags.output == "wide"), nl=False)
    if flags.gpus or flags.events:
        from arena_topo.cli.commands.arena.job_details import print_events, print_gpus

        # In Arena's order.
        if flags.gpus:
            print_gpus(session, job)
        if flags.events:
            print_events(session, job)
    # What follows is not part of the table, which scripts may read: it goes to stderr.
    if job.message:
        say(f"\n{job.status.value.lower()}: {printable(job.message)}")
    if job.plan:
        say(f"plan: {printable(job.plan.message)}", style="warning" if job.plan.moved else "")
    if job.advice:
        say(f"hint: {printable(job.advice)}", style="hint")
