"""Build, check and tag a release: ``python -m tools.release 1.2.3``, or ``make release VERSION=1.2.3``.

The version goes into the package, the changelog's *Unreleased* becomes its section, everything is tested,
built and tried, and only then committed and tagged. Whatever fails leaves the checkout as it was. Nothing is
pushed or uploaded.
"""

import argparse
import datetime as dt
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tools.distribution import distribute

ROOT = Path(__file__).parent.parent
PACKAGE = "arena_topo/__init__.py"
CHANGELOG = "CHANGELOG.md"
BRANCH = "main"
_UNRELEASED = "## [Unreleased]\n"


class NotReleasable(Exception):
    """Why there is no release; the text is for the person who asked for it."""


@dataclass(frozen=True, slots=True)
class Release:
    """What is released, and when."""

    version: str
    date: dt.date

    @property
    def tag(self) -> str:
        """The tag's name, such as ``v1.2.3``."""
        return f"v{self.version}"


def main(argv: list[str] | None = None) -> int:
    """Release what the command line asks for and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("version", help="such as 1.2.3 or 1.2.3rc1")
    parser.add_argument(
        "--test", default=".ci/run", metavar="COMMAND", help="what must pass first; %(default)s by default"
    )
    args = parser.parse_args(argv)

    def verify() -> None:
        subprocess.run(shlex.split(args.test), cwd=ROOT, check=True)
        distribute(ROOT)

    today = dt.datetime.now(tz=dt.UTC).date()
    try:
        make_release(ROOT, Release(args.version, today), verify)
    except NotReleasable as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"no release: {shlex.join(map(str, error.cmd))} failed", file=sys.stderr)
        return 1
    print(f"tagged v{args.version}; publish it with:\n  git push origin {BRANCH} v{args.version}")
    print("  python -m twine upload dist/*.whl dist/*.tar.gz")
    print("  and attach dist/*.cdx.json, the bill of materials, to the release")
    return 0


def make_release(root: Path, release: Release, verify: Callable[[], None]) -> None:
    """Commit and tag *release* of the checkout *root* once *verify* returns; raise NotReleasable.

    Whatever *verify* raises continues to the caller, with the checkout as it was.
    """
    _check_repository(root, release)
    texts = {
        PACKAGE: with_version((root / PACKAGE).read_text(), release.version),
        CHANGELOG: with_section((root / CHANGELOG).read_text(), release),
    }
    message = f"arena-topo {release.version}\n\n{section(texts[CHANGELOG], release.version)}"
    with _undone_on_failure(root, texts):
        for path, text in texts.items():
            (root / path).write_text(text)
        verify()
        _check_changes(root, texts)
        _git(root, "commit", "--quiet", f"--message=Release {release.version}", "--", *texts)
        # The changelog's headings look like git's comments, which it would drop without --cleanup.
        _git(root, "tag", "--annotate", "--cleanup=whitespace", f"--message={message}", release.tag)


@contextmanager
def _undone_on_failure(root: Path, paths: Iterable[str]) -> Iterator[None]:
    start = _git(root, "rev-parse", "HEAD")
    try:
        yield
    except BaseException:
        # Other files are left alone: somebody may have begun to edit them while the tests ran.
        _git(root, "reset", "--quiet", "--soft", start)
        _git(root, "restore", f"--source={start}", "--staged", "--worktree", "--", *paths)
        raise


def with_version(package: str, version: str) -> str:
    """Return the text of the package's ``__init__`` with *version* in it."""
    text, count = re.subn(r'^__version__ = ".*"$', f'__version__ = "{version}"', package, flags=re.MULTILINE)
    if count != 1:
        raise NotReleasable(f"{PACKAGE} must have one line __version__ = ..., but has {count}")
    return text


def with_section(changelog: str, release: Release) -> str:
    """Return *changelog* with what is unreleased moved into a section of *release*."""
    if not section(changelog, "Unreleased"):
        raise NotReleasable(f"{CHANGELOG} says nothing under [Unreleased]")
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{release.version}] - {release.date}\n", 1)


def section(changelog: str, version: str) -> str:
    """Return what *changelog* says of *version*, without the heading; an empty string if it says nothing."""
    found = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _check_repository(root: Path, release: Release) -> None:
    branch = _git(root, "branch", "--show-current")
    if branch != BRANCH:
        raise NotReleasable(f"releases are made on {BRANCH}, and this is {branch or 'no branch'}")
    if changes := _git(root, "status", "--porcelain"):
        raise NotReleasable(f"the checkout has changes that are not committed:\n{changes}")
    version = _parsed(release.version)
    if version is None or release.version != str(version) or version.local or version.dev is not None:
        raise NotReleasable(f"{release.version!r} is not a version such as 1.2.3 or 1.2.3rc1")
    tagged = (_parsed(tag.removeprefix("v")) for tag in _git(root, "tag", "--list", "v*").splitlines())
    latest = max((known for known in tagged if known), default=None)
    if latest and version <= latest:
        raise NotReleasable(f"{version} does not come after {latest}, which is tagged")


def _check_changes(root: Path, expected: Iterable[str]) -> None:
    """Refuse what would be built and not committed."""
    changed = {line[3:] for line in _git(root, "status", "--porcelain", "-uall").splitlines()}
    if others := changed.difference(expected):
        raise NotReleasable(f"the checks changed {', '.join(sorted(others))}")


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _git(root: Path, *args: str) -> str:
    """Return what git prints, without the line end; raise NotReleasable with what it complains of."""
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReleasable(f"git {args[0]}: {done.stderr.strip()}")
    return done.stdout.rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
