"""live_graph: the graph of something that lives in this process, whatever torch calls it."""

from typing import Any

import pandas as pd
from torch import nn

from nbkit.capture.build import now_text, versions
from nbkit.capture.graphs.module_tree import module_tree
from nbkit.errors import OptionError
from nbkit.trace import Trace


def live_graph(source: Any) -> Trace:
    """A trace of the graph of a module (its tree), or of an exported program or FX graph (its ops).

    Its nodes have no roles or parts yet. Raises OptionError if it is none of these.
    """
    if is_module_class(source):
        raise OptionError(f"{source.__name__} is a class; give a model, such as {source.__name__}(...).")
    if not isinstance(source, nn.Module):
        raise OptionError(
            f"There is no graph of a {type(source).__name__}; give a torch.nn.Module, a torch.export program, a trace, "
            f"or the path of a dump or an ONNX model."
        )
    return _trace(module_tree(source), source, "torch module")


def is_module_class(source: Any) -> bool:
    """Whether it is a class of modules, given where a model was meant."""
    return isinstance(source, type) and issubclass(source, nn.Module)


def _trace(frames: dict[str, pd.DataFrame], source: Any, kind: str) -> Trace:
    meta = {
        "verb": "opgraph",
        "name": type(source).__name__,
        "created": now_text(),
        "source": kind,
        "versions": versions(),
        "complete": True,
        "error": None,
        "notes": [],
    }
    return Trace(frames, meta)
