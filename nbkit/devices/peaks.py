"""Lists the published peaks of common devices, of dense matrices, without sparsity.

Figures are those of the makers; where only one with sparsity is printed, half of it is taken. Sources:
NVIDIA A100 Tensor Core GPU datasheet (2021) and A100 40GB PCIe product brief; H100 Tensor Core GPU datasheet (2024) and
architecture whitepaper; H200 Tensor Core GPU datasheet (2024); V100 datasheet (2020), the SXM2 card; T4 datasheet
(2019); L4 datasheet (2023); Ada GPU architecture whitepaper, appendix A (2022), for the RTX 4090 with float32
accumulation; AMD Instinct MI250X datasheet (2021), half of the card, which is what torch sees as a device; AMD Instinct
MI300X datasheet (2023). Links count one direction: NVLink, Infinity Fabric, else PCIe. A launch is no published figure:
5 microseconds are what PyTorch takes on a current host to launch a small op. Memory is the nominal size.
"""

from collections.abc import Collection

from nbkit.devices.device import Device
from nbkit.errors import OptionError, nearest

TERA, GIGA, GIB = 1e12, 1e9, 2**30
LAUNCH_US = 5.0


def _device(name: str, memory_gib: int, gigabytes_per_s: float, link_gigabytes_per_s: float, **tera: float) -> Device:
    peaks = {dtype: flops * TERA for dtype, flops in tera.items()}
    link = link_gigabytes_per_s * GIGA
    return Device(name, peaks, gigabytes_per_s * GIGA, LAUNCH_US, memory_bytes=memory_gib * GIB, link_bytes_per_s=link)


_A100 = {"float64": 9.7, "float32": 19.5, "tf32": 156.0, "bfloat16": 312.0, "float16": 312.0, "int8": 624.0}
_HOPPER = {
    "float64": 34.0, "float32": 67.0, "tf32": 494.5, "bfloat16": 989.5, "float16": 989.5, "float8": 1979.0,
    "int8": 1979.0,
}  # fmt: skip
_H100_PCIE = {
    "float64": 26.0, "float32": 51.0, "tf32": 378.0, "bfloat16": 756.5, "float16": 756.5, "float8": 1513.0,
    "int8": 1513.0,
}  # fmt: skip
_L4 = {"float32": 30.3, "tf32": 60.0, "bfloat16": 121.0, "float16": 121.0, "float8": 242.5, "int8": 242.5}
_RTX_4090 = {"float32": 82.6, "tf32": 82.6, "bfloat16": 165.2, "float16": 165.2, "float8": 330.3, "int8": 660.6}
_MI250X = {"float64": 23.95, "float32": 23.95, "bfloat16": 191.5, "float16": 191.5, "int8": 191.5}
_MI300X = {
    "float64": 81.7, "float32": 163.4, "tf32": 653.7, "bfloat16": 1307.4, "float16": 1307.4, "float8": 2614.9,
    "int8": 2614.9,
}  # fmt: skip
DEVICES = {
    device.name: device
    for device in (
        _device("A100 40GB", 40, 1555, 300, **_A100),
        _device("A100 80GB", 80, 2039, 300, **_A100),
        _device("H100", 80, 3350, 450, **_HOPPER),
        _device("H100 PCIe", 80, 2000, 300, **_H100_PCIE),
        _device("H200", 141, 4800, 450, **_HOPPER),
        _device("V100", 32, 900, 150, float64=7.8, float32=15.7, float16=125.0),
        _device("T4", 16, 320, 16, float32=8.1, float16=65.0, int8=130.0),
        _device("L4", 24, 300, 32, **_L4),
        _device("RTX 4090", 24, 1008, 32, **_RTX_4090),
        _device("MI250X", 64, 1638.4, 200, **_MI250X),
        _device("MI300X", 192, 5300, 448, **_MI300X),
    )
}
# Other names of these.
ALIASES = {"A100": "A100 80GB", "H100 SXM": "H100", "H200 SXM": "H200", "4090": "RTX 4090"}


def device_named(name: str, known: Collection[str] = tuple(DEVICES)) -> Device:
    """Returns the published device of a name, in any case and spacing: "H100", "h100 pcie", "A100-40GB".

    Raises OptionError for one that is not here, with the closest of the names in `known`.
    """
    names = {_plain(of): DEVICES[ALIASES.get(of, of)] for of in (*DEVICES, *ALIASES)}
    if (found := names.get(_plain(name))) is not None:
        return found
    close = nearest(name.upper(), known)
    raise OptionError(f"The device {name!r} is not known (nbkit.Device(...) describes another); {close}")


def _plain(name: str) -> str:
    """Returns a name without case, spaces, dashes and maker."""
    return "".join(filter(str.isalnum, name.lower())).removeprefix("nvidia").removeprefix("amd")
