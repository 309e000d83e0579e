"""Registers how a device of this process is made again in a fresh one: its own layer says so, whoever needs it asks."""

from collections.abc import Callable

# Asked before an op runs; what it gives back is asked right after it, for lines of Python that make a device on which
# the op does again what it did in between.
Watch = Callable[[], Callable[[], tuple[str, ...]]]
_WATCHES: dict[str, Watch] = {}


def register_setup(device_type: str, watch: Watch) -> None:
    """Lets devices of this type be made again by what `watch` says."""
    _WATCHES[device_type] = watch


def watch_of(device_type: str) -> Watch | None:
    """Returns what says how such a device is made; None for those that torch has by itself."""
    return _WATCHES.get(device_type)
