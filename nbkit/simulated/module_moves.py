"""Keeps the parameters of a simulated device the objects they are under Module.to("cpu") and its kin."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import nn

from nbkit.simulated.tensor import SimulatedTensor

# How torch's message begins where it cannot swap a parameter; the parameter's name follows.
REFUSAL = "_apply(): Couldn't swap "


def keep_parameters_when_moved() -> None:
    """Makes a module with parameters on a simulated device swap their content when it is converted.

    torch would make new parameters on the way back to the CPU, which optimizers and tied modules do not know. It has a
    flag for swapping instead, which is on only while such a module is converted.
    """
    nn.Module._apply = _swapping(nn.Module._apply)  # type: ignore[method-assign]


def _swapping(original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    @wraps(original)
    def _apply(self: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        before = torch.__future__.get_swap_module_params_on_conversion()
        if any(isinstance(parameter, SimulatedTensor) for parameter in self.parameters()):
            torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return original(self, *args, **kwargs)
        except RuntimeError as error:
            if before or not str(error).startswith(REFUSAL):
                raise
            raise RuntimeError(
                f"The module could not be moved whole, as {str(error).removeprefix(REFUSAL)} is in use: by a graph "
                f"that is alive, or by a recorder. Let go of the model's results (or detach() them) and move it "
                f"again, or move a copy: copy.deepcopy(model)."
            ) from error
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return _apply
