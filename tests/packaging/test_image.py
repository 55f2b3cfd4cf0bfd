"""The documented image of arena-topo, as far as it can be checked where nothing builds images."""

import importlib.util
import json
import marshal
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from build import ProjectBuilder

from arena_topo.agent.manifests import agent_objects
from arena_topo.cli.app import COMMANDS
from arena_topo.controller.manifests import controller_objects
from arena_topo.model.objects import Object
from tests.paths import ROOT
from tests.ranks.dockerfile import instructions

DOCKERFILE = ROOT / "docs/how-to/image/arena-topo.Dockerfile"
VENV = "/opt/arena-topo"

Instruction = tuple[str, str]


@pytest.fixture(scope="module")
def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage; the last one is the image."""
    found: list[list[Instruction]] = []
    for name, rest in instructions(DOCKERFILE.read_text("utf-8")):
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


@pytest.fixture
def project() -> Object:
    """Return what pyproject.toml says of the package."""
    document: Object = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return document


def values(stage: list[Instruction], name: str) -> list[str]:
    """Return what follows each instruction called *name*."""
    return [rest for each, rest in stage if each == name]


def test_both_stages_have_one_python_of_a_version_that_is_tested(
    stages: list[list[Instruction]], project: Object
) -> None:
    """An environment is bound to the interpreter that made
    it, and a tag without a version moves to the next one.
    """
    (base,) = {rest.split(" AS ")[0] for stage in stages for rest in values(stage, "FROM")}
    version = base.removeprefix("python:").removesuffix("-slim")
    assert f"python:{version}-slim" == base
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_what_is_copied_is_enough_to_build_the_package(
    stages: list[list[Instruction]], tmp_path: Path
) -> None:
    """Each path exists, and a wheel of these alone has every module and template."""
    source = tmp_path / "src"
    for copied in values(stages[0], "COPY"):
        *paths, target = copied.split()
        folder = source / target.removeprefix("/src").strip("/")
        for path in paths:
            found = ROOT / path
            if found.is_dir():
                shutil.copytree(found, folder, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, folder)
    with zipfile.ZipFile(ProjectBuilder(source).build("wheel", tmp_path / "wheel")) as wheel:
        packed = set(wheel.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "arena_topo").rglob("*.py")}
    templates = {f"arena_topo/templates/{path.name}" for path in (ROOT / "templates").glob("*.j2")}
    assert modules | templates <= packed


def test_the_image_runs_the_installed_program_without_root(
    stages: list[list[Instruction]], project: Object
) -> None:
    """The environment that the first stage makes is copied
    whole, to where it was made, with what the agent needs.
    """
    build, image = stages
    made = " ".join(values(build, "RUN"))
    assert f"python -m venv {VENV}" in made
    assert '"/src[agent,controller]"' in made
    assert "agent" in project["optional-dependencies"]
    assert [f"--from=build {VENV} {VENV}"] == values(image, "COPY")
    (entry,) = values(image, "ENTRYPOINT")
    (program,) = json.loads(entry)
    assert f"{VENV}/bin" == str(Path(program).parent)
    assert Path(program).name in project["scripts"]
    (user,) = values(image, "USER")
    # A name would not do: the kubelet cannot tell whether it is root's.
    assert all(part.isdigit() and int(part) for part in user.split(":"))


def test_no_module_is_compiled_at_a_start(stages: list[list[Instruction]], tmp_path: Path) -> None:
    """Nobody may write into the image, and builders round the times of what they copy."""
    (command,) = (rest for rest in values(stages[0], "RUN") if "compileall" in rest)
    words = command.split("-m compileall")[1].split()
    module = tmp_path / "module.py"
    module.write_text("VALUE = 1\n")
    options = [word for word in words if not word.startswith("/")]
    subprocess.run([sys.executable, "-m", "compileall", *options, tmp_path], check=True)
    # What is compiled says 2, and the source says 1 and is of another time.
    compiled = Path(importlib.util.cache_from_source(str(module)))
    compiled.write_bytes(
        compiled.read_bytes()[:16] + marshal.dumps(compile("VALUE = 2", "module.py", "exec"))
    )
    os.utime(module, (0, 0))
    found = subprocess.run(
        [sys.executable, "-c", "import module; print(module.VALUE)"],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=True,
    )

    assert b"2\n" == found.stdout


def pods() -> list[Object]:
    """Return the pods that the printed manifests run of the image:
    the controller's, and the agent's with and without root.
    """
    objects = [
        *controller_objects("i:1"),
        *agent_objects("i:1", "n"),
        *agent_objects("i:1", "n", skip_users=True),
    ]
    return [
        item["spec"]["template"]["spec"] for item in objects if item["kind"] in ("Deployment", "DaemonSet")
    ]


def test_the_manifests_run_what_the_image_starts(stages: list[list[Instruction]]) -> None:
    """They give its entrypoint the arguments of a command,
    and run as its user wherever root is not needed.
    """
    (user,) = values(stages[-1], "USER")
    assert 3 == len(pods())
    for pod in pods():
        (container,) = pod["containers"]
        assert "command" not in container
        assert container["args"][0] in COMMANDS
        assert "run" == container["args"][1]
        context = pod["securityContext"]
        if context.get("runAsNonRoot"):
            assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
