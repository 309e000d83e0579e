"""Audits a training step: gradients, updates and modes of all parameters (opaudit)."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn

from nbkit.capture.audit.observer import AuditObserver
from nbkit.capture.recorder.recorder import Recorder
from nbkit.errors import OptionError


class opaudit(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Finds what is wrong in a training step, as a context manager; gives a Trace with `parameters` and `findings`.

    The trace is that of `optrace`, and what runs inside computes the same bits as without it. `parameters` has a row
    for each parameter and buffer: whether an optimizer holds it, which gradient it got, how far it moved. `findings`
    has a row for each thing that is wrong: parameters without a gradient and the op that cuts the graph, gradients that
    no step uses, parameters that no optimizer holds, gradients that are zero, vanish, hold NaN or are added to those of
    the step before, updates that rounding loses, steps that a GradScaler skips, dropout in eval mode. Record whole
    steps: forward, backward, optimizer.

    Args:
        model: the model, or several in a list, to look at; without it those that run inside.
        optimizer: the optimizer, or several in a list; without it those that step inside.
        name: what the trace is called where it is shown.

    Raises:
        OptionError: before anything runs, if `model` is no module or `optimizer` has no param_groups.

    While it records it holds a copy of all parameters and buffers on their devices: as much memory as the models
    themselves take. Each step reads all gradients once, which a device is waited for.
    """

    verb = "opaudit"

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module] | None = None,
        optimizer: Any | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(observer_of(model, optimizer), name=name)


def observer_of(model: nn.Module | Sequence[nn.Module] | None, optimizer: Any | None) -> AuditObserver:
    """Returns what follows the models and optimizers given, else those that run. Raises OptionError for others."""
    models = [model] if isinstance(model, nn.Module) else listed(model)
    optimizers = [optimizer] if hasattr(optimizer, "param_groups") else listed(optimizer)
    if not models and model is not None:
        raise OptionError("model has no module in it; give a torch.nn.Module, or several.")
    for one in models:
        if not isinstance(one, nn.Module):
            raise OptionError(f"model must be a module, got {type(one).__name__}; give a torch.nn.Module, or several.")
    for one in optimizers:
        if not hasattr(one, "param_groups"):
            raise OptionError(f"optimizer={type(one).__name__} has no param_groups; give one of torch.optim.")
    return AuditObserver(models, optimizers)


def listed(values: Any) -> list[Any]:
    """Returns what is given as several, or as nothing, as a list."""
    if values is None:
        return []
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
