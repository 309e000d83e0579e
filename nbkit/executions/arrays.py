"""Turns what a user gives as a tensor into numpy, whatever library it is of."""

from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(value: Any) -> npt.NDArray[Any]:
    """Returns a tensor, array or number as numpy; bfloat16, which numpy has not, as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2"):
            value = value.float()
        return np.asarray(value.numpy())
    return np.asarray(value)
