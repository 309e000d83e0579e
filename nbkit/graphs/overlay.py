"""Joins a column of any frame to the nodes or parts of a graph, which it then colors."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from nbkit.errors import OptionError, nearest
from nbkit.schema import NODES, OVERLAY, PARTS, Table

How = Literal["sum", "max", "min", "mean"]
By = Literal["module", "op_id", "node_id"]
# What tells that a row is of this graph, and where a row comes from that is not.
TOLD_BY: Mapping[By, tuple[str, str]] = {"op_id": ("op", "two recordings"), "node_id": ("name", "two graphs")}
# Columns of numbers that count nothing.
NAMES = ("ring", "peer")
# What a category is called where the rows of one module have different ones.
SEVERAL = "several"
# Numbers that add up: times, sizes, counts. Of all others the largest counts.
SUMMED = ("_us", "_ns", "_ms", "_s", "_bytes", "_count", "_params", "calls", "params", "numel", "flops")
LARGEST = ("max_", "peak_")
# Columns of frames with one row per module that count what is below it already.
WITH_BELOW = ("total_", "params", "trainable_params", "param_bytes", "buffer_bytes", "calls", "depth")
SHOWN = 3
SIDES = ("left", "right")
# A frame; for two graphs that are compared one for each side, None for a side that keeps its colors.
Colored = pd.DataFrame | tuple[pd.DataFrame | None, pd.DataFrame | None]
Frames = Mapping[str, pd.DataFrame]
Meta = dict[str, Any]


def overlay_of(
    frames: Frames, sides: Mapping[str, Any], frame: Colored, column: str, *, how: How | None, by: By | None
) -> tuple[pd.DataFrame, Meta]:
    """Returns the frame `overlay`, and how it was made: column, by, how, is_inclusive, joined, of.

    `frames` are those of a graph, `sides` what the meta of two compared ones says of "left" and "right"; see
    `Trace.color_by` for the rest. Of two graphs what was made of either side is in "sides", null for a plain one.
    Raises OptionError.
    """
    if "nodes" not in frames:
        raise OptionError("This trace has no graph to color; make one with nbkit.opgraph().")
    if "correspondence" in frames:
        return _overlay_of_sides(frames, sides, frame, column, how=how, by=by)
    if isinstance(frame, tuple):
        raise OptionError(
            "A pair of frames is for two graphs that are compared, nbkit.opgraph(a, against=b); give one frame."
        )
    return _overlay((_rows(frames, NODES), _rows(frames, PARTS)), frame, column, how=how, by=by)


def _overlay_of_sides(
    frames: Frames, sides: Mapping[str, Any], frame: Colored, column: str, *, how: How | None, by: By | None
) -> tuple[pd.DataFrame, Meta]:
    """Returns the overlay of both sides of a comparison, each with the values of its own frame."""
    if not isinstance(frame, tuple) or len(frame) != len(SIDES) or all(side is None for side in frame):
        raise OptionError(
            "Two graphs that are compared need a frame each: color_by((left, right), column), with None for a side "
            "that keeps its colors."
        )
    made: list[Meta | None] = []
    overlays = []
    for side, rows in zip(SIDES, frame, strict=True):
        try:
            graph = (_of_side(frames, NODES, side, sides), _of_side(frames, PARTS, side, sides))
            overlay, meta = (None, None) if rows is None else _overlay(graph, rows, column, how=how, by=by)
        except OptionError as error:
            raise OptionError(f"On the {side}: {error}") from None
        made.append(meta)
        overlays += [] if overlay is None else [overlay]
    known = [side for side in made if side]
    if len({side["how"] for side in known}) > 1:
        raise OptionError(
            f"The column {column!r} holds numbers on one side and categories on the other, which have no common scale; "
            f"give a column of one kind."
        )
    overlay = OVERLAY.check(pd.concat(overlays, ignore_index=True))
    return overlay, {"column": column, "how": known[0]["how"], "sides": made}


def _overlay(
    graph: tuple[pd.DataFrame, pd.DataFrame], frame: pd.DataFrame, column: str, *, how: How | None, by: By | None
) -> tuple[pd.DataFrame, Meta]:
    """Returns the overlay of one graph, its nodes and its parts."""
    (nodes, parts), values = graph, _column(frame, column)
    key, is_number = _key(frame, nodes, by), is_numeric_dtype(values)
    chosen = _checked_how(how, column, is_number)
    rows = frame.assign(value=values)[[*dict.fromkeys([key, *_beside(frame, key)]), "value"]]
    rows = rows[rows[key].notna() & rows["value"].notna()].reset_index(drop=True)
    ids = _part_ids(rows, parts) if key == "module" else _node_ids(rows, nodes, key)
    if not ids.notna().any():
        raise OptionError(_nothing_joins(frame, column, key, rows, parts))
    groups = rows.assign(id=ids).dropna(subset=["id"]).groupby("id", sort=True)["value"]
    joined = groups.agg(chosen or _one)
    columns = {"part_id" if key == "module" else "node_id": joined.index.astype("int64").tolist()}
    overlay = OVERLAY.frame(
        {**columns, "value" if is_number else "category": joined.tolist(), "rows": groups.size().tolist()}
    )
    with_below = column.startswith(WITH_BELOW[0]) or column in WITH_BELOW[1:]
    is_inclusive = _is_one_each(rows, key) and (with_below or not is_number)
    meta = {"column": column, "by": key, "how": chosen, "is_inclusive": is_inclusive}
    found = rows.loc[ids.notna().to_numpy(), key].nunique()
    return overlay, {**meta, "joined": found, "of": rows[key].nunique()}


def _rows(frames: Frames, table: Table) -> pd.DataFrame:
    return table.check(frames.get(table.name, table.frame()))


def _of_side(frames: Frames, table: Table, side: str, sides: Mapping[str, Any]) -> pd.DataFrame:
    """Returns the nodes or parts of one side, those of the graph that was compared first."""
    rows, known = _rows(frames, table), frames["correspondence"]
    ids = known.loc[(known["level"] == "part") == (table is PARTS), f"{side}_id"].dropna().astype("int64")
    compared = rows["graph"].iloc[ids.to_numpy()].unique()
    mine = rows[rows["graph"].isin((sides.get(side) or {}).get("graphs", []))]
    return mine.sort_values("graph", key=lambda graph: ~graph.isin(compared), kind="stable")


def _checked_how(how: How | None, column: str, is_number: bool) -> How | None:
    """Returns how numbers are joined; null for categories."""
    if not is_number:
        if how is not None:
            raise OptionError(f"how={how!r} is for numbers, and the column {column!r} holds categories; leave it out.")
        return None
    if how is None:
        return "sum" if column.endswith(SUMMED) and not column.startswith(LARGEST) else "max"
    if how not in get_args(How):
        raise OptionError(f"how={how!r} is unknown; give one of {', '.join(map(repr, get_args(How)))}.")
    return how


def _is_one_each(rows: pd.DataFrame, key: By) -> bool:
    """Returns whether there is one row per module, which then says something of the module itself."""
    return key == "module" and not rows.duplicated([name for name in ("module", "phase") if name in rows]).any()


def named(numbers: pd.Series) -> pd.Series:
    """Returns 'ring 32' of numbers that are names, which have colors and can be searched for."""
    return numbers.map(f"{numbers.name} {{}}".format, na_action="ignore").astype(object)


def _column(frame: Any, column: str) -> pd.Series:
    """Returns the column as float64 or as texts."""
    if not isinstance(frame, pd.DataFrame):
        kind = type(frame).__name__
        raise OptionError(f"A frame is needed to color by, and this is a {kind}; give such as trace.ops.")
    if column not in frame:
        raise OptionError(f"This frame has no column {column!r}; its columns are {_columns(frame)}.")
    values = frame[column]
    if column in NAMES and is_numeric_dtype(values):
        values = named(values)
    if isinstance(values, pd.DataFrame):
        raise OptionError(f"This frame has {values.shape[1]} columns {column!r}; rename all but one.")
    if is_numeric_dtype(values) and not is_bool_dtype(values) and values.dtype.kind != "c":
        return pd.Series(values.to_numpy(np.float64, na_value=np.nan), index=frame.index)
    known = values.dropna()
    if not len(known):
        raise OptionError(f"The column {column!r} is null in every row; its frame has the columns {_columns(frame)}.")
    if not known.map(lambda value: isinstance(value, str | bool | np.bool_)).all():
        kind = type(known.iloc[0]).__name__
        raise OptionError(f"The column {column!r} holds values of the type {kind}; give numbers, texts or booleans.")
    return values.astype(object).where(values.notna(), None).map(str, na_action="ignore")


def _key(frame: pd.DataFrame, nodes: pd.DataFrame, by: By | None) -> By:
    """Returns the column that the frame is joined by."""
    has_ops = bool(nodes["op_id"].notna().any())
    if by is not None and by not in get_args(By):
        raise OptionError(f"by={by!r} is unknown; {nearest(str(by), get_args(By))}")
    usual: By = "op_id" if "op_id" in frame and (has_ops or "module" not in frame) else "module"
    if {"node_id", "graph"} <= set(frame):
        usual = "node_id"
    key: By = by or usual
    if key not in frame:
        needed = repr(by) if by else "'module' or 'op_id'"
        raise OptionError(f"This frame has no column {needed} to join it by; its columns are {_columns(frame)}.")
    if key == "op_id" and not has_ops:
        raise OptionError(
            f"This graph has no ops of a recorded step to join by op_id; give a frame with the column 'module', or "
            f"nbkit.opgraph(trace). The columns of this one are {_columns(frame)}."
        )
    has_models = key == "module" and "model" in frame
    models = frame.loc[frame["module"].notna(), "model"].dropna().unique().tolist() if has_models else []
    if len(models) > 1:
        names = ", ".join(map(repr, models[:SHOWN]))
        raise OptionError(
            f"The rows of this frame are of {len(models)} models ({names}), whose module paths may be the same; give "
            f"those of one: frame[frame['model'] == {models[0]!r}]."
        )
    return key


def _beside(frame: pd.DataFrame, key: By) -> list[str]:
    """Returns the columns that tell more of where a row belongs."""
    return [name for name in (TOLD_BY[key][:1] if key in TOLD_BY else ("phase",)) if name in frame]


def _node_ids(rows: pd.DataFrame, nodes: pd.DataFrame, key: By) -> pd.Series:
    known = nodes.dropna(subset=[key]).drop_duplicates(key)
    # Nodes of the right side of a comparison stand behind those of the left.
    known = known.set_index(known[key] - (known[key].min() if key == "node_id" else 0))
    ids = rows[key].map(known["node_id"])
    told, two = TOLD_BY[key]
    if told in rows:
        there = rows[key].map(known[told])
        is_other = (there != rows[told]) & there.notna() & rows[told].notna()
        if is_other.any():
            row, noun = rows[is_other].iloc[0], key.removesuffix("_id")
            source = "recording that the graph was made of" if key == "op_id" else "graph that is colored"
            raise OptionError(
                f"{noun} {row[key]} is {row[told]} in this frame and {there[is_other].iloc[0]} in the graph, as they "
                f"are of {two}; give a frame of the {source}, or by='module'."
            )
    return ids


def _part_ids(rows: pd.DataFrame, parts: pd.DataFrame) -> pd.Series:
    """Returns the part of each row: in graphs with phases that of its phase, without one that of the forward."""
    has_phases = bool(parts["phase"].notna().any())
    # The root of a phase is called by the phase.
    paths = parts["module"].where(~(parts["module"].isna() & parts["parent_id"].isna() & parts["phase"].notna()), "")
    phases = parts["phase"].fillna("") if has_phases else pd.Series("", index=parts.index)
    named = pd.DataFrame({"module": paths, "phase": phases, "id": parts["part_id"]}).dropna(subset=["module"])
    known = named.drop_duplicates(["module", "phase"]).set_index(["module", "phase"])["id"]
    asked = rows["phase"].fillna("") if has_phases and "phase" in rows else "forward" if has_phases else ""
    keys = pd.MultiIndex.from_frame(pd.DataFrame({"module": rows["module"].astype(object), "phase": asked}))
    return pd.Series(known.reindex(keys).to_numpy(), index=rows.index)


def _one(values: pd.Series) -> str:
    different = values.unique()
    return str(different[0]) if len(different) == 1 else SEVERAL


def _nothing_joins(frame: pd.DataFrame, column: str, key: By, rows: pd.DataFrame, parts: pd.DataFrame) -> str:
    if not len(rows):
        return f"No row of this frame has both {key!r} and {column!r}; its columns are {_columns(frame)}."
    if key == "node_id":
        return "No node of this frame is in the graph; give the frame nodes of the graph that is colored."
    if key == "op_id":
        return "No op of this frame is in the graph; give a frame of the recording that the graph was made of."
    paths = [held["module"].dropna().unique()[:SHOWN] for held in (rows, parts)]
    theirs, ours = (", ".join(map(repr, few)) for few in paths)
    if not ours:
        return "The parts of this graph have no module paths, so that no frame can be joined by module."
    return f"No module of this frame ({theirs} ...) is in the graph ({ours} ...); named_modules() has its paths."


def _columns(frame: pd.DataFrame) -> str:
    return ", ".join(map(str, frame.columns))
