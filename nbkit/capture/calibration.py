"""Finds what nbkit.calibrate() measured of a device of this machine."""

import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from nbkit.capture.cache_folder import cache_folder
from nbkit.devices.stored import load_device
from nbkit.errors import OptionError

# Counts how often the rules changed by which bytes of a call are counted: what was measured by others does not hold.
COUNTING = 2


def calibration_path(device: torch.device) -> Path:
    """Returns the file of what was measured on a device of this machine, with this torch and number of threads."""
    threads = f"{torch.get_num_threads()}-threads" if device.type == "cpu" else "device"
    key = f"{platform.node()}-{device.type}-{threads}-torch-{torch.__version__}-counting-{COUNTING}"
    return cache_folder() / "calibrated" / f"{re.sub('[^A-Za-z0-9.+-]', '_', key)}.json"


def peaks_of_most(ops: pd.DataFrame) -> dict[str, Any] | None:
    """Returns name and peaks of the device that runs most ops of known FLOPs, as measured; null if it was not."""
    devices = ops["device"][ops["flops"].notna()].mode()
    with suppress(OptionError):
        if len(devices) and (path := calibration_path(torch.device(devices[0]))).exists():
            peaks = load_device(path).peaks()
            return {name: peaks[name] for name in ("name", "flops_per_s", "bytes_per_s")}
    return None
