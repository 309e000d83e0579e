"""Builds the graph of something that lives in this process, whatever torch calls it."""

import json
from typing import Any

import pandas as pd
from torch import nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from nbkit.capture.frames.build import now_text, versions
from nbkit.capture.graphs.exported import exported_graph
from nbkit.capture.graphs.module_tree import module_tree
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace

# Tied parameters that a note names.
MOST_TIED = 3


def live_graph(source: Any) -> Trace:
    """Returns a trace of the graph of a module (its tree), or of an exported program or FX graph (its ops).

    Its nodes have no roles or parts yet. Raises OptionError if it is none of these.
    """
    if isinstance(source, ExportedProgram):
        return _trace(exported_graph(source), source, "torch.export program")
    if isinstance(source, GraphModule):  # a module, too
        return _trace(exported_graph(source), source, "FX graph")
    if isinstance(source, nn.Module):
        return _trace(module_tree(source), source, "torch module")
    if isinstance(source, type) and issubclass(source, nn.Module):
        raise OptionError(f"{source.__name__} is a class; give a model, such as {source.__name__}(...).")
    raise OptionError(
        f"There is no graph of the type {type(source).__name__}; give a torch.nn.Module, a torch.export program, "
        f"a trace, or the path of a dump or an ONNX model."
    )


def _trace(frames: dict[str, pd.DataFrame], source: Any, kind: str) -> Trace:
    meta = {
        "verb": "opgraph",
        "name": _root_class(frames["modules"]) or type(source).__name__,
        "created": now_text(),
        "source": kind,
        "versions": versions(),
        "complete": True,
        "error": None,
        "notes": tied_notes(frames["nodes"]),
    }
    return Trace(frames, meta)


def tied_notes(nodes: pd.DataFrame) -> list[str]:
    """Says which parameters stand under several paths; no sentence where none does."""
    is_tied = (nodes["kind"] == "parameter") & nodes["attributes"].str.contains('"same_as"', na=False)
    tied = nodes.loc[is_tied, ["name", "attributes"]].itertuples(index=False)
    pairs = [(name, known["same_as"]) for name, text in tied if "same_as" in (known := json.loads(text))]
    if not pairs:
        return []
    few = [f"{name} is {first}" for name, first in pairs[:MOST_TIED]]
    rest = len(pairs) - len(few)
    names = ", ".join([*few, *([f"{rest} more"] if rest else [])])
    return [f"tied parameters are counted once: {names}"]


def _root_class(modules: pd.DataFrame) -> str | None:
    """Returns the class of the model, which an exported program knows by the calls of its modules alone."""
    known = modules.loc[modules["module"] == "", "type"].dropna().tolist()
    return known[0] if known else None
