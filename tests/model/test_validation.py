"""Names that the API server would refuse are refused before anything is sent."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.model import validation


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
