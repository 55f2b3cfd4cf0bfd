"""What a source tells of the hardware inside one node."""

from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Gpu, LinkGraph, Nic


@dataclass(frozen=True, slots=True)
class Hardware:
    """The GPUs of a node, their links and the node's NICs.

    ``machine`` is the machine type, for example ``8xV100-cubemesh``. ``assumptions`` are sentences on what the
    source did not tell and had to be assumed, such as the generation that sets the bandwidths.
    """

    gpus: tuple[Gpu, ...]
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    machine: str = ""
    assumptions: tuple[str, ...] = ()
