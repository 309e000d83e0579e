"""Sets the predicted cost of each op beside its measured time in a timing of the same step."""

from collections import defaultdict

import numpy as np
import pandas as pd

from nbkit.analysis.cost.op_totals import costs_of, op_totals
from nbkit.errors import OptionError
from nbkit.ops.names import base_of
from nbkit.progress import Progress
from nbkit.schema import OPS, table
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace

MEASURED = table(
    "measured",
    "op of an opcost trace, in call order, with its time in a timing of the same step",
    ("op_id", "int64", "the op, in the predicted trace"),
    ("measured_op_id", "Int64", "the same op in the timed trace; null if it is not there"),
    ("op", "str", "as in ops"),
    ("model", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("flops", "Int64", "FLOPs (2 x multiply-adds); null without a rule"),
    ("moved_bytes", "int64", "bytes read and written"),
    ("predicted_us", "float64", "predicted microseconds; null without a device"),
    ("bound", "str", "what bounds the predicted time; null without a device"),
    (
        "measured_us",
        "float64",
        "measured microseconds with what the op calls, on the device if kernels of it are known",
    ),
    ("ratio", "float64", "predicted_us over measured_us"),
    ("flops_per_s", "float64", "flops over measured_us: what the op attained"),
)
# How far ahead an op is looked for among the timed ones: what one run leaves out costs the other no more than this.
AHEAD = 200
SAME = ["model", "module", "phase"]


def compare_cost(trace: Trace, timed: Trace) -> pd.DataFrame:
    """Returns a frame of MEASURED: every op of an opcost trace beside its time in an optime trace of the same step.

    Ops are aligned in call order by model, module, phase and name. What an op of the prediction calls when it runs is
    in its time, and is no op of its own. A step that is predicted right is run in the same way: same model, same
    shapes, same warm-up state of the optimizer. Python's own time is in no row. `attrs` of the frame: predicted_us and
    measured_us (sums over ops with both), matched_fraction of the ops that move or compute something, rank_correlation
    of both times (null below three). Raises OptionError for traces that are of another verb, or share no op.
    """
    checked_trace(trace), checked_trace(timed, "timed")
    if timed.meta.get("verb") != "optime":
        raise OptionError(f"timed must be a timing, got {timed!r}; give a trace of nbkit.optime() of the same step.")
    with Progress(lambda: f"compare_cost: {len(trace.ops):,} and {len(timed.ops):,} ops"):
        totals, costs = op_totals(trace), costs_of(trace)
        measured = _aten(OPS.check(timed.ops))
        rows = _aligned(totals, measured)
    is_match = rows >= 0
    if not is_match.any():
        raise OptionError(
            "The two traces share no op, so there is nothing to compare; time the step that was predicted."
        )
    times = np.append(_times(measured), np.nan)[rows]
    predicted = totals["time_us"].to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, rate = predicted / times, totals["flops"].to_numpy(np.float64) / times * 1e6
    result = MEASURED.frame(
        {
            **{name: totals[name].array for name in ("op_id", "op", *SAME)},
            "measured_op_id": pd.Series(np.append(measured["op_id"].to_numpy(), -1)[rows], dtype="Int64").mask(
                ~is_match
            ),
            "flops": costs["flops"].array,
            "moved_bytes": totals["moved_bytes"].astype("int64").array,
            "predicted_us": predicted,
            "measured_us": times,
            "ratio": np.where(np.isfinite(ratio), ratio, np.nan),
            "flops_per_s": np.where(np.isfinite(rate), rate, np.nan),
            **({"bound": costs["bound"].array} if "bound" in costs else {}),
        }
    )
    works = ((totals["flops"] > 0) | (totals["moved_bytes"] > 0)).to_numpy(bool)
    result.attrs.update(_facts(result, works))
    return result


def _aten(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the aten ops in call order, each with the row of the first one that it does not call (`after`)."""
    aten = ops[ops["level"] == "aten"].reset_index(drop=True)
    ids = aten["op_id"].to_numpy(np.int64)
    parent = dict(zip(ops["op_id"].tolist(), ops["parent_id"].to_numpy(np.int64, na_value=-1).tolist(), strict=True))
    row_of = {op_id: row for row, op_id in enumerate(ids.tolist())}
    after = np.arange(1, len(aten) + 1)
    # What an op calls comes after it, so from the end each knows how far it reaches.
    for row in reversed(range(len(aten))):
        above = parent[int(ids[row])]
        if above in row_of:
            after[row_of[above]] = max(after[row_of[above]], after[row])
    return aten.assign(after=after)


def _times(measured: pd.DataFrame) -> np.ndarray:
    on_device = measured["total_device_time_us"].to_numpy(np.float64)
    return np.where(np.nan_to_num(on_device) > 0, on_device, measured["total_time_us"].to_numpy(np.float64))


def _aligned(totals: pd.DataFrame, measured: pd.DataFrame) -> np.ndarray:
    """Returns the row of `measured` of each predicted op, -1 for none."""
    after = measured["after"].to_numpy(np.int64)
    is_taken = np.zeros(len(measured), bool)
    found = _in_order(totals, measured, is_taken)
    # Autograd may run branches in another order, and adds gradients in place; what is left is the same op all the same.
    names = [[base_of(op) for op in ops] for ops in (totals["op"], measured["op"])]
    for same in (SAME, ["phase"]):
        rest: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for row, (key, name) in enumerate(zip(_keys(measured, same), names[1], strict=True)):
            if not is_taken[row]:
                rest[*key, name].append(row)
        for index, (key, name) in enumerate(zip(_keys(totals, same), names[0], strict=True)):
            if found[index] >= 0:
                continue
            while rows := rest[*key, name]:
                row = rows.pop(0)
                if not is_taken[row]:
                    found[index] = row
                    is_taken[row : after[row]] = True
                    break
    return found


def _in_order(totals: pd.DataFrame, measured: pd.DataFrame, is_taken: np.ndarray) -> np.ndarray:
    """Aligns the ops of each module and phase in call order, and notes which rows of `measured` are then taken."""
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(_keys(measured, SAME)):
        places[key].append(row)
    names, after = measured["op"].tolist(), measured["after"].tolist()
    at: dict[tuple[object, ...], int] = defaultdict(int)
    found = np.full(len(totals), -1, np.int64)
    for index, (key, op) in enumerate(zip(_keys(totals, SAME), totals["op"], strict=True)):
        rows, start = places[key], at[key]
        ahead = rows[start : start + AHEAD]
        step = next((step for step, row in enumerate(ahead) if names[row] == op and not is_taken[row]), None)
        if step is not None:
            row = found[index] = ahead[step]
            # What it calls itself is no op of the prediction.
            is_taken[row : after[row]] = True
            at[key] = start + step + 1
    return found


def _keys(ops: pd.DataFrame, names: list[str]) -> list[tuple[object, ...]]:
    texts = ops[names].astype(object).where(ops[names].notna(), None)
    return list(texts.itertuples(index=False, name=None))


def _facts(result: pd.DataFrame, works: np.ndarray) -> dict[str, float | None]:
    both = result[result["predicted_us"].notna() & result["measured_us"].notna()]
    ranks = both[["predicted_us", "measured_us"]].rank()
    correlation = ranks["predicted_us"].corr(ranks["measured_us"]) if len(both) > 2 else np.nan
    matched = result["measured_op_id"].notna().to_numpy(bool)
    return {
        "predicted_us": float(both["predicted_us"].sum()),
        "measured_us": float(both["measured_us"].sum()),
        "matched_fraction": float(matched[works].mean()) if works.any() else 0.0,
        "rank_correlation": None if np.isnan(correlation) else float(correlation),
    }
