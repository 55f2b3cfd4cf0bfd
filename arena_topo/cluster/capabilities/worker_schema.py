"""Which pod fields the pod template of the served kind keeps: the server drops what the schema does not name.

Read from the API server's OpenAPI documents, which every user may read.
"""

from collections.abc import Container

from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import Kind, api_version
from arena_topo.model.objects import Object

POD_FIELDS = ("schedulingGates", "resourceClaims", "schedulingGroup")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def worker_fields(session: Session, kind: Kind) -> frozenset[str] | None:
    """Return those of ``POD_FIELDS`` that a worker template of *kind* keeps, None where that cannot be seen."""
    try:
        document = session.get(f"/openapi/v3/apis/{api_version(kind)}")
    except (Forbidden, NotFound):
        # Servers before Kubernetes 1.24 do not serve OpenAPI v3 by default.
        return None
    return kept_fields(document, kind)


def kept_fields(document: Object, kind: Kind) -> frozenset[str] | None:
    """Return those of ``POD_FIELDS`` that an OpenAPI *document* keeps, None where it does not have *kind*."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    # Names are like "org.kubeflow.v2beta1.MPIJob".
    schema = next((schema for name, schema in schemas.items() if name.rpartition(".")[2] == kind.kind), None)
    if schema is None:
        return None
    # Descend to the pod's schema. A part that is open keeps everything below it, one that is closed nothing.
    schema = _resolved(schema, schemas)
    for step in kind.pod_spec_path:
        below = (
            schema.get("additionalProperties") or schema.get("items")
            if step == "*"
            else (schema.get("properties") or {}).get(step)
        )
        if not isinstance(below, dict):
            return _kept(schema, ())
        schema = _resolved(below, schemas)
    return _kept(schema, schema.get("properties") or {})


def _resolved(schema: Object, schemas: Object) -> Object:
    """Return *schema*, or the one that it refers to, as those of Kubernetes' own kinds do."""
    # A reference stands alone, or as the only one of which all must hold, beside a description.
    (first, *_) = schema.get("allOf") or ({},)
    reference = schema.get("$ref") or (first.get("$ref") if isinstance(first, dict) else None)
    found = schemas.get(str(reference).rpartition("/")[2]) if reference else None
    return found if isinstance(found, dict) else schema


def _kept(schema: Object, properties: Container[str]) -> frozenset[str]:
    """Return the fields that *schema* names, or all where it keeps what it does not name."""
    return frozenset(field for field in POD_FIELDS if schema.get(_PRESERVE) or field in properties)
