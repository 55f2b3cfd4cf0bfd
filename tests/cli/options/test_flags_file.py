"""Flags in a file are the flags that would be typed, and what is wrong in it has a line."""

import io
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Invoke
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.e2e.arena import Outcome
from tests.examples import examples
from tests.paths import DATA, ROOT

V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"

DRY = ("--dry-run=client", "-o", "json")
FULL = [
    "--name=job",
    "--image=i",
    "--workers=3",
    "--gpus=2",
    "--gang",
    "--gputopology=true",
    "--rdma=false",
    "-e",
    "A=1",
    "--env=B=1e-3",
    "-d",
    "pvc:/data",
    "-l",
    "team=x",
    "--toleration=all",
    "--pin=nodes",
    "--require-topology=rack",
    "--running-timeout=90",
    "-n",
    "ml",
    "--hostIPC",
]


def saved(invoke: Invoke, file: Path, *args: str) -> str:
    """Save what is typed, and return the file's text."""
    outcome = invoke("submit", "mpi", *args[:-1], "--save", str(file), args[-1])
    assert (0, "") == (outcome.code, outcome.out), outcome.err
    assert f"saved, not submitted. Submit it: arena-topo submit -f {file}." in outcome.err
    return file.read_text()


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_a_saved_command_line_makes_the_same_job(
    invoke: Invoke, tmp_path: Path, documented: DocumentedJob
) -> None:
    """All documented ones."""
    file = tmp_path / "job.yaml"
    saved(invoke, file, *documented.argv[2:])
    typed, from_file = invoke(*documented.argv, *DRY), invoke("submit", "-f", str(file), *DRY)

    assert (0, typed.out) == (from_file.code, from_file.out)


def test_every_kind_of_flag_is_saved_and_read(invoke: Invoke, tmp_path: Path) -> None:
    """Switches, numbers, repeated ones, short ones; connections and what is done with the job are not."""
    file = tmp_path / "job.yaml"
    text = saved(invoke, file, *FULL, "--context=", "--wait=30m", "mpirun -np 4 t")
    typed = invoke("submit", "mpi", *FULL, *DRY, "mpirun -np 4 t")
    from_file = invoke("submit", "mpi", "-f", str(file), *DRY)

    assert (0, typed.out) == (from_file.code, from_file.out), from_file.err
    assert "workers: 3\n" in text
    assert 'env:\n- "A=1"\n- "B=1e-3"\n' in text
    assert "context" not in text
    assert "wait" not in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), min_size=1, max_size=3
    )
)
def test_the_words_of_a_command_come_back_as_they_were(
    invoke: Invoke, tmp_path: Path, words: list[str]
) -> None:
    """Whatever YAML would make of them."""
    file = tmp_path / "job.yaml"
    base = ("submit", "mpi", "--name=job", "--image=i")
    assert 0 == invoke(*base, f"--save={file}", "--", *words).code
    typed, from_file = invoke(*base, *DRY, "--", *words), invoke("submit", "mpi", "-f", str(file), *DRY)

    assert (0, typed.out) == (from_file.code, from_file.out), from_file.err


