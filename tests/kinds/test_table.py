"""The table of kinds."""

import re

import pytest

from arena_topo.errors import DocumentError
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import KINDS, kind_of, kinds_called
from arena_topo.kinds.training_operator import PYTORCHJOB
from arena_topo.model.kind import Kind, api_version


@pytest.mark.parametrize("kind", KINDS, ids=api_version)
def test_a_job_tells_its_kind(kind: Kind) -> None:
    """By its apiVersion and kind."""
    assert kind is kind_of({"apiVersion": api_version(kind), "kind": kind.kind})


@pytest.mark.parametrize(("group", "kind"), [("kubeflow.org/v9", "MPIJob"), ("v1", "Pod"), (None, None)])
def test_what_is_no_job_is_refused(group: str | None, kind: str | None) -> None:
    """The error names what was found and what can be."""
    found = re.escape(f"unsupported kind: {kind or 'not given'} ({group or 'no apiVersion'})")
    with pytest.raises(DocumentError, match=found):
        kind_of({"apiVersion": group, "kind": kind})


def test_kinds_have_arenas_words() -> None:
    """Whatever their case; a kind of several versions is named by one word."""
    assert (PYTORCHJOB,) == kinds_called("PyTorch")
    assert tuple(ApiVersion) == kinds_called("mpi")
    assert () == kinds_called("sparkjob")
