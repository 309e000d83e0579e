"""The graphs of both sides, colored by what came of each result, and linked with the table."""

import pytest

from nbkit.trace.trace import Trace
from nbkit.views.alignment.graphs import graph_trace, graphs_by_side, row_nodes
from nbkit.views.alignment.widget import AlignmentTableModel
from nbkit.views.graph.data import comparison_sides
from nbkit.views.graph.overlay import overlay_in
from nbkit.views.graph.widget import GraphModel
from nbkit.views.linking import link_alignment
from tests.views.alignment.makers import aligned_trace


@pytest.fixture(scope="module")
def graphs() -> Trace:
    return graph_trace(aligned_trace(graphs=True))


def colors(trace: Trace, frame: str, key: str) -> dict[str, str]:
    """What colors the nodes or parts, by their names."""
    column = f"{key}_id"
    rows = trace.overlay.dropna(subset=[column])
    names = trace.frames[frame].set_index(column)["name" if key == "node" else "module"]
    return {names[int(one)]: word for one, word in zip(rows[column], rows["category"], strict=True)}


def test_nodes_have_the_verdicts_of_their_results(graphs: Trace) -> None:
    words = colors(graphs, "nodes", "node")
    assert words["softmax"] == words["/Softmax_output_0"] == "diverges first"
    assert (words["scores"], words["add_28"], words["mul_scale"]) == ("agrees", "inherited", "one side only")


def test_a_part_has_the_worst_verdict_inside(graphs: Trace) -> None:
    words = colors(graphs, "parts", "part")
    assert words["model.layers.0.self_attn"] == words["model.layers.0"] == "diverges first"
    assert words["model.layers.0.mlp"] == "diverges here"
    assert words["model.layers.0.self_attn.q_proj"] == "agrees"


def test_both_graphs_are_shown_with_colors_that_mean_something(graphs: Trace) -> None:
    sides = comparison_sides(graphs)
    assert sides is not None
    assert [side["name"] for side in sides] == ["decoder", "decoder.onnx"]
    overlay = overlay_in(graphs)
    assert overlay is not None
    outline = overlay.outline()
    assert outline["looks"]["diverges first"] == ["magenta", "slash"]
    assert outline["caption"] == "agreement with the other side; of a part the worst inside"


def test_what_the_alignment_pairs_corresponds(graphs: Trace) -> None:
    rows = graphs.correspondence.set_index("left_name")
    assert rows.loc["softmax", "right_name"] == "/Softmax_output_0"
    assert rows.loc["softmax", "message"] == "diverges first, error 0.0121"
    assert rows.loc["mul_scale", "action"] == "left_only"
    of_nodes = graphs.correspondence[graphs.correspondence["level"] != "part"]
    assert not of_nodes["left_id"].dropna().duplicated().any()


def test_graphs_without_sides_in_their_names_come_in_order() -> None:
    trace = aligned_trace(graphs=True)
    names = trace.nodes["graph"].map({"left: decoder": "a", "right: decoder": "b"})
    frames = {**trace.frames, "nodes": trace.nodes.assign(graph=names)}
    assert graphs_by_side(Trace(frames, trace.meta)) == {"left": ["a"], "right": ["b"]}


def test_graphs_that_meta_names_are_those_of_their_sides() -> None:
    trace = aligned_trace(graphs=True)
    named = {"left": {"graphs": ["right: x"]}, "right": {"graphs": ["left: x"]}}
    assert graphs_by_side(Trace(trace.frames, {**trace.meta, **named})) == {"left": ["right: x"], "right": ["left: x"]}


def test_a_row_selects_its_node_and_a_node_its_row() -> None:
    trace = aligned_trace(graphs=True)
    table, graph = AlignmentTableModel(trace), GraphModel(graph_trace(trace))
    end, known = link_alignment(table, graph), row_nodes(trace)
    table.selected_row = 20
    assert graph.selected_node_id == known.left[20]
    graph.selected_node_id = int(known.right[34])
    assert table.selected_row == 34
    end()
    table.selected_row = 1
    assert graph.selected_node_id == known.right[34]
    graph.selected_node_id = int(known.left[20])
    assert table.selected_row == 1
