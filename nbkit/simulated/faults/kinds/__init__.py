"""Lists the kinds of faults that a simulated device can have, by name; each file has a table of its own."""

from nbkit.simulated.faults.kinds import (
    accumulation,
    arguments,
    draws,
    exponential,
    masked_rows,
    masks,
    numbers,
    operands,
    orders,
    places,
    sums,
    values,
)
from nbkit.simulated.faults.kinds.kind import Kind

_FILES = (
    values, numbers, places, operands, arguments, sums, accumulation, orders, exponential, masks, masked_rows, draws,
)  # fmt: skip
KINDS: dict[str, Kind] = {kind.name: kind for file in _FILES for kind in file.KINDS}
