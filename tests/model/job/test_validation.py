"""Names that the API server would refuse are refused before anything is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.job import validation
from arena_topo.model.job.mpijob import ApiVersion


@pytest.mark.parametrize("name", ["a", "vgg16", "pytorch-topo-4-vgg16", "0day", "a" * 49])
def test_a_good_job_name_passes(name: str) -> None:
    """Arena's rule: lower case letters, digits and dashes, 49 at most."""
    validation.check_job_name(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "--name must be set"),
        ("a" * 50, "is too long: it has 50 characters, and 49 are allowed"),
        ("A", "must consist of lower case"),
        ("a.b", "must consist of lower case"),
        ("-a", "must consist of lower case"),
        ("a-", "must consist of lower case"),
        ("ä", "must consist of lower case"),
        ("a\n", "must consist of lower case"),
    ],
)
def test_a_bad_job_name_is_refused_with_its_reason(name: str, words: str) -> None:
    """The message tells which rule is broken."""
    with pytest.raises(UsageError, match=words):
        validation.check_job_name(name)


def test_host_names_of_workers_start_with_a_letter() -> None:
    """Under v2beta1 a worker's name is a host name; the other versions do not mind."""
    validation.check_for_version("0day", 1, ApiVersion.V1ALPHA1)
    with pytest.raises(UsageError, match="must start with a letter"):
        validation.check_for_version("0day", 1, ApiVersion.V2BETA1)


def test_the_last_worker_needs_a_name_too() -> None:
    """63 characters are allowed for NAME-worker-N."""
    validation.check_for_version("a" * 49, 10**6, ApiVersion.V1)
    with pytest.raises(UsageError, match="would have 64 characters"):
        validation.check_for_version("a" * 49, 10**6 + 1, ApiVersion.V1)


@pytest.mark.parametrize("key", ["a", "example.com/rack", "a_b.c-d", "A9"])
def test_a_qualified_name_passes(key: str) -> None:
    """With and without a domain."""
    validation.check_key("--label", key)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a b", "-a", "a/b/c", "Example.com/a", "a" * 64, "ü"])
def test_what_is_no_qualified_name_is_refused(key: str) -> None:
    """The message names the flag."""
    with pytest.raises(UsageError, match=r"^--label: "):
        validation.check_key("--label", key)


@pytest.mark.parametrize("value", ["a b", "-a", "a" * 64, "é"])
def test_a_label_has_a_narrow_value(value: str) -> None:
    """Annotations may hold anything, labels may not."""
    with pytest.raises(UsageError, match="cannot be the value of label"):
        validation.check_labels("--label", {"team": value})


@pytest.mark.parametrize("name", ["", "a=b", "a b", "ä"])
def test_what_cannot_name_a_variable_is_refused(name: str) -> None:
    """Printable ASCII without an equals sign."""
    with pytest.raises(UsageError, match="environment variable"):
        validation.check_env_name(name)


@pytest.mark.parametrize("namespace", ["A", "a.b", "a" * 64, "../x"])
def test_what_cannot_be_a_namespace_is_refused(namespace: str) -> None:
    """It becomes part of a path, so it is checked."""
    with pytest.raises(UsageError, match="is not a valid namespace"):
        validation.check_namespace(namespace)


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
    ],
)
def test_a_job_is_named_as_in_kubectl(text: str, expected: str) -> None:
    """By its name, or by its kind and its name; others' jobs have names that ours may not have."""
    assert expected == validation.named_job(text)


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
    with pytest.raises(UsageError, match="does not name an MPI job"):
        validation.named_job(text)


@given(st.text())
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    """Whatever is typed becomes a name without a slash, or is refused."""
    try:
        name = validation.named_job(text)
    except UsageError:
        return
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert ".." not in name
