"""Makes the module tree with what each module's ops took, itself and including all below it."""

from collections.abc import Mapping
from typing import TypeVar

import pandas as pd

from nbkit.schema import MODULES, OPS, TEXT

Key = tuple[str, str]
Number = TypeVar("Number", int, float)


def module_tree(ops: pd.DataFrame, modules: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per module, parents before children, siblings as `modules` and then `ops` name them.

    Columns: model, module, type, depth, has_children, ops, self_time_us (its own) and ops_below, self_time_below_us
    (with all below it). Containers that never ran themselves are added, with a null type.
    """
    return tree_of(_own_totals(ops), modules)


def tree_of(own: Mapping[Key, tuple[int, float]], modules: pd.DataFrame) -> pd.DataFrame:
    """Returns the same of modules by model ("" if unknown) and path, with the number of ops and the time of each."""
    types = _types(modules)
    children = _children([*types, *own])
    keys, depths, parents = _preorder(children)
    counts, times = [own.get(key, (0, 0.0))[0] for key in keys], [own.get(key, (0, 0.0))[1] for key in keys]
    columns = {
        "model": [model for model, _ in keys],
        "module": [module for _, module in keys],
        "type": [types.get(key) for key in keys],
        "depth": depths,
        "has_children": [key in children for key in keys],
        "ops": counts,
        "self_time_us": times,
        "ops_below": _with_below(counts, parents),
        "self_time_below_us": _with_below(times, parents),
    }
    return pd.DataFrame(columns).astype({"model": TEXT, "module": TEXT, "type": TEXT})


def _own_totals(ops: pd.DataFrame) -> dict[Key, tuple[int, float]]:
    groups = OPS.check(ops).dropna(subset=["module"]).groupby(["model", "module"], sort=False, dropna=False)
    totals = groups["self_time_us"].agg(["size", "sum"])
    names = [_key(*name) for name in totals.index]
    return dict(zip(names, zip(totals["size"].tolist(), totals["sum"].tolist(), strict=True), strict=True))


def _types(modules: pd.DataFrame) -> dict[Key, str | None]:
    frame = MODULES.check(modules)
    names = [_key(*name) for name in zip(frame["model"], frame["module"], strict=True)]
    return dict(zip(names, frame["type"].where(frame["type"].notna(), None), strict=True))


def _key(model: object, module: object) -> Key:
    return (model if isinstance(model, str) else "", str(module))


def _children(keys: list[Key]) -> dict[Key | None, list[Key]]:
    """Returns children of each module in order of first mention; roots under None; missing containers are made."""
    children: dict[Key | None, list[Key]] = {}
    known: set[Key] = set()
    for model, module in keys:
        parts = module.split(".") if module else []
        parent: Key | None = None
        for end in range(len(parts) + 1):
            here = (model, ".".join(parts[:end]))
            if here not in known:
                known.add(here)
                children.setdefault(parent, []).append(here)
            parent = here
    return children


def _preorder(children: dict[Key | None, list[Key]]) -> tuple[list[Key], list[int], list[int]]:
    """Returns modules with parents before children; of each its depth and the place of its parent, -1 for a root."""
    keys, depths, parents = list[Key](), list[int](), list[int]()
    stack = [(key, 0, -1) for key in reversed(children.get(None, []))]
    while stack:
        key, depth, parent = stack.pop()
        stack.extend((child, depth + 1, len(keys)) for child in reversed(children.get(key, [])))
        keys.append(key)
        depths.append(depth)
        parents.append(parent)
    return keys, depths, parents


def _with_below(own: list[Number], parents: list[int]) -> list[Number]:
    below = list(own)
    # Children come after their parent, so from the end each sum is whole before it is passed up.
    for row in reversed(range(len(own))):
        if parents[row] >= 0:
            below[parents[row]] += below[row]
    return below
