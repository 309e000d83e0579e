"""GraphView: its packed data, its values of a recorded step, its selection, and what it is linked with."""

import json
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from traitlets import TraitError

import nbkit
from nbkit.schema import DIFFS, MEMORY, NODES
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.widget import FlameGraphModel
from nbkit.views.graph.data import comparison_sides, graph_data
from nbkit.views.graph.values import node_values
from nbkit.views.graph.widget import GraphView
from nbkit.views.linking import link_graph
from nbkit.views.op_table.widget import OpTable
from nbkit.views.static_html.text import summary
from tests.support.fake_graphs import EVIL, training_graph
from tests.support.fakes import small_trace
from tests.support.graph_texts import ONEFLOW, PADDLE, Net


def outline_of(packed: bytes) -> dict:
    data = zlib.decompress(packed)
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


def recorded(**columns: object) -> Trace:
    """A step of eight ops with a graph of three of them, in two modules."""
    trace = small_trace()
    rows = [
        {"node_id": node, "graph": "trace", "kind": "op", "name": f"n{node}", "op_id": op_id, "module": module}
        for node, (op_id, module) in enumerate([(2, "a"), (None, "a"), (1, "b")])
    ]
    return Trace({**trace.frames, "nodes": NODES.frame(rows), **columns}, {**trace.meta, "verb": "opgraph"})


def test_the_data_has_all_columns_and_cuts_long_names() -> None:
    trace = training_graph(2)
    trace.nodes["name"] = EVIL
    data = outline_of(graph_data(trace))
    assert (data["graphs"], data["values"], data["nodes"]["count"], data["edges"]["count"]) == (["step"], [], 102, 157)
    (name,) = data["nodes"]["texts"]["name"]["values"]
    assert len(name) == 400 and "\u202e" not in name
    assert graph_data(trace) == graph_data(trace)


def test_nodes_know_time_memory_and_error_of_their_ops() -> None:
    memory = {"op_id": [1, 1, 2], "time_us": [0.0] * 3, "device": ["cpu"] * 3, "delta_bytes": [8, 4, -12]}
    trace = recorded(memory=MEMORY.frame(memory))
    values = node_values(trace)
    times = trace.ops["self_time_us"]
    assert values["self_time_us"][[0, 2]].tolist() == [times[2], times[1]] and np.isnan(values["self_time_us"][1])
    assert np.isnan(values["allocated_bytes"][0]) and values["allocated_bytes"][2] == 12.0
    assert "max_abs_error" not in values
    assert node_values(training_graph(1)) == {}


def test_where_no_widget_can_be_shown_its_trace_is_there_as_text_and_html() -> None:
    bundle = GraphView(trace := recorded())._repr_mimebundle_()
    views = bundle[0] if isinstance(bundle, tuple) else bundle
    shown, _ = trace._repr_mimebundle_()
    assert views["text/plain"] == shown["text/plain"] == summary(trace)
    assert "nbkit-static" in views["text/html"]


def test_what_is_selected_must_be_there() -> None:
    view = GraphView(training_graph(1))
    view.selected_node_id = 3
    with pytest.raises(TraitError, match="There is no node 999; this trace has 53 nodes"):
        view.selected_node_id = 999
    with pytest.raises(TraitError, match="There is no op 0; this trace has 0 ops"):
        view.selected_op_id = 0


def test_a_selected_op_is_selected_in_the_table_and_a_part_limits_it() -> None:
    trace = recorded()
    graph, table = GraphView(trace), OpTable(trace)
    unlink = link_graph(graph, table)
    graph.selected_op_id = 2
    assert table.selected_op_id == 2
    graph.selection = {"label": "a", "ids": np.array([2, 1], "<i4").tobytes(), "module": "a"}
    assert table.within is not None and table.within["label"] == "a (2 ops)"
    graph.selection = None
    assert table.within is None
    unlink()
    graph.selected_op_id = 1
    assert table.selected_op_id == 2


def test_a_selected_op_is_selected_in_a_flame_graph_until_they_are_unlinked() -> None:
    trace = recorded()
    graph, flame = GraphView(trace), FlameGraphModel(trace)
    unlink = link_graph(graph, flame)
    graph.selected_op_id = 2
    assert flame.selected_op_id == 2
    unlink()
    graph.selected_op_id = 1
    assert flame.selected_op_id == 2


def test_without_ids_the_ops_of_the_module_are_shown() -> None:
    trace = recorded()
    graph, table = GraphView(trace), OpTable(trace)
    link_graph(graph, table)
    module = trace.ops["module"].dropna().iloc[-1]
    graph.selection = {"label": "part", "ids": b"", "module": module}
    below = trace.ops["module"].fillna("?").str.startswith(module)
    assert table.within["label"] == f"part ({int(below.sum())} ops)"


def test_diffs_are_the_errors_of_nodes() -> None:
    row = {"op_id": 1, "op": "x", "phase": "forward", "role": "output", "position": 0, "status": "ok"}
    diffs = DIFFS.frame([{**row, "max_abs_error": error} for error in (0.5, 2.0)])
    values = node_values(recorded(diffs=diffs))
    pd.testing.assert_series_equal(pd.Series(values["max_abs_error"]), pd.Series([np.nan, np.nan, 2.0]))


def test_the_data_of_a_comparison_has_the_graphs_of_both_sides_and_what_corresponds(tmp_path: Path) -> None:
    (tmp_path / "net.log").write_text(ONEFLOW)
    (tmp_path / "net.txt").write_text(PADDLE)
    data = outline_of(graph_data(nbkit.opgraph(tmp_path / "net.log", against=tmp_path / "net.txt")))
    assert data["comparison"]["sides"] == [
        {"name": "net.log", "graphs": ["net_0 compiled"]},
        {"name": "net.txt", "graphs": ["block 0"]},
    ]
    assert set(data["comparison"]["rows"]["texts"]) == {"level", "relation", "message"}


def test_the_graphs_that_were_compared_come_first() -> None:
    found = nbkit.opgraph(Net(), against=Net())
    found.meta["left"]["graphs"] = ["another", *found.meta["left"]["graphs"]]
    assert comparison_sides(found) == [
        {"name": "Net", "graphs": ["module tree (left)", "another"]},
        {"name": "Net", "graphs": ["module tree (right)"]},
    ]
    assert comparison_sides(nbkit.opgraph(Net())) is None


def test_a_file_is_called_as_the_graph_or_as_the_model_of_a_step_without_a_name() -> None:
    model = Net()
    with nbkit.optrace() as step:
        model(torch.ones(2, 4))
    names = [outline_of(graph_data(nbkit.opgraph(source)))["name"] for source in (model, step)]
    named = outline_of(graph_data(nbkit.opgraph(step, name="mine")))["name"]
    assert (names, named) == (["Net", "Net"], "mine")
