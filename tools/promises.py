"""List what users rely on and the tests that hold it: ``python -m tools.promises``.

``--against REF`` compares the work tree with another commit: every test and promise that REF has and the tree
lacks needs a reason in the section ``[gone]`` of the list, and the tests that a reason names have to exist.
"""

import argparse
import ast
import io
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = "tests/promises.toml"
_COLLECTED = re.compile(r"^(tests/\S+\.py::\w+)", re.MULTILINE)
_NAMED = re.compile(r"\btests/[\w/]+\.py(?:::\w+)?")


@dataclass(frozen=True, slots=True)
class Promises:
    """The tests that hold each promise, by its sentence and group, and why tests and promises went."""

    groups: Mapping[str, Mapping[str, list[str]]]
    gone: Mapping[str, str]

    def items(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each promise with the tests that hold it."""
        for group in self.groups.values():
            yield from group.items()


def read(text: str) -> Promises:
    """Return the list that *text* is, in TOML; raise ValueError where it is none."""
    document = tomllib.loads(text)
    return Promises(document.get("promises", {}), document.get("gone", {}))


def sources(root: Path) -> dict[str, str]:
    """Return the list and the test modules of the work tree *root*, by path."""
    paths = [*(root / "tests").rglob("test_*.py"), root / LIST]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths if path.exists()}


def sources_at(root: Path, ref: str) -> dict[str, str]:
    """Return the same of the commit *ref*, which is not checked out."""
    archive = subprocess.run(["git", "archive", ref, "tests"], cwd=root, check=True, stdout=subprocess.PIPE)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content and (member.name == LIST or Path(member.name).match("test_*.py")):
                found[member.name] = content.read().decode()
    return found


def functions(files: Mapping[str, str]) -> set[str]:
    """Return the node ids of the test functions in *files*, without parameters."""
    return {
        f"{path}::{node.name}"
        for path, text in files.items()
        if path.endswith(".py")
        for node in ast.parse(text, path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def unheld(promises: Promises, tests: Iterable[str]) -> list[str]:
    """Return what the list names and *tests* lack, and the promises that name nothing."""
    here = _with_files(tests)
    empty = [promise for promise, named in promises.items() if not named]
    return empty + [test for _, named in promises.items() for test in named if test not in here]


def unexplained(gone: Iterable[str], reasons: Mapping[str, str], tests: set[str]) -> list[str]:
    """Return which of *gone* has no reason, or one that names tests which do not exist.

    A file's reason is that of all its tests. Where it names another file, that has tests of the same names.
    """
    here = _with_files(tests)
    found = []
    for test in sorted(gone):
        path, _, name = test.partition("::")
        reason = reasons.get(test, reasons.get(path, "")).strip()
        named = _NAMED.findall(reason)
        absent = [each for each in named if each not in here]
        moved = [each for each in named if "::" not in each] if test not in reasons else []
        if not reason:
            found.append(f"{test}: no reason")
        elif absent:
            found.append(f"{test}: its reason names {', '.join(absent)}, which does not exist")
        elif moved and not any(f"{file}::{name}" in here for file in moved):
            found.append(f"{test}: not in {' or '.join(moved)}")
    return found


def cases(root: Path) -> Counter[str]:
    """Return how many cases each test of *root* has in both tiers, by its node id without parameters."""
    options = ("--collect-only", "--quiet", "--tier=full", "--rootdir=.", "-p", "no:randomly")
    command = [sys.executable, "-m", "pytest", *options, "tests"]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return Counter(_COLLECTED.findall(done.stdout))


def listing(promises: Promises, count: Counter[str]) -> Iterator[str]:
    """Yield the lines of the list, with the cases of each promise and test."""
    held = set()
    for group, members in promises.groups.items():
        yield group
        for promise, named in members.items():
            own = {each for test in named for each in count if each == test or each.startswith(f"{test}::")}
            held |= own
            yield f"  {promise} ({sum(count[each] for each in own)} cases)"
            for test in named:
                size = sum(count[each] for each in own if each == test or each.startswith(f"{test}::"))
                yield f"    {size:5} {test}"
    number = len(list(promises.items()))
    yield f"{number} promises, held by {sum(count[each] for each in held)} of {count.total()} cases"


def comparison(before: Mapping[str, str], promises: Promises, tests: set[str]) -> tuple[list[str], list[str]]:
    """Return what went since the files *before*, line by line, and what of it lacks a reason."""
    earlier = read(before.get(LIST, ""))
    gone = functions(before) - tests
    sentences = {promise for promise, _ in promises.items()}
    lost = {promise for promise, _ in earlier.items()} - sentences
    lines = [f"{len(gone)} tests and {len(lost)} promises went"]
    for promise, named in dict([*promises.items(), *earlier.items()]).items():
        went = sorted(test for test in gone if test in named or test.partition("::")[0] in named)
        if went or promise in lost:
            lines += [f"  {promise}", *(f"    {test}: {_reason(test, promises)}" for test in went)]
    back = [f"{each}: named as gone, and still here" for each in promises.gone if each in tests | sentences]
    return lines, unexplained(gone | lost, promises.gone, tests) + back


def _reason(test: str, promises: Promises) -> str:
    return promises.gone.get(test, promises.gone.get(test.partition("::")[0], "no reason"))


def _with_files(tests: Iterable[str]) -> set[str]:
    tests = set(tests)
    return tests | {test.partition("::")[0] for test in tests}


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Print the list of *root*, or what went since a commit, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.promises", description=__doc__)
    parser.add_argument("--against", metavar="REF", help="a commit to compare the work tree with")
    args = parser.parse_args(argv)
    files = sources(root)
    promises, tests = read(files[LIST]), functions(files)
    wrong = [f"{each}: not there" for each in unheld(promises, tests)]
    try:
        if args.against:
            lines, without = comparison(sources_at(root, args.against), promises, tests)
            wrong += without
        else:
            lines = list(listing(promises, cases(root)))
    except subprocess.CalledProcessError as error:
        print(f"error: {shlex.join(error.cmd)} failed", file=sys.stderr)
        return 1
    print(*lines, sep="\n")
    for each in wrong:
        print(f"error: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
