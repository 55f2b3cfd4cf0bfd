"""Which product the name of a GPU means."""

import pytest

from arena_topo.topology.hardware import find_product


@pytest.mark.parametrize(
    ("name", "product", "generation"),
    [
        ("Tesla P40", "P40", "Pascal"),
        ("Tesla-P4", "P4", "Pascal"),
        ("Tesla K80", "K80", "Kepler"),
        ("NVIDIA-A100-SXM4-80GB", "A100", "Ampere"),
        ("NVIDIA A40", "A40", "Ampere workstation"),
        ("AMD Instinct MI50", "MI50", "Vega 20"),
        ("AMD Instinct MI60", "MI50", "Vega 20"),
        ("AMD_Instinct_MI100", "MI100", "CDNA"),
        ("AMD Instinct MI250X", "MI200", "CDNA2"),
        ("NVIDIA-A100-SXM4-40GB-SHARED", "A100", "Ampere"),
    ],
)
def test_a_name_means_a_product(name: str, product: str, generation: str) -> None:
    """However it is spelled: older cards have rates of their own too, and are not taken for newer ones."""
    spec = find_product(name)

    assert spec is not None
    assert (product, generation) == (spec.name, spec.generation.name)


@pytest.mark.parametrize("name", ["", "GPU", "MI5", "P400", "Quadro P4000"])
def test_another_name_means_none(name: str) -> None:
    """Rates are then those that the links suggest, and said to be assumed."""
    assert find_product(name) is None
