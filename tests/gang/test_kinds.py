"""Each gang back-end with the kinds of jobs besides
MPIJob: golden files of what it adds, or why it takes none.
"""

from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.gang.backends import BACKENDS, decorate
from arena_topo.kinds.table import OTHER_KINDS
from arena_topo.kinds.trainjob import TRAINJOB, with_patch
from arena_topo.manifest.gang import decorated, gang_of
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object
from arena_topo.model.text.yaml import dump
from tests import paths
from tests.gang.test_backends import KNOWN
from tests.jobs.manifests import MANIFESTS

GOLDEN = paths.GOLDEN / "gang"
LEGAL = [(name, kind) for kind in OTHER_KINDS for name in BACKENDS if name not in kind.refused_by]


def ids(value: str | Kind) -> str:
    """Return what names a parameter."""
    return value if isinstance(value, str) else value.kind


def written_job(kind: Kind) -> Object:
    """Return a job of *kind* as somebody wrote it."""
    manifest = MANIFESTS[kind.kind]
    placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
    return with_patch(placed) if kind is TRAINJOB else placed


@pytest.mark.parametrize(("backend", "kind"), LEGAL, ids=ids)
def test_the_objects_are_the_golden_ones(backend: str, kind: Kind) -> None:
    """Job and companions, to the byte."""
    added = decorate(backend, replace(gang_of(written_job(kind)), **KNOWN[backend]))
    objects = [decorated(written_job(kind), added), *added.companions]

    expected = (GOLDEN / f"{backend}.{kind.kind.lower()}.yaml").read_text()
    assert expected == "---\n".join(dump(item) for item in objects)


@pytest.mark.parametrize("backend", sorted(TRAINJOB.refused_by))
def test_a_scheduler_that_a_trainjob_cannot_name_is_refused(backend: str) -> None:
    """Its runtime names it."""
    with pytest.raises(
        UsageError, match="cannot be used with TrainJob v1alpha1: its runtime names the scheduler"
    ):
        decorate(backend, replace(gang_of(written_job(TRAINJOB)), **KNOWN[backend]))
