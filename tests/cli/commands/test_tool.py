"""What the commands about arena-topo itself print, as
somebody looked at it: one file for each command line.
"""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.clusters import printed
from tests.cli.conftest import Invoke
from tests.output.golden import golden

PROFILE = "namespace: of-profile\nsubmit mpi:\n  image: train:1\n  env: [A=b, C=d]\n  gang: true\n"
DRY_RUN = "submit mpi --name=job --dry-run=client -o json"
NONE: dict[str, str] = {}

LINES: list[tuple[str, str, str, dict[str, str], str]] = [
    ("wrong-variable", f"{DRY_RUN} train", PROFILE, {"ARENA_TOPO_GPUS": "two"}, ""),
    ("wrong-profile", f"{DRY_RUN} --image=i train", "namespace: A B\n", NONE, ""),
    ("no-such-flag", f"{DRY_RUN} --image=i train", "submit mpi:\n  imgae: x\n", NONE, ""),
    ("two-values", f"{DRY_RUN} train", "submit mpi:\n  image: [a, b]\n", NONE, ""),
    ("no-yaml", f"{DRY_RUN} --image=i train", "a: [\n", NONE, ""),
    ("view-json", "config view -n typed -o json", PROFILE, {"ARENA_TOPO_TOKEN": "secret"}, "namespace=unseen\nimagePullSecrets=a,b\n"),
    ("view-no-such-flag", "config view", "imgae: x\n", NONE, ""),
    ("view-no-such-command", "config view", "summit:\n  image: x\n", NONE, ""),
    ("view-wrong-number", "config view", "submit mpi:\n  gpus: x\n", NONE, ""),
    ("view-wrong-switch", "config view", "delete:\n  wait: perhaps\n", NONE, ""),
    ("view-nothing", "config view", "", {"ARENA_TOPO_SERVICE_HOST": "10.0.0.1"}, ""),
    ("view-of-no-command", "config view summit", "", NONE, ""),
    ("agent-without-a-node", "agent run", "", NONE, ""),
    ("agent-often", "agent run --node=a --interval=often", "", NONE, ""),
    ("agent-always", "agent run --node=a --interval=0", "", NONE, ""),
    ("agent-without-an-image", "agent manifest", "", NONE, ""),
    ("controller-soon", "controller run --reserve-after=soon", "", NONE, ""),
    ("controller-port", "controller run --metrics-port=70000", "", NONE, ""),
    ("controller-without-an-image", "controller manifest", "", NONE, ""),
]  # fmt: skip


def configure(home: Path, profile: str, arena: str = "") -> None:
    """Write the user's profile, and Arena's own configuration."""
    for file, text in (("config/arena-topo/config.yaml", profile), (".arena/config", arena)):
        if text:
            (home / file).parent.mkdir(parents=True)
            (home / file).write_text(text)


@pytest.mark.parametrize(
    ("name", "line", "profile", "variables", "arena"), LINES, ids=[name for name, *_ in LINES]
)
def test_a_command_says_what_it_said(
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    line: str,
    profile: str,
    variables: dict[str, str],
    arena: str,
) -> None:
    """With the place of each value, and of each that is wrong:
    the flag, the variable, or the file and its line.
    """
    configure(tmp_path, profile, arena)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    text = printed(invoke(*shlex.split(line))).replace(str(tmp_path), "~")

    assert golden(f"cli/tool/{name}.txt", text) == text


@pytest.mark.parametrize(
    ("typed", "variable", "profile", "namespace"),
    [
        ("-n typed", "of-variable", PROFILE, "typed"),
        ("", "of-variable", PROFILE, "of-variable"),
        ("", "", PROFILE, "of-profile"),
        ("--image=train:1", "", "", "of-arena"),
    ],
    ids=["flag", "variable", "profile", "Arena's file"],
)
def test_flag_then_variable_then_profile_then_arenas_file(
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    typed: str,
    variable: str,
    profile: str,
    namespace: str,
) -> None:
    """And the flags of one command from its section; Arena's users keep their secrets."""
    configure(tmp_path, profile, "namespace=of-arena\nimagePullSecrets=a,b\n")
    monkeypatch.setenv("ARENA_TOPO_NAMESPACE", variable)
    job = json.loads(invoke(*DRY_RUN.split(), *typed.split(), "train").out)
    pod = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}

    assert (namespace, "train:1") == (job["metadata"]["namespace"], pod["containers"][0]["image"])
    assert [{"name": "a"}, {"name": "b"}] == pod["imagePullSecrets"]
    assert bool(profile) == ({"A": "b", "C": "d"}.items() <= env.items())


@pytest.mark.parametrize(
    ("line", "count", "there", "absent"),
    [
        ("agent manifest --image=a:1 -n gpu --interval=60", 6, ['kind: "DaemonSet"', '- "patch"'], "list"),
        ("controller manifest --image=a:1 --reserve-after=10m", 12, ['- "600s"'], "9090"),
        ("controller manifest --image=a:1 --no-policy", 10, ["Deployment"], "AdmissionPolicy"),
        (
            "controller manifest --image=a:1 --metrics-port=9090",
            12,
            ['prometheus.io/port: "9090"', "containerPort: 9090", '- "--metrics-port"\n'],
            "600s",
        ),
    ],
    ids=["agent", "controller", "no policy", "metrics"],
)
def test_a_manifest_is_a_list_of_objects(
    invoke: Invoke, line: str, count: int, there: list[str], absent: str
) -> None:
    """For kubectl apply, with the flags that its pods run with and the rights that they need."""
    outcome = invoke(*line.split())

    assert (0, count) == (outcome.code, outcome.out.count("apiVersion:"))
    assert [] == [words for words in there if words not in outcome.out]
    assert absent not in outcome.out


def test_a_wrong_profile_does_not_stop_help(invoke: Invoke, tmp_path: Path) -> None:
    """Which tells what would be right."""
    configure(tmp_path, "namespace: A B\n")

    assert 0 == invoke("submit", "mpi", "--help").code


def test_view_of_a_command_has_all_its_flags(invoke: Invoke, tmp_path: Path) -> None:
    """Those that are not set have their defaults, and a token that is not set is not hidden."""
    configure(tmp_path, PROFILE)
    lines = [line.split() for line in invoke("config", "view", "submit", "mpi").out.splitlines()]

    assert ["FLAG", "VALUE", "FROM", "FOR"] == lines[0]
    assert ["--retry", "0", "default", "submit", "mpi"] in lines
    assert ["--token", "default", "submit", "mpi"] in lines
    assert ["--image", "train:1"] in [line[:2] for line in lines]


def test_metrics_without_their_package_say_what_to_install(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything else is done."""
    monkeypatch.setattr("arena_topo.extras.find_spec", lambda _: None)

    assert (
        "--- stderr\nerror: --metrics-port needs prometheus_client, which is not installed\n"
        "hint: in the checkout of arena-topo: pip install '.[controller]'\n--- exit code 1\n"
    ) == printed(invoke("controller", "run", "--metrics-port=9090"))
