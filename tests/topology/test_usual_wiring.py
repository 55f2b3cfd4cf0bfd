"""How machines of a product are usually wired."""

import pytest

from arena_topo.topology.hardware import usual_hardware
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform
from tests.topology.texts import rows

FOUR_OF_V100 = rows("X NV1 NV1 NV2\nNV1 X NV2 NV1\nNV1 NV2 X NV2\nNV2 NV1 NV2 X")


@pytest.mark.parametrize(
    ("product", "count", "machine", "kind", "expected"),
    [
        ("Tesla-V100-SXM2-16GB", 8, "", "8xV100-cubemesh", CUBE_MESH),
        ("Tesla-V100-SXM2-16GB", 4, "", "4xV100", None),
        ("Tesla-V100-SXM2-16GB", 4, "p3.8xlarge", "4xV100-mesh", FOUR_OF_V100),
        ("Tesla-V100-SXM3-32GB", 16, "DGX-2", "16xV100-SXM3-nvswitch", uniform("NV6", 16)),
        ("NVIDIA-A100-SXM4-80GB", 8, "", "8xA100-nvswitch", uniform("NV12", 8)),
        ("NVIDIA-A100-SXM4-40GB", 4, "", "4xA100-mesh", uniform("NV4", 4)),
        ("NVIDIA-A100-SXM4-40GB", 4, "a2-highgpu-4g", "4xA100-nvswitch", uniform("NV12", 4)),
        ("NVIDIA-A100-80GB-PCIe", 4, "", "4xA100-PCIe-pcie", uniform("SYS", 4)),
        ("NVIDIA-A800-SXM4-80GB", 8, "", "8xA800-nvswitch", uniform("NV8", 8)),
        ("NVIDIA-H100-80GB-HBM3", 8, "", "8xH100-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-H100-80GB-HBM3", 4, "", "4xH100-mesh", uniform("NV6", 4)),
        ("NVIDIA-H800", 8, "", "8xH800-nvswitch", uniform("NV8", 8)),
        ("NVIDIA-H200", 8, "", "8xH200-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-H100-PCIe", 2, "", "2xH100-PCIe-pcie", uniform("SYS", 2)),
        ("NVIDIA-H100-NVL", 2, "", "2xH100-PCIe-pcie", uniform("SYS", 2)),
        ("NVIDIA-B200", 8, "", "8xB200-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-GB200", 4, "", "4xGB200-nvswitch", uniform("NV18", 4)),
        ("NVIDIA-L40S", 4, "", "4xL40S-pcie", uniform("SYS", 4)),
        ("NVIDIA-L4", 1, "", "1xL4-single", uniform("SYS", 1)),
        ("Tesla-T4-SHARED", 4, "", "4xT4-pcie", uniform("SYS", 4)),
        ("NVIDIA-A10G", 4, "", "4xA10-pcie", uniform("SYS", 4)),
        ("NVIDIA-A40", 4, "", "4xA40-pcie", uniform("SYS", 4)),
        ("NVIDIA-RTX-A6000", 4, "", "4xRTX-A6000-pcie", uniform("SYS", 4)),
        ("AMD_Instinct_MI300X_OAM", 8, "", "8xMI300X-xgmi", uniform("XGMI", 8)),
        ("Intel-Max-1550", 8, "", "8xIntel-Max-1550", None),
    ],
)
def test_a_product_has_its_usual_wiring(
    product: str, count: int, machine: str, kind: str, expected: list[list[str]] | None
) -> None:
    """Where machines of a product differ, or the product is not known, no links are claimed."""
    hardware = usual_hardware(product, count, machine)

    assert kind == hardware.machine
    assert expected == (labels(hardware.links) if hardware.links else None)
