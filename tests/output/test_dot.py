"""DOT is read by other programs, here by a parser of its syntax."""

import re
from dataclasses import replace

import pytest

from arena_topo.model.hardware import Link, LinkClass, LinkGraph
from arena_topo.output.render import dot
from tests.output.clusters import TEXTS, machine, small_cluster


@pytest.mark.parametrize("kind", TEXTS)
def test_dot_draws_each_direct_link_once(kind: str) -> None:
    """NVLinks of every real machine; PCIe paths would only hide them."""
    node = machine("gpu-1", kind)
    assert node.links is not None
    direct = sum(link.kind.is_direct for row in node.links.links for link in row) // 2
    text = dot(replace(small_cluster(), nodes=(node,)))

    assert direct == len(re.findall(r" -- ", text))
    assert node.gpu_total == len(re.findall(r'\[label="GPU\d+" style', text))
    assert text.count("{") == text.count("}")


def test_every_link_is_drawn_as_a_line() -> None:
    """C2C links, which have no count, too."""
    node = machine("gpu-1")
    assert node.links is not None
    chips = LinkGraph(
        ((Link(LinkClass.SELF), Link(LinkClass.C2C)), (Link(LinkClass.C2C), Link(LinkClass.SELF)))
    )
    text = dot(replace(small_cluster(), nodes=(replace(node, gpus=node.gpus[:2], links=chips),)))

    assert '[label="C2C" penwidth=1];' in text


def test_names_are_quoted() -> None:
    """Whatever a cluster calls its things, the document stays well-formed."""
    odd = replace(small_cluster(), cluster='a "b" <c> & d')

    assert r'label="a \"b\" <c> & d: 14/28 free";' in dot(odd)