def test_what_is_typed_comes_before_the_file(invoke: Invoke, tmp_path: Path) -> None:
    """A flag of one value replaces it, one of several adds to it, and a command stands for the file's."""
    file = tmp_path / "job.yaml"
    file.write_text("name: a\nimage: i\nworkers: 2\nenv: [A=1]\ncommand: old\n")
    outcome = invoke("submit", "mpi", "-f", str(file), "--workers=5", "-e", "B=2", "--save=-", "new")

    assert (
        'job: "mpi"\nname: "a"\nimage: "i"\nworkers: 5\nenv:\n- "A=1"\n- "B=2"\ncommand: "new"\n'
        == outcome.out
    ), outcome.err


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("wokers: 4", "FILE:1: there is no flag wokers", "did you mean workers?"),
        ("\n\ngputoplogy: true", "FILE:3: there is no flag gputoplogy", "did you mean gputopology?"),
        ("comand: x", "FILE:1: there is no flag comand", "did you mean command?"),
        ("measured: m.yaml", "FILE:1: '--measured' is not supported", "agent run"),
        ("objective: balanced", "FILE:1: '--objective=balanced' is not supported", "--objective=pack"),
        ("zzzzzz: 1", "FILE:1: there is no flag zzzzzz", "--help-all lists the flags"),
        ("workers: four", "FILE:1: --workers: 'four' is not a whole number", ""),
        ("memory: lots", "FILE:1: --memory: 'lots' is not a quantity", ""),
        ("env: [A]", "FILE:1: --env: 'A' is not NAME=VALUE", ""),
        ("name: a\nname: b", "FILE:2: name is given twice", ""),
        ("workers: [1, 2]", "FILE:1: --workers takes one value, and 2 are given", ""),
        ("workers: {a: 1}", "FILE:1: workers must be a value, or a list of values", ""),
        ("token: t", "FILE:1: token says nothing of a job", ""),
        ("save: x", "FILE:1: save says nothing of a job", ""),
        ("command: [a, b]", "FILE:1: command is one string", "argv"),
        ("command: a\nargv: [a]", "FILE:2: the job's command is given twice", ""),
        ("- a", "FILE:1: not a list of FLAG: VALUE", ""),
        ("a: [", "not valid YAML", ""),
    ],
)
def test_what_is_wrong_in_a_file_has_a_line(
    invoke: Invoke, tmp_path: Path, text: str, message: str, hint: str
) -> None:
    """One clear error, and where it may be a slip, what was meant."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    outcome = invoke("submit", "mpi", "-f", str(file), *DRY)

    assert (2, "") == (outcome.code, outcome.out)
    assert message.replace("FILE", str(file)) in outcome.err
    assert hint in outcome.err


def test_a_file_that_is_not_there_is_named(invoke: Invoke) -> None:
    """As any other file."""
    outcome = invoke("submit", "mpi", "-f", "/nowhere")

    assert 2 == outcome.code
    assert "--file: /nowhere cannot be read" in outcome.err


def test_nothing_is_saved_that_could_not_be_submitted(invoke: Invoke, tmp_path: Path) -> None:
    """The file would be of no use."""
    file = tmp_path / "job.yaml"
    outcome = invoke("submit", "mpi", "--name=A", "--image=i", f"--save={file}", "c")

    assert 2 == outcome.code
    assert not file.exists()


@pytest.mark.parametrize("text", ["- workers: 4\n", "just words\n", "workers: {a: {b: c}}\n", "workers: [\n"])
def test_what_is_no_list_of_flags_is_told_what_such_a_file_looks_like(
    invoke: Invoke, tmp_path: Path, text: str
) -> None:
    """And nothing of a profile, which is another file."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    outcome = invoke("submit", "mpi", "-f", str(file), *DRY)

    assert 2 == outcome.code
    assert f"{file}:" in outcome.err
    assert "hint: such a file has a line for each flag, such as workers: 4" in outcome.err
    assert "profile" not in outcome.err


def test_a_saved_submit_can_be_planned(invoke: Invoke, tmp_path: Path) -> None:
    """With or without its kind on the command line, and from
    stdin; what says how it is created changes nothing.
    """
    file = tmp_path / "job.yaml"
    saved(
        invoke,
        file,
        "--name=a",
        "--image=i",
        "--workers=2",
        "--gpus=1",
        "--gang",
        "--queue=q",
        "--pin=nodes",
        "c",
    )
    flags = ("--from", str(V100), "-o", "json")
    typed = invoke("plan", "mpi", "--name=a", "--workers=2", "--gpus=1", *flags)
    assert 0 == typed.code, typed.err

    for words in (("plan", "-f", str(file)), ("plan", "mpi", "-f", str(file))):
        assert (0, typed.out) == ((planned := invoke(*words, *flags)).code, planned.out), planned.err


@pytest.mark.parametrize("verb", ["submit", "plan"])
def test_flags_on_stdin_are_told_from_a_manifest(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """What was read to see what it is, is read again by the command."""

    def given(text: str) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return invoke(verb, "-f", "-", *(("--from", str(V100)) if verb == "plan" else DRY))

    assert 0 == given("job: mpi\nname: a\nimage: i\ncommand: c\n").code
    assert "stdin:2: there is no flag wokers" in given("job: mpi\nwokers: 2\n").err
    assert "unsupported kind: Foo (no apiVersion)" in given("kind: Foo\n").err


@pytest.mark.parametrize("words", [("sleep", "-n", "600"), ("./train.sh", "x", "-e", "5=1")])
def test_flags_of_a_command_that_is_not_quoted_are_named(invoke: Invoke, words: tuple[str, ...]) -> None:
    """They are read as this program's; in quotes or after -- nothing is said."""
    job = ("submit", "mpi", "--name=a", "--image=i", *DRY)

    assert (
        f"is read as a flag of arena-topo: put the job's command in quotes, or after --, if it is {words[0]}'s"
        in (invoke(*job, *words).err)
    )
    for quoted in ((" ".join(words),), ("--", *words), (" ".join(words), "-e", "A=1")):
        assert "read as a flag" not in invoke(*job, *quoted).err


def test_the_page_on_ci_saves_plans_and_submits(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its lines are typed one after the other, without a cluster: the machine of a file, and a dry run."""
    monkeypatch.chdir(tmp_path)
    _, _, section = (ROOT / "docs" / "how-to" / "ci.md").read_text().partition("## Read flags from a file")
    lines = [shlex.split(line)[2:] for line in section.splitlines() if line.startswith("$ arena-topo ")]
    save, plan, submit = lines[:3]

    assert (0, "") == ((saving := invoke(*save)).code, saving.out), saving.err
    assert 0 == (planned := invoke(*plan, "--from", str(V100))).code, planned.err
    submit.remove("--follow")
    assert 0 == (submitted := invoke(*submit, *DRY)).code, submitted.err
    assert '"name": "nightly"' in submitted.out
