"""``arena-topo doctor``."""

from dataclasses import dataclass

import click

from arena_topo.cli.declare import command, output_format, switch, text
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.terminal import columns, print_page, status_paint
from arena_topo.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFlags:
    """What ``doctor`` takes."""

    output: str = output_format("wide", "json", "yaml")
    queue: str = text("--queue", metavar="NAME", help="Queue that jobs would be submitted to.")
    strict: bool = switch("--strict", help="Exit with 1 if there is a problem.")
    kube: KubeFlags


@command("doctor", DoctorFlags)
def doctor(flags: DoctorFlags) -> ExitCode:
    """Report what this cluster supports for gangs and pinning.

    The last finding names the jobs that have reserved GPUs which they do not use yet. Each finding comes with its evidence, what it means for jobs, and the command that would improve it. Nothing is
    changed, and whatever you are not allowed to read is reported as unknown.

    \b
      arena-topo doctor
      arena-topo doctor -n research -o json
    """
    from arena_topo.cluster.capabilities import detect
    from arena_topo.cluster.doctor import diagnose
    from arena_topo.jobs.other_plans import reservations
    from arena_topo.kube.session import connect
    from arena_topo.model.reports import State
    from arena_topo.output.plan import reservations_finding
    from arena_topo.output.reports import findings_document, findings_text

    session = connect(flags.kube)
    facts = detect(session, access=True)
    findings = (
        *diagnose(facts, namespace=session.namespace, queue=flags.queue),
        reservations_finding(reservations(session)),
    )
    if flags.output == "wide":
        print_page(findings_text(findings, paint=status_paint(), width=columns()))
    else:
        from arena_topo.output.text import document

        click.echo(document(findings_document(findings), flags.output), nl=False)
    has_problem = any(finding.state is State.PROBLEM for finding in findings)
    return ExitCode.ERROR if flags.strict and has_problem else ExitCode.OK
