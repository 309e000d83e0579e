"""What older versions of IPython do not have. IPython itself is imported at use: recording works without it."""

import linecache
import os
from collections.abc import Callable
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

    IPython 7 does not keep which file name belongs to which cell; its history has the number of the same code.
    """
    compiler = getattr(shell, "compile", None)
    namer = getattr(compiler, "format_code_name", None)
    if namer is not None:
        label = namer(filename)
        return " ".join(label) if label else None
    history = getattr(shell, "history_manager", None)
    if history is None or filename not in linecache.cache or os.path.exists(filename):
        return None
    code = "".join(linecache.getlines(filename)).rstrip("\n")
    cells = list(enumerate(history.input_hist_parsed))
    # The latest of equal cells, which have one file name, is the one that ran.
    return next((f"Cell In[{number}]" for number, cell in reversed(cells) if cell == code), None)
