"""Find phrases that a native engineer would not write: ``python -m tools.words``.

``tools/words.toml`` lists them, each with what to write instead. Judged are the comments, docstrings and
other strings of Python modules, and pages of Markdown without their blocks of code.
"""

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_LIST = ROOT / "tools" / "words.toml"
# Since Python 3.12 the text of an f-string is a token of its own.
_TEXT = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase at a line of a file, and what to write instead."""

    path: str
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase!r}: write {self.instead}"


def read(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the phrases and the files that are not judged, with the reasons, of a list in TOML."""
    document = tomllib.loads(text)
    return document["words"], document.get("exceptions", {})


def texts(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a file that are judged, each with the number of its first line."""
    if path.endswith(".md"):
        fenced = False
        for number, line in enumerate(source.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            # Indented by four is a block of code as well.
            if not fenced and not line.startswith("    "):
                yield number, line
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _TEXT:
            yield token.start[0], token.string


def findings(path: str, source: str, words: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what in *source* is on the list *words*.

    >>> [str(found) for found in findings("a.md", "one beside the other", {"beside": "next to"})]
    ["a.md:1: 'beside': write next to"]
    """
    pattern = re.compile(rf"\b(?:{'|'.join(map(_spaced, words))})\b", re.IGNORECASE)
    for first, text in texts(path, source):
        for match in pattern.finditer(text):
            phrase = " ".join(match[0].lower().split())
            yield Finding(path, first + text.count("\n", 0, match.start()), phrase, words[phrase])


def _spaced(phrase: str) -> str:
    # A phrase may begin in one line of a docstring and end in the next.
    return r"\s+".join(map(re.escape, phrase.split()))


def judged(root: Path, exceptions: Mapping[str, str]) -> list[str]:
    """Return the files of *root* that are judged: modules and pages that git knows or does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    listed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return [path for path in listed if path not in exceptions and (root / path).exists()]


def main() -> int:
    """Print what is found, and return 1 where anything is."""
    words, exceptions = read(_LIST.read_text("utf-8"))
    found = [
        finding
        for path in judged(ROOT, exceptions)
        for finding in findings(path, (ROOT / path).read_text("utf-8"), words)
    ]
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
