"""Templates are found in their order, extended by users, and kept in their place."""

from pathlib import Path

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.manifest.render import RenderContext, render
from arena_topo.manifest.templates import as_json, packaged, render_template
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.notation.yaml_documents import load

NAME = "mpijob.v2beta1.yaml.j2"
JOB = JobSpec(name="a", namespace="b", image="c", command=("d",))
MINIMAL = 'apiVersion: "kubeflow.org/v2beta1"\nkind: "MPIJob"\nmetadata: {name: %s}\n'


def test_all_versions_have_a_template() -> None:
    """In the package or beside it."""
    assert {"_pod.yaml.j2", *(f"mpijob.{version}.yaml.j2" for version in ("v1", "v1alpha1", "v2beta1"))} == {
        path.name for path in packaged().iterdir()
    }


def test_the_first_hit_wins(tmp_path: Path) -> None:
    """Given on the command line, then the environment's folders in order, then the user's folder."""
    folders = {name: tmp_path / name for name in ("given", "first", "second", "home/arena-topo/templates")}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / NAME).write_text(name)
    env = {
        "ARENA_TOPO_TEMPLATES": f"{folders['first']}:{folders['second']}",
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
    }

    assert "given" == render_template(NAME, {}, user_template=str(folders["given"]), env=env)
    assert "first" == render_template(NAME, {}, env=env)
    (folders["first"] / NAME).unlink()
    assert "second" == render_template(NAME, {}, env=env)
    (folders["second"] / NAME).unlink()
    assert "home/arena-topo/templates" == render_template(NAME, {}, env=env)


def test_one_file_stands_for_the_version_in_use(tmp_path: Path) -> None:
    """Whatever its name."""
    file = tmp_path / "mine.j2"
    file.write_text(MINIMAL % "{{ (job.name + '-mine') | q }}")

    assert "a-mine" == render(JOB, RenderContext(), template=str(file)).job["metadata"]["name"]


def test_a_users_template_builds_on_the_packaged_one(tmp_path: Path) -> None:
    """By its name with builtin: before it."""
    (tmp_path / NAME).write_text('{% include "builtin:mpijob.v2beta1.yaml.j2" %}\nstatus: {mine: true}\n')
    job = render(JOB, RenderContext(), template=str(tmp_path)).job

    assert ("MPIJob", {"mine": True}) == (job["kind"], job["status"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{% if %}", "line 1"),
        ("{{ ().__class__.__bases__ }}", "unsafe"),
        ("a: [", "is not valid YAML"),
        ("just text", "does not render to one Kubernetes object"),
        ("{% include '/etc/passwd' %}", "/etc/passwd"),
    ],
    ids=["undefined name", "syntax", "escape attempt", "no YAML", "no object", "foreign file"],
)
def test_a_wrong_template_is_named_with_its_fault(tmp_path: Path, text: str, words: str) -> None:
    """One clear error, and nothing is evaluated that should not be."""
    file = tmp_path / "mine.j2"
    file.write_text(text)
    with pytest.raises(DocumentError, match="template") as caught:
        render(JOB, RenderContext(), template=str(file))
    assert words in caught.value.message


def test_a_missing_template_is_told() -> None:
    """By its path."""
    with pytest.raises(UsageError, match="template /nowhere cannot be read"):
        render(JOB, RenderContext(), template="/nowhere")


@pytest.mark.parametrize("text", ["😀", "\x7f", "\x85", "\u2028", "é", '"', "\\", "\n", "\x1b"])
def test_the_filter_writes_what_yaml_reads(text: str) -> None:
    """Characters beyond the basic plane and control characters included."""
    assert text == load(as_json(text), name="it")
    assert as_json(text).isascii()
