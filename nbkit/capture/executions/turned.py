"""Turns a model into what torch.export or torch.compile makes of it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from nbkit.capture.executions.names import returning_tensors
from nbkit.errors import OptionError, first_line


def exported(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedProgram:
    """Returns the program of a module, decomposed to core ops. Raises OptionError if it cannot be exported."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"only a module can be exported, and this is a {type(model).__name__}.")
    try:
        return _exported(model, args, kwargs)
    except Exception:
        try:
            with returning_tensors(model):
                return _exported(model, args, kwargs)
        except Exception as error:
            reason = first_line(error)
            raise OptionError(f"{type(model).__name__} cannot be exported by torch.export: {reason}") from error


def _exported(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's own words to its developers
        program: ExportedProgram = torch.export.export(model, tuple(args), dict(kwargs)).run_decompositions()
    return program


def compiled(model: Any) -> Any:
    """Returns the compiled model, which is compiled when it runs."""
    return torch.compile(model)
