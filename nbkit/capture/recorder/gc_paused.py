"""Python's garbage collector, at rest while the frames of a step are made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, no garbage is looked for: a step leaves lists of many thousand objects, which are in use until then."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
