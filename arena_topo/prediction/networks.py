"""The benchmarks' networks as layers: VGG16 and ResNet50 on images of 224 x 224, derived from their architecture.

Sources: Simonyan and Zisserman 2015 (arXiv 1409.1556, table 1, column D); He et al. 2016 (arXiv 1512.03385, table 1),
with the stride of a bottleneck in its 3 x 3 convolution, as PyTorch's and TensorFlow's benchmarks have it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from arena_topo.errors import UsageError

IMAGE = 224
CLASSES = 1000
_VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
_RESNET_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
_EXPANSION = 4


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: how many parameters it has, and how many multiply-accumulates it does for one image."""

    name: str
    parameters: int
    macs: int


@dataclass(frozen=True, slots=True)
class Network:
    """A network as its layers, in the order of the forward pass."""

    name: str
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """How many parameters there are, and so gradients to exchange."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass of one image."""
        return sum(layer.macs for layer in self.layers)


@lru_cache(maxsize=8)
def network(name: str) -> Network:
    """Return the network called *name*; raises ``UsageError`` where there is none."""
    if name not in _LAYERS:
        raise UsageError(f"there is no model {name!r}", hint=f"the known models are {' and '.join(_LAYERS)}")
    return Network(name, tuple(_LAYERS[name]()))


def _vgg16() -> Iterator[Layer]:
    size, channels, number = IMAGE, 3, 0
    for width, depth in _VGG_STAGES:
        for _ in range(depth):
            number += 1
            yield _convolution(f"conv{number}", channels, width, kernel=3, size=size, extra=width)
            channels = width
        # Each stage ends in a pooling that halves the image.
        size //= 2
    features = channels * size * size
    for number, width in enumerate((4096, 4096, CLASSES), 1):
        yield _dense(f"fc{number}", features, width)
        features = width


def _resnet50() -> Iterator[Layer]:
    size, channels = IMAGE // 2, 64
    yield _normalised("conv1", 3, channels, kernel=7, size=size)
    # The pooling after the first convolution.
    size //= 2
    for stage, (width, blocks) in enumerate(_RESNET_STAGES, 2):
        for block in range(blocks):
            name = f"conv{stage}_{block + 1}"
            yield _normalised(f"{name}a", channels, width, kernel=1, size=size)
            # The second stage gets an image that the pooling has halved; each later one halves it in its first block.
            if stage > 2 and not block:
                size //= 2
            yield _normalised(f"{name}b", width, width, kernel=3, size=size)
            yield _normalised(f"{name}c", width, width * _EXPANSION, kernel=1, size=size)
            # The shortcut of a first block has to change the number of channels, so it is a convolution as well.
            if not block:
                yield _normalised(f"{name}s", channels, width * _EXPANSION, kernel=1, size=size)
            channels = width * _EXPANSION
    yield _dense("fc", channels, CLASSES)


def _convolution(name: str, channels: int, width: int, *, kernel: int, size: int, extra: int) -> Layer:
    """Return a convolution to *size* x *size* with *extra* parameters beside its weights."""
    weights = kernel * kernel * channels * width
    return Layer(name, weights + extra, weights * size * size)


def _normalised(name: str, channels: int, width: int, *, kernel: int, size: int) -> Layer:
    """Return a convolution without bias and its batch normalisation, which has a scale and a shift per channel."""
    return _convolution(name, channels, width, kernel=kernel, size=size, extra=2 * width)


def _dense(name: str, features: int, width: int) -> Layer:
    return Layer(name, features * width + width, features * width)


_LAYERS: Mapping[str, Callable[[], Iterator[Layer]]] = {"vgg16": _vgg16, "resnet50": _resnet50}
MODELS = tuple(_LAYERS)
"""The networks that are known, by name."""
