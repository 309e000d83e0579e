"""Turns a model into what torch.export or torch.compile makes of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from nbkit.errors import OptionError, first_line


def exported(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ExportedProgram:
    """Returns the program of a module, decomposed to core ops. Raises OptionError if it cannot be exported."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"only a module can be exported, and this is a {type(model).__name__}.")
    try:
        program: ExportedProgram = torch.export.export(model, tuple(args), dict(kwargs)).run_decompositions()
    except Exception as error:
        raise OptionError(f"{type(model).__name__} cannot be exported by torch.export: {first_line(error)}") from error
    return program


def compiled(model: Any) -> Any:
    """Returns the compiled model, which is compiled when it runs."""
    return torch.compile(model)
