"""Whose the tensors are that came in with NaN or Inf: the parameter or buffer, or what else is known of them."""

import pandas as pd

from nbkit.schema import FINDINGS

KEYS = ["op_id", "role", "position"]


def with_names(findings: pd.DataFrame, tensors: pd.DataFrame) -> pd.DataFrame:
    """Findings whose messages say which parameter or buffer an input is, also where an op read a view of it."""
    is_input = (findings["kind"] == "input").to_numpy()
    if not is_input.any():
        return findings
    named = tensors[["storage_id", "name"]].dropna().drop_duplicates().drop_duplicates("storage_id", keep=False)
    names = dict(zip(named["storage_id"].tolist(), named["name"].tolist(), strict=True))
    known = tensors.drop_duplicates(KEYS).set_index(KEYS)["storage_id"]
    messages = []
    for row, came_in in zip(findings.itertuples(index=False), is_input, strict=True):
        owner = None
        if came_in:
            storage = known.get((row.op_id, row.role, row.position))
            owner = names.get(storage) or _guess(str(row.op), str(row.phase))
        messages.append(row.message if owner is None else f"{owner} {row.message}")
    return FINDINGS.check(findings.assign(message=pd.Series(messages, dtype="str")))


def _guess(op: str, phase: str) -> str | None:
    """What a tensor without a name is by the place where it came in."""
    if phase == "optimizer":
        return "a gradient or the state of the optimizer"
    return "the gradient of an earlier backward pass" if phase == "backward" and op == "aten.add_.Tensor" else None
