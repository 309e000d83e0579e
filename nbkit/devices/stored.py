"""Writes what was measured on a device into a file, and reads it."""

import json
from pathlib import Path

from nbkit.devices.device import CALLS, Device
from nbkit.errors import NbkitError, OptionError


def save_device(device: Device, path: Path) -> None:
    """Writes a device as JSON. Raises OptionError where the folder cannot be written."""
    held = {**device.peaks(), "calls": None if device.calls is None else device.calls.to_dict("list")}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(held))
        new.replace(path)  # another process may read it meanwhile
    except OSError as error:
        raise OptionError(
            f"{path.parent} cannot be written: {error.strerror}; set NBKIT_CACHE to a folder that can."
        ) from error


def load_device(path: Path) -> Device:
    """Returns a device from its file. Raises OptionError for one that holds something else."""
    try:
        held = json.loads(path.read_text())
        calls = held.pop("calls")
        return Device(**held, calls=None if calls is None else CALLS.frame(calls))
    except (NbkitError, OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise OptionError(f"{path} does not hold what nbkit.calibrate() wrote; run that again.") from error
