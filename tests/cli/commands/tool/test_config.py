"""Flags get their values from variables and files, and `config view` says from which."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

DRY_RUN = ("submit", "mpi", "--name=job", "--dry-run=client", "-o", "json", "train")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Path of the user's profile, which has two flags."""
    path = tmp_path / "config" / "arena-topo" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("namespace: of-profile\nsubmit mpi:\n  image: train:1\n  env: [A=b, C=d]\n  gang: true\n")
    return path


@pytest.mark.parametrize(
    ("typed", "variable", "namespace"),
    [
        (("-n", "typed"), "of-variable", "typed"),
        ((), "of-variable", "of-variable"),
        ((), "", "of-profile"),
    ],
    ids=["flag", "variable", "file"],
)
@pytest.mark.usefixtures("profile")
def test_flag_then_variable_then_file(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, typed: tuple[str, ...], variable: str, namespace: str
) -> None:
    """And the flags of one command from its section."""
    monkeypatch.setenv("ARENA_TOPO_NAMESPACE", variable)
    outcome = invoke(*DRY_RUN, *typed)
    job = json.loads(outcome.out)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]

    assert namespace == job["metadata"]["namespace"]
    assert "train:1" == worker["spec"]["containers"][0]["image"]
    assert {"A": "b", "C": "d"}.items() <= {
        item["name"]: item["value"] for item in worker["spec"]["containers"][0]["env"]
    }.items()


def test_arenas_file_comes_last(invoke: Invoke, tmp_path: Path) -> None:
    """Its users keep their namespace and their secrets."""
    (tmp_path / ".arena").mkdir()
    (tmp_path / ".arena" / "config").write_text("namespace=of-arena\nimagePullSecrets=a,b\n")
    job = json.loads(invoke(*DRY_RUN, "--image=i").out)
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]

    assert "of-arena" == job["metadata"]["namespace"]
    assert [{"name": "a"}, {"name": "b"}] == pod["imagePullSecrets"]


def test_a_value_that_a_flag_does_not_take_is_told_with_its_place(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, profile: Path
) -> None:
    """The variable, or file and line; help is printed all the same."""
    monkeypatch.setenv("ARENA_TOPO_GPUS", "two")
    assert "$ARENA_TOPO_GPUS: Invalid value for '--gpus'" in invoke(*DRY_RUN).err
    monkeypatch.delenv("ARENA_TOPO_GPUS")
    profile.write_text("namespace: A B\n")
    outcome = invoke(*DRY_RUN, "--image=i")

    assert 2 == outcome.code
    assert f"error: {profile}:1: 'A B' is not a valid namespace" in outcome.err
    assert 0 == invoke("submit", "mpi", "--help").code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit mpi:\n  imgae: x\n", ":2: submit mpi has no flag --imgae"),
        ("submit mpi:\n  image: [a, b]\n", ":2: --image takes one value, and 2 are given"),
        ("a: [\n", ":2: not valid YAML"),
    ],
)
def test_a_profile_that_cannot_be_used_is_one_error(
    invoke: Invoke, profile: Path, text: str, message: str
) -> None:
    """With its line, and nothing is done."""
    profile.write_text(text)
    outcome = invoke(*DRY_RUN, "--image=i") if "image:" not in text else invoke(*DRY_RUN)

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {profile}{message}" in outcome.err


def test_view_says_where_each_value_comes_from(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, profile: Path, tmp_path: Path
) -> None:
    """Only what counts, by flag; a token is not shown."""
    monkeypatch.setenv("ARENA_TOPO_TOKEN", "secret")
    (tmp_path / ".arena").mkdir()
    arena = tmp_path / ".arena" / "config"
    arena.write_text("namespace=unseen\nimagePullSecrets=a,b\n")
    outcome = invoke("config", "view", "-n", "typed", "-o", "json")
    document = json.loads(outcome.out)

    assert {
        ("--namespace", "typed", "flag", ""),
        ("--token", "***", "$ARENA_TOPO_TOKEN", ""),
        ("--image", "train:1", f"{profile}:3", "submit mpi"),
        ("--env", "A=b,C=d", f"{profile}:4", "submit mpi"),
        ("--gang", "true", f"{profile}:5", "submit mpi"),
        ("--image-pull-secret", "a,b", f"{arena}:2", ""),
    } == {(row["flag"], row["value"], row["from"], row["command"]) for row in document["flags"]}
    assert (str(profile), str(arena)) == (document["profile"], document["arenaConfig"])


@pytest.mark.usefixtures("profile")
def test_view_of_a_command_has_all_its_flags(invoke: Invoke) -> None:
    """Those that are not set have their defaults, and a token that is not set is not hidden."""
    lines = [line.split() for line in invoke("config", "view", "submit", "mpi").out.splitlines()]

    assert ["FLAG", "VALUE", "FROM", "FOR"] == lines[0]
    assert ["--retry", "0", "default", "submit", "mpi"] in lines
    assert ["--image", "train:1"] in [line[:2] for line in lines]
    assert ["--token", "default", "submit", "mpi"] in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imgae: x\n", ":1: no command has a flag --imgae"),
        ("summit:\n  image: x\n", ":2: there is no command 'summit'"),
        ("submit mpi:\n  gpus: x\n", ":2: submit mpi: Invalid value for '--gpus'"),
        ("delete:\n  wait: perhaps\n", ":2: delete: "),
    ],
)
def test_view_checks_what_no_run_would_see(invoke: Invoke, profile: Path, text: str, message: str) -> None:
    """Every flag, every command and every value."""
    profile.write_text(text)
    outcome = invoke("config", "view")

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {profile}{message}" in outcome.err


def test_view_without_anything_says_how_to_begin(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is no flag's is named, and stops nothing."""
    monkeypatch.setenv("ARENA_TOPO_SERVICE_HOST", "10.0.0.1")
    outcome = invoke("config", "view")

    assert (0, "FLAG  VALUE  FROM  FOR\n") == (outcome.code, outcome.out)
    assert "$ARENA_TOPO_SERVICE_HOST is no flag's variable" in outcome.err
    assert "no flag is set" in outcome.err


def test_view_of_no_command_is_an_error(invoke: Invoke) -> None:
    """By its name."""
    outcome = invoke("config", "view", "summit")

    assert (2, True) == (outcome.code, "there is no command 'summit'" in outcome.err)
