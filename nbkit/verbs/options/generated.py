"""Makes the options of a verb from the signature and docstring of its function: one option per parameter."""

import argparse
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from nbkit.patterns import Patterns, split_patterns
from nbkit.verbs.options.docstrings import read
from nbkit.verbs.options.parser import absolute_path, integer, number

# A parser, or a group of options in one.
OptionHolder = argparse._ActionsContainer
METAVARS = {"name": "TEXT", "title": "TEXT"}


@dataclass(frozen=True)
class Option:
    """Says what a line of options has otherwise than signature and docstring; null where nothing."""

    flags: tuple[str, ...] = ()
    metavar: str | None = None
    help: str | None = None
    read: Callable[[str], Any] | None = None


def add_options(
    holder: OptionHolder,
    function: Callable[..., Any],
    special: Mapping[str, Option] | None = None,
    leave_out: Collection[str] = (),
) -> None:
    """Add an option per parameter of `function` that text can give.

    Parameters by keyword, and those with flags, become `--name`, others arguments. Types, choices and defaults are
    those of the signature, help is the parameter's line below `Args:`; `special` says what differs.
    """
    meanings = {name: text for names, text in read(function).args for name in names.split(", ")}
    for name, parameter in inspect.signature(function).parameters.items():
        settings = _settings(parameter)
        if name in leave_out or settings is None:
            continue
        option = (special or {}).get(name, Option())
        settings["help"] = option.help or _help(meanings.get(name, ""), parameter)
        if option.read is not None:
            settings["type"] = option.read
        if settings.get("action") != "store_true":
            settings["metavar"] = option.metavar or METAVARS.get(name) or settings["metavar"]
        if parameter.kind is parameter.KEYWORD_ONLY or option.flags:
            flags = option.flags or (f"--{name.replace('_', '-')}",)
            is_needed = parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is parameter.empty
            holder.add_argument(*flags, dest=name, required=is_needed, **settings)
        else:
            holder.add_argument(name, **settings)


def option_names(function: Callable[..., Any]) -> list[str]:
    """Returns the parameters of `function` that have an option."""
    return [
        name for name, parameter in inspect.signature(function).parameters.items() if _settings(parameter) is not None
    ]


def _settings(parameter: inspect.Parameter) -> dict[str, Any] | None:
    """Returns how argparse reads such a parameter; null for one that no text can give."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return {"nargs": "*", "metavar": parameter.name.removesuffix("s").upper()}
    if parameter.kind is not parameter.KEYWORD_ONLY:
        return {"metavar": parameter.name.upper()}
    default = None if parameter.default is parameter.empty else parameter.default
    kinds = _kinds(parameter.annotation)
    if parameter.annotation == Patterns:
        return {"action": "extend", "type": split_patterns, "metavar": "PATTERN"}
    if bool in kinds:
        return {"action": "store_true"}
    if choices := [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]:
        return {"choices": choices, "metavar": choices[0] if len(choices) == 1 else None, "default": default}
    if float in kinds:
        whole = isinstance(default, int)
        return {"type": _whole_or_share if whole else number, "metavar": "N" if whole else "X", "default": default}
    if int in kinds:
        return {"type": str if str in kinds else integer, "metavar": "N", "default": default}
    if kinds == [Path]:
        return {"type": absolute_path, "metavar": "FILE", "default": default}
    # A class of nbkit or torch is named in the line, and whoever reads it finds what the name stands for.
    return {"metavar": "NAME", "default": default} if any(isinstance(kind, type) for kind in kinds) else None


def _kinds(annotation: Any) -> list[Any]:
    """Returns the types that an annotation allows, without None."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return [kind for kind in (get_args(annotation) if is_union else (annotation,)) if kind is not type(None)]


def _help(meaning: str, parameter: inspect.Parameter) -> str:
    """Returns the first sentence on the parameter in the docstring, with its default where that is a value."""
    text = meaning.partition(". ")[0].replace("`", "").removesuffix(".").replace("%", "%%")
    text = re.sub(r"; ([^;]+) if None$", r" (default: \1)", text)  # nobody can give None in a line
    default = parameter.default
    if isinstance(default, bool) or not isinstance(default, int | float | str) or "default" in text:
        return text
    shown = default if isinstance(default, str) else f"{default:,}" if isinstance(default, int) else f"{default:g}"
    return f"{text} (default: {shown})"


def _whole_or_share(text: str) -> float:
    """Returns a whole number as such, else the number that the text is."""
    return int(text) if text.isdecimal() else number(text)
