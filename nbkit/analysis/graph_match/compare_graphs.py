"""Compares two graphs: which parts, parameters and ops correspond, and what only one of them has."""

from collections.abc import Mapping

import pandas as pd

from nbkit.analysis.graph_match.locations import Locations
from nbkit.analysis.graph_match.ops import match_ops
from nbkit.analysis.graph_match.parameters import ParameterMatcher
from nbkit.analysis.graph_match.parts import matched_parts, pair_holders
from nbkit.analysis.graph_match.rows import MatchedGraphs
from nbkit.analysis.graph_match.side import Side, side_of
from nbkit.progress import Progress
from nbkit.schema import CORRESPONDENCE, EDGES, NODES
from nbkit.step.nodes import Nodes

Frames = Mapping[str, pd.DataFrame]


def compare_graphs(left: Frames, right: Frames) -> pd.DataFrame:
    """Returns a frame of CORRESPONDENCE for two sets of frames: nodes, edges and, where they were recognized, parts.

    Of several graphs those of equal names are compared, else the first with ops of each side.
    """
    rows = []
    known = [Nodes(NODES.check(side["nodes"]), EDGES.check(side["edges"])) for side in (left, right)]
    with Progress(lambda: f"comparing graphs of {len(left['nodes']):,} and {len(right['nodes']):,} nodes"):
        for names in compared_graphs(left["nodes"], right["nodes"]):
            sides = [side_of(*side) for side in zip(known, (left, right), names, strict=True)]
            rows += list(_matched(*sides).rows())
    return CORRESPONDENCE.frame(rows)


def compared_graphs(left: pd.DataFrame, right: pd.DataFrame) -> list[tuple[str, str]]:
    """Returns the names of the graphs of two frames `nodes` that are compared; none if one side has none."""
    names = [list(dict.fromkeys(nodes["graph"].tolist())) for nodes in (left, right)]
    if common := [name for name in names[0] if name in names[1]]:
        return [(name, name) for name in common]
    if not all(names):
        return []
    first = [_first_with_ops(nodes, known) for nodes, known in zip((left, right), names, strict=True)]
    return [(first[0], first[1])]


def _first_with_ops(nodes: pd.DataFrame, names: list[str]) -> str:
    with_ops = set(nodes.loc[nodes["kind"] == "op", "graph"])
    return next((name for name in names if name in with_ops), names[0])


def _matched(left: Side, right: Side) -> MatchedGraphs:
    sides = left, right
    parts = matched_parts(*sides)
    locations = Locations(*sides, parts)
    states = ParameterMatcher(*sides, locations)
    pair_holders(*sides, parts, states.pairs)
    match_ops(*sides, Locations(*sides, parts), states.pairs)
    return MatchedGraphs(*sides, parts, states.pairs, states.is_transposed)
