"""The flags of a job that may have fewer workers than it could use, and the range that they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import option
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.notations import Notation
from arena_topo.cli.options.numbers import MOST, Whole
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.placement.options import PlanOptions
    from arena_topo.model.job.job_spec import JobSpec, WorkerRange


def _bound(name: str, help: str) -> int | None:
    return option(name, type=Whole(least=1), metavar="N", help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticFlags:
    """How few and how many workers an elastic job may have."""

    min_workers: int | None = _bound(
        "--min-workers", help="Fewest workers with which it starts: it is elastic, and has as many as fit."
    )
    max_workers: int | None = _bound(
        "--max-workers", help="Most workers that it may ever have; arena-topo scale changes their number."
    )
    grow: bool = go_flag(
        "--grow",
        help="Let the controller give it more workers, up to the most, when there is room and no job waits.",
    )


class NodeCount(Notation["tuple[int, int] | None"]):
    """torchrun's ``--nnodes``: a number, or ``MIN:MAX``."""

    name = "nodes"
    empty_is_default = True

    def read(self, text: str, flag: str) -> "tuple[int, int] | None":
        """Return the fewest and the most."""
        least, _, most = text.partition(":")
        numbers = [
            int(word) if word.isascii() and word.isdecimal() and len(word) < 8 else 0
            for word in (least, most or least)
        ]
        if not 0 < numbers[0] <= numbers[1] <= MOST or text.endswith(":"):
            raise UsageError(
                f"{flag}: {text!r} is no number of nodes",
                hint="use a number such as 4, or a range such as 2:8",
            )
        return numbers[0], numbers[1]


def worker_range(flags: ElasticFlags) -> "WorkerRange | None":
    """Return the range that *flags* give, None for a job of a fixed size. Raises ``UsageError``."""
    from arena_topo.model.job.job_spec import WorkerRange

    if flags.min_workers is None and flags.max_workers is None:
        return None
    if flags.max_workers is None:
        raise UsageError(
            "--min-workers needs --max-workers", hint="the most workers that the job may ever have"
        )
    # A single worker is the fewest that anything has.
    least = flags.min_workers or 1
    if least > flags.max_workers:
        raise UsageError(f"--min-workers={least} is more than --max-workers={flags.max_workers}")
    return WorkerRange(least, flags.max_workers)


def with_nodes(
    elastic: "WorkerRange | None", nodes: tuple[int, int] | None, workers: int | None
) -> "tuple[WorkerRange | None, int | None]":
    """Return the range and the number of workers that torchrun's ``--nnodes`` gives beside the others' flags, None for no number.

    ``--nnodes=4`` is ``--workers=4``, and ``--nnodes=2:8`` is ``--min-workers=2 --max-workers=8``.
    """
    from arena_topo.model.job.job_spec import WorkerRange

    if nodes is None:
        return elastic, workers
    least, most = nodes
    said: Sequence[str] = [
        flag
        for flag, is_given in (
            ("--min-workers and --max-workers", elastic is not None),
            ("--workers", least == most and workers not in (None, most)),
        )
        if is_given
    ]
    if said:
        raise UsageError(f"--nnodes says the same as {said[0]}", hint="leave one of them out")
    return (None, most) if least == most else (WorkerRange(least, most), workers)


def elastic_job(
    job: "JobSpec", elastic: "WorkerRange | None", workers: int | None, *, grow: bool
) -> "JobSpec":
    """Return *job* as an elastic one, which starts with at most *workers*, or with as many as fit where none are given.

    *grow*: the controller may give it more later. Raises ``UsageError``.
    """
    from dataclasses import replace

    if elastic is None:
        if grow:
            raise UsageError(
                "--grow is for elastic jobs",
                hint="say how many workers it may have: --min-workers and --max-workers",
            )
        return job
    start = elastic.most if workers is None else workers
    if not elastic.least <= start <= elastic.most:
        raise UsageError(
            f"--workers={start} is not between --min-workers={elastic.least} and --max-workers={elastic.most}",
            hint="--workers is the most to start with; without it the job starts with as many as fit",
        )
    return replace(job, workers=start, elastic=replace(elastic, grows=grow))


def check_elastic(job: "JobSpec", options: "PlanOptions") -> None:
    """Raise ``UsageError`` for an elastic job with an option that needs its number of ranks."""
    fixed = {"--parallel": bool(options.parallel), "--coalesce": options.coalesce}
    for flag, is_given in fixed.items():
        if job.elastic and is_given:
            raise UsageError(
                f"{flag} lays a job out for its number of ranks, and an elastic one has no fixed number",
                hint="leave out --min-workers and --max-workers, or this flag",
            )
