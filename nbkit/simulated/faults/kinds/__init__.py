"""Lists the kinds of faults that a simulated device can have, by name."""

from nbkit.simulated.faults.kinds.accumulation import low_precision_accumulation
from nbkit.simulated.faults.kinds.arguments import wrong_axis, wrong_epsilon
from nbkit.simulated.faults.kinds.exponential import approximate_exp
from nbkit.simulated.faults.kinds.kind import Kind
from nbkit.simulated.faults.kinds.masked_rows import nan_masked_rows
from nbkit.simulated.faults.kinds.values import dropped_write, flush_denormals, relative_error, stale_result

_ALL = (
    Kind(
        "relative_error",
        relative_error,
        "every element is too large by a share of itself",
        "the share",
        1e-2,
        smallest=-1e6,
        largest=1e6,
    ),
    Kind(
        "low_precision_accumulation",
        low_precision_accumulation,
        "a sum or product is accumulated with too few bits",
        "the mantissa bits of the accumulator (7 as bfloat16, 10 as TF32)",
        7,
        smallest=1,
        largest=23,
    ),
    Kind(
        "wrong_epsilon",
        wrong_epsilon,
        "the number that keeps a division finite is another one",
        "the factor by which it is too large",
        1000.0,
    ),
    Kind(
        "wrong_axis",
        wrong_axis,
        "a reduction takes another axis for its own where that has an odd size",
        needs="an odd size along the reduced axis",
    ),
    Kind(
        "approximate_exp",
        approximate_exp,
        "exp() is a polynomial of low degree",
        "the degree (relative errors 4e-2, 2e-3, 1e-4, 4e-6 for 1 to 4)",
        2,
        smallest=1,
        largest=8,
    ),
    Kind("flush_denormals", flush_denormals, "numbers below the dtype's smallest normal one become zero"),
    Kind("dropped_write", dropped_write, "an in-place op leaves the tensor as it was"),
    Kind(
        "stale_result",
        stale_result,
        "the result is that of the call before, of the same op and sizes",
        needs="an earlier call with results of the same sizes",
        remembers=True,
    ),
    Kind("nan_masked_rows", nan_masked_rows, "rows of which a mask hides an element come out as NaN"),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
