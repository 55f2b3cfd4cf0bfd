"""A release is all or nothing: the files, the commit and the tag, or the checkout as it was."""

import datetime as dt
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools import release
from tools.release import NotReleasable, Release

DAY = dt.date(2026, 11, 21)
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- A verb.

## [1.0.0] - 2026-01-01

- The first.
"""
RELEASED = """# Changelog

## [Unreleased]

## [1.1.0] - 2026-11-21

### Added

- A verb.

## [1.0.0] - 2026-01-01

- The first.
"""


def git(root: Path, *args: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True, scope="module")
def identity() -> Iterator[None]:
    """Give git an author, whatever the machine's own settings are."""
    with pytest.MonkeyPatch.context() as patch:
        for key in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
            patch.setenv(f"GIT_{key}", "maintainer@example.org")
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a clone of a project whose version 1.0.0 is tagged."""
    folder = tmp_path_factory.mktemp("project")
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    git(folder, "clone", "--quiet", "origin.git", "checkout")
    root = folder / "checkout"
    git(root, "switch", "--quiet", "--orphan", "main")
    (root / "arena_topo").mkdir()
    (root / release.PACKAGE).write_text('"""A package."""\n\n__version__ = "1.0.0"\n')
    (root / release.CHANGELOG).write_text(CHANGELOG)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=Begin")
    git(root, "tag", "--annotate", "--message=1.0.0", "v1.0.0")
    git(root, "push", "--quiet", "origin", "main", "v1.0.0")
    return root


@pytest.fixture
def checkout(project: Path, tmp_path: Path) -> Path:
    """Copy the clone for one test."""
    return shutil.copytree(project, tmp_path / "checkout")


def passes() -> None:
    """Stand for tests and builds that pass."""


def state(root: Path) -> tuple[str, str, str]:
    """Return what a release changes: the commit, the changes next to it, and the tags."""
    return git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain"), git(root, "tag")


def test_a_release_is_committed(checkout: Path) -> None:
    """With its version in the package and its section in the changelog."""
    release.make_release(checkout, Release("1.1.0", DAY), passes)

    assert RELEASED == git(checkout, "show", f"HEAD:{release.CHANGELOG}") + "\n"
    assert '__version__ = "1.1.0"' in git(checkout, "show", f"HEAD:{release.PACKAGE}")
    assert ("Release 1.1.0", "") == (git(checkout, "log", "-1", "--format=%s"), state(checkout)[1])


def test_the_tag_is_annotated_with_the_changes(checkout: Path) -> None:
    """Headings included, which look like git's comments."""
    release.make_release(checkout, Release("1.1.0", DAY), passes)

    assert "tag" == git(checkout, "cat-file", "-t", "v1.1.0")
    assert git(checkout, "rev-parse", "HEAD") == git(checkout, "rev-parse", "v1.1.0^{commit}")
    assert "arena-topo 1.1.0\n\n### Added\n\n- A verb." == git(
        checkout, "tag", "--list", "--format=%(contents)", "v1.1.0"
    )


def test_nothing_is_pushed(checkout: Path) -> None:
    """Publishing is the maintainer's own step."""
    published = git(checkout, "ls-remote", "origin")

    release.make_release(checkout, Release("1.1.0", DAY), passes)

    assert published == git(checkout, "ls-remote", "origin")


def test_the_checks_see_the_new_version(checkout: Path) -> None:
    """What is built and tested is what is tagged."""
    seen: list[str] = []

    release.make_release(
        checkout, Release("1.1.0", DAY), lambda: seen.append((checkout / release.PACKAGE).read_text())
    )

    assert '__version__ = "1.1.0"' in seen[0]


def fails() -> None:
    """Stand for tests that fail."""
    raise subprocess.CalledProcessError(1, [".ci/run"])


def interrupted() -> None:
    """Stand for a maintainer who has waited long enough."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("verify", "error"), [(fails, subprocess.CalledProcessError), (interrupted, KeyboardInterrupt)]
)
def test_a_failed_check_leaves_the_checkout_as_it_was(
    checkout: Path, verify: Callable[[], None], error: type[BaseException]
) -> None:
    """No version, no commit and no tag."""
    before = state(checkout)

    with pytest.raises(error):
        release.make_release(checkout, Release("1.1.0", DAY), verify)

    assert before == state(checkout)


def test_a_tag_that_git_refuses_leaves_the_checkout_as_it_was(checkout: Path) -> None:
    """The commit goes too."""
    git(checkout, "config", "tag.gpgSign", "true")
    git(checkout, "config", "gpg.program", "false")
    before = state(checkout)

    with pytest.raises(NotReleasable, match="git tag"):
        release.make_release(checkout, Release("1.1.0", DAY), passes)

    assert before == state(checkout)


def test_checks_must_not_write_into_the_checkout(checkout: Path) -> None:
    """What was built then would not be what is committed."""

    def writes() -> None:
        (checkout / "generated.py").write_text("")

    with pytest.raises(NotReleasable, match=r"generated\.py"):
        release.make_release(checkout, Release("1.1.0", DAY), writes)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.0.0", "does not come after 1.0.0"),
        ("0.9", "does not come after 1.0.0"),
        ("v1.1.0", "is not a version"),
        ("1.1.0.dev1", "is not a version"),
        ("next", "is not a version"),
    ],
)
def test_a_version_comes_after_all_others(checkout: Path, version: str, message: str) -> None:
    """And is written as the package index writes it."""
    with pytest.raises(NotReleasable, match=message):
        release.make_release(checkout, Release(version, DAY), passes)


def test_only_what_is_committed_is_released(checkout: Path) -> None:
    """A change that is not committed would be in the wheel and not in the tag."""
    (checkout / "new.py").write_text("")

    with pytest.raises(NotReleasable, match=r"new\.py"):
        release.make_release(checkout, Release("1.1.0", DAY), passes)


def test_only_main_is_released(checkout: Path) -> None:
    """Not what somebody works on."""
    git(checkout, "switch", "--quiet", "--create", "feature")

    with pytest.raises(NotReleasable, match="this is feature"):
        release.make_release(checkout, Release("1.1.0", DAY), passes)


def test_a_release_without_changes_is_refused(checkout: Path) -> None:
    """Its users would read nothing in the changelog."""
    release.make_release(checkout, Release("1.1.0", DAY), passes)

    with pytest.raises(NotReleasable, match="nothing under"):
        release.make_release(checkout, Release("1.2.0", DAY), passes)


def test_this_project_can_be_released() -> None:
    """Its files are as the release expects them."""
    assert '__version__ = "9.9.9"' in release.with_version((ROOT / release.PACKAGE).read_text(), "9.9.9")
    assert "## [Unreleased]" in (ROOT / release.CHANGELOG).read_text()
