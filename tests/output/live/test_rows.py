"""The tables of the live view say what the cluster is like."""

from dataclasses import replace

import pytest

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_view import JobStatus
from arena_topo.output.live.rows import (
    TABLES,
    Row,
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
from tests.output.live.overviews import OVERVIEW, job, large


def texts(rows: tuple[Row, ...] | list[Row]) -> list[list[str]]:
    """Return the cells of *rows* as words."""
    return [["".join(span.text for span in cell) for cell in row.cells] for row in rows]


def column(table: Table, heading: str) -> list[str]:
    """Return the cells below a heading."""
    place = [each.heading for each in table.columns].index(heading)
    return [cells[place] for cells in texts(table.rows)]


def test_the_summary_counts_what_is_free_and_who_runs() -> None:
    """And what waits or has failed."""
    words = "".join(span.text for span in summary(OVERVIEW))

    assert "4 nodes, 14 of 28 GPUs free  2 running  1 pending  1 failed" == words


def test_the_cluster_is_a_tree_of_its_domains() -> None:
    """Small ones have their nodes below, with a mark for each GPU."""
    table = cluster_table(OVERVIEW)

    assert [
        ["zone a", "5/16", "2 nodes", "vgg16, bert"],
        ["  rack r1", "5/8", "▃", "vgg16, bert"],
        ["    v100-0", "5/8", "■□□■□■□□", "vgg16, bert"],
        ["  rack r2", "0/8", "x", "vgg16"],
        ["    h200-0", "0/8", "□□□□□□□□", "vgg16 (cordoned)"],
        ["zone b", "9/12", "2 nodes", ""],
    ] == texts(table.rows)[:6]


def test_a_thousand_nodes_are_a_row_for_each_rack() -> None:
    """With a mark for each node; looking into a rack shows its nodes."""
    overview = large(1000)
    table = cluster_table(overview)
    assert 1 + 63 == len(table.rows)
    assert ["  rack r1", "88/128", "□□■□□■□□■□□■□□■□", ""] == texts(table.rows)[2]

    inside = cluster_table(overview, ("a", "r1"))
    assert ("cluster / a / r1", 16, ("node", "node-16")) == (
        inside.title,
        len(inside.rows),
        inside.rows[0].about,
    )


def test_a_domain_that_has_gone_is_left() -> None:
    """What is left of the way into it is shown."""
    assert "cluster / a" == cluster_table(OVERVIEW, ("a", "gone")).title


def test_a_cluster_without_fabric_says_so() -> None:
    """And lists its nodes."""
    flat = replace(OVERVIEW, snapshot=Snapshot(nodes=OVERVIEW.snapshot.nodes))
    table = cluster_table(flat)

    assert "no fabric is published" in table.title
    assert ("node", "guess-0") == table.rows[0].about


def test_jobs_tell_where_they_are_and_how_fast() -> None:
    """Those that have ended stand last in the usual order."""
    table = jobs_table(OVERVIEW)

    assert ["vgg16", "gpt", "bert", "resnet50"] == [row.about[2] for row in chosen_rows(table)]
    assert ["zone a", "", "", "v100-0"] == column(table, "WHERE")
    assert ["nvlink + rdma", "", "", "nvlink"] == column(table, "LINKS")
    assert ["90 GB/s", "", "", "90 GB/s"] == column(table, "BUSBW")
    assert ["1/2", "0/2", "0/2", "1/2"] == column(table, "READY")


@pytest.mark.parametrize(
    ("order", "expected"),
    [(1, ["bert", "gpt", "resnet50", "vgg16"]), (2, ["gpt", "vgg16", "bert", "resnet50"])],
    ids=["by name", "by GPUs"],
)
def test_jobs_are_sorted(order: int, expected: list[str]) -> None:
    """As their table says that they can be."""
    assert expected == [row.about[2] for row in chosen_rows(jobs_table(OVERVIEW), order=order)]


def test_a_filter_looks_at_all_that_a_row_says() -> None:
    """In either case of letters."""
    assert [("job", "nlp", "bert")] == [row.about for row in chosen_rows(jobs_table(OVERVIEW), wanted="NLP")]


def test_the_queue_says_why_each_job_waits() -> None:
    """In the words of its plan, of its pods, or of its state."""
    overview = replace(
        OVERVIEW,
        jobs=(
            *OVERVIEW.jobs,
            replace(job("a", JobStatus.PENDING), message="a-worker-0: ImagePullBackOff"),
            job("b", JobStatus.QUEUING),
            job("c", JobStatus.SUSPENDED),
        ),
    )

    assert [
        "no 16 nodes have 8 free GPUs; retry with: arena-topo resume gpt",
        "a-worker-0: ImagePullBackOff",
        "its queue has not admitted it",
        "it is suspended",
    ] == column(queue_table(overview), "WHY")


def test_links_that_jobs_share_stand_first() -> None:
    """Each with the rate that its jobs have over it: between nodes, or inside of one."""
    assert [
        ["NVLink v100-0", "vgg16, bert", "220 GB/s, 220 GB/s"],
        ["uplink rack r1", "vgg16", "90 GB/s"],
        ["uplink rack r2", "vgg16", "90 GB/s"],
        ["NICs h200-0", "vgg16", "90 GB/s"],
        ["NVLink h200-0", "vgg16", "220 GB/s"],
        ["NICs v100-0", "vgg16", "90 GB/s"],
    ] == texts(chosen_rows(links_table(OVERVIEW)))


def test_a_namespace_has_its_own_jobs_and_links() -> None:
    """The cluster stays whole."""
    own = narrowed(OVERVIEW, "ml")

    assert ({"ml"}, {"ml"}) == ({each.namespace for each in own.jobs}, {each.job[0] for each in own.uses})
    assert OVERVIEW is narrowed(OVERVIEW, "")


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (30, ["NAME", "STATUS", "READY"]),
        (50, ["NAMESPACE", "NAME", "STATUS", "READY", "GPUS"]),
        (200, [each.heading for each in jobs_table(OVERVIEW).columns]),
    ],
)
def test_columns_go_where_there_is_no_room(width: int, expected: list[str]) -> None:
    """The most dispensable first, and no row is wider than its place."""
    table = jobs_table(OVERVIEW)
    columns = fitting_columns(table, table.rows, width)

    assert expected == [table.columns[place].heading for place, _ in columns]
    assert sum(room + 2 for _, room in columns) <= width


