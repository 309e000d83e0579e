"""Sets the level of torch's C++ log, which has no Python name: its warnings would reach the user's cell."""

import ctypes
from functools import cache
from pathlib import Path

import torch

ERROR = 2
LIBRARIES = ("libc10.so", "libc10.dylib", "c10.dll")


class MutedCppLog:
    """Holds back C++ warnings between start() and stop().

    A memory recording makes torch log "Memory block of unknown size was allocated before the profiling started" at
    every thousandth free of such a block.
    """

    def __init__(self) -> None:
        self.before: int | None = None

    def start(self) -> None:
        level = _log_level()
        if level is not None and self.before is None:
            self.before, level.value = level.value, max(level.value, ERROR)

    def stop(self) -> None:
        level = _log_level()
        if level is not None and self.before is not None:
            level.value, self.before = self.before, None


@cache
def _log_level() -> ctypes.c_int | None:
    """Returns the variable of the C++ library; None where this build of torch has no such symbol."""
    for name in LIBRARIES:
        path = Path(torch.__file__).parent / "lib" / name
        if path.exists():
            try:
                return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level")
            except (OSError, ValueError):
                return None
    return None
