"""Names modules by the pattern of their layer: `layers.*.mlp` for that of each of several layers of one form."""

from collections.abc import Hashable, Iterable

import pandas as pd

from nbkit.analysis.structure.repeats import number_repeats
from nbkit.analysis.structure.tree import PartTree
from nbkit.schema import MODULES

Module = tuple[str, str]
ANY = "*"


def layer_patterns(named: Iterable[Module], modules: pd.DataFrame | None = None) -> dict[Module, str]:
    """Returns the pattern of each of these modules, (model, path); the path itself where no layer repeats.

    Layers repeat as in a graph: numbered modules in a row below one module, of equal class and parameters down to the
    last module in them but norms. Of those that `modules` does not know, class and parameters count as equal.
    """
    known = MODULES.check(modules) if modules is not None else MODULES.frame()
    tree, forms = PartTree(), dict[int, Hashable]()
    for model, path, kind, role, params in zip(
        *(known[name].tolist() for name in ("model", "module", "type", "role", "params")), strict=True
    ):
        index = _part(tree, (model, path))
        part = tree.parts[index]
        part.type = kind if isinstance(kind, str) else None
        part.role = role if isinstance(role, str) else None
        forms[index] = params
    rows = {module: _part(tree, module) for module in named}
    number_repeats(tree, [forms.get(index) for index in range(len(tree.parts))])
    return {module: _pattern(tree, index) for module, index in rows.items()}


def _part(tree: PartTree, module: Module) -> int:
    model, path = module
    return tree.at(model, ("", *path.split(".")) if path else ("",))


def _pattern(tree: PartTree, index: int) -> str:
    names = list[str]()
    at: int | None = index
    while at is not None:
        part = tree.parts[at]
        names.append(part.name if part.number is None else ANY)
        at = part.parent
    return ".".join(reversed(names[:-1]))
