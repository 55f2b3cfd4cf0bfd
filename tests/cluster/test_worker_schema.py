"""What a worker template keeps is read from the schema of MPIJob."""

from typing import Any

import pytest

from arena_topo.cluster.capabilities import kept_fields
from arena_topo.kinds.mpijob import ApiVersion
from tests.cluster.clusters import mpijob_document, pod_schema

ALL = {"schedulingGates", "resourceClaims", "schedulingGroup"}


OPEN = {"x-kubernetes-preserve-unknown-fields": True}


JOB = "org.kubeflow.v2beta1.MPIJob"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (mpijob_document(pod_schema()), set()),
        (mpijob_document(pod_schema(preserve=True)), ALL),
        ({"components": {"schemas": {JOB: OPEN}}}, ALL),
        ({"components": {"schemas": {JOB: {"properties": {"spec": {"properties": {}}}}}}}, set()),
        ({"components": {"schemas": {"org.kubeflow.v2beta1.MPIJobList": {}}}}, None),
        ({}, None),
    ],
    ids=["names none", "keeps all", "open from above", "closed above", "no MPIJob", "empty"],
)
def test_what_a_schema_does_not_name_is_dropped(document: dict[str, Any], expected: set[str] | None) -> None:
    """Unless it keeps what it does not know."""
    assert expected == kept_fields(document, ApiVersion.V2BETA1)
