"""Tells forward, backward, optimizer and communication apart where the source of a graph does not say so."""

import pandas as pd

from nbkit.analysis.structure.words import COMMUNICATION, is_gradient
from nbkit.ops.kinds import op_kind

LATER = {"backward": 1, "optimizer": 2}


def is_communication(nodes: pd.DataFrame) -> pd.Series:
    """Returns whether each node is a collective, a send or receive, or boxing; not what only prepares one."""
    ops = nodes["op"].dropna().unique()
    known = {op for op in ops if op_kind(op) in COMMUNICATION}
    return nodes["op"].isin(known) | (nodes["inserted"] == "boxing")


def phases_of(nodes: pd.DataFrame, edges: pd.DataFrame) -> pd.Series:
    """Returns phase of each node, as given or else as its op and what it reads say; null where neither does."""
    texts = nodes["phase"]
    if not (texts.isna() & (nodes["kind"] == "op")).any():
        return texts
    phases = texts.astype(object).where(texts.notna(), None).tolist()
    is_open = [phase is None and kind == "op" for phase, kind in zip(phases, nodes["kind"].tolist(), strict=True)]
    _seed(nodes, phases)
    known = edges[edges["src"].notna()].sort_values("dst", kind="stable")
    for src, dst in zip(known["src"].astype("int64").tolist(), known["dst"].tolist(), strict=True):
        # What reads a gradient is backward, and what reads an update is optimizer.
        if is_open[dst] and LATER.get(phases[src], 0) > LATER.get(phases[dst], 0):
            phases[dst] = phases[src]
    is_tree = (nodes["graph"] == "module tree").tolist()
    for at, still in enumerate(is_open):
        if still and phases[at] is None and not is_tree[at]:
            phases[at] = "forward"
    return pd.Series(phases, dtype=texts.dtype, index=nodes.index)


def _seed(nodes: pd.DataFrame, phases: list[str | None]) -> None:
    """Fills the phase of ops whose type says it."""
    for at, (op, inserted) in enumerate(zip(nodes["op"].tolist(), nodes["inserted"].tolist(), strict=True)):
        if phases[at] is not None or not isinstance(op, str):
            continue
        kind = op_kind(op)
        if inserted == "optimizer" or kind == "optimizer_step":
            phases[at] = "optimizer"
        elif is_gradient(kind):
            phases[at] = "backward"
