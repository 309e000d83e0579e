"""Phases: what of a graph is forward, backward, optimizer or communication where its source does not say so."""

import re

import pandas as pd

from nbkit.analysis.structure.words import base_name

COMMUNICATION = re.compile(
    r"^(c_(all|reduce|broadcast|scatter|concat|sync)\w*|(partial_)?(send|recv)(_v2)?|all_?(reduce|gather|to_?all)\w*|"
    r"reduce_scatter\w*|broadcast_coalesced\w*|_?nccl\w*|alltoall\w*|global_(scatter|gather)|wait_tensor|barrier|p_(recv|send)\w*|"
    r"mp_allreduce_sum|collective_\w+|eager_(nccl|ccl|symmetric)\w*|boxing\w*)$"
)
OPTIMIZERS = re.compile(
    r"^(_?fused_|_?merged_|multi_tensor_|_foreach_|distributed_)?(adam|adamw|adamax|adagrad|adadelta|sgd|momentum|rmsprop|lamb|lars|"
    r"lars_momentum|nadam|radam|ftrl|dpsgd|adam_update|sgd_update|momentum_update|lamb_update|adagrad_update)$"
)
LATER = {"backward": 1, "optimizer": 2}
GRADIENT = re.compile(r"(_grad|_double_grad|_backward)(_data|_input|_weight)?\d*$")


def is_communication(nodes: pd.DataFrame) -> pd.Series:
    """Whether each node is a collective, a send or receive, or boxing; not what only prepares one."""
    ops = nodes["op"].dropna().unique()
    known = {op for op in ops if COMMUNICATION.search(base_name(op))}
    return nodes["op"].isin(known) | (nodes["inserted"] == "boxing")


def phases_of(nodes: pd.DataFrame, edges: pd.DataFrame) -> pd.Series:
    """Phase of each node, as given or else as its op and what it reads say; null where neither does."""
    given = nodes["phase"]
    if not (given.isna() & (nodes["kind"] == "op")).any():
        return given
    phases = given.astype(object).where(given.notna(), None).tolist()
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
    return pd.Series(phases, dtype=given.dtype, index=nodes.index)


def _seed(nodes: pd.DataFrame, phases: list[str | None]) -> None:
    """Fills the phase of ops whose type says it."""
    for at, (op, inserted) in enumerate(zip(nodes["op"].tolist(), nodes["inserted"].tolist(), strict=True)):
        if phases[at] is not None or not isinstance(op, str):
            continue
        name = base_name(op)
        if inserted == "optimizer" or OPTIMIZERS.search(name):
            phases[at] = "optimizer"
        elif GRADIENT.search(name):
            phases[at] = "backward"
