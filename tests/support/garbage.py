"""Has Python's garbage collector pass over what was there before a test: half a million objects of imported modules."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def pass_over() -> None:
    """Hides all that is alive now from collections, and from looks at what is alive."""
    gc.collect()
    gc.freeze()


@contextmanager
def frozen() -> Iterator[None]:
    """Hides all that is there now, garbage too, as long as the block runs."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        pass_over()
