"""Computes chosen ops of a step in another dtype (opcast)."""

from collections.abc import Iterable, Mapping
from typing import Unpack

import torch

from nbkit.capture.operators.cast_probe import CastProbe
from nbkit.capture.operators.dtype_map import FLOAT8, Dtype, dtype_map, not_cast
from nbkit.capture.operators.elsewhere import HALVES, Elsewhere
from nbkit.capture.operators.fallback import Replacing
from nbkit.capture.operators.intercept import Intercepted, Interceptor
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.scope.filters import CallFilters, with_filters
from nbkit.errors import OptionError


@with_filters
class opcast(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Computes chosen ops of a step in another dtype, as a context manager; gives a Trace with `replaced`.

    The second way to try a fix: if a step in half precision is right with an op in float32 and wrong without, that op
    needs it. Inputs are cast, the op runs, and each result comes back in the dtype that it has without the cast, also
    by promotion; what the op writes to is written back, and strides, aliases, autograd graph and version counters are
    those of the bare step. Ops without floating-point inputs, views, casts and copies stay as they are, counted in
    `meta["skipped"]`.

    With dry_run, the step stays as it is, and each op runs once more in that dtype from its true inputs: the frame
    `casts` says what the cast would cost it. Its column `loss_change` is the first-order effect on what backward() was
    called on: the sum of error times gradient. float8 dtypes are for dry_run: inputs are rounded to them, without a
    scale, with one scale per tensor and with one per block of 128, and the op computes in float32.

    Args:
        dtype: the dtype to compute in, such as "float32" for all floating-point inputs, or
            "float16->float32,bfloat16->float32"; in code also a torch.dtype, or {"float16": "float32"}.
        dry_run: leave the step as it is, and say what the cast would cost each op.
        **filters: those of CallFilters.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError: before anything runs.
    """

    verb = "opcast"

    def __init__(
        self,
        dtype: Dtype | Mapping[Dtype, Dtype],
        *,
        dry_run: bool = False,
        name: str | None = None,
        **filters: Unpack[CallFilters],
    ) -> None:
        dtypes = dtype_map(dtype)
        tool: Interceptor
        if dry_run:
            tool = CastProbe(dtypes, filters)
        elif narrow := [kind for kind in dtypes.values() if kind in FLOAT8]:
            text = str(narrow[0]).removeprefix("torch.")
            raise OptionError(f"torch computes no step in {text}; add dry_run=True to see what it would cost.")
        else:
            tool = Casting(Elsewhere(None, dtypes), _names(dtypes.values()), filters)
        super().__init__(tool, name=name)


class Casting(Replacing):
    """Runs chosen calls in other dtypes."""

    def skipped(self, reason: str) -> str:
        return f"not cast: {reason}"

    def refuses(self, call: Intercepted) -> str | None:
        return not_cast(call, self.elsewhere.dtypes) or super().refuses(call)

    def ran_in(self, call: Intercepted, is_widened: bool) -> str:
        dtypes = self.elsewhere.dtypes
        cast = [dtypes[tensor.dtype] for tensor in call.tensors() if tensor.dtype in dtypes]
        ran = [HALVES.get(dtype, dtype) if is_widened else dtype for dtype in cast]
        return _names(dtype.to_real() if dtype.to_real() in dtypes.values() else dtype for dtype in ran) or self.ran


def _names(dtypes: Iterable[torch.dtype]) -> str:
    """Returns dtypes as text, several with commas; complex ones only where there are no others."""
    names = dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in dtypes)
    return ", ".join(name for name in names if not name.startswith("complex")) or ", ".join(names)
