"""Templates are found in their order, extended by users, and kept in their place."""

from pathlib import Path

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.manifest.render import RenderContext, render
from arena_topo.manifest.templates import as_json, packaged, render_apart, render_template
from arena_topo.model.job import JobSpec
from arena_topo.model.text.yaml import load

NAME = "mpijob.v2beta1.yaml.j2"
JOB = JobSpec(name="a", namespace="b", image="c", command=("d",))
MINIMAL = 'apiVersion: "kubeflow.org/v2beta1"\nkind: "MPIJob"\nmetadata: {name: %s}\nspec: {}\n'


def test_all_kinds_have_a_template() -> None:
    """In the package or next to it."""
    mpijobs = (f"mpijob.{version}.yaml.j2" for version in ("v1", "v1alpha1", "v2beta1"))
    others = {
        "pytorchjob.v1.yaml.j2",
        "tfjob.v1.yaml.j2",
        "trainjob.v1alpha1.yaml.j2",
        "jobset.v1alpha2.yaml.j2",
        "job.v1.yaml.j2",
    }
    assert {"_pod.yaml.j2", *others, *mpijobs} == {path.name for path in packaged().iterdir()}


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n{{ 1 // 0 }}", "template mpijob.v2beta1.yaml.j2 line 2: ZeroDivisionError"),
        ("{{ job.name + 1 }}", "line 1: TypeError"),
        ("{{ job.name.nothing() }}", "has no attribute 'nothing'"),
        ("{{ 10 ** 5000 }}", "ValueError: Exceeds the limit"),
        ("{% include 'mpijob.v2beta1.yaml.j2' %}", "it includes itself, or nests too deeply"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "it includes itself, or nests too deeply"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "takes more than 3 s to render"),
        pytest.param(
            "{{ lipsum(n=100000) }}", "takes more than 3 s to render",
            marks=pytest.mark.full("a second template that computes for all of its three seconds"),
        ),
        ("{{ range(10 ** 12) | list }}", "Range too big"),
        ("{{ 'x' * 10 ** 10 }}", "takes more than 512 MiB to render"),
        ("{{ '%0999999999d' % 1 }}", "takes more than 512 MiB to render"),
        ("{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}", "512 MiB"),
        ("{% for a in range(99999) %}{{ 'x' * 100 }}{% endfor %}", "renders to more than 4 MiB"),
    ],
    ids=["division", "type", "attribute", "digits", "include", "macro", "loops", "filler", "range", "times", "format", "doubling", "text"],
)  # fmt: skip
def test_a_template_without_an_end_has_one(tmp_path: Path, text: str, words: str) -> None:
    """What an expression raises is told with its line, and
    time and memory are bounded by the operating system.
    """
    (tmp_path / NAME).write_text(text)
    with pytest.raises(DocumentError, match="template") as caught:
        # A busy machine may give it little of the processor: the time by the clock has a test of its own.
        render_apart(NAME, {"job": JOB}, str(tmp_path), {}, wall_seconds=300)

    assert words in caught.value.message
    assert len(caught.value.message) < 500


def test_a_template_has_a_time_by_the_clock_too(tmp_path: Path) -> None:
    """On a machine that gives it no processor."""
    (tmp_path / NAME).write_text("{{ lipsum(n=100000) }}")
    with pytest.raises(DocumentError, match="takes more than 3 s to render"):
        render_apart(NAME, {}, str(tmp_path), {}, wall_seconds=0.05)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("metadata: [a]\nspec: {}", "metadata must be a mapping"),
        ("metadata: text\nspec: {}", "metadata must be a mapping"),
        ("spec: {}", "metadata is missing"),
        ("metadata: {name: 5}\nspec: {}", "metadata.name is 5, expected a name"),
        ("metadata: {labels: [a]}\nspec: {}", "metadata.labels must be a mapping"),
        ("metadata: {annotations: {a: 1}}\nspec: {}", "metadata.annotations.a is 1, expected a string"),
        ("metadata: {name: a}", "spec is missing"),
        ("metadata: {name: a}\nspec: 5", "spec must be a mapping"),
        (
            "metadata: {name: a}\nspec: {mpiReplicaSpecs: {Worker: {replicas: many}}}",
            "spec.mpiReplicaSpecs.Worker.replicas is 'many', expected a whole number from 0",
        ),
        (
            "metadata: {name: a}\nspec: {mpiReplicaSpecs: {Worker: {template: {spec: {containers: [null]}}}}}",
            "spec.mpiReplicaSpecs.Worker.template.spec.containers[0] must be a mapping",
        ),
    ],
)
def test_an_object_of_another_shape_is_refused(tmp_path: Path, fields: str, words: str) -> None:
    """Before anything looks into it."""
    (tmp_path / "mine.j2").write_text(f'apiVersion: "kubeflow.org/v2beta1"\nkind: "MPIJob"\n{fields}\n')
    with pytest.raises(DocumentError) as caught:
        render(JOB, RenderContext(), template=str(tmp_path / "mine.j2"))

    assert f"renders a job that cannot be: {words}" in caught.value.message


def test_a_module_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of a template takes its modules from where this one has them."""
    (tmp_path / "jinja2.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "mine.j2").write_text(MINIMAL % "x")
    monkeypatch.chdir(tmp_path)

    assert "x" == render(JOB, RenderContext(), template="mine.j2").job["metadata"]["name"]


def test_a_missing_template_is_told() -> None:
    """By its path."""
    with pytest.raises(UsageError, match="template /nowhere cannot be read"):
        render(JOB, RenderContext(), template="/nowhere")


def test_a_template_whose_name_is_too_long_for_a_file_is_told() -> None:
    """As one that is missing."""
    with pytest.raises(UsageError, match="cannot be read"):
        render(JOB, RenderContext(), template="a" * 300)


@pytest.mark.parametrize("text", ["😀", "\x7f", "\x85", "\u2028", "é", '"', "\\", "\n", "\x1b"])
def test_the_filter_writes_what_yaml_reads(text: str) -> None:
    """Characters beyond the basic plane and control characters included."""
    assert text == load(as_json(text), name="it")
    assert as_json(text).isascii()
