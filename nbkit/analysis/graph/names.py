"""Names the ops and tensors of a trace in its graph."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.graphs.rows import json_text
from nbkit.schema import TEXT
from nbkit.step.decode import arguments_of


def op_names(ops: pd.Series) -> pd.Series:
    """Returns a name per call: `mm`, `mm_1`, ... in call order, from overload names such as aten.mm.default."""
    codes, different = pd.factorize(ops)
    shorts = [name.split(".")[1] if "." in name else name for name in different]
    short = pd.Series(shorts, dtype=TEXT).take(codes).reset_index(drop=True)
    number = short.groupby(short).cumcount()
    return short.where(number == 0, short + "_" + number.astype(TEXT))


def tensor_texts(tensors: pd.DataFrame) -> pd.Series:
    """Returns the name of each tensor by its tensor_id: its path for the first tensor of that path, else %tensor_id.

    Gradients and optimizer state have the path of their parameter, with ".grad" or the key of the state.
    """
    first = tensors.sort_values("requires_grad", ascending=False, kind="stable").drop_duplicates("tensor_id")
    path = first["name"].fillna(first["state_name"])
    name = path.mask(path.duplicated())
    return pd.Series(name.fillna("%" + first["tensor_id"].astype(TEXT)).array, index=first["tensor_id"].to_numpy())


def call_attributes(ops: pd.DataFrame, kept: npt.NDArray[np.int64]) -> pd.Series:
    """Returns JSON of what a node has no column for: API call around it, arguments, model, repeats, step."""
    calls = ops.iloc[kept]
    parent = calls["parent_id"].to_numpy(np.int64, na_value=-1)
    api = ops["op"].array.take(parent, allow_fill=True)
    facts = {
        "api": pd.Series(api, index=calls.index),
        "arguments": calls["arguments"],
        "model": calls["model"],
        "module_call": calls["module_call"].mask(calls["module_call"] == 0),
        "step": calls["step"].astype("Int64").mask(calls["step"] == 0),
    }
    if calls["model"].nunique() < 2:
        del facts["model"]
    codes, different = pd.factorize(pd.MultiIndex.from_frame(pd.DataFrame(facts)))
    texts = [_text(dict(zip(facts, values, strict=True))) for values in different]
    return pd.Series(texts, dtype=TEXT).take(codes).reset_index(drop=True)


def _text(facts: dict[str, Any]) -> str | None:
    known = {name: _value(name, value) for name, value in facts.items() if pd.notna(value)}
    return json_text(known) if known else None


def _value(name: str, value: Any) -> Any:
    if name == "arguments":
        return arguments_of(value)
    return value if isinstance(value, str) else int(value)
