"""HAMi: node annotations with the GPUs and the scores of their links, pod annotations with each pod's GPUs.

A score adds up how two GPUs reach each other: 10 across sockets, 20 in one NUMA node, 30 over the host
bridge, 40 over several PCIe switches, 50 over one, 60 on one board, and 100 for each NVLink. So 210 is two
NVLinks next to a path across sockets, NV2; 0 says that nothing is known. Source: Project-HAMi/HAMi 2.10,
pkg/device/nvidia and docs/develop/protocol.md. Its JSON leaves out zeros.
"""

from collections.abc import Iterator, Mapping, Sequence

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, ShareMode
from arena_topo.model.keys import HAMI_ALLOCATED, HAMI_REGISTER, HAMI_SCORE
from arena_topo.model.text.documents import items, mapping, take
from arena_topo.model.text.json import cut, shown
from arena_topo.topology.hardware import MOST_LINKS, fill_gpu_links, find_product, wiring
from arena_topo.topology.objects import MOST_GPUS, NodeFacts, Reading, Trust, digits, json_document

_PCIE_SCORES = {0: "?", 10: "SYS", 20: "NODE", 30: "PHB", 40: "PXB", 50: "PIX", 60: "PIX"}
_NVLINK_SCORE = 100
_TEXT_FIELDS = 7


def read_node(node: NodeFacts) -> Iterator[Reading]:
    """Yield what HAMi's annotations say of a node; raises ``DocumentError`` naming the key."""
    register = node.annotations.get(HAMI_REGISTER)
    if not register:
        return
    gpus = _json_register(node.annotations) if register.lstrip().startswith("[") else _text_register(register)
    if HAMI_SCORE not in node.annotations:
        yield Reading(node=node.name, source=_source(node, HAMI_REGISTER), trust=Trust.HAMI, gpus=gpus)
        return
    words = _words(node.annotations, [gpu.uuid for gpu in gpus])
    product = gpus[0].product
    spec = find_product(product)
    assumptions: tuple[str, ...] = ()
    if spec and spec.switch_links and not any(word.startswith("NV") for row in words for word in row):
        # HAMi before 2.10 does not see the links into NVSwitches.
        assumptions = fill_gpu_links(words, product)
    graph, machine, assumed_rates = wiring(words, product, HAMI_SCORE)
    yield Reading(
        node=node.name,
        source=_source(node, HAMI_SCORE),
        trust=Trust.HAMI,
        machine=machine,
        gpus=gpus,
        links=graph,
        assumptions=assumptions,
        assumed_rates=assumed_rates,
    )


def pod_gpus(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the UUIDs of the GPUs that HAMi gave a pod, or None; raises ``DocumentError``.

    The form is ``UUID,type,MiB,cores:`` for each GPU and ``;`` behind each container.
    """
    allocated = annotations.get(HAMI_ALLOCATED)
    if not allocated:
        return None
    uuids = []
    for device in filter(None, allocated.replace(";", ":").split(":")):
        uuid, comma, _ = device.partition(",")
        if not comma or not uuid:
            raise DocumentError(f"{HAMI_ALLOCATED} has {shown(device)}, expected UUID,type,memory,cores")
        uuids.append(uuid)
    # Containers of one pod may share a GPU.
    return tuple(dict.fromkeys(uuids))


def _source(node: NodeFacts, key: str) -> str:
    return f"Node {node.name} annotation {key}"


def _json_register(annotations: Mapping[str, str]) -> tuple[Gpu, ...]:
    entries = items({HAMI_REGISTER: json_document(annotations, HAMI_REGISTER)}, HAMI_REGISTER)
    if not entries:
        raise DocumentError(f"{HAMI_REGISTER} names no GPU")
    gpus = [
        _gpu(
            index=take(entry, "index", int, 0),
            uuid=take(entry, "id", str),
            memory=take(entry, "devmem", int, 0),
            product=take(entry, "type", str, ""),
            numa=take(entry, "numa", int, 0),
            # Left out like any zero where the GPU is not healthy.
            healthy=entry.get("health") is True,
            mode="mig" if entry.get("mode") == "mig" else take(entry, "count", int, 0),
        )
        for entry in entries
    ]
    return _in_order(gpus)


def _text_register(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs of the form up to 2.7, ``UUID,count,MiB,cores,type,numa,healthy:``, in its order."""
    gpus: list[Gpu] = []
    for entry in filter(None, text.split(":")):
        fields = entry.split(",")
        if len(fields) < _TEXT_FIELDS:
            raise DocumentError(
                f"{HAMI_REGISTER} has {shown(entry)}, expected UUID,count,memory,cores,type,numa,healthy"
            )
        count, memory, numa = (_number(fields[index]) for index in (1, 2, 5))
        gpus.append(
            _gpu(
                index=len(gpus),
                uuid=fields[0],
                memory=memory,
                product=fields[4],
                numa=numa,
                healthy=fields[6] == "true",
                mode=count,
            )
        )
    if not gpus:
        raise DocumentError(f"{HAMI_REGISTER} names no GPU")
    return _in_order(gpus)


def _number(text: str) -> int:
    # A node without NUMA has the node -1.
    return -digits(text[1:], HAMI_REGISTER) if text.startswith("-") else digits(text, HAMI_REGISTER)


def _gpu(
    *, index: int, uuid: str, memory: int, product: str, numa: int, healthy: bool, mode: int | str
) -> Gpu:
    # *mode* is "mig", or into how many shares the GPU is divided.
    share = ShareMode.MIG if mode == "mig" else ShareMode.SHARED if int(mode) > 1 else ShareMode.WHOLE
    # HAMi writes the vendor before the driver's name of the product.
    name = product.removeprefix("NVIDIA-")
    return Gpu(index, uuid, name, memory, numa if numa >= 0 else None, healthy=healthy, mode=share)


def _in_order(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    ordered = tuple(sorted(gpus, key=lambda gpu: gpu.index))
    if len(ordered) > MOST_GPUS or [gpu.index for gpu in ordered] != list(range(len(ordered))):
        raise DocumentError(
            f"{HAMI_REGISTER} numbers its GPUs {shown([gpu.index for gpu in ordered])}, expected 0, 1, ..."
        )
    return ordered


def _words(annotations: Mapping[str, str], uuids: Sequence[str]) -> list[list[str]]:
    entries = items({HAMI_SCORE: json_document(annotations, HAMI_SCORE)}, HAMI_SCORE)
    scores = {take(entry, "uuid", str): mapping(entry, "score") for entry in entries}
    missing = [uuid for uuid in uuids if uuid not in scores]
    if missing:
        raise DocumentError(f"{HAMI_SCORE} lacks {cut(missing[0])}, which {HAMI_REGISTER} names")
    return [["X" if a == b else _word(take(scores[a], b, int, 0)) for b in uuids] for a in uuids]


def _word(score: int) -> str:
    links, rest = divmod(score, _NVLINK_SCORE)
    if rest not in _PCIE_SCORES or not 0 <= links <= MOST_LINKS:
        raise DocumentError(f"{HAMI_SCORE} has the score {score}, which is not the sum of any links")
    return f"NV{links}" if links else _PCIE_SCORES[rest]
