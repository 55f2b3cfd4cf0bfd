"""GPUs and their links as NVML reports them, on machines where the NVIDIA driver runs.

The library is passed in (``nvidia-ml-py``, imported as ``pynvml``), so that nothing here needs a GPU to be tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arena_topo.agent.sysfs import PciDevice, near_nics, network_cards, pci_device
from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster.hardware import Gpu, Hardware, ShareMode
from arena_topo.topology.hardware.link_graph import wiring

_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""The words of ``nvidia-smi topo -m`` for NVML's levels (``nvmlGpuTopologyLevel_t``) of two GPUs' common ancestor."""

_TO_GPU = 0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class _Device:
    """A GPU: its handle, its PCI bus id in lower case, and the number of its NVLinks to each bus id.

    Links into switches, and those whose end NVML does not report, count under the empty text.
    """

    handle: Any
    bus: str
    links: dict[str, int]


def read_hardware(nvml: Any, sysfs: str = "/sys") -> Hardware:
    """Return the hardware of this machine.

    *sysfs* is where the kernel's ``/sys`` is mounted; NUMA nodes, PCIe roots and NICs are read there. Raises
    ``ArenaTopoError`` when the driver does not answer, or has no GPU.
    """
    try:
        # NVML only counts further initializations, so every reading may begin with one.
        nvml.nvmlInit()
        devices = [_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        gpus = [_gpu(nvml, index, device) for index, device in enumerate(devices)]
        words = [[_link_word(nvml, a, b) for b in devices] for a in devices]
    except nvml.NVMLError as error:
        raise ArenaTopoError(
            f"the NVIDIA driver does not answer: {error}",
            hint="run the agent with the NVIDIA container runtime and NVIDIA_VISIBLE_DEVICES=all",
        ) from error
    if not gpus:
        raise ArenaTopoError("this machine has no NVIDIA GPU", hint="run the agent on nodes with GPUs only")
    pci_devices = [pci_device(sysfs, device.bus) for device in devices]
    cards = network_cards(sysfs)
    # Whoever reads the annotation finds the same rates, and says what is assumed of them.
    graph, machine, _ = wiring(words, gpus[0].product, "NVML")
    return Hardware(
        gpus=tuple(
            _with_location(gpu, pci, near_nics(pci, cards))
            for gpu, pci in zip(gpus, pci_devices, strict=True)
        ),
        links=graph,
        nics=tuple(card.nic for card in cards),
        machine=machine,
    )


def _device(nvml: Any, index: int) -> _Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    links: dict[str, int] = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(handle, link):
                continue
            target = _target(nvml, handle, link)
        except nvml.NVMLError:
            # NVML refuses the first link that the GPU does not have, and every link of a GPU without NVLink.
            break
        links[target] = links.get(target, 0) + 1
    # The kernel writes bus ids in lower case, NVML in upper case.
    return _Device(handle, _text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower(), links)


def _target(nvml: Any, handle: Any, link: int) -> str:
    """Return the bus id of the GPU that a link leads to; an empty text for switches and unknown ends."""
    try:
        if nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) != _TO_GPU:
            return ""
        return _text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId).lower()
    except nvml.NVMLError:
        return ""


def _link_word(nvml: Any, a: _Device, b: _Device) -> str:
    """Return the word of ``nvidia-smi topo -m`` for the link between two GPUs."""
    if a is b:
        return "X"
    # Two GPUs with links into NVSwitches reach each other over as many links as the one that has fewer.
    count = a.links.get(b.bus, 0) or min(a.links.get("", 0), b.links.get("", 0))
    if count:
        return f"NV{count}"
    return _LEVELS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(a.handle, b.handle), "?")


def _gpu(nvml: Any, index: int, device: _Device) -> Gpu:
    return Gpu(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(device.handle)),
        product=_text(nvml.nvmlDeviceGetName(device.handle)),
        memory=nvml.nvmlDeviceGetMemoryInfo(device.handle).total // _MIB,
        mode=_mode(nvml, device.handle),
    )


def _mode(nvml: Any, handle: Any) -> ShareMode:
    # GPUs before Ampere do not have MIG, and NVML refuses the question.
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return ShareMode.WHOLE
    return ShareMode.MIG if current else ShareMode.WHOLE


def _with_location(gpu: Gpu, pci: PciDevice, nics: Sequence[str]) -> Gpu:
    return replace(gpu, numa=pci.numa, pcie_root=pci.root, nics=tuple(nics))


def _text(value: str | bytes) -> str:
    """Return a text of NVML, which older bindings give as bytes."""
    return value.decode() if isinstance(value, bytes) else value
