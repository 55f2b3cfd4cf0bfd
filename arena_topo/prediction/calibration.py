"""What predictions rest on and no formula gives: measured speeds, overlaps and bandwidths, from a file.

A calibration is a YAML document; ``calibration.yaml`` next to this module is the one that comes with the tool, and
says of each figure where it is from. A user's file overrides it entry by entry.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.plan import Range
from arena_topo.model.text.record_tables import Part
from arena_topo.model.text.yaml import load
from arena_topo.prediction.training import EXCHANGES, MODELS

_API_VERSION = "arena-topo.dev/v1alpha1"
_KIND = "Calibration"
_SHIPPED = "calibration.yaml"
_MOST = 1e6
"""No bandwidth in GB/s and no speed in images/s is larger; a larger one is in the wrong unit."""
_BANDWIDTHS = {
    # A share may be above 1, because a prediction may be too low; more than twice as fast is a mistake.
    "nvlink_share": ("nvlinkShare", 2.0),
    "pcie": ("pcie", _MOST),
    "isolated": ("podIsolatedSocket", _MOST),
    "tcp": ("tcp", _MOST),
    "rdma_share": ("rdmaShare", 2.0),
    "rdma_card": ("rdmaCard", _MOST),
}
"""The fields of ``Bandwidths``: their keys in the file, and the largest value."""


@dataclass(frozen=True, slots=True)
class Framework:
    """How a framework exchanges gradients, and which share of the exchange hides behind backward, 0 to 1."""

    exchange: str
    overlap: Range


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Bus bandwidths in GB/s, and shares where the placement gives the nominal one.

    ``nvlink_share`` is the share of a GPU set's predicted busbw that is reached, ``rdma_share`` that of the rate of
    the RDMA cards; ``rdma_card`` is the rate of a card whose own is not known. ``isolated`` is between pods of
    one node that do not see each other's GPUs, ``tcp`` between nodes without RDMA.
    """

    nvlink_share: Range
    pcie: Range
    isolated: Range
    tcp: Range
    rdma_share: Range
    rdma_card: Range


@dataclass(frozen=True, slots=True)
class Calibration:
    """All that was measured; ``source`` names the files, ``speeds`` are images/s of a single GPU."""

    source: str
    bandwidths: Bandwidths
    frameworks: Mapping[str, Framework] = field(default_factory=dict)
    speeds: Mapping[tuple[str, str, str], float] = field(default_factory=dict)

    def framework(self, name: str) -> Framework:
        """Return the calibration of a framework; raises ``UsageError`` where there is none."""
        if name not in self.frameworks:
            raise UsageError(
                f"there is no calibration of framework {name!r}",
                hint=f"the known frameworks are {' and '.join(sorted(self.frameworks))}; --calibration FILE can add one",
            )
        return self.frameworks[name]

    def knows(self, gpu: str) -> bool:
        """Whether it has the speed of *gpu*, a product or a word of its name, with any framework and model."""
        return any(name.upper() in gpu.upper() for *_, name in self.speeds)

    def speed(self, framework: str, model: str, gpu: str) -> float:
        """Return the images/s of one *gpu*, a product or a word of its name; raises ``UsageError`` if not known."""
        rates = {name: rate for (*key, name), rate in self.speeds.items() if key == [framework, model]}
        matching = [name for name in rates if name.upper() in gpu.upper()]
        if not matching:
            raise UsageError(
                f"how fast one {gpu} trains {model} with {framework} is not known",
                hint=f"measure it and give --images-per-second, or a --calibration FILE; known: {_listed(rates)}",
            )
        # The longest name is the most specific one: A100-PCIE before A100.
        return rates[max(matching, key=len)]


def _listed(rates: Mapping[str, float]) -> str:
    return ", ".join(sorted(rates)) or "none"


@lru_cache(maxsize=1)
def shipped_calibration() -> Calibration:
    """Return the calibration that comes with the tool."""
    text = (files("arena_topo.prediction") / _SHIPPED).read_text("utf-8")
    return read_calibration(load(text, name=_SHIPPED), f"the tool's own ({_SHIPPED})")


def read_calibration(document: object, source: str, base: Calibration | None = None) -> Calibration:
    """Return the calibration in *document*, entries that it lacks taken from *base*.

    Raises ``DocumentError`` naming the place in *source* and the reason.
    """
    top = Part(document, source)
    version, kind = top.take("apiVersion", str, ""), top.take("kind", str, "")
    if (version, kind) != (_API_VERSION, _KIND):
        raise DocumentError(
            f"{source} is {kind or 'no kind'} of {version or 'no apiVersion'}, expected {_KIND} of {_API_VERSION}",
            hint="docs/explanation/prediction.md shows one",
        )
    # For readers of the file only; taken so that it does not count as an unknown key.
    top.take("description", str, "")
    frameworks = dict(_framework(part) for part in top.parts("frameworks"))
    speeds = dict(_speed(part) for part in top.parts("speeds"))
    bandwidths = _bandwidths(top.part("bandwidths"), base.bandwidths if base else None)
    top.reject_unknown_keys()
    return Calibration(
        source=f"{source} over {base.source}" if base else source,
        bandwidths=bandwidths,
        frameworks=MappingProxyType({**(base.frameworks if base else {}), **frameworks}),
        speeds=MappingProxyType({**(base.speeds if base else {}), **speeds}),
    )


def _framework(part: Part) -> tuple[str, Framework]:
    name, exchange = part.take("name", str), part.take("exchange", str)
    if exchange not in EXCHANGES:
        raise DocumentError(f"{part.place}.exchange is {exchange!r}, expected {' or '.join(EXCHANGES)}")
    overlap = _range(part.part("overlap"), lowest=0.0, highest=1.0)
    part.reject_unknown_keys()
    return name, Framework(exchange, overlap)


def _speed(part: Part) -> tuple[tuple[str, str, str], float]:
    key = (part.take("framework", str), part.take("model", str), part.take("gpu", str))
    if key[1] not in MODELS:
        raise DocumentError(f"{part.place}.model is {key[1]!r}, expected {' or '.join(MODELS)}")
    rate = part.take("imagesPerSecond", float)
    _check(rate, f"{part.place}.imagesPerSecond", 0.0, _MOST, above=True)
    part.reject_unknown_keys()
    return key, rate


def _bandwidths(part: Part, base: Bandwidths | None) -> Bandwidths:
    ranges: dict[str, Range] = {}
    for name, (key, highest) in _BANDWIDTHS.items():
        # Without a base nothing can stand in for an entry, so every one of them is required.
        if base is not None and not part.has(key):
            ranges[name] = getattr(base, name)
        else:
            ranges[name] = _range(part.part(key), lowest=0.0, highest=highest, above=True)
    part.reject_unknown_keys()
    return Bandwidths(**ranges)


def _range(part: Part, *, lowest: float, highest: float, above: bool = False) -> Range:
    limits = Range(part.take("low", float), part.take("likely", float), part.take("high", float))
    part.reject_unknown_keys()
    for name, value in (("low", limits.low), ("likely", limits.likely), ("high", limits.high)):
        _check(value, f"{part.place}.{name}", lowest, highest, above=above)
    if not limits.low <= limits.likely <= limits.high:
        raise DocumentError(f"{part.place} is not in order: low, likely and high must not decrease")
    return limits


def _check(value: float, place: str, lowest: float, highest: float, *, above: bool) -> None:
    if not math.isfinite(value) or not lowest <= value <= highest or (above and value == lowest):
        raise DocumentError(
            f"{place} is {value:g}, expected a number {'above' if above else 'from'} {lowest:g} to {highest:g}"
        )
