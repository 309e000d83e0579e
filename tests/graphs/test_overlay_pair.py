"""Two compared graphs are colored by a frame for each: whose values come where, and what is refused."""

from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from nbkit import OptionError, Trace
from nbkit.schema import CORRESPONDENCE, NODES, PARTS


def model(layers: int) -> nn.Module:
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)))


@pytest.fixture(scope="module")
def pair() -> Trace:
    return nbkit.opgraph(model(3), against=model(2))


def rows(*values: Any, column: str = "t_us") -> pd.DataFrame:
    return pd.DataFrame({"module": [str(at) for at in range(len(values))], column: values})


def values(graph: Trace, column: str = "value") -> list[list[Any]]:
    known = graph.overlay.merge(graph.parts, on="part_id")
    sides = known["graph"].str.extract(r"\((\w+)\)")[0]
    return known.assign(graph=sides)[["graph", "module", column]].to_numpy().tolist()


def test_each_side_has_the_values_of_its_own_frame(pair: Trace) -> None:
    colored = pair.color_by((rows(1.0, 2.0, 3.0), rows(5.0, 7.0, 9.0)), "t_us")
    left = [["left", "0", 1.0], ["left", "1", 2.0], ["left", "2", 3.0]]
    assert values(colored) == [*left, ["right", "0", 5.0], ["right", "1", 7.0]]
    assert [(side["joined"], side["of"]) for side in colored.meta["overlay"]["sides"]] == [(3, 3), (2, 3)]
    assert "overlay" not in pair.frames and "overlay" not in colored.color_by(None).frames


def test_a_side_without_a_frame_has_no_values(pair: Trace) -> None:
    colored = pair.color_by((None, rows("a", "b")), "t_us")
    assert values(colored, "category") == [["right", "0", "a"], ["right", "1", "b"]]
    assert [side and side["by"] for side in colored.meta["overlay"]["sides"]] == [None, "module"]


def test_ops_of_two_recordings_color_the_ops_of_their_own_side() -> None:
    steps = []
    for layers in (2, 3):
        with nbkit.optrace() as step:
            model(layers)(torch.ones(2, 4))
        steps.append(step)
    graph = nbkit.opgraph(steps[0], against=steps[1])
    left, right = (step.ops.assign(x=step.ops["op_id"] * sign) for step, sign in zip(steps, (1.0, -1.0), strict=True))
    colored = graph.color_by((left, right), "x")
    known = colored.overlay.merge(colored.nodes, on="node_id")
    for side, sign in (("left", 1), ("right", -1)):
        mine = known[known["graph"].str.contains(side)]
        assert len(mine) > 1 and (mine["value"] == mine["op_id"].astype("float64") * sign).all()


def test_of_several_graphs_of_a_side_the_compared_one_is_colored() -> None:
    parts = [{"part_id": at, "graph": graph, "module": "0", "nodes": 0} for at, graph in enumerate(["a", "b", "r"])]
    known = [{"level": "part", "left_id": 1, "right_id": 2, "action": "match"}]
    frames = {"nodes": NODES.frame(), "parts": PARTS.frame(parts), "correspondence": CORRESPONDENCE.frame(known)}
    graph = Trace(frames, {"left": {"graphs": ["a", "b"]}, "right": {"graphs": ["r"]}})
    assert graph.color_by((rows(1.0), None), "t_us").overlay["part_id"].tolist() == [1]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (rows(1.0), r"need a frame each: color_by\(\(left, right\), column\), with None for a side"),
        ((None, None), "Two graphs that are compared need a frame each"),
        ((rows(1.0), pd.DataFrame({"module": ["x"], "t_us": [1.0]})), r"On the right: No module of this frame \('x'"),
        ((rows(1.0, column="y"), None), "On the left: This frame has no column 't_us'; its columns are module, y."),
        ((rows(1.0), rows("a")), "The column 't_us' holds numbers on one side and categories on the other"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_side(pair: Trace, frames: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        pair.color_by(frames, "t_us")


def test_one_graph_takes_one_frame() -> None:
    with pytest.raises(OptionError, match=r"A pair of frames is for two graphs that are compared.*; give one frame."):
        nbkit.opgraph(model(2)).color_by((rows(1.0), rows(1.0)), "t_us")


def test_colors_of_both_sides_are_saved(pair: Trace, tmp_path: Any) -> None:
    colored = pair.color_by((rows(1.0), rows(2.0)), "t_us")
    loaded = Trace.load(colored.save(tmp_path / "pair"))
    pd.testing.assert_frame_equal(loaded.overlay, colored.overlay)
    assert loaded.meta["overlay"] == colored.meta["overlay"]
