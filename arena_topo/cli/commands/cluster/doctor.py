"""``arena-topo doctor``."""

import click

from arena_topo.cli.options.kube import kube_options
from arena_topo.errors import ExitCode
from arena_topo.kube.connection_flags import ConnectionFlags


@click.command("doctor")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml"]), default="wide", help="Form.")
@click.option("--queue", default="", metavar="NAME", help="Queue that jobs would be submitted through.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a problem.")
@kube_options
def doctor(output: str, queue: str, strict: bool, connection: ConnectionFlags) -> None:
    """Tell what a cluster has for gangs and pins.

    Each finding comes with its evidence, what follows from it for jobs, and the command that would improve it.
    Nothing is changed, and what may not be read is told as unknown.

    \b
      arena-topo doctor
      arena-topo doctor -n research -o json
    """
    from arena_topo.cluster.capabilities.detect import detect
    from arena_topo.cluster.doctor.diagnose import diagnose
    from arena_topo.kube.session import connect
    from arena_topo.model.cluster.finding import State
    from arena_topo.output.doctor import findings_document, findings_text

    session = connect(connection)
    findings = diagnose(detect(session, access=True), namespace=session.namespace, queue=queue)
    if output == "wide":
        click.echo(findings_text(findings), nl=False)
    else:
        from arena_topo.output.documents import document

        click.echo(document(findings_document(findings), output), nl=False)
    has_problem = any(finding.state is State.PROBLEM for finding in findings)
    click.get_current_context().exit(ExitCode.ERROR if strict and has_problem else ExitCode.OK)
