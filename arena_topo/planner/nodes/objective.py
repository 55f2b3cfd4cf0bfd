"""By what two choices of as many nodes are compared: their bandwidth, the GPUs left over on them, or both.

A worker of four GPUs may get half of an empty box of eight at 19 GB/s, or the free half of another box at 13 GB/s:

=========  ==============================  =============================  ==========
objective  empty box                       half-used box                  taken
=========  ==============================  =============================  ==========
bandwidth  19 GB/s                         13 GB/s                        empty
pack       4 GPUs left over                none left over                 half-used
balanced   19 / 8 = 2.4 GB/s a GPU         13 / 4 = 3.25 GB/s a GPU       half-used
=========  ==============================  =============================  ==========

``balanced`` counts every GPU that was free on the nodes taken, those that the gang gets and those left over: the exchange
rate is one percent of busbw for one percent of GPUs, whatever the size of the gang.
"""

from dataclasses import dataclass

from arena_topo.model.plan.demand import Objective
from arena_topo.planner.nodes.node_state import loss_of, stranded_of

Merit = tuple[float, ...]
"""The rank among choices of as many nodes in domains of one level, the lowest best."""


@dataclass(frozen=True, slots=True)
class Goal:
    """So many nodes that together take so many workers, and by what choices of them are compared.

    ``gpus`` is how many GPUs the gang takes in all.
    """

    count: int
    workers: int
    objective: Objective = Objective.BANDWIDTH
    gpus: int = 0

    def merit(self, busbw: float, inside: float, damage: int) -> Merit:
        """Return the merit of nodes with the lowest *busbw* and the lowest busbw *inside*, which suffer *damage*.

        With a *busbw* that is none too low and a *damage* that is none too high, it is a bound: no real merit is lower.
        """
        stranded, loss = stranded_of(damage), loss_of(damage)
        match self.objective:
            case Objective.BANDWIDTH:
                return (-busbw, -inside, stranded, loss)
            case Objective.PACK:
                return (stranded, -busbw, -inside, loss)
            case Objective.BALANCED:
                return (-busbw / max(self.gpus + stranded, 1), stranded, -inside, loss)
