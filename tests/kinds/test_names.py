"""Names of jobs, and the names of pods that follow from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.kinds.names import named_job


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vgg16", "vgg16"),
        ("theirs.v2", "theirs.v2"),
        ("a" * 253, "a" * 253),
        ("mpijob/vgg16", "vgg16"),
        ("MPIJob/vgg16", "vgg16"),
        ("mpijobs.kubeflow.org/vgg16", "vgg16"),
        ("mpijob.kubeflow.org/vgg16", "vgg16"),
        ("mpijobs.v2beta1.kubeflow.org/vgg16", "vgg16"),
        ("pytorchjob.kubeflow.org/vgg16", "vgg16"),
        ("tfjob/vgg16", "vgg16"),
    ],
)
def test_a_job_is_named_as_in_kubectl(text: str, expected: str) -> None:
    """By its name, or by its kind and its name; others' jobs have names that ours may not have."""
    assert expected == named_job(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "mpijob/",
        "k2/status",
        "deploy/x",
        "a/../b",
        "..",
        "mpijob/a/b",
        "a b",
        "A",
        "a\n",
        "a?x=1",
        "ä",
    ],
)
def test_what_cannot_name_a_job_never_meets_a_path(text: str) -> None:
    """One message for all, with what was typed."""
    with pytest.raises(UsageError, match="does not name a training job"):
        named_job(text)


@given(st.text())
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    """Whatever is typed becomes a name without a slash, or is refused."""
    try:
        name = named_job(text)
    except UsageError:
        return
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert ".." not in name
