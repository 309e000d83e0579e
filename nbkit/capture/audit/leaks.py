"""Probes which positions of a model's result depend on which positions of its input."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from nbkit.errors import OptionError

# What a change of an input must do to a result, over the largest element of that, to be no rounding.
LEAST_CHANGE = 1e-4
PREFERRED = ("input_ids", "inputs_embeds")
Batch = Tensor | Mapping[str, Any]


def leaks(model: Callable[..., Any], batch: Batch, *, dim: int = 1) -> pd.DataFrame:
    """Returns a row for each position of the result that depends on a later one of the input; none of a causal model.

    Changes the input at one position after the other and runs the model each time, in evaluation mode, without
    gradients and from the same random state. Its mode and torch's random state are as before afterwards.

    Args:
        model: what is called with the batch: a module, or a function.
        batch: a tensor of tokens or values, (B, T, ...); or keyword arguments, of which `input_ids`, `inputs_embeds` or
            the first tensor is changed.
        dim: the dimension of positions, in the input and in the result.

    The frame has the columns input_position, output_position and change: the largest change of an element there over
    the largest element of the result. Raises OptionError for a batch without a tensor, and if the result has another
    number of positions, or none that can be compared.
    """
    name, tokens = _tokens(batch)
    if tokens.dim() <= dim:
        raise OptionError(
            f"The batch has shape {[*tokens.shape]}, which has no dimension {dim}; give dim=, that of positions."
        )
    with _evaluating(model), torch.no_grad(), torch.random.fork_rng():
        state = torch.random.get_rng_state()

        def result(changed: Tensor) -> Tensor:
            torch.random.set_rng_state(state)
            return _first_tensor(model(**{**batch, name: changed}) if isinstance(batch, Mapping) else model(changed))

        expected = result(tokens)
        if expected.dim() <= dim or expected.shape[dim] != tokens.shape[dim]:
            shapes = f"{[*expected.shape]} for an input of {[*tokens.shape]}"
            raise OptionError(f"The result has shape {shapes}: its dimension {dim} is not that of positions.")
        changes = [_change(expected, result(_changed(tokens, dim, at)), dim) for at in range(tokens.shape[dim])]
    table = np.stack(changes)
    at, of = np.nonzero((table > LEAST_CHANGE) & np.tri(len(table), k=-1, dtype=bool))
    return pd.DataFrame({"input_position": at, "output_position": of, "change": table[at, of]})


def _tokens(batch: Batch) -> tuple[str, Tensor]:
    """Returns what is changed, and its name among keyword arguments."""
    if isinstance(batch, Tensor):
        return "", batch
    if isinstance(batch, Mapping):
        named = {name: value for name, value in batch.items() if isinstance(value, Tensor)}
        for name in (*PREFERRED, *named):
            if name in named:
                return name, named[name]
    raise OptionError(f"The batch is a {type(batch).__name__} without a tensor; give a tensor, or a dict of arguments.")


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Puts a module into evaluation mode for a while; each part of it has its own mode afterwards."""
    modes = {part: part.training for part in model.modules()} if isinstance(model, nn.Module) else {}
    try:
        if isinstance(model, nn.Module):
            model.eval()
        yield
    finally:
        for part, is_training in modes.items():
            part.training = is_training


def _first_tensor(result: Any) -> Tensor:
    """Returns the result, the logits of it, or the first tensor in it."""
    result = getattr(result, "logits", result)
    while not isinstance(result, Tensor):
        items = [*result.values()] if isinstance(result, Mapping) else result
        if not isinstance(items, list | tuple) or not items:
            raise OptionError(
                f"The result is a {type(result).__name__} without a tensor; wrap the model in a function."
            )
        result = items[0]
    return result


def _changed(tokens: Tensor, dim: int, at: int) -> Tensor:
    """Returns the input with another value at each element of one position: other tokens that it has, else 0 and 1."""
    changed = tokens.clone()
    piece = changed.select(dim, at)
    if tokens.is_floating_point() or tokens.is_complex():
        piece += tokens.abs().amax() + 1
        return changed
    known = tokens.unique()
    first, last = (known[0], known[-1]) if len(known) > 1 else (tokens.new_tensor(0), tokens.new_tensor(1))
    piece.copy_(torch.where(piece == first, last, first))
    return changed


def _change(expected: Tensor, result: Tensor, dim: int) -> np.ndarray:
    """Returns the largest change at each position, over the largest element; Inf where NaN comes or goes."""
    difference = (result.double() - expected.double()).abs().nan_to_num(nan=float("inf"))
    difference[result.isnan() & expected.isnan()] = 0
    largest = difference.movedim(dim, 0).flatten(1).amax(1)
    size = expected.double().abs().nan_to_num(0, 0, 0).amax().clamp(min=torch.finfo(torch.float64).tiny)
    changes: np.ndarray = (largest / size).cpu().numpy()
    return changes
