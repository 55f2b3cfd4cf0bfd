"""What mkdocs has to know of this project: which pages stand outside of ``docs/``, and where links between
pages lead.

``README.md`` is the site's first page. Links are written for readers of the repository; on the site they
differ:

    in README.md                 docs/how-to/logs.md      ->  how-to/logs.md
    in docs/how-to/placing.md    ../../CONTRIBUTING.md    ->  ../project/contributing.md
    in docs/how-to/placing.md    logs.md                  ->  logs.md
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "tests/ranks/README.md": "project/ranks.md",
    "tests/controlplane/README.md": "project/control-plane.md",
    "arena_topo/prediction/calibration.yaml": "reference/calibration.yaml",
}
"""Files outside of ``docs/`` that pages lead to, each with its place on the site."""
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that stand outside of ``docs/``. mkdocs calls it."""
    from mkdocs.structure.files import File

    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn the links of a page into those of the site. mkdocs calls it."""
    return site_links(markdown, page.file.src_uri)


def site_links(markdown: str, place: str) -> str:
    """Return *markdown*, the text of the page at *place* of the site, with the links that it has there."""
    source = next((source for source, own in PAGES.items() if own == place), f"docs/{place}")
    return _LINK.sub(lambda link: _site_link(link[0], source, place), markdown)


def _site_link(link: str, source: str, place: str) -> str:
    if "://" in link or link.startswith("mailto:"):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    on_site = PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
    return posixpath.relpath(on_site, posixpath.dirname(place)) if on_site else link
