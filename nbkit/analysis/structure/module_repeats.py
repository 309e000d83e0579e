"""Finds repeated modules of recorded ops, such as equal layers, and the name that they share."""

from collections.abc import Hashable, Mapping

import pandas as pd

from nbkit.analysis.structure.repeats import number_repeats
from nbkit.analysis.structure.tree import PartTree
from nbkit.schema import OPS

COLUMNS = ["model", "module", "op", "level", "input_shapes"]


def module_repeats(ops: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Returns what the modules that are alike share in place of their number, by model ("" if unknown) and path.

    That is `*` if all numbered modules beside them are alike, else such as `[2-5]`. Modules are alike if they have one
    class, the same ops in their forward calls, with the same shapes as far as these are known, and the same modules in
    them; `number_repeats` has the rest.
    """
    tree = _numbered_tree(OPS.check(ops))
    rows: dict[int, list[int]] = {}
    numbered: dict[tuple[str, int | None], int] = {}
    for index, part in enumerate(tree.parts):
        if part.name.isdecimal():
            numbered[part.graph, part.parent] = numbered.get((part.graph, part.parent), 0) + 1
            if part.repeat_of is not None:
                rows.setdefault(part.repeat_of, []).append(index)
    shared: dict[tuple[str, str], str] = {}
    for row in rows.values():
        alike = [tree.parts[index] for index in row]
        numbers = [int(part.name) for part in alike]
        is_all = len(row) == numbered[alike[0].graph, alike[0].parent]
        name = "*" if is_all else f"[{min(numbers)}-{max(numbers)}]"
        shared |= {(part.graph, ".".join(part.location)): name for part in alike}
    return shared


def folded_path(model: str, path: str, repeats: Mapping[tuple[str, str], str]) -> str:
    """Returns the path with what repeated modules share in place of their numbers: `layers.*.mlp`."""
    parts = path.split(".")
    wholes = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
    return ".".join(repeats.get((model, whole), part) for whole, part in zip(wholes, parts, strict=True))


def _numbered_tree(ops: pd.DataFrame) -> PartTree:
    """Returns the modules of forward calls with their repeats numbered."""
    tree, forms = PartTree(), dict[int, set[Hashable]]()
    calls = ops.loc[(ops["phase"] == "forward") & ops["module"].notna(), COLUMNS].drop_duplicates()
    for model, module, op, level, shapes in calls.itertuples(index=False, name=None):
        if not module:
            continue
        part = tree.at("" if pd.isna(model) else model, tuple(module.split(".")))
        if level == "module":
            tree.parts[part].type = op
        else:
            forms.setdefault(part, set()).add((op, None if pd.isna(shapes) else shapes))
    number_repeats(tree, [frozenset(forms.get(index, ())) for index in range(len(tree.parts))])
    return tree
