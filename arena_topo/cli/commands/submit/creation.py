"""What a submit prints, and what it waits for in the end, whatever described its job."""

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import option
from arena_topo.cli.options.dry_run import DryRun, DryRunMode
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ArenaTopoError, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model import arena_texts
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.jobs.placement.place import PlacedJob
    from arena_topo.jobs.submit.create import CreatedJob
    from arena_topo.jobs.submit.options import PlaceOptions
    from arena_topo.jobs.submit.submit import PreparedJob
    from arena_topo.kube.session import Session
    from arena_topo.model.job.job_view import Goal

_LAST_LOOK = 30.0
"""Seconds that the last look at the cluster may take after Ctrl-C; another Ctrl-C ends it at once."""

WITHOUT_PLAN = "the plan is left out, and with it pins, gates and the job's suspension: --dry-run=server --plan shows them"


def follow() -> bool:
    """Return the flag ``--follow``."""
    return go_flag(
        "--follow", help="Print the job's log until it has ended, and end with its exit code: 5 if it failed."
    )


def printed_objects() -> str | None:
    """Return ``-o`` of a command that creates objects."""
    return option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print the objects.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationFlags:
    """Whether a submit creates its objects, and what it prints of them."""

    dry_run: DryRun = option(
        "--dry-run",
        type=DryRunMode(),
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: print what would be created.",
    )
    show_plan: bool = go_flag(
        "--plan", help="With --dry-run=server: plan the job, and print it with its pins and gates."
    )
    follow: bool = follow()
    output: str | None = printed_objects()

    def check(self, word: str) -> None:
        """Raise ``UsageError`` where the flags contradict each other; ``arena-topo plan`` *word* shows a plan alone."""
        if self.show_plan and self.dry_run is not DryRun.SERVER:
            raise UsageError(
                "--plan goes with --dry-run=server", hint=f"arena-topo plan {word} shows a plan by itself"
            )


def print_dry_run(
    session: "Session", prepared: "PreparedJob", place: "PlaceOptions", output: str | None, *, planned: bool
) -> None:
    """Have the server try the job that was prepared, and print it; *planned*: with a plan for this moment."""
    from arena_topo.jobs.submit.submit import dry_run

    name = str(prepared.manifest.job["metadata"]["name"])
    print_notes(prepared.warnings, prepared.notes)
    tried = dry_run(session, prepared, place, planned=planned)
    print_objects(tried.objects, output, " (server dry run)")
    if tried.placed:
        print_placement(name, tried.placed)
    elif planned:
        say(f"{name} gets no plan: arena-topo doctor says why")
    elif prepared.enforcement:
        say(WITHOUT_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a submit prints in the end: the objects in a form of ``-o``, or the job's log with *follow*."""

    output: str | None
    follow: bool
    connection: ConnectionFlags


def create_as_asked(
    session: "Session",
    prepared: "PreparedJob",
    place: "PlaceOptions",
    creation: CreationFlags,
    connection: ConnectionFlags,
) -> None:
    """Have the server try the job that was prepared, or create it, as *creation* asks for."""
    if creation.dry_run is DryRun.SERVER:
        print_dry_run(session, prepared, place, creation.output, planned=creation.show_plan)
        return
    ending = Ending(output=creation.output, follow=creation.follow, connection=connection)
    create_and_wait(session, prepared, place, ending)


def create_and_wait(
    session: "Session", prepared: "PreparedJob", place: "PlaceOptions", ending: Ending
) -> None:
    """Create the job that was prepared, say so at once, and wait for what the user waits for.

    On Ctrl-C it is said what is left on the cluster, and how to go on or undo it.
    """
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.submit.submit import submit_prepared

    print_notes(prepared.warnings, prepared.notes)
    name = str(prepared.manifest.job["metadata"]["name"])
    created: list[Object] = []

    def report(job: "CreatedJob") -> None:
        created.extend(job.objects)
        # JSON and YAML show the objects with their plan, which they do not have yet.
        if ending.output in (None, "name"):
            print_objects(job.objects, ending.output, "")
        print_notes((), job.notes)

    started, waiter = time.monotonic(), Waiter(say)
    try:
        submitted = submit_prepared(session, prepared, place, waiter, report)
        if ending.output not in (None, "name"):
            print_objects(submitted.objects, ending.output, "")
        if submitted.placed:
            print_placement(name, submitted.placed)
        # Arena logs both sentences to stderr, so that stdout has the names of the objects alone.
        job, kind = submitted.objects[0]["metadata"], str(submitted.objects[0]["kind"]).lower()
        say(arena_texts.SUBMITTED.format(name=name))
        say(arena_texts.SEE_STATUS.format(name=name, type=kind, namespace=job["namespace"]))
        limit = place.timeout and max(place.timeout - (time.monotonic() - started), 0.001)
        _wait(session, name, job["uid"], place.goal, limit or 0.0, ending)
    except KeyboardInterrupt:
        _say_what_is_left(name, ending.connection, was_created=bool(created))
        raise


def _wait(session: "Session", name: str, uid: str, goal: "Goal | None", limit: float, ending: Ending) -> None:
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.outcome import followed_to_the_end, wait_for_goal
    from arena_topo.model.job.job_view import Goal
    from arena_topo.model.notation.words import written_duration

    if ending.follow:
        for line in followed_to_the_end(session, name, uid, Waiter(say)):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        say(f"The job {name} has succeeded")
    elif goal in (Goal.RUNNING, Goal.SUCCEEDED):
        view = wait_for_goal(session, name, uid, goal, Waiter(say), timeout=limit)
        verb = "has succeeded" if view.status.is_final else "is running"
        say(f"The job {name} {verb} after {written_duration(view.duration)}")


def _say_what_is_left(name: str, connection: ConnectionFlags, *, was_created: bool) -> None:
    from arena_topo.jobs.submit.interrupted import left_behind
    from arena_topo.kube.session import connect

    try:
        # The kept connection may be in the middle of an answer. A limit of 0 means none at all.
        limit = min(connection.request_timeout or _LAST_LOOK, _LAST_LOOK)
        fresh = connect(replace(connection, request_timeout=limit))
        left = left_behind(fresh, name, was_created=was_created)
    except (ArenaTopoError, KeyboardInterrupt) as error:
        state = "was created" if was_created else "may have been created"
        why = error.message if isinstance(error, ArenaTopoError) else "the cluster has not answered yet"
        left = f"the job {name} {state} ({why}): arena-topo get {name} shows it, arena-topo delete {name} undoes it"
    say(f"interrupted: {left}")


def print_placement(name: str, placed: "PlacedJob") -> None:
    """Print on stderr where a job was placed and how that is enforced, or what it waits for."""
    from arena_topo.output.plan.submitted import submitted_lines

    for line in submitted_lines(
        name,
        placed.verdict,
        placed.record,
        suspended=placed.suspended,
        queued=placed.queued,
        enforced=placed.enforced,
    ):
        say(line)


def print_objects(objects: Sequence[Object], output: str | None, remark: str) -> None:
    """Print *objects* in the form of ``-o``, or that each was created, with a *remark*."""
    from arena_topo.output.documents import object_name
    from arena_topo.output.documents import objects as documents

    if output:
        sys.stdout.write(documents(objects, output))
        return
    for item in objects:
        click.echo(f"{object_name(item)} created{remark}")


def print_notes(warnings: Iterable[str], notes: Iterable[str]) -> None:
    """Print on stderr what the user should know."""
    for warning in warnings:
        warn(warning)
    for note in notes:
        say(note)
