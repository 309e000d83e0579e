"""Asks a read program for what tests need, in one line each."""

import json


def operations(trace, graph=None):
    """Returns the nodes that are ops, with their attributes parsed, as a list of dicts."""
    rows = trace.nodes[trace.nodes["kind"] == "op"]
    rows = rows if graph is None else rows[rows["graph"] == graph]
    return [{**row, "attributes": json.loads(row["attributes"])} for row in rows.to_dict("records")]


def attributes(trace, op):
    """Returns attributes of the only op of this type."""
    (found,) = [row["attributes"] for row in operations(trace) if row["op"] == op]
    return found


def own_attributes(row):
    """Returns attributes of an op without its slots and dist_attr."""
    return {name: v for name, v in row["attributes"].items() if name not in ("inputs", "outputs", "dist_attr")}


def tensors(trace):
    """Returns rows of graph_tensors by name, with their attributes parsed."""
    rows = trace.graph_tensors.to_dict("records")
    return {row["tensor"]: {**row, "attributes": json.loads(row["attributes"])} for row in rows}


def edges(trace):
    """Returns edges as (name of the maker, tensor, op of the reader, slot)."""
    names = trace.nodes.set_index("node_id")["name"].to_dict()
    ops = trace.nodes.set_index("node_id")["op"].to_dict()
    rows = trace.edges.to_dict("records")
    return [(names[row["src"]], row["tensor"], ops[row["dst"]], row["slot"]) for row in rows]
