"""What the drawings are made of: SVG elements as strings, and their colours on light and dark pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from arena_topo.model.notation.printable import printable
from arena_topo.model.plan.placement import NodeRoom

USERS = 8
"""How many colours there are for the users of GPUs: the first is the plan's, and further users begin again with the next."""

STYLE = """
svg { --page: #f5f7fa; --card: #ffffff; --ink: #1d2733; --soft: #5b6778; --edge: #d3dae3; --free: #ffffff;
  --freeline: #2f9e6e; --bad: #d64545; --warn: #8f5600; --nv1: #3f9c74; --nv2: #1d8257; --nv3: #0b5e3e;
  --switch: #0f7a52; --xgmi: #8b5fbf; --pcie: #5f8db3; --far: #7f8c9b; --text-on-user: #ffffff;
  --u0: #3b6fd4; --u1: #ae4c12; --u2: #7a4fb5; --u3: #b03a6c; --u4: #2b7f8c; --u5: #8a6d1f; --u6: #52606d; --u7: #a33b3b;
  font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink); }
@media (prefers-color-scheme: dark) {
  svg { --page: #12171d; --card: #1b222b; --ink: #e6ebf1; --soft: #95a3b3; --edge: #333e4b; --free: #1b222b;
    --freeline: #4cc38d; --bad: #ff7b72; --warn: #e3b341; --nv1: #37805f; --nv2: #3fa877; --nv3: #7fe0b5;
    --switch: #4cc38d; --xgmi: #b794e6; --pcie: #5b86a8; --far: #667586; --text-on-user: #0d1117;
    --u0: #79a8ff; --u1: #f0965a; --u2: #b99cf0; --u3: #f08ab4; --u4: #62c2cf; --u5: #d6b45a; --u6: #a9b6c3; --u7: #f29090; }
}
svg text { fill: var(--ink); font-size: 13px; }
svg .title { font-size: 19px; font-weight: 650; }
svg .soft { fill: var(--soft); }
svg .warn { fill: var(--warn); }
svg .small { font-size: 11px; }
svg .tiny { font-size: 11px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .strong { font-weight: 650; }
svg .page { fill: var(--page); }
svg .card { fill: var(--card); stroke: var(--edge); stroke-width: 1; }
svg .chosen { stroke: var(--u0); stroke-width: 2.5; }
svg .group { fill: none; stroke: var(--edge); stroke-width: 15; stroke-linecap: round; }
svg .root { fill: none; stroke: var(--pcie); stroke-width: 4; stroke-linecap: round; }
svg .gpu-free { fill: var(--free); stroke: var(--freeline); stroke-width: 2.5; }
svg .gpu-bad { fill: var(--card); stroke: var(--bad); stroke-width: 2.5; stroke-dasharray: 4 3; }
svg .gpu-heat-0 { fill: var(--card); stroke: var(--edge); }
svg .gpu-heat-1 { fill: color-mix(in srgb, var(--freeline) 18%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-2 { fill: color-mix(in srgb, var(--freeline) 34%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-3 { fill: color-mix(in srgb, var(--freeline) 50%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-4 { fill: var(--nv3); stroke: var(--nv3); }
svg .gpu-unknown { fill: var(--card); stroke: var(--soft); stroke-width: 2; stroke-dasharray: 2 3; }
svg .takes { stroke: var(--u0); stroke-width: 2.5; stroke-dasharray: 5 3; }
svg .on-user { fill: var(--text-on-user); }
svg .link { fill: none; stroke-linecap: round; }
svg .nv1 { stroke: var(--nv1); }
svg .nv2 { stroke: var(--nv2); }
svg .nv3 { stroke: var(--nv3); }
svg .switch { stroke: var(--switch); }
svg .xgmi { stroke: var(--xgmi); }
svg .pcie { stroke: var(--pcie); stroke-dasharray: 5 4; }
svg .far { stroke: var(--far); stroke-dasharray: 2 5; }
svg .hub { fill: var(--card); stroke: var(--switch); stroke-width: 3; }
svg .nic { fill: var(--card); stroke: var(--pcie); stroke-width: 1.2; }
svg a:hover .card { stroke: var(--u0); stroke-width: 2; }
""" + "".join(
    f"svg .u{number} {{ fill: var(--u{number}); stroke: var(--u{number}); }}\n" for number in range(USERS)
)


@dataclass(frozen=True, slots=True)
class Headline:
    """What a drawing says of a plan: its title and some lines above it, and what each node takes of a job without a place."""

    title: str
    lines: tuple[str, ...] = ()
    rooms: Mapping[str, NodeRoom] = field(default_factory=dict)


def element(tag: str, *children: str, **attributes: str | float) -> str:
    """Return an SVG element; ``_`` in the names of attributes stands for ``-``, and a trailing one is left out."""
    names_and_values = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(_number(value)), quote=True)}"'
        for name, value in attributes.items()
    )
    inner = "".join(children)
    return f"<{tag}{names_and_values}>{inner}</{tag}>" if inner else f"<{tag}{names_and_values}/>"


def label(text: str, x: float, y: float, style: str = "") -> str:
    """Return *text* with its baseline at a point."""
    return element("text", seen(text), x=x, y=y, class_=style)


def titled(tip: str | Sequence[str], *children: str) -> str:
    """Return a group of elements with a tooltip, or one of several lines."""
    lines = (tip,) if isinstance(tip, str) else tip
    return element("g", element("title", "\n".join(map(seen, lines))), *children)


def seen(text: str) -> str:
    """Return *text* as the content of an element: it is neither markup, nor characters that nobody sees or XML forbids."""
    return escape(printable(text), quote=False)


def picture(
    width: float,
    height: float,
    children: Iterable[str],
    *,
    name: str,
    described: str = "",
    styled: bool = True,
    linked: bool = False,
    top: float = 0.0,
) -> str:
    """Return a whole SVG document; one within a page is not *styled* again.

    *name* and *described* are what a screen reader says of it; of a *linked* one it also reads the links. One within
    another one begins at *top*.
    """
    style = element("style", STYLE) if styled else ""
    page = element("rect", width=width, height=height, rx=14, class_="page")
    return element(
        "svg",
        element("title", seen(name)),
        *([element("desc", seen(described))] if described else []),
        style,
        page,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        **({"y": top} if top else {}),
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
        role="group" if linked else "img",
    )


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
