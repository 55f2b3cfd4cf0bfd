"""Plain YAML is read as PyYAML reads it, and everything else is left to PyYAML."""

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.yaml import plain_mapping

KUBECTL = b"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    extensions:
    - extension:
        last-update: Sat, 01 Nov 2025 10:11:12 UTC
        provider: minikube.sigs.k8s.io
      name: cluster_info
    server: https://[2001:db8::1]:6443
  name: kind-kind
- cluster:
    insecure-skip-tls-verify: true
    server: https://10.0.0.1/k8s/clusters/c-1
  name: arn:aws:eks:eu-central-1:123456789012:cluster/ml
contexts:
- context:
    cluster: kind-kind
    namespace: ml
    user: kind-kind
  name: kind-kind
- context: null
  name: gke_project_europe-west4-a_ml
current-context: kind-kind
kind: Config
preferences: {}
users:
- name: kind-kind
  user:
    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    client-key: /home/ann/.minikube/client.key
- name: eks
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - --region
      - eu-central-1
      - eks
      - get-token
      - --cluster-name
      - ml
      command: aws
      env: null
      interactiveMode: IfAvailable
      provideClusterInfo: false
"""
BY_HAND = b"""# of the team
apiVersion: v1
clusters:
  - name: "ml"
    cluster: {server: "https://ml"}
"""
INDENTED = b"""
clusters:
  # the new one
  - name: "ml: #1"
    cluster:
      server: 'https://ml.example.com'

  - name: ''
users: []
contexts:
current-context: ml
"""


@pytest.mark.parametrize("document", [KUBECTL, INDENTED], ids=["kubectl", "indented"])
def test_a_usual_kubeconfig_is_plain(document: bytes) -> None:
    """As kubectl, kind, minikube and the clouds' programs write it, and as people do."""
    assert yaml.safe_load(document) == plain_mapping(document)


@pytest.mark.parametrize(
    "document",
    [
        BY_HAND,
        b"",
        b"# nothing",
        b"- a",
        b"a",
        b"  a: b",
        b"---\na: b",
        b"a: b\n---\nc: d",
        b"a: &x b\nc: *x",
        b"a: |\n  b",
        b"a: b\n  c",
        b"a: b c # d",
        b"a: b: c",
        b"a: b:",
        b"a:\tb",
        b"a: b\r\n",
        b"a: 1",
        b"a: 12:30",
        b"a: 2026-01-01",
        b"a: .inf",
        b"a: -.inf",
        b"a: ~",
        b"a: =",
        b"a: yes",
        b"a: True",
        b"on: a",
        b"<<: a",
        b'"a": b',
        b"? a\n: b",
        b'a: "\\x41"',
        b"a: 'it''s'",
        b"a: !!str b",
        b"a: @b",
        b"a: \xc3\xa9",
        b"a: \x07",
        b"a:\n    b: c\n  d: e",
        b"a:\n- b: c\n   d: e",
        b"a:\n- - b",
        b"a: b\n- c",
        b"a:\n-",
        b"\n".join(b"  " * level + b"a:" for level in range(30)),
    ],
)
def test_what_is_not_plain_is_left_to_pyyaml(document: bytes) -> None:
    """Whether it is YAML or not."""
    assert plain_mapping(document) is None


PIECES = st.sampled_from(
    [
        "  ",
        " ",
        "\n",
        "\n",
        "- ",
        "-",
        "a:",
        "b: ",
        "c: d",
        "a: b",
        ": ",
        ":",
        "x y",
        "1",
        "1e3",
        "0x1",
        "12:30",
        "yes",
        "null",
        "True",
        "~",
        "=",
        "<<",
        ".",
        "/",
        "--flag",
        "---",
        "...",
        "\t",
        "\r",
        "\\",
        "\x85",
        "é",
        "{}",
        "[]",
        "#",
        " #",
        "'",
        '"',
        "{",
        "[",
        "]",
        "|",
        ">",
        "!",
        "%",
        "@",
        "`",
        "?",
        ",",
        "&a",
        "*a",
    ]
)
CHANGES = st.lists(st.tuples(st.integers(0, len(KUBECTL)), st.integers(0, 3), PIECES), min_size=1, max_size=4)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_read_as_by_pyyaml_or_left_to_it(text: str) -> None:
    """Also one that PyYAML refuses."""
    assert_as_pyyaml(text.encode())


@given(CHANGES)
def test_a_spoiled_kubeconfig_is_read_as_by_pyyaml_or_left_to_it(changes: list[tuple[int, int, str]]) -> None:
    """Whatever is put in place of some of its characters."""
    document = KUBECTL
    for place, removed, piece in changes:
        document = document[:place] + piece.encode() + document[place + removed :]
    assert_as_pyyaml(document)


WORDS = st.text("abyesnotrufl /:.@-_=", min_size=1, max_size=8) | st.sampled_from(
    ["true", "no", "https://a:1"]
)


@given(st.recursive(WORDS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner)))
def test_what_pyyaml_writes_is_read_as_by_pyyaml_or_left_to_it(value: Any) -> None:
    """In the block style of kubectl."""
    assert_as_pyyaml(yaml.safe_dump({"a": value}).encode())


def assert_as_pyyaml(document: bytes) -> None:
    """Check that *document* is not read in another way
    than by PyYAML, and not at all where PyYAML refuses it.
    """
    expected = None
    with suppress(yaml.YAMLError, ValueError):
        expected = yaml.safe_load(document)
    found = plain_mapping(document)
    assert found is None or (found == expected and repr(found) == repr(expected))
