"""Gang-scheduled, topology-aware MPI training jobs on any Kubernetes cluster.

From Python as on the command line (``arena_topo/api.py`` has the rest)::

    import arena_topo as at

    plan = at.plan(at.Job(workers=4, gpus=8, rdma=True))
    print(plan)

The names are read from ``arena_topo.api`` when they are used: commands must not pay for them. Their types are
in ``__init__.pyi``.
"""

__version__ = "0.1.0"

_API = (
    "ArenaTopoError",
    "Cluster",
    "Job",
    "JobHandle",
    "Plan",
    "Report",
    "Topology",
    "connect",
    "plan",
    "predict",
    "snapshot",
    "submit",
)


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module 'arena_topo' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("arena_topo.api"), name)


def __dir__() -> list[str]:
    return [*globals(), *_API]
