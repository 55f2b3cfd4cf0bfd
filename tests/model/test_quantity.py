"""Quantities are read as the API server reads them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.text.quantity import amount, checked_quantity, parse_quantity, resources, total


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("500m", "0.5"),
        ("100n", "1e-7"),
        ("2k", "2000"),
        ("2Ki", "2048"),
        ("1.5Gi", "1610612736"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1e18"),
        ("-1", "-1"),
        ("+3", "3"),
    ],
)
def test_a_quantity_has_its_value_in_the_base_unit(text: str, value: str) -> None:
    """Suffixes and exponents count as in apimachinery."""
    assert Decimal(value) == parse_quantity(text)


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1g", "1GiB", "0x10", "1_000", "e3", "1e", "--1", "NaN", "inf", "٣"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """Texts that Go's parser refuses are refused here."""
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_cpu_counts_in_millicores(cores: int) -> None:
    """A whole number of cores is a thousand times as many millicores, and millicores are themselves."""
    assert cores * 1000 == amount("cpu", str(cores))
    assert cores == amount("cpu", f"{cores}m")


def test_amounts_are_rounded_up() -> None:
    """A fraction of a byte or of a millicore counts as a whole one, as kube-scheduler rounds."""
    assert {
        "cpu": 1,
        "memory": 1,
        "nvidia.com/gpu": 2,
    } == resources({"cpu": "0.1m", "memory": "100m", "nvidia.com/gpu": 2})


def test_totals_are_sums_by_resource() -> None:
    """Resources that only one part has stay."""
    assert {"cpu": 3, "memory": 5, "pods": 1} == total([{"cpu": 1, "memory": 5}, {"cpu": 2, "pods": 1}])


def test_a_flag_with_a_good_quantity_keeps_its_text() -> None:
    """What the user typed is what the server gets."""
    assert "1e3" == checked_quantity("--memory", "1e3")


@pytest.mark.parametrize("text", ["-1", "4 GB", "lots"])
def test_a_flag_with_a_bad_quantity_is_named(text: str) -> None:
    """The message names the flag and the text."""
    with pytest.raises(UsageError, match="--memory: ") as caught:
        checked_quantity("--memory", text)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize("text", ["1e400", "1e19", "10E"])
def test_a_flag_with_more_than_64_bits_is_refused(text: str) -> None:
    """The API server would count it as another number, and arithmetic with 400 digits fails."""
    with pytest.raises(UsageError, match=r"--memory: .* is more than a quantity can be"):
        checked_quantity("--memory", text)
