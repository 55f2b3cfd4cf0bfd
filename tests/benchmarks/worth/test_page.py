"""The page shows the figures that were kept, and nothing else."""

import xml.etree.ElementTree as ET

import pytest

from benchmarks.worth import figures, page
from benchmarks.worth.chart import chart
from tests.benchmarks.worth.examples import FIGURES
from tests.output.drawings import SVG, tips


def test_the_page_is_what_the_figures_say() -> None:
    """``python -m benchmarks.worth.page`` writes it from ``figures.json``."""
    kept = figures.read()
    text = page.PAGE.read_text("utf-8")

    assert text == page.filled(text, page.parts(kept))


def test_the_picture_is_what_the_figures_say() -> None:
    """It lies next to the page, which shows it."""
    assert page.PICTURE.read_text("utf-8") == f"{chart(figures.read())}\n"
    assert f"]({page.PICTURE.name})" in page.PAGE.read_text("utf-8")


def test_a_row_has_the_middle_the_smallest_and_the_largest() -> None:
    """Of each work, and the worst ring."""
    row = page.ratios(FIGURES).splitlines()[2]

    assert (
        "| 2 nodes of 4 GPUs | 4 | 1.50 s | **4.0** (2.0 to 4.0) | **4.0** (2.0 to 4.0) | **5.0** "
        "| **3.0** (1.5 to 3.0) | 4.0 |"
    ) == row


def test_a_plan_that_uses_no_uplink_has_no_ratio_of_uplinks() -> None:
    """Its ranks are on one node."""
    row = page.reasons(FIGURES).splitlines()[2]

    assert "| 2 nodes of 4 GPUs | 4 | `aaaa` | `abab` | `abab` | 4.0 | - | 2.5 | 3.0 | 1.5 |" == row


def test_a_page_without_a_place_is_told() -> None:
    """Rather than left as it was."""
    with pytest.raises(ValueError, match="0 places for machine"):
        page.filled("# A page\n", {"machine": "two cores\n"})


def test_the_picture_says_each_figure() -> None:
    """For both works of each gang, in words too."""
    svg = chart(FIGURES)

    assert "all-reduce of 16 MiB: stock 2.00 to 4.00, middle 4.00\nworst 4.00, predict said 2.50" in tips(svg)
    assert {"4 ranks", "2 nodes of 4 GPUs"} <= {text.text for text in ET.fromstring(svg).iter(f"{SVG}text")}


def test_the_picture_is_drawn_for_light_and_dark_pages() -> None:
    """Its colours are those of the tool's other drawings."""
    assert "prefers-color-scheme: dark" in chart(FIGURES)
