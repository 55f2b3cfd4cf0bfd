"""``arena-topo get``."""

import click

from arena_topo.cli.options.job_type import type_option
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.terminal import say
from arena_topo.kube.connection_flags import ConnectionFlags


@click.command()
@click.argument("name", metavar="JOB")
@type_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml", "name"]),
    help="Another form than the table; wide adds when the job was created and when it ended.",
)
@kube_options
def get(name: str, output: str | None, connection: ConnectionFlags) -> None:
    """Show a job and its instances.

    \b
      arena-topo get vgg16 --type mpijob
      arena-topo get vgg16 -o json | jq -r .status
    """
    from arena_topo.jobs.lookup import view
    from arena_topo.kube.session import connect
    from arena_topo.output.job import job_document, job_table

    job = view(connect(connection), name)
    if output == "name":
        click.echo(f"mpijob.kubeflow.org/{job.name}")
        return
    if output in ("json", "yaml"):
        from arena_topo.output.documents import document

        click.echo(document(job_document(job), output), nl=False)
        return
    click.echo(job_table(job, wide=output == "wide"), nl=False)
    if job.message:
        say(f"\n{job.status.value.lower()}: {job.message}")
    if job.plan:
        say(f"plan: {job.plan.message}", style="warning" if job.plan.moved else "")
