"""HAMi: node annotations with the GPUs and the scores of their links, pod annotations of GPUs in use.

A score adds up the links of a pair: 10 across sockets, 20 in one NUMA node, 30 over the host bridge, 40 over
several switches, 50 over one, 60 on one board, and 100 for each NVLink. 0 means: not known.
Sources: HAMi 2.10, pkg/device/nvidia; docs of the protocol. Zero values of the JSON form are left out there.
"""

from collections.abc import Iterator, Mapping, Sequence

from arena_topo.model.cluster.hardware import Gpu, ShareMode
from arena_topo.topology.hardware.link_graph import MOST_LINKS, build_graph, guess_generation, machine_type
from arena_topo.topology.hardware.products import find_product
from arena_topo.topology.hardware.usual_wiring import fill_direct, usual_words
from arena_topo.topology.node_facts import NodeFacts
from arena_topo.topology.raw_objects import Malformed, document, items, mapping, optional, text, whole
from arena_topo.topology.reading import Reading, Trust

REGISTER = "hami.io/node-nvidia-register"
SCORE = "hami.io/node-nvidia-score"
ALLOCATED = "hami.io/vgpu-devices-allocated"

_PCIE_SCORES = {0: "?", 10: "SYS", 20: "NODE", 30: "PHB", 40: "PXB", 50: "PIX", 60: "PIX"}
_NVLINK_SCORE = 100
_TEXT_FIELDS = 7


def read_node(node: NodeFacts) -> Iterator[Reading]:
    """Yield what HAMi's annotations tell of a node; raises ``Malformed`` naming the key."""
    written = node.annotations.get(REGISTER)
    if not written:
        return
    gpus = _register(node.annotations) if written.lstrip().startswith("[") else _register_text(written)
    if SCORE not in node.annotations:
        yield Reading(node=node.name, source=_source(node, REGISTER), trust=Trust.HAMI, gpus=gpus)
        return
    words = _words(node.annotations, [gpu.uuid for gpu in gpus])
    product = gpus[0].product
    known = find_product(product)
    assumptions: tuple[str, ...] = ()
    if known and known.switch_links and not any(word.startswith("NV") for row in words for word in row):
        # HAMi before 2.10 does not see the links into NVSwitches.
        filled = fill_direct(words, usual_words(product, len(gpus)))
        assumptions = ("NVLinks as usual for the product",) if filled else ()
    generation = known.generation if known else guess_generation(words)
    graph = build_graph(words, generation, known, SCORE)
    yield Reading(
        node=node.name,
        source=_source(node, SCORE),
        trust=Trust.HAMI,
        machine=machine_type(graph, known.name if known else ""),
        gpus=gpus,
        links=graph,
        assumptions=assumptions,
    )


def pod_gpus(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the UUIDs of the GPUs that HAMi gave a pod, or None; raises ``Malformed``.

    The form is ``UUID,type,MiB,cores:`` for each GPU and ``;`` behind each container.
    """
    written = annotations.get(ALLOCATED)
    if not written:
        return None
    found = []
    for device in filter(None, written.replace(";", ":").split(":")):
        uuid, comma, _ = device.partition(",")
        if not comma or not uuid:
            raise Malformed(f"{ALLOCATED} has {device!r}, expected UUID,type,memory,cores")
        found.append(uuid)
    return tuple(dict.fromkeys(found))


def _source(node: NodeFacts, key: str) -> str:
    return f"Node {node.name} annotation {key}"


def _register(annotations: Mapping[str, str]) -> tuple[Gpu, ...]:
    entries = items({REGISTER: document(annotations, REGISTER)}, REGISTER)
    if not entries:
        raise Malformed(f"{REGISTER} names no GPU")
    gpus = [
        _gpu(
            index=whole(each, "index", 0),
            uuid=text(each, "id"),
            memory=whole(each, "devmem", 0),
            product=optional(each, "type"),
            numa=whole(each, "numa", 0),
            healthy=each.get("health") is True,
            mode="mig" if each.get("mode") == "mig" else whole(each, "count", 0),
        )
        for each in entries
    ]
    return _in_order(gpus)


def _register_text(written: str) -> tuple[Gpu, ...]:
    """Return the GPUs of the form up to 2.7, ``UUID,count,MiB,cores,type,numa,healthy:``, in its order."""
    gpus: list[Gpu] = []
    for entry in filter(None, written.split(":")):
        fields = entry.split(",")
        numbers = [fields[place] for place in (1, 2, 5)] if len(fields) >= _TEXT_FIELDS else []
        if not numbers or not all(number.lstrip("-").isdecimal() for number in numbers):
            raise Malformed(f"{REGISTER} has {entry!r}, expected UUID,count,memory,cores,type,numa,healthy")
        gpus.append(
            _gpu(
                index=len(gpus),
                uuid=fields[0],
                memory=int(fields[2]),
                product=fields[4],
                numa=int(fields[5]),
                healthy=fields[6] == "true",
                mode=int(fields[1]),
            )
        )
    if not gpus:
        raise Malformed(f"{REGISTER} names no GPU")
    return _in_order(gpus)


def _gpu(
    *, index: int, uuid: str, memory: int, product: str, numa: int, healthy: bool, mode: int | str
) -> Gpu:
    share = ShareMode.MIG if mode == "mig" else ShareMode.SHARED if int(mode) > 1 else ShareMode.WHOLE
    name = product.removeprefix("NVIDIA-")
    return Gpu(index, uuid, name, memory, numa if numa >= 0 else None, healthy=healthy, mode=share)


def _in_order(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    ordered = tuple(sorted(gpus, key=lambda gpu: gpu.index))
    if [gpu.index for gpu in ordered] != list(range(len(ordered))):
        raise Malformed(f"{REGISTER} numbers its GPUs {[gpu.index for gpu in ordered]}")
    return ordered


def _words(annotations: Mapping[str, str], uuids: Sequence[str]) -> list[list[str]]:
    entries = items({SCORE: document(annotations, SCORE)}, SCORE)
    scores = {text(each, "uuid"): mapping(each, "score") for each in entries}
    missing = [uuid for uuid in uuids if uuid not in scores]
    if missing:
        raise Malformed(f"{SCORE} lacks {missing[0]}, which {REGISTER} names")
    return [["X" if a == b else _word(whole(scores[a], b, 0)) for b in uuids] for a in uuids]


def _word(score: int) -> str:
    links, rest = divmod(score, _NVLINK_SCORE)
    if rest not in _PCIE_SCORES or not 0 <= links <= MOST_LINKS:
        raise Malformed(f"{SCORE} has the score {score}, which no link adds up to")
    return f"NV{links}" if links else _PCIE_SCORES[rest]
