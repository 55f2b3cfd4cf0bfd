"""The tables of the live view say what the cluster is like."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from arena_topo.live.rows import (
    TABLES,
    Table,
    chosen_rows,
    cluster_table,
    fitting_columns,
    jobs_table,
    links_table,
    narrowed,
    queue_table,
    summary,
)
from arena_topo.model.cluster import Snapshot
from arena_topo.model.job_view import JobStatus
from tests.live.overviews import OVERVIEW, job_of_two_workers, large
from tests.output.golden import golden

WAITING = replace(
    OVERVIEW,
    jobs=(
        *OVERVIEW.jobs,
        replace(job_of_two_workers("a", JobStatus.PENDING), message="a-worker-0: ImagePullBackOff"),
        job_of_two_workers("b", JobStatus.QUEUING),
        job_of_two_workers("c", JobStatus.SUSPENDED),
    ),
)
FLAT = replace(OVERVIEW, snapshot=Snapshot(nodes=OVERVIEW.snapshot.nodes))
MIXED = replace(OVERVIEW, jobs=(*OVERVIEW.jobs, replace(job_of_two_workers("bert2"), kind="PyTorchJob")))


def shown(table: Table, *, order: int = 0, wanted: str = "", width: int = 500) -> str:
    """Return *table* as a text: its title, what has room of its columns, and what each row is about."""
    rows = chosen_rows(table, order=order, wanted=wanted)
    places = [place for place, _ in fitting_columns(table, rows, width)]
    cells = [["".join(span.text for span in row.cells[place]) for place in places] for row in rows]
    lines = [[table.columns[place].heading for place in places], *cells]
    about = ["ABOUT", *(str(row.about) for row in rows)]
    return (
        "\n".join([table.title, *(" | ".join((*line, of)) for line, of in zip(lines, about, strict=True))])
        + "\n"
    )


VIEWS: dict[str, Callable[[], str]] = {
    "cluster": lambda: shown(cluster_table(OVERVIEW)),
    "cluster-1000": lambda: shown(cluster_table(large(1000))),
    "cluster-zoomed": lambda: shown(cluster_table(large(1000), ("a", "r1"))),
    "cluster-gone": lambda: shown(cluster_table(OVERVIEW, ("a", "gone"))),
    "cluster-flat": lambda: shown(cluster_table(FLAT)),
    "jobs": lambda: shown(jobs_table(OVERVIEW)),
    "jobs-by-name": lambda: shown(jobs_table(OVERVIEW), order=1),
    "jobs-by-gpus": lambda: shown(jobs_table(OVERVIEW), order=2),
    "jobs-filtered": lambda: shown(jobs_table(OVERVIEW), wanted="NLP"),
    "jobs-30": lambda: shown(jobs_table(OVERVIEW), width=30),
    "jobs-50": lambda: shown(jobs_table(OVERVIEW), width=50),
    "jobs-of-kinds": lambda: shown(jobs_table(MIXED)),
    "jobs-of-kinds-60": lambda: shown(jobs_table(MIXED), width=60),
    "queue": lambda: shown(queue_table(WAITING)),
    "links": lambda: shown(links_table(OVERVIEW)),
    "summary": lambda: "".join(span.text for span in summary(OVERVIEW)) + "\n",
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_table_is_as_it_was_looked_at(name: str) -> None:
    """What it says at each width, in each order and with a filter, and what each row is about."""
    text = VIEWS[name]()

    assert golden(f"live/{name}.txt", text) == text


@pytest.mark.parametrize("width", [30, 50, 60, 200])
def test_no_row_is_wider_than_its_place(width: int) -> None:
    """Columns go instead, the most dispensable first."""
    table = jobs_table(MIXED)

    assert sum(room + 2 for _, room in fitting_columns(table, table.rows, width)) <= width


def test_a_namespace_has_its_own_jobs_and_links() -> None:
    """The cluster stays whole."""
    own = narrowed(OVERVIEW, "ml")

    assert ({"ml"}, {"ml"}) == ({each.namespace for each in own.jobs}, {each.job[0] for each in own.uses})
    assert OVERVIEW is narrowed(OVERVIEW, "")


@pytest.mark.parametrize("name", TABLES)
def test_what_others_wrote_does_nothing(name: str) -> None:
    """A name with a terminal's codes is seen."""
    hostile = "\x1b[2Jowned"
    overview = replace(
        OVERVIEW,
        jobs=(replace(OVERVIEW.jobs[0], name=hostile), replace(OVERVIEW.jobs[1], message=hostile, plan=None)),
        uses=(replace(OVERVIEW.uses[0], job=("ml", hostile)),),
    )
    rows = TABLES[name](overview, ()).rows
    words = "".join(span.text for row in rows for cell in row.cells for span in cell)

    assert "owned" in words
    assert "\x1b" not in words
