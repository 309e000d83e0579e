"""Finds the device that a user names for opcost: a published one, this machine as measured, or one of their own."""

import torch

from nbkit.capture.calibration import calibration_path
from nbkit.devices.device import Device
from nbkit.devices.peaks import DEVICES, device_named
from nbkit.devices.stored import load_device
from nbkit.errors import OptionError

THIS_MACHINE = "this machine"


def device_of(value: str | Device) -> Device:
    """Returns the device. Raises OptionError for an unknown name, and for this machine before it is measured."""
    if isinstance(value, Device):
        return value
    if not isinstance(value, str):
        raise OptionError(f"device must be a name such as 'H100' or 'this machine', or a nbkit.Device, got {value!r}.")
    own = {THIS_MACHINE: None, "cpu": "cpu"}
    if value.lower() not in own:
        return device_named(value, [*DEVICES, *own])
    path = calibration_path(current_device(own[value.lower()]))
    if not path.exists():
        raise OptionError(
            f"How fast {value} runs ops has not been measured with this torch and {torch.get_num_threads()} threads; "
            f"run nbkit.calibrate(), which takes half a minute, or name a device such as 'H100'."
        )
    return load_device(path)


def current_device(name: str | None) -> torch.device:
    """Returns the device of a name; without one the accelerator if there is one, else the CPU. Raises OptionError."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is not None and not _has_events(found):
        found = None  # a device that only looks like one, as the simulated one does, has no times of its own
    if name is None:
        return found or torch.device("cpu")
    known = {"cpu", *({found.type} if found else ())}
    if str(name).partition(":")[0] not in known:
        raise OptionError(f"device={name!r} is not on this machine; here are {', '.join(sorted(known))}.")
    return torch.device(name)


def _has_events(device: torch.device) -> bool:
    """Returns whether events of a device tell times."""
    try:
        first, last = (torch.Event(device, enable_timing=True) for _ in range(2))
        first.record()
        last.record()
        last.synchronize()
        first.elapsed_time(last)
    except RuntimeError:
        return False
    return True
