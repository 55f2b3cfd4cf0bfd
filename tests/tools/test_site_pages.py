"""The documentation as a site: complete, linked, and readable without a network."""

import os
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml

from tests.output.chromium import chromium, needs_chromium
from tests.paths import ROOT
from tools.site_pages import PAGES, llms, site_links

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


def test_a_model_finds_every_page() -> None:
    """By its title and its first sentence, at its place on the site; commands by their index."""
    written = llms()
    places = set(re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .", written, re.MULTILINE))

    assert written.startswith("# arena-topo\n\n> ")
    assert {"how-to/install.html", "how-to/agents.html", "reference/python.html"} <= places
    assert "reference/commands/index.html" in places
    assert "reference/commands/plan.html" not in places


def test_every_page_can_be_found() -> None:
    """It stands in the navigation, which names nothing else."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)

    assert PUBLISHED == pages_of(settings["nav"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built with every link and anchor checked: one that leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("site")
    # Proxies that lead nowhere: a build that asks for something fails.
    offline = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", f"--site-dir={folder}"]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (built.returncode, built.stderr)
    return folder


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts and pictures are the site's own."""
    text = "".join(page.read_text() for page in site.rglob("*.html"))
    loaded = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']?(https?:[^\"' >]+)", text)
    styles = re.findall(
        r"<link\b[^>]*\brel=[\"']?(?:stylesheet|preload)[^>]*\bhref=[\"']?(https?:[^\"' >]+)", text
    )

    assert [] == [*loaded, *styles]


def test_every_picture_of_the_site_is_there_and_has_words(site: Path) -> None:
    """For readers who do not see it, in the page's own words."""
    pictures = [
        (page, dict(re.findall(r'(src|alt)="([^"]*)"', tag)))
        for page in site.rglob("*.html")
        for tag in re.findall(r"<img\b[^>]*>", page.read_text())
    ]

    assert len(pictures) > 30
    assert [] == [(page.name, found) for page, found in pictures if len(found.get("alt", "")) < 10]
    assert [] == [
        (page.name, found["src"]) for page, found in pictures if not (page.parent / found["src"]).is_file()
    ]


_PROBE = b"""<!DOCTYPE html><iframe src="index.html?q=busbw"></iframe><img src="held" alt=""><script>
const look = setInterval(() => {
  const links = document.querySelector("iframe").contentDocument.querySelectorAll("a.md-search-result__link");
  if (!links.length) return;
  clearInterval(look);
  fetch("found", {method: "POST", body: [...links].map((link) => link.href).join("\\n")});
}, 20);
</script>"""
"""Searches in a frame, and tells the server what is found; until then an image keeps the page loading."""


class SearchedSite(ThreadingHTTPServer):
    """Serves the site, and a page that searches in it."""

    def __init__(self, site: Path) -> None:
        """Listen on a port of its own."""
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(site)))
        self.found: list[str] = []
        self.searched = Event()


class _Handler(SimpleHTTPRequestHandler):
    server: SearchedSite

    def do_GET(self) -> None:
        if self.path == "/held":
            self.server.searched.wait(60)
            self.send_error(404)
        elif self.path == "/probe":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(_PROBE)
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self.server.found = self.rfile.read(int(self.headers["Content-Length"])).decode().splitlines()
        self.server.searched.set()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write nothing to the terminal."""


@needs_chromium
def test_the_site_is_searched_without_a_network(site: Path, tmp_path: Path) -> None:
    """By the reader's own browser, with the files that `python -m http.server -d site` serves."""
    with SearchedSite(site) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        chromium(tmp_path, "--dump-dom", f"http://127.0.0.1:{server.server_port}/probe")
        server.shutdown()

    assert {"explanation/planner.html", "reference/glossary.html"} <= {
        re.sub(r"^http://[^/]+/|\?.*", "", address) for address in server.found
    }


@needs_chromium
@pytest.mark.parametrize("page", ["index.html", "reference/commands/wait.html"])
def test_the_site_is_searched_from_the_disk(site: Path, page: str, tmp_path: Path) -> None:
    """Opened as a file, where a browser runs no Worker of its own, a page finds what others say."""
    address = f"{(site / page).as_uri()}?q=busbw"
    seen = chromium(tmp_path, "--virtual-time-budget=20000", "--dump-dom", address)
    found = re.findall(r'<a href="([^"?]+)[^"]*" class="md-search-result__link"', seen)

    expected = {(site / place).as_uri() for place in ("explanation/planner.html", "reference/glossary.html")}

    assert expected <= {*found}
