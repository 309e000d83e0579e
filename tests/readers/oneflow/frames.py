"""Asks for parts of a trace's frames in short ways."""

import json
from typing import Any

import pandas as pd

from nbkit.trace.trace import Trace


def nodes_of(trace: Trace, graph: str) -> pd.DataFrame:
    return trace.nodes[trace.nodes["graph"] == graph]


def edges_of(trace: Trace, graph: str) -> pd.DataFrame:
    return trace.edges[trace.edges["dst"].isin(nodes_of(trace, graph)["node_id"])]


def tensors_of(trace: Trace, graph: str) -> pd.DataFrame:
    return trace.graph_tensors[trace.graph_tensors["graph"] == graph]


def attributes(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the attributes of each row; {} where there are none."""
    return [json.loads(text) if isinstance(text, str) else {} for text in frame["attributes"]]


def counts(column: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in column.value_counts().items()}
