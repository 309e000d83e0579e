"""Makes the tree of a step's cost: models, their modules and the ops in these, with what each holds in all."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.cost.op_totals import SUMS, op_totals
from nbkit.analysis.query.op_table import OTHER, OUTSIDE
from nbkit.analysis.structure.module_repeats import folded_path, module_repeats
from nbkit.errors import OptionError
from nbkit.schema import MODULE_COSTS, OPS, table
from nbkit.trace.checks import checked_trace
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace

COST_TREE = table(
    "cost_tree",
    "model, module, or op of one, with all that it holds; parents come before what they hold",
    ("node_id", "int64", "this row, dense from 0"),
    ("parent_id", "Int64", "node_id of what holds it; null at the top"),
    ("depth", "int64", "number of rows above it"),
    ("kind", "str", "module or op; outside: what ran in no module, by phase"),
    ("name", "str", "last part of the module path, class name of a model, name of the op, or what ran outside"),
    ("model", "str", "as in ops"),
    ("module", "str", "module path; layers.* stands for layers that are alike"),
    ("type", "str", "class name of a module"),
    ("instances", "int64", "how many modules that are alike are one row"),
    ("calls", "int64", "aten ops in it, views too"),
    ("flops", "int64", "FLOPs (2 x multiply-adds) of all phases; ops without a rule count nothing"),
    ("forward_flops", "int64", "those of the forward pass"),
    ("backward_flops", "int64", "those of the backward pass, and of what checkpointing computes again"),
    ("moved_bytes", "int64", "bytes read and written"),
    ("saved_bytes", "int64", "bytes that it is the first to save for the backward pass"),
    ("params", "Int64", "parameter elements in it; null for an op"),
    ("time_us", "float64", "predicted microseconds; null without a device"),
)
WHOLE = ("calls", "flops", "forward_flops", "backward_flops", "moved_bytes", "saved_bytes")
NAMES = (*SUMS, "calls")
# Siblings stand in the order of these, most first.
ORDER = [NAMES.index(name) for name in ("flops", "moved_bytes")]
Repeats = Mapping[tuple[str, str], str]


class _Key(NamedTuple):
    """Names a row: the model, null outside modules, the names of the modules down to it, and the op, null for none."""

    model: str | None
    path: tuple[str, ...]
    op: str | None = None

    def lineage(self) -> "list[_Key]":
        """Returns the rows that hold it, outermost first, and itself."""
        outermost = 0 if self.model is not None else 1
        above = [_Key(self.model, self.path[:size]) for size in range(outermost, len(self.path) + 1)]
        return [*above, self] if self.op else above


@once_per_view
def cost_tree(trace: Trace, *, fold: bool = True) -> pd.DataFrame:
    """Returns a frame of COST_TREE of an opcost trace: what each model, module and op costs with all that it holds.

    Siblings come in the order of their FLOPs, then of the bytes that they move, most first. With `fold` layers that are
    alike are one row, such as `layers.*`, with the sums over all of them. Raises OptionError if the trace has no costs.
    """
    if not isinstance(fold, bool):
        raise OptionError(f"fold={fold!r} is neither True nor False; give True to have layers that are alike as one.")
    costs = op_totals(checked_trace(trace))
    repeats = module_repeats(OPS.check(trace.frames.get("ops", OPS.frame()))) if fold else {}
    modules = MODULE_COSTS.check(trace.frames.get("module_costs", MODULE_COSTS.frame()))
    is_timed = bool(costs["time_us"].notna().any())
    return _frame(_totals(costs, repeats), _modules(modules, repeats), is_timed=is_timed)


def _totals(costs: pd.DataFrame, repeats: Repeats) -> dict[_Key, npt.NDArray[np.float64]]:
    """Returns the sums of NAMES of each row of the tree."""
    groups = costs.assign(calls=1.0).groupby(["model", "module", "phase", "op"], dropna=False, sort=False)
    sums = groups[[*NAMES]].sum()
    totals: dict[_Key, npt.NDArray[np.float64]] = {}
    holders: dict[Any, list[_Key]] = {}  # of the ops of a module, and of a phase outside: the rows that hold them
    for (model, module, phase, op), amount in zip(sums.index, sums.to_numpy(np.float64), strict=True):
        is_inside = isinstance(module, str)
        place = (model, module) if is_inside else phase
        if place not in holders:
            path = _parts(model, module, repeats) if is_inside else (OUTSIDE.get(phase, OTHER),)
            holders[place] = _Key(model if is_inside else None, path).lineage()
        for row in (*holders[place], holders[place][-1]._replace(op=op)):
            totals[row] = totals.get(row, 0.0) + amount
    return totals


def _parts(model: str, module: str, repeats: Repeats) -> tuple[str, ...]:
    path = folded_path(model, module, repeats)
    return tuple(path.split(".")) if path else ()


def _modules(modules: pd.DataFrame, repeats: Repeats) -> dict[_Key, list[Any]]:
    """Returns class, number and parameters of the modules that each row stands for."""
    known: dict[_Key, list[Any]] = {}
    for model, module, kind, params in modules[["model", "module", "type", "params"]].itertuples(index=False):
        values = known.setdefault(_Key(model, _parts(model, module, repeats)), [kind, 0, 0])
        values[1:] = values[1] + 1, values[2] + params
    return known


def _frame(
    totals: dict[_Key, npt.NDArray[np.float64]], modules: dict[_Key, list[Any]], *, is_timed: bool
) -> pd.DataFrame:
    placed: dict[_Key, int] = {}
    rows = []
    for key in _preorder(totals):
        number = placed[key] = len(placed)
        above = key.lineage()[:-1]
        kind, instances, params = modules.get(key, (None, 1, None))
        values = dict(zip(NAMES, totals[key].tolist(), strict=True))
        rows.append(
            {
                "node_id": number,
                "parent_id": placed[above[-1]] if above else None,
                "depth": len(above),
                "kind": "op" if key.op else "outside" if key.model is None else "module",
                "name": key.op or (key.path[-1] if key.path else key.model),
                "model": key.model,
                "module": None if key.model is None else ".".join(key.path),
                "type": kind,
                "instances": instances,
                **{name: int(values[name]) for name in WHOLE},
                "params": params,
                "time_us": values["time_us"] if is_timed else None,
            }
        )
    return COST_TREE.frame(rows)


def _preorder(totals: dict[_Key, npt.NDArray[np.float64]]) -> list[_Key]:
    """Returns the rows with parents before what they hold, siblings in ORDER; ties keep the order of first calls."""
    below: dict[_Key | None, list[_Key]] = {}
    for key in totals:
        above = key.lineage()[:-1]
        below.setdefault(above[-1] if above else None, []).append(key)
    order = list[_Key]()
    rest: list[_Key | None] = [None]
    while rest:
        holder = rest.pop()
        if holder is not None:
            order.append(holder)
        inside = sorted(below.get(holder, ()), key=lambda row: (-totals[row][ORDER]).tolist())
        rest.extend(reversed(inside))
    return order
