"""kubectl's JSONPath: what its printer makes of a document, ours makes too; and nothing that users type breaks it."""

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.output.jsonpath import parse_template, relaxed_path, sort_key, value_text

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
DOCUMENT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "vgg16", "labels": {"a.b/c": "dotted", "team": "vision"}, "annotations": {"x": "1"}},
    "status": "RUNNING",
    "gpus": 4,
    "ready": True,
    "share": 0.5,
    "instances": [
        {"name": "w0", "gpus": 1, "chief": False, "node": {"name": "n1"}},
        {"name": "w1", "gpus": 2, "chief": True, "node": {"name": "n2"}},
        {"name": "w2", "gpus": 2, "chief": False},
    ],
    "data": {"k": "v"},
}
TEMPLATES = [
    "{.metadata.name}",
    "name: {.metadata.name}, gpus: {.gpus}",
    "{.metadata.name}{'\\t'}{.status}{\"\\n\"}",
    "{$.metadata.name}",
    "{@.metadata.name}",
    "{['metadata'].name}",
    "{['metadata.name']}",
    r"{.metadata.labels.a\.b/c}",
    r"{.metadata.labels['a\.b/c']}",
    "{.instances[0].name}",
    "{.instances[-1].name}",
    "{.instances[0,2].name}",
    "{.instances[0:2].name}",
    "{.instances[::2].name}",
    "{.instances[1:].name}",
    "{.instances[*].name}",
    "{.instances[*].node.name}",
    "{.instances[*]['name','gpus']}",
    "{..node.name}",
    "{.metadata.labels}",
    "{.instances[0]}",
    "{.ready} {.share} {.gpus}",
    "{.nothing}",
    "{.nothing.below}",
    "{.instances[?(@.name=='w1')].node.name}",
    "{.instances[?(@.gpus==2)].name}",
    "{.instances[?(@.gpus>1)].name}",
    "{.instances[?(@.gpus<=1)].name}",
    "{.instances[?(@.chief==true)].name}",
    "{.instances[?(@.name!='w1')].name}",
    "{.instances[?(@.node)].name}",
    '{range .instances[*]}{.name}={.gpus}{"\\n"}{end}',
    "{range .instances[*]}{.name} of {$.metadata.name};{end}",
    "{range .instances[?(@.gpus==2)]}[{.name}, {.node.name}] {end}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_prints_what_kubectl_prints(template: str, tmp_path: Path) -> None:
    """It formats the same document without a cluster."""
    file = tmp_path / "document.json"
    file.write_text(json.dumps(DOCUMENT))
    line = (KUBECTL, "label", "--local", "-f", file, "team=vision", "--overwrite", f"-ojsonpath={template}")
    done = subprocess.run(line, capture_output=True, text=True, check=True)

    assert done.stdout == parse_template(template, "-o").text(DOCUMENT)


def test_without_braces_a_template_is_one_expression() -> None:
    """It would print it as it stands, which nobody means."""
    assert "RUNNING" == parse_template(".status", "-o").text(DOCUMENT)


@pytest.mark.parametrize(
    "template",
    [
        "{.a",
        "{.a[0}",
        "{end}",
        "{range .a}",
        "{}",
        "{.a[x]}",
        "{'a}",
        "{.a[?(@.b==c)]}",
        "{.a b}",
        "{[0]name}",
        "{..}",
        "{.a[::0]}",
    ],
)
def test_what_is_not_a_template_says_why(template: str) -> None:
    """One error of usage that names the flag."""
    with pytest.raises(UsageError, match=r"^-o: .* is not a JSONPath template"):
        parse_template(template, "-o")


@given(st.text(alphabet="{}[]().*@$?'\"\\=<>,:;ab01 \n-", max_size=60))
def test_whatever_is_typed_is_a_template_or_an_error(text: str) -> None:
    """Never anything else, and a template makes a text of any document."""
    try:
        template = parse_template(text, "-o")
    except UsageError:
        return
    assert isinstance(template.text(DOCUMENT), str)
    assert isinstance(template.text(None), str)


@pytest.mark.parametrize("text", ["status", ".status", "{.status}", "$.status"])
def test_a_path_alone_may_leave_out_what_is_clear(text: str) -> None:
    """As --sort-by and custom-columns of kubectl allow it."""
    assert ["RUNNING"] == relaxed_path(text, "--sort-by").values(DOCUMENT)


def test_documents_are_sorted_as_people_count() -> None:
    """Numbers, then texts with their numbers, then what has no such field."""
    documents: list[Any] = [{"a": "w10"}, {}, {"a": "w9"}, {"a": 10}, {"a": 9}]
    path = relaxed_path("a", "--sort-by")

    assert [{"a": 9}, {"a": 10}, {"a": "w9"}, {"a": "w10"}, {}] == sorted(
        documents, key=lambda document: sort_key(path, document)
    )


def test_a_value_that_is_not_set_prints_nothing() -> None:
    """As a key that is missing."""
    assert "" == value_text(None)
