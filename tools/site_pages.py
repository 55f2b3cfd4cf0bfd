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
    files.append(File.generated(config, "llms.txt", content=llms()))
    return files


_LLMS = """# arena-topo

> Submits gang-scheduled, topology-aware training jobs to any Kubernetes cluster, and says before where they will run, why, and how fast.

Ask `arena-topo plan` before `submit`; nothing is created by it. `-o json` prints documents with published schemas, `import arena_topo`
returns the same values in Python, and `arena-topo mcp` serves them to agents. Exit code 3 means that a job does not fit now.
"""
_FOLDERS = {"How to": "how-to", "Reference": "reference", "Explanation": "explanation"}


def llms() -> str:
    """Return what a model reads first (llmstxt.org): each page with its title and its first sentence."""
    parts = [_LLMS]
    for heading, folder in _FOLDERS.items():
        parts.append(f"## {heading}\n")
        for page in sorted((ROOT / "docs" / folder).rglob("*.md")):
            # The help of each command is behind their index.
            if page.parent.name == "commands" and page.name != "README.md":
                continue
            place = page.relative_to(ROOT / "docs").as_posix().replace("README.md", "index.html")
            parts.append(f"- [{_title(page)}]({place.replace('.md', '.html')}){_first_sentence(page)}")
        parts.append("")
    return "\n".join(parts)


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ").replace("`", "")


def _first_sentence(page: Path) -> str:
    """Return the first sentence of the first paragraph, after a colon; nothing without one."""
    paragraphs = page.read_text("utf-8").split("\n\n")[1:]
    text = next((" ".join(one.split()) for one in paragraphs if re.match(r"\w|`\w", one)), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "")
    sentence = re.split(r"(?<=[.:]) ", plain)[0].rstrip(":.")
    return f": {sentence}" if sentence else ""


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
