"""``arena-topo why``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arena_topo.cli.declare import command, option, text
from arena_topo.cli.options.common import (
    KubeFlags,
    OutputForm,
    duration,
    job_name,
    job_type,
    output_form,
    print_documents,
)
from arena_topo.cli.terminal import columns, print_page, say, warn
from arena_topo.errors import ArenaTopoError, ExitCode, UsageError
from arena_topo.model.text.words import printable

if TYPE_CHECKING:
    from arena_topo.jobs.why import Answer
    from arena_topo.kube.session import Session

# By the values of ``State``, which the help of other commands must not pay for.
_CODES = {
    "healthy": ExitCode.OK,
    "waiting": ExitCode.JOB_WAITS,
    "slow": ExitCode.JOB_IS_SLOW,
    "stuck": ExitCode.JOB_IS_STUCK,
    "undecided": ExitCode.UNDECIDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFlags:
    """What ``why`` takes."""

    name: str = job_name()
    again: float | None = option(
        "--for",
        type=duration(least=1.0),
        metavar="DURATION",
        help="Look again after this time, for example 60s: only a rank that has not moved in between is called stuck.",
    )
    save: str = text(
        "--save",
        metavar="FOLDER",
        help="Save the evidence in a new folder: stacks, last log lines, events and plan; no variables or command lines.",
    )
    output: OutputForm | None = output_form("json", "yaml", help="Output format.")
    type: str = job_type()
    kube: KubeFlags


@command("why", WhyFlags)
def why(flags: WhyFlags) -> ExitCode:
    """Say whether a job makes progress, and which rank the others wait for.

    All ranks are observed for five seconds, by exec in their containers: in /proc, and by py-spy where the
    image has it; NCCL is asked which of them are behind. The exit code is 0 for a healthy job, 6 for one that
    waits, 7 for a slow and 8 for a stuck one, and 9 where that does not decide it.

    \b
      arena-topo why vgg16
      arena-topo why vgg16 --for 60s --save evidence
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.why import runner
    from arena_topo.jobs.why import why as find_out
    from arena_topo.kube.session import connect
    from arena_topo.output.why import why_document, why_text

    folder = _new_folder(flags.save)
    session = of_type(connect(flags.kube), flags.type)
    answer = find_out(session, flags.name, runner(flags.kube, session), patience=flags.again, notify=say)
    document = why_document(answer.job.name, answer.job.namespace, answer.verdict)
    if folder:
        _save(folder, session, answer, document)
        say(f"the evidence is in {printable(str(folder))}")
    if not (flags.output and print_documents(flags.output, [document], single=True)):
        print_page(why_text(answer.job.name, answer.verdict, columns()))
        if answer.verdict.advice:
            say(f"hint: {printable(answer.verdict.advice)}", style="hint")
    ended = ExitCode.JOB_FAILED if answer.job.status.value == "FAILED" else ExitCode.OK
    return _CODES.get(answer.verdict.state.value, ended)


# ``--save``: what a restart takes away.

_LOGS = 8
"""Instances whose last lines are kept: the chief, and those that are named."""


def _new_folder(path: str) -> Path | None:
    """Return a new folder for the evidence, made before ranks are asked for it. Raises ``UsageError``."""
    if not path:
        return None
    try:
        Path(path).mkdir(parents=True)
    except OSError as error:
        why = "it exists, and holds other evidence" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(f"--save: cannot make the folder {path}: {why}") from error
    return Path(path)


def _save(folder: Path, session: "Session", answer: "Answer", shown: dict[str, object]) -> None:
    from arena_topo.jobs.status import job_events
    from arena_topo.output.job import job_document
    from arena_topo.output.text import document, plain

    job = answer.job
    files = {
        "verdict.json": document(shown, "json"),
        "plan.json": document(job_document(job)["plan"], "json"),
    }
    try:
        events = [{**plain(one), "last_seen": one.last_seen.isoformat()} for one in job_events(session, job)]
        files["events.json"] = document(events, "json")
    except ArenaTopoError as error:
        warn(f"no events: {error.message}")
    named = [suspect.pod for suspect in answer.verdict.suspects if suspect.pod]
    for name in list(dict.fromkeys([*([job.chief.name] if job.chief else []), *named]))[:_LOGS]:
        try:
            files[f"{name}.log"] = _log(session, name)
        except ArenaTopoError as error:
            warn(f"no log of {name}: {error.message}")
    if answer.evidence:
        files |= {f"{pod}.looks": data.decode(errors="replace") for pod, data in answer.evidence.printed}
    try:
        for name, content in files.items():
            (folder / name).write_text(content, "utf-8")
    except OSError as error:
        raise ArenaTopoError(f"--save: cannot write into {folder}: {error.strerror}") from error


def _log(session: "Session", pod: str) -> str:
    from arena_topo.jobs.why import last_lines
    from arena_topo.kube.resources import PODS

    found = session.get(PODS.path(session.namespace, pod))
    return "".join(f"{stamp} {text}" for stamp, text in last_lines(session, found))
