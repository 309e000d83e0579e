"""What older versions of IPython do not have. IPython itself is imported at use: recording works without it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any


def output_can_be_silenced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a magic function whose value a `;` at the end of the cell hides.

    IPython has this since 8.7; before, it shows the value of a magic also above such an end.
    """
    from IPython.core import magic

    marked: Callable[[Callable[..., Any]], Callable[..., Any]] | None = getattr(magic, "output_can_be_silenced", None)
    return function if marked is None else marked(function)


def cell_label(shell: Any, filename: str) -> str | None:
    """Returns what a traceback calls the cell that has this file name, `Cell In[7]`; None if it is no cell.

    IPython 7 does not keep which file name belongs to which cell, so that the names of its history are made again.
    """
    compiler = getattr(shell, "compile", None)
    namer = getattr(compiler, "format_code_name", None)
    if namer is not None:
        label = namer(filename)
        return " ".join(label) if label else None
    history = getattr(shell, "history_manager", None)
    if history is None or not hasattr(compiler, "get_code_name"):
        return None
    cells = list(enumerate(zip(history.input_hist_raw, history.input_hist_parsed, strict=False)))
    # The latest of equal cells, which have one file name, is the one that ran.
    for number, (raw, transformed) in reversed(cells):
        if _file_name(compiler, raw, transformed, number) == filename:
            return f"Cell In[{number}]"
    return None


@lru_cache(maxsize=4096)
def _file_name(compiler: Any, raw: str, transformed: str, number: int) -> str:
    """Returns the file name that IPython gave a cell; ipykernel hashes the whole cell in Python for it."""
    return str(compiler.get_code_name(raw, transformed, number))
