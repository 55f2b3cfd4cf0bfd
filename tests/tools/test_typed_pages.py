"""Pages whose commands are typed: each prints what stands below it."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools import terminal
from tools.typed_pages import PAGES, Page, commands, lasting, typed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_a_page_runs_as_it_stands(page: Page, tmp_path: Path) -> None:
    """Every command prints what the page says, typed one after
    the other; every picture is the one that the page shows.
    """
    path = ROOT / page.path
    text = path.read_text()

    now, pictures = typed(page, text, tmp_path)
    shown = {name: (path.parent / name).read_text() for name in pictures}

    assert lasting(text).splitlines() == lasting(now).splitlines()
    assert {name: shown[name] for name in page.drawings} == {name: pictures[name] for name in page.drawings}
    assert {name: terminal.lasting(shown[name]) for name in page.screens} == {
        name: terminal.lasting(pictures[name]) for name in page.screens
    }
    assert [] == [name for name in pictures if f"]({name})" not in text]


def test_the_readme_types_all_that_it_tells_to_type() -> None:
    """From an empty home to a plan and back; the one command
    for a real cluster is typed on one, by tests/e2e/test_readme.py.
    """
    text = (ROOT / "README.md").read_text()
    for_a_cluster = re.findall(r"^```sh\n((?:[^`\n]+\n)+)```$", text, re.MULTILINE)

    assert len(commands(text)) == text.count("\n$ ")
    assert text.count("```") == 2 * (text.count("```console") + 1)
    assert [["arena-topo", "submit", "mpi"]] == [command.split()[:3] for command in for_a_cluster]


def test_the_readme_shows_a_plan_and_the_command_for_a_cluster_on_one_screen() -> None:
    """Fifty lines, before any heading but its own."""
    first_screen = (ROOT / "README.md").read_text().splitlines()[:50]

    assert any(line.startswith("next: arena-topo submit mpi") for line in first_screen)
    assert any(line.startswith("arena-topo submit mpi") for line in first_screen)
    assert 1 == sum(line.startswith("#") for line in first_screen)


def test_a_changed_output_is_noticed() -> None:
    """What differs from run to run is left out of the comparison, and nothing else."""
    first = "NAME           AGE\nw-launcher-abcde  Running  11s  node-1\nplan: 4 of 4 workers where planned\n"
    again = "NAME        AGE\nw-launcher-zzzzz  Running  9s  node-2\nplan: 4 of 4 workers where planned\n"
    wrong = again.replace("4 of 4", "3 of 4")

    assert lasting(first) == lasting(again)
    assert lasting(first) != lasting(wrong)


def test_what_a_command_prints_takes_the_place_of_what_stood_below_it(tmp_path: Path) -> None:
    """On both streams, under the home of nobody in particular;
    what commands leave is there for the next one.
    """
    text = "Type:\n\n```console\n$ echo $HOME; echo told >&2\nold\n$ cd ..; pwd > here\n```\n\n```console\n$ cat here\n```\n"

    page, _ = typed(Page("page.md"), text, tmp_path)

    assert page == text.replace("old\n", "/home/ann\ntold\n").replace("cat here\n", "cat here\n/home/ann\n")