@pytest.mark.parametrize("name", TABLES)
def test_what_others_wrote_does_nothing(name: str) -> None:
    """A name with a terminal's codes is seen."""
    hostile = "\x1b[2Jowned"
    overview = replace(
        OVERVIEW,
        jobs=(replace(OVERVIEW.jobs[0], name=hostile), replace(OVERVIEW.jobs[1], message=hostile, plan=None)),
        uses=(replace(OVERVIEW.uses[0], job=("ml", hostile)),),
    )
    shown = str(texts(TABLES[name](overview, ()).rows))

    assert "owned" in shown
    assert "\x1b" not in shown


def test_jobs_of_several_kinds_say_theirs() -> None:
    """Where all are of one kind there is no column for it, and neither is there on a narrow terminal."""
    torch = replace(job("bert2"), kind="PyTorchJob")
    table = jobs_table(replace(OVERVIEW, jobs=(*OVERVIEW.jobs, torch)))

    assert "KIND" not in [each.heading for each in jobs_table(OVERVIEW).columns]
    assert {"MPIJob", "PyTorchJob"} == set(column(table, "KIND"))
    shown = [table.columns[place].heading for place, _ in fitting_columns(table, table.rows, 60)]
    assert ("NAME" in shown, "KIND" in shown) == (True, False)
