"""Makes an op table of the frame of `cost_table`: a row per node of a model, with what it saves, holds and counts."""

import json
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Floats
from nbkit.errors import OptionError
from nbkit.schema import NODE_COSTS, OPS, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.cost_table import told, whole

VERB = "cost_table"

# The column with bars is of both passes.
TOTAL = "total_flops"
SIZES = tuple(column.name for column in NODE_COSTS.columns if column.name.endswith("_bytes"))
SHOWN = ("output", "device", TOTAL, "forward_flops", "backward_flops", *SIZES)
LOOKS = {
    "op": ("node", 224, "text"),
    "level": ("kind", 116, "text"),
    TOTAL: ("FLOPs", 104, "flops", "self_time_us"),
    "forward_flops": ("forward", 96, "flops"),
    "backward_flops": ("backward", 96, "flops"),
    **{name: (name.removesuffix("_bytes"), 104, "bytes") for name in SIZES},
    "backward_bytes": ("inputs", 104, "bytes"),
    "param_bytes": ("parameters", 104, "bytes"),
}
SUMMED = (TOTAL, "forward_flops", "backward_flops", "incremental_bytes", "output_bytes", "temp_bytes", "param_bytes")
# The ways to group nodes.
WAYS = {
    "kind": ("kind", ["level"]),
    "output": ("output", ["output"]),
    "module": ("module", ["location", "model"]),
    "layer": ("layer", ["layer", "model"]),
}


def node_numbers(trace: Trace) -> dict[str, Floats]:
    """Returns the columns of costs, a number per node, NaN where it is unknown."""
    table = NODE_COSTS.check(trace.frames["node_costs"])
    numbers: dict[str, Floats] = {name: table[name].to_numpy(np.float64) for name in SIZES}
    for phase in ("forward_flops", "backward_flops"):
        numbers[phase] = table[phase].to_numpy(np.float64, na_value=np.nan)
    return {**numbers, TOTAL: numbers["forward_flops"] + numbers["backward_flops"]}


def node_trace(table: pd.DataFrame) -> Trace:
    """Returns the trace that shows a frame of `nbkit.cost_table`. Raises OptionError for another frame."""
    kept = whole(table)
    if [*kept.columns] != NODE_COSTS.names:
        raise OptionError(
            f"This frame has the columns {', '.join(map(str, [*kept.columns][:4]))} ..., which are none of a table of "
            "nodes; give the frame that nbkit.cost_table() returned, or a trace."
        )
    table = NODE_COSTS.check(kept.reset_index(drop=True))
    model = str(table.attrs.get("model", "model"))
    rows, known = range(len(table)), {"phase": "forward", "model": model}
    ops = OPS.frame(
        {
            "op_id": [*rows],
            "level": table["op_kind"],
            "op": table["name"],
            "module": table["module"],
            "device": table["device"],
            **dict.fromkeys(("step", "thread"), [0] * len(table)),
            **{name: [text] * len(table) for name, text in known.items()},
            "flops": table["forward_flops"] + table["backward_flops"],
        }
    )
    meta = {"verb": VERB, "name": model, "complete": True, "counted": told(table)}
    return Trace({"ops": ops, "tensors": TENSORS.frame([*_outputs(table)]), "node_costs": table}, meta)


def _outputs(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yields a row per tensor that a node returns; of several of different dtypes, or devices, that is not known."""
    number = 0
    for op_id, (shapes, dtype, device) in enumerate(zip(table["shape"], table["dtype"], table["device"], strict=True)):
        for position, shape in enumerate(json.loads(f"[{shapes}]") if isinstance(shapes, str) else ()):
            known = {"dtype": dtype, "device": device, "shape": json.dumps(shape), "numel": prod(shape)}
            place = {"op_id": op_id, "role": "output", "position": position, "tensor_id": number}
            yield {**place, **known, "requires_grad": False}
            number += 1
