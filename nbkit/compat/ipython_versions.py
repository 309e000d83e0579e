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


MATCHER = "_nbkit_matcher"


def add_matcher(shell: Any, complete: Callable[[str], tuple[str, list[str]]]) -> None:
    """Adds completions for a line: `complete` is given the line up to the cursor, returns its last word and words.

    From IPython 8.6 on a matcher can say that there are no others; before, those of Python are offered, too.
    """
    from IPython.core import completer

    def words_alone(context: Any) -> Any:
        word, words = complete(context.text_until_cursor)
        found = [completer.SimpleCompletion(text=text, type="magic option") for text in words]
        return {"completions": found, "suppress": bool(words), "matched_fragment": word, "ordered": True}

    def words_beside(text: str) -> list[str]:
        word, words = complete(shell.Completer.text_until_cursor)
        return [text.removesuffix(word) + other for other in words]

    is_old = not hasattr(completer, "context_matcher")
    matcher = words_beside if is_old else completer.context_matcher(identifier=MATCHER)(words_alone)
    matcher.__name__ = MATCHER
    shell.Completer.custom_matchers.append(matcher)


def remove_matcher(shell: Any) -> None:
    """Takes the completions away that add_matcher() added."""
    matchers = getattr(shell.Completer, "custom_matchers", [])
    matchers[:] = [matcher for matcher in matchers if getattr(matcher, "__name__", "") != MATCHER]


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
