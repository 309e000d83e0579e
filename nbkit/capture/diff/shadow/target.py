"""Where the shadow of a step runs: a device, and the floating-point dtype that stands for all of the step's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.replay.devices import read_place
from nbkit.errors import OptionError, first_line

PRECISIONS: dict[str, torch.dtype | None] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "same": None,
}
# There is no complex dtype of two bfloat16.
COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}


@dataclass(frozen=True)
class Target:
    """A device and a dtype; without a dtype every tensor has that of the step."""

    text: str
    device: torch.device
    dtype: torch.dtype | None

    def dtype_of(self, dtype: torch.dtype) -> torch.dtype:
        """What stands for one of the step's dtypes: integers and bools stay what they are."""
        if self.dtype is None:
            return dtype
        if dtype.is_complex:
            return COMPLEX.get(self.dtype, dtype)
        return self.dtype if dtype.is_floating_point else dtype

    def bring(self, tensor: Tensor, *, copy: bool) -> Tensor:
        """A tensor on this device in this dtype."""
        return tensor.to(self.device, self.dtype_of(tensor.dtype), copy=copy)

    def changing(self, shadow_of: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
        """What replaces one tensor, dtype or device of a call."""

        def change(value: Any) -> Any:
            if isinstance(value, Tensor):
                return shadow_of(value)
            return self.dtype_of(value) if isinstance(value, torch.dtype) else self.device

        return change


def target(text: str) -> Target:
    """The target that `text` names, such as "cpu:float64" or "cpu:same". Raises OptionError."""
    try:
        device, dtype = read_place(text, PRECISIONS)
    except Exception as error:
        raise OptionError(
            f"against={text!r} is neither a saved trace nor a device that can be used "
            f"({first_line(error)}); give a device and {', '.join(PRECISIONS)}, such as 'cpu:float64', or a "
            f"trace."
        ) from error
    return Target(text, device, dtype)
