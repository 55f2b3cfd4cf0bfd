"""What users rely on is named with the tests that hold it, and no test goes without a reason."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.promises import LIST, functions, main, read, sources, unexplained, unheld

BEFORE = {
    "tests/test_a.py": "def test_kept() -> None: ...\ndef test_moved() -> None: ...\ndef test_dropped() -> None: ...\n",
    "tests/test_b.py": "def test_one() -> None: ...\ndef test_two() -> None: ...\n",
    LIST: '[promises.submit]\n"A job runs." = ["tests/test_a.py"]\n"A job ends." = ["tests/test_b.py::test_one"]\n',
}
AFTER = {
    "tests/conftest.py": "def pytest_addoption(parser: object) -> None:\n    parser.addoption('--tier')\n",
    "tests/test_a.py": (
        "import pytest\n@pytest.mark.parametrize('x', [1, 2])\n"
        "def test_kept(x: int) -> None: ...\ndef test_new() -> None: ...\n"
    ),
    "tests/test_c.py": "def test_one() -> None: ...\ndef test_two() -> None: ...\ndef test_moved() -> None: ...\n",
    LIST: (
        '[promises.submit]\n"A job runs." = ["tests/test_a.py"]\n"A job ends." = ["tests/test_c.py::test_one"]\n'
        '[gone]\n"tests/test_a.py::test_moved" = "now tests/test_c.py::test_moved"\n'
        '"tests/test_a.py::test_dropped" = "the flag was removed"\n"tests/test_b.py" = "now tests/test_c.py"\n'
    ),
}


def write(root: Path, files: dict[str, str]) -> None:
    """Make *files* the work tree *root*."""
    for path in (root / "tests").glob("test_*.py"):
        path.unlink()
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a repository with a commit before and a work tree after."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    write(tmp_path, BEFORE)
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=Begin"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    write(tmp_path, AFTER)
    return tmp_path


def test_every_promise_is_held_by_tests_that_exist() -> None:
    """One at least, each by its name."""
    files = sources(ROOT)

    assert [] == unheld(read(files[LIST]), functions(files))


def test_no_promise_is_made_twice() -> None:
    """Nor is one held twice by the same test, by itself and by its file."""
    promises = list(read((ROOT / LIST).read_text()).items())
    sentences = Counter(promise for promise, _ in promises)
    twice = {
        test for _, named in promises for test in named if test.partition("::")[0] in set(named) - {test}
    }

    assert [] == [promise for promise, count in sentences.items() if count > 1]
    assert set() == twice
    assert all(len(named) == len(set(named)) for _, named in promises)


def test_the_list_has_the_cases_of_each_promise(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parameters count, and so does everything in a file that is named whole."""
    assert 0 == main([], tree)
    assert capsys.readouterr().out.splitlines() == [
        "submit",
        "  A job runs. (3 cases)",
        "        3 tests/test_a.py",
        "  A job ends. (1 cases)",
        "        1 tests/test_c.py::test_one",
        "2 promises, held by 4 of 6 cases",
    ]


def test_what_went_is_told_by_its_promise(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason that the list gives."""
    assert 0 == main(["--against", "HEAD"], tree)
    assert capsys.readouterr().out.splitlines() == [
        "4 tests and 0 promises went",
        "  A job runs.",
        "    tests/test_a.py::test_dropped: the flag was removed",
        "    tests/test_a.py::test_moved: now tests/test_c.py::test_moved",
        "  A job ends.",
        "    tests/test_b.py::test_one: now tests/test_c.py",
    ]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"tests/test_a.py::test_dropped" =', '"x" =', "tests/test_a.py::test_dropped: no reason"),
        ("the flag was removed", " ", "tests/test_a.py::test_dropped: no reason"),
        (
            "c.py::test_moved",
            "c.py::test_gone",
            "its reason names tests/test_c.py::test_gone, which does not",
        ),
        ('now tests/test_c.py"', 'now tests/test_a.py"', "tests/test_b.py::test_one: not in tests/test_a.py"),
        ("[gone]", '[gone]\n"tests/test_a.py::test_kept" = "r"', "test_kept: named as gone, and still here"),
        ('"A job ends."', '"A job stops."', "A job ends.: no reason"),
        ("c.py::test_one", "c.py::test_none", "tests/test_c.py::test_none: not there"),
        ('["tests/test_c.py::test_one"]', "[]", "A job ends.: not there"),
    ],
    ids=["unnamed", "blank", "nowhere", "elsewhere", "back", "promise", "unheld", "empty"],
)
def test_what_goes_without_a_reason_is_an_error(
    tree: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, error: str
) -> None:
    """And so are reasons and promises that name what does not exist."""
    (tree / LIST).write_text(AFTER[LIST].replace(old, new))

    assert 1 == main(["--against", "HEAD"], tree)
    assert error in capsys.readouterr().err


def test_a_commit_that_does_not_exist_is_an_error(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line of ours."""
    assert 1 == main(["--against", "nowhere"], tree)
    assert "error: git archive nowhere tests failed" in capsys.readouterr().err


def test_reasons_need_not_name_tests() -> None:
    """What no test holds any more has a reason in words."""
    assert [] == unexplained(["tests/test_a.py::test_x"], {"tests/test_a.py::test_x": "removed"}, set())
