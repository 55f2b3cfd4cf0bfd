"""``arena-topo list`` prints jobs in every form."""

import json

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call
from tests.objects import condition, mpijob, pod

JOBS = [
    mpijob("vgg16", workers=1),
    mpijob("resnet50", status={"conditions": [condition("Succeeded")]}),
]
LAUNCHER = pod("vgg16-launcher-x", role="launcher", hostIP="192.168.16.173")
LAUNCHER["metadata"]["labels"]["training.kubeflow.org/job-name"] = "vgg16"
WORKER = pod("vgg16-worker-0")
WORKER["metadata"]["labels"]["training.kubeflow.org/job-name"] = "vgg16"


def cluster(call: Call) -> Answer:
    """Serve one job that runs, and one that has succeeded."""
    if call.path.endswith("/mpijobs"):
        return Answer(body={"items": JOBS})
    return Answer(body={"items": [LAUNCHER, WORKER]})


def empty(_: Call) -> Answer:
    """Serve no job."""
    return Answer(body={"items": []})


def test_the_table_is_arenas(invoke: Invoke, serve: Serve) -> None:
    """To the byte, durations apart: those grow."""
    serve(cluster)
    outcome = invoke("list")

    assert 0 == outcome.code
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"] == lines[0]
    assert ["resnet50", "SUCCEEDED", "MPIJOB", "10m", "4", "N/A", "N/A"] == lines[1]
    assert ["vgg16", "RUNNING", "MPIJOB", lines[2][3], "1", "1", "192.168.16.173"] == lines[2]


def test_all_namespaces_have_a_column(invoke: Invoke, serve: Serve) -> None:
    """As the first one, also by Arena's old spelling."""
    serve(cluster)
    for flag in ("-A", "--all-namespaces", "--allNamespaces"):
        assert "default    resnet50" in invoke("ls", flag).out


def test_wide_has_more_columns_behind_arenas(invoke: Invoke, serve: Serve) -> None:
    """Scripts that count columns still find Arena's."""
    serve(cluster)

    assert ["NODE", "WORKERS", "PRIORITY", "REASON"] == invoke("list", "-o", "wide").out.splitlines()[
        0
    ].split()[-4:]


def test_an_empty_list_has_its_heading(invoke: Invoke, serve: Serve) -> None:
    """As in Arena; people learn on stderr where there is nothing."""
    serve(empty)
    outcome = invoke("list")

    assert (0, "no training jobs in namespace default\n") == (outcome.code, outcome.err)
    assert outcome.out.startswith("NAME  STATUS  TRAINER")
    assert "[]\n" == invoke("list", "-o", "json").out


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("name", "mpijob.kubeflow.org/resnet50\nmpijob.kubeflow.org/vgg16\n"),
        ('jsonpath={range .items[*]}{.name}{"\\n"}{end}', "resnet50\nvgg16\n"),
        ("custom-columns=NAME:.name,GPUS:.requestGPUs", "NAME       GPUS\nresnet50   4\nvgg16      1\n"),
    ],
)
def test_forms_for_scripts(invoke: Invoke, serve: Serve, form: str, expected: str) -> None:
    """As kubectl has them."""
    serve(cluster)

    assert expected == invoke("list", "-o", form).out


def test_a_document_is_arenas_list(invoke: Invoke, serve: Serve) -> None:
    """Of the documents that get prints."""
    serve(cluster)

    assert ["resnet50", "vgg16"] == [job["name"] for job in json.loads(invoke("list", "-o", "json").out)]


def test_jobs_are_sorted_by_any_field(invoke: Invoke, serve: Serve) -> None:
    """Ascending, as in kubectl."""
    serve(cluster)

    assert ["vgg16", "resnet50"] == [
        line.split()[0] for line in invoke("list", "--sort-by=.requestGPUs").out.splitlines()[1:]
    ]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-o", "xml"), "unknown output format 'xml'"),
        (("-o", "jsonpath"), "jsonpath needs an expression"),
        (("-o", "jsonpath={.a"), "is not a JSONPath template"),
        (("-o", "custom-columns=A"), "is not HEADING:PATH"),
        (("-w", "-o", "json"), "--watch prints a table, not json"),
        (("--sort-by", ".a["), "is not a JSONPath expression"),
        (("--sort-by", ".metadata.name"), "--sort-by: no job has a field .metadata.name"),
    ],
)
def test_wrong_usage_says_what(invoke: Invoke, serve: Serve, args: tuple[str, ...], words: str) -> None:
    """With the exit code of usage."""
    serve(cluster)
    outcome = invoke("list", *args)

    assert 2 == outcome.code
    assert words in outcome.err


def test_a_column_of_kubectls_that_no_job_has_gets_a_hint(invoke: Invoke, serve: Serve) -> None:
    """On stderr, and stdout is as kubectl's."""
    serve(cluster)
    outcome = invoke("list", "-o", "custom-columns=NAME:.metadata.name,S:.status")

    assert "<none>" == outcome.out.splitlines()[1].split()[0]
    assert (
        "hint: nothing has the field of NAME; the fields are those of -o json, such as .name" in outcome.err
    )
    assert "" == invoke("list", "-o", "custom-columns=NAME:.name").err


def test_colour_is_for_terminals(invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the columns where they are."""
    serve(cluster)
    plain = invoke("list").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = invoke("list").out

    assert "\x1b[32mRUNNING\x1b[0m" in coloured
    assert (
        plain.split("MPIJOB")[0]
        == coloured.replace("\x1b[32m", "").replace("\x1b[36m", "").replace("\x1b[0m", "").split("MPIJOB")[0]
    )
