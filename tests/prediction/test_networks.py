"""VGG16 and ResNet50 have the layers, parameters and multiply-accumulates that are published for them."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.prediction.training import network


@pytest.mark.parametrize(
    ("name", "layers", "parameters", "macs"),
    [("vgg16", 16, 138_357_544, 15.47e9), ("resnet50", 54, 25_557_032, 4.09e9)],
)
def test_a_network_is_as_large_as_published(name: str, layers: int, parameters: int, macs: float) -> None:
    """To the last parameter."""
    found = network(name)

    assert (layers, parameters) == (len(found.layers), found.parameters)
    assert macs == pytest.approx(found.macs, rel=1e-3)


def test_most_of_vgg16_is_its_first_dense_layer() -> None:
    """Three quarters of the gradients are ready when backward has hardly begun."""
    found = network("vgg16")
    dense = next(layer for layer in found.layers if layer.name == "fc1")

    assert 0.743 == round(dense.parameters / found.parameters, 3)


def test_a_model_that_is_not_known_is_refused() -> None:
    """With those that are."""
    with pytest.raises(UsageError, match="there is no model 'bert'"):
        network("bert")
