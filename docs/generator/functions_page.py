"""The page of the public names: grouped by the layer they live in, each with its signature and docstring."""

import inspect
import re
from dataclasses import is_dataclass
from typing import Any

import nbkit
from docs.generator.examples import Example, shown
from docs.generator.frame_page import columns_table
from docs.generator.markdown import block, listed, page
from docs.generator.public import public_names
from docs.generator.signatures import signature
from docs.generator.tables import page_of, tables
from nbkit.magics import CELL_MAGICS, LINE_MAGICS
from nbkit.schema import Table
from nbkit.verbs.options.docstrings import read

# In this order; a layer that is not here follows under its own name.
TITLES = {
    "trace": "Traces",
    "verbs": "Files and graphs",
    "capture": "Recording",
    "analysis": "Questions to a trace",
    "views": "Showing",
    "ops": "FLOPs",
    "simulated": "Simulated device",
    "errors": "Errors",
}


def functions_page(examples: dict[str, Example]) -> str:
    """Returns the page as Markdown."""
    groups: dict[str, list[str]] = {layer: [] for layer in TITLES}
    for name in public_names():
        if name not in CELL_MAGICS and name not in LINE_MAGICS:
            groups.setdefault(_layer(name), []).append(
                page(_entry(name), shown(examples[name]) if name in examples else "")
            )
    verbs = ", ".join(f"[{name}](verbs/{name}.md)" for name in (*CELL_MAGICS, *LINE_MAGICS))
    parts = [part for layer, entries in groups.items() if entries for part in (f"## {_title(layer)}", *entries)]
    return page("# Public functions", f"All are names of `nbkit`. The verbs have pages of their own: {verbs}.", *parts)


def _title(layer: str) -> str:
    return TITLES.get(layer, layer.capitalize())


def _layer(name: str) -> str:
    value = getattr(nbkit, name)
    home = getattr(value, "__module__", None) or nbkit._AT_FIRST_USE[name]
    return str(home).split(".")[1]


def _entry(name: str) -> str:
    value = getattr(nbkit, name)
    if isinstance(value, dict):
        return page(f"### {name}", "\n".join(f"- `{key}`: {meaning}" for key, meaning in value.items()))
    if inspect.isclass(value) and issubclass(value, Exception):
        return page(f"### {name}", _text(value))
    return page(f"### {name}", block(signature(value, f"nbkit.{name}"), "python"), _text(value), _members(value))


def _text(value: object) -> str:
    doc = read(value)
    raises = f"Raises:\n\n{listed(doc.raises)}" if doc.raises else ""
    return page(doc.head, doc.body, listed(doc.args), raises, *_tables(value))


def _tables(value: object) -> list[str]:
    """Links each table that the docstring names; of one that is no part of a trace writes the columns."""
    doc = inspect.getdoc(value) or ""
    links = [f"[{of.name.upper()}]({page_of(of)})" for of in tables() if re.search(rf"\b{of.name.upper()}\b", doc)]
    names = vars(inspect.getmodule(value)).items() if inspect.isfunction(value) else ()
    own = [one for name, one in names if isinstance(one, Table) and name in doc and one not in tables()]
    columns = [f"`{one.name.upper()}` has one row per {one.row}:\n\n{columns_table(one)}" for one in own]
    return [*(f"Its columns: {link}." for link in links), *columns]


def _members(value: object) -> str:
    # A record has fields, which stand among its arguments; what it does is not for its user.
    if not inspect.isclass(value) or is_dataclass(value):
        return ""
    return page(
        *(
            page(f"`{_member_line(value, name)}`", _text(getattr(value, name)))
            for name, member in vars(value).items()
            if not name.startswith("_") and inspect.getdoc(member) and _is_shown(member)
        )
    )


def _is_shown(member: object) -> bool:
    return isinstance(member, property | classmethod) or inspect.isfunction(member)


def _member_line(owner: type, name: str) -> str:
    member: Any = getattr(owner, name)
    return f".{name}" if isinstance(member, property) else "." + signature(member, name)
