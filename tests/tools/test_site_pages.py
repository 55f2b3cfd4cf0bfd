"""The documentation as a site: complete, linked, and readable without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.paths import ROOT
from tools.site_pages import PAGES, site_links

PUBLISHED = {
    *(place for place in PAGES.values() if place.endswith(".md")),
    *(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")),
}


@pytest.mark.parametrize(
    ("place", "link", "expected"),
    [
        ("index.md", "docs/how-to/logs.md", "how-to/logs.md"),
        ("index.md", "CONTRIBUTING.md", "project/contributing.md"),
        ("how-to/placing.md", "../../SECURITY.md", "../project/security.md"),
        ("how-to/placing.md", "logs.md", "logs.md"),
        ("how-to/placing.md", "https://example.com/a.md", "https://example.com/a.md"),
        ("project/security.md", "docs/reference/permissions.md", "../reference/permissions.md"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(place: str, link: str, expected: str) -> None:
    """From the page where it stands."""
    assert f"see [it]({expected})." == site_links(f"see [it]({link}).", place)


def test_a_link_into_a_page_keeps_its_anchor() -> None:
    """Of a page elsewhere, and of the same page."""
    text = "[a](docs/how-to/logs.md#one) [b](#two)"

    assert "[a](how-to/logs.md#one) [b](#two)" == site_links(text, "index.md")


def pages_of(entry: object) -> set[str]:
    """Return the pages that a part of the navigation names."""
    match entry:
        case dict():
            return {page for below in entry.values() for page in pages_of(below)}
        case list():
            return {page for below in entry for page in pages_of(below)}
        case _:
            return {str(entry)}


def test_every_page_can_be_found() -> None:
    """It stands in the navigation, which names nothing else."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)

    assert PUBLISHED == pages_of(settings["nav"])


def test_the_site_is_built_with_all_links_checked_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """A link or an anchor that leads nowhere ends the build; scripts, styles, fonts and pictures are the site's own."""
    # Proxies that lead nowhere: a build that asks for something fails.
    offline = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", f"--site-dir={tmp_path}"]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (built.returncode, built.stderr)

    text = "".join(page.read_text() for page in tmp_path.rglob("*.html"))
    loaded = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']?(https?:[^\"' >]+)", text)
    styles = re.findall(
        r"<link\b[^>]*\brel=[\"']?(?:stylesheet|preload)[^>]*\bhref=[\"']?(https?:[^\"' >]+)", text
    )
    assert [] == [*loaded, *styles]
    assert "busbw" in (tmp_path / "search" / "search_index.json").read_text()
