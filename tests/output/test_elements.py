"""What drawings are made of: colours that can be read."""

import re

import pytest

from arena_topo.output.svg import STYLE


def palette(scheme: str) -> dict[str, str]:
    """Return the colours of the ``light`` or the ``dark`` scheme by their names."""
    light, _, dark = STYLE.partition("@media (prefers-color-scheme: dark)")
    return dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark.partition("\n}")[0])
    )


def contrast(a: str, b: str) -> float:
    """Return the ratio of two colours' luminances as WCAG 2.2 defines it, from 1 to 21."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels
        ]
        return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("ink", ["ink", "soft", "warn"])
def test_text_can_be_read(scheme: str, ground: str, ink: str) -> None:
    """WCAG asks for a contrast of 4.5 to 1."""
    colours = palette(scheme)

    assert contrast(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", [*(f"u{number}" for number in range(8)), "nv3"])
def test_text_on_a_gpu_can_be_read(scheme: str, ground: str) -> None:
    """Numbers stand on the colours of users, and of nodes that are free."""
    colours = palette(scheme)

    assert contrast(colours["text-on-user"], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize(
    "mark", ["freeline", "bad", "nv1", "nv2", "nv3", "switch", "xgmi", "pcie", "far", "soft", "u0", "u6"]
)
def test_marks_and_lines_can_be_seen(scheme: str, ground: str, mark: str) -> None:
    """WCAG asks for a contrast of 3 to 1 of what is not text."""
    colours = palette(scheme)

    assert contrast(colours[mark], colours[ground]) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_a_node_of_a_map_can_be_read(scheme: str) -> None:
    """However free it is; browsers mix the ground from two colours."""
    colours = palette(scheme)
    shares = [int(share) / 100 for share in re.findall(r"var\(--freeline\) (\d+)%, var\(--card\)", STYLE)]
    grounds = [mixed(colours["freeline"], colours["card"], share) for share in shares]

    assert 3 == len(grounds)
    assert [] == [ground for ground in grounds if contrast(colours["ink"], ground) < 4.5]


def mixed(a: str, b: str, share: float) -> str:
    """Return the colour with *share* of *a* and the rest of *b*."""
    pairs = [(int(a[place : place + 2], 16), int(b[place : place + 2], 16)) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in pairs)
