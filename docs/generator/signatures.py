"""Signatures as a reader writes them: names and defaults, without annotations."""

import inspect
from collections.abc import Callable
from typing import Any

WIDTH = 100


def signature(function: Callable[..., Any], name: str) -> str:
    """Writes `name(parameters)` of a function or class, without self; a parameter per line where it gets long."""
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    # With double quotes, as ruff writes them: it formats code in Markdown, too.
    texts = [str(one.replace(annotation=inspect.Parameter.empty)).replace("'", '"') for one in parameters]
    named = next((place for place, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY), None)
    if named is not None and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        texts.insert(named, "*")
    line = f"{name}({', '.join(texts)})"
    return line if len(line) <= WIDTH else "\n".join([f"{name}(", *(f"    {text}," for text in texts), ")"])
