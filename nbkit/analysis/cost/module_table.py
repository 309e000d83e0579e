"""Makes one table of a model's modules: type, output, parameters, FLOPs, time and memory of each."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from nbkit.analysis.cost.op_totals import has_costs, has_times
from nbkit.analysis.query.module_tree import module_tree
from nbkit.analysis.time.memory import live_at_peak
from nbkit.analysis.time.times import by_module_tree, computing_ops, host_ops
from nbkit.errors import OptionError
from nbkit.schema import COSTS, MEMORY, MODULES, OPS, TENSORS, table
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace

MODULE_TABLE = table(
    "module_table",
    "module of a model that ran, with all that it holds, parents before children",
    ("model", "str", "as in modules"),
    ("module", "str", "as in modules"),
    ("type", "str", "class name; null for a container that never ran"),
    ("depth", "int64", "number of modules above it"),
    ("calls", "Int64", "how often its forward ran"),
    (
        "output_shape",
        "str",
        "JSON list of sizes of what it returns: the tensor that it computes and that is read outside it, else the "
        "result of its last op; null if there are several of different sizes, or none is known",
    ),
    ("params", "Int64", "parameter elements in it and below, shared ones once"),
    ("trainable_params", "Int64", "those that require a gradient"),
    ("param_bytes", "Int64", "bytes of params"),
    (
        "forward_flops",
        "Int64",
        "FLOPs (2 x multiply-adds) of its forward ops, of a measured step those that are known; null if none is, and "
        "for opcost with an op of no rule",
    ),
    ("backward_flops", "Int64", "those of their backward ops"),
    (
        "time_us",
        "float64",
        "self times of its ops, forward and backward, on the device where its kernels are known; of opcost predicted, "
        "null without a device",
    ),
    ("held_bytes", "Int64", "memory that its ops allocated and that is held at the peak; null if not recorded"),
)

KNOWN = ("calls", "params", "trainable_params", "param_bytes")
Key = tuple[Any, Any]  # model and module


def module_table(trace: Trace) -> pd.DataFrame:
    """Returns a frame of MODULE_TABLE: a row per module, as torchinfo has, of a trace of opcost, optime or optrace.

    What the trace does not know is null: FLOPs need opcost, or optime with shapes; output shapes opcost or optrace;
    memory opcost, or optime with memory; of a step that did not run to its end all of these but the shapes are null.
    Raises OptionError for a trace without modules.
    """
    frames = checked_trace(trace).frames
    ops, modules = (frames.get(one.name, one.frame()) for one in (OPS, MODULES))
    if not len(MODULES.check(modules)):
        raise OptionError("This trace has no modules; opcost, optime and optrace record those that run.")
    tree = module_tree(host_ops(ops), modules)
    keys = list(zip(tree["model"], tree["module"], strict=True))
    known = modules.set_index(["model", "module"]).reindex(pd.MultiIndex.from_tuples(keys))
    columns: dict[str, Any] = {name: known[name].astype("Int64").array for name in KNOWN}
    if trace.complete:
        columns |= _amounts(trace, keys, ops)
    shapes = _outputs(computing_ops(ops), TENSORS.check(frames.get("tensors", TENSORS.frame())))
    # A container that never ran returns nothing.
    columns["output_shape"] = [
        shapes.get(key) if calls else None for key, calls in zip(keys, known["calls"], strict=True)
    ]
    names = {name: tree[name] for name in ("model", "module", "type", "depth")}
    return MODULE_TABLE.frame({**names, **columns})


def _amounts(trace: Trace, keys: list[Key], ops: pd.DataFrame) -> dict[str, Any]:
    """Returns the columns of FLOPs, time and memory of a whole step: a part of one would read as the whole."""
    columns: dict[str, Any] = {}
    is_cost = has_costs(trace)
    work = COSTS.check(trace.costs) if is_cost else computing_ops(ops)
    for phase in ("forward", "backward"):
        columns[f"{phase}_flops"] = _sums(keys, work[work["phase"] == phase], "flops", is_whole=is_cost)
    if has_times(trace):
        columns["time_us"] = _sums(keys, work, "time_us", is_whole=True)
    elif not is_cost:
        times = by_module_tree(ops).set_index(["model", "module"])
        on_device = times["total_device_time_us"]
        known = on_device if on_device.notna().any() else times["total_time_us"]
        columns["time_us"] = known.reindex(pd.MultiIndex.from_tuples(keys)).array
    memory = trace.frames.get("memory", MEMORY.frame())
    if memory["op_id"].notna().any():  # opdoctor's knows no ops
        columns["held_bytes"] = _sums(keys, live_at_peak(memory, ops), "size_bytes", is_whole=True)
    return columns


def _sums(keys: Sequence[Key], rows: pd.DataFrame, name: str, *, is_whole: bool) -> list[float | None]:
    """Returns the sum of each module with those below it; null with a row of unknown amount, if `rows` are all."""
    totals: dict[Key, float] = {}
    values = rows[name].astype("float64")
    groups = values.groupby([rows["model"], rows["module"]], sort=False)
    sums = groups.sum().where(groups.count() == groups.size()) if is_whole else groups.sum(min_count=1).dropna()
    for (model, module), amount in zip(list[Key](sums.index), sums.tolist(), strict=True):
        for above in _with_those_above(module):
            totals[model, above] = totals.get((model, above), 0.0) + amount
    return [totals.get(key, 0.0 if is_whole else None) for key in keys]


def _with_those_above(module: str) -> list[str]:
    parts = module.split(".") if module else []
    return [".".join(parts[:end]) for end in range(len(parts) + 1)]


def _outputs(ops: pd.DataFrame, tensors: pd.DataFrame) -> dict[Key, str]:
    """Returns the shape that each module returns, where there is one."""
    ahead = ops[~ops["phase"].isin(["backward", "optimizer"])]
    places = dict(zip(ahead["op_id"], zip(ahead["model"], ahead["module"], strict=True), strict=True))
    rows = tensors[tensors["op_id"].isin(places)]
    readers: dict[int, set[Key]] = {}
    for op_id, tensor in rows.loc[rows["role"] == "input", ["op_id", "tensor_id"]].itertuples(index=False, name=None):
        readers.setdefault(tensor, set()).add(places[op_id])
    leaving: dict[Key, set[str]] = {}
    last: dict[Key, tuple[int, list[str]]] = {}
    made = rows.loc[rows["role"] == "output", ["op_id", "tensor_id", "shape"]]
    for op_id, tensor, shape in made.itertuples(index=False, name=None):
        model, module = places[op_id]
        if not isinstance(module, str):
            continue
        paths = _with_those_above(module)
        shared = min((_shared((model, module), reader) for reader in readers.get(tensor, ())), default=len(paths))
        for depth, path in enumerate(paths):
            if depth >= shared:
                leaving.setdefault((model, path), set()).add(shape)
            before, shapes = last.get((model, path), (op_id, []))
            last[model, path] = (op_id, [*shapes, shape] if before == op_id else [shape])
    found = {key: leaving.get(key, shapes) for key, (_, shapes) in last.items()}
    return {key: next(iter(shapes)) for key, shapes in found.items() if len(shapes) == 1}


def _shared(one: Key, other: Key) -> int:
    """Returns how many modules hold both, the root model too."""
    if one[0] != other[0] or not isinstance(other[1], str):
        return 0
    pairs = zip(_with_those_above(one[1]), _with_those_above(other[1]), strict=False)
    return sum(left == right for left, right in pairs)
