"""``arena-topo why``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arena_topo.cli.declare import command, option, switch, text
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
    from collections.abc import Mapping

    from arena_topo.diagnosis.verdict import Verdict
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
    saved: bool = switch(
        "--saved",
        help="Show what the controller has kept of a job that was submitted with --on-hang; no rank is asked.",
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
      arena-topo why vgg16 --saved
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.why import runner
    from arena_topo.jobs.why import why as find_out
    from arena_topo.kube.session import connect
    from arena_topo.output.why import why_document

    if flags.saved:
        return _show_saved(of_type(connect(flags.kube), flags.type), flags)
    folder = _new_folder(flags.save)
    session = of_type(connect(flags.kube), flags.type)
    answer = find_out(session, flags.name, runner(flags.kube, session), patience=flags.again, notify=say)
    document = why_document(answer.job.name, answer.job.namespace, answer.verdict)
    if folder:
        _save(folder, session, answer, document)
    _show(flags, document, answer.verdict)
    ended = ExitCode.JOB_FAILED if answer.job.status.value == "FAILED" else ExitCode.OK
    return _CODES.get(answer.verdict.state.value, ended)


def _show(flags: WhyFlags, document: "dict[str, object]", verdict: "Verdict") -> None:
    from arena_topo.output.why import why_text

    if flags.output and print_documents(flags.output, [document], single=True):
        return
    print_page(why_text(flags.name, verdict, columns()))
    if verdict.advice:
        say(f"hint: {printable(verdict.advice)}", style="hint")


def _show_saved(session: "Session", flags: WhyFlags) -> ExitCode:
    """Print what the controller has kept, and write it into the folder that is asked for."""
    from arena_topo.jobs.evidence import kept_evidence
    from arena_topo.jobs.lookup import find_job
    from arena_topo.output.why import verdict_of

    if flags.again:
        raise UsageError("--saved asks no rank, and --for asks them twice", hint="leave one of them out")
    document, files = kept_evidence(session, find_job(session, flags.name).job)
    verdict = verdict_of(document)
    if folder := _new_folder(flags.save):
        _write(folder, document, files)
    _show(flags, document, verdict)
    return _CODES.get(verdict.state.value, ExitCode.OK)


# ``--save``: what a restart takes away.


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
    from arena_topo.jobs.why import log_of, named_pods
    from arena_topo.output.job import job_document
    from arena_topo.output.text import document, plain

    job = answer.job
    files = {"plan.json": document(job_document(job)["plan"], "json")}
    try:
        events = [{**plain(one), "last_seen": one.last_seen.isoformat()} for one in job_events(session, job)]
        files["events.json"] = document(events, "json")
    except ArenaTopoError as error:
        warn(f"no events: {error.message}")
    for name in named_pods(answer):
        try:
            files[f"{name}.log"] = log_of(session, name)
        except ArenaTopoError as error:
            warn(f"no log of {name}: {error.message}")
    if answer.evidence:
        files |= {f"{pod}.looks": data.decode(errors="replace") for pod, data in answer.evidence.printed}
    _write(folder, shown, files)


def _write(folder: Path, shown: "Mapping[str, object]", files: "Mapping[str, str]") -> None:
    from arena_topo.output.text import document

    try:
        for name, content in {"verdict.json": document(shown, "json"), **files}.items():
            (folder / name).write_text(content, "utf-8")
    except OSError as error:
        raise ArenaTopoError(f"--save: cannot write into {folder}: {error.strerror}") from error
    say(f"the evidence is in {printable(str(folder))}")
