"""A column of any frame colors a graph: what joins to what, how several rows are one, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from nbkit import OptionError, Trace
from tests.readers.paddle.texts import MODERN
from tests.support.fake_graphs import training_graph
from tests.support.fakes import small_trace


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))


@pytest.fixture(scope="module")
def tree() -> Trace:
    return nbkit.opgraph(model())


@pytest.fixture(scope="module")
def recorded() -> Trace:
    with nbkit.optrace() as trace:
        model()(torch.ones(2, 4)).sum().backward()
    return trace


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


def values(graph: Trace, column: str = "value") -> dict[str, Any]:
    """By the module path of each part."""
    rows = graph.overlay.merge(graph.parts, on="part_id")
    return dict(zip(rows["module"].fillna(rows["phase"]), rows[column], strict=True))


def test_rows_of_a_module_are_one_number_and_the_rest_of_the_graph_is_plain(tree: Trace) -> None:
    rows = pd.DataFrame({"module": ["0", "0", "1.1", None, "x"], "t_us": [1.0, 2.0, 5.0, 7.0, 9.0]})
    colored = tree.color_by(rows, "t_us")
    assert values(colored) == {"0": 3.0, "1.1": 5.0} and values(colored, "rows") == {"0": 2, "1.1": 1}
    about = {"column": "t_us", "by": "module", "how": "sum", "is_inclusive": False, "joined": 2, "of": 3}
    assert colored.meta["overlay"] == about
    assert "overlay" not in tree.frames and "overlay" not in tree.meta


@pytest.mark.parametrize(
    ("column", "how", "expected"),
    [
        ("self_time_us", None, 3.0), ("size_bytes", None, 3.0), ("flops", None, 3.0), ("ratio", None, 2.0),
        ("max_abs_error", None, 2.0), ("max_alloc_bytes", None, 2.0), ("total_fraction", None, 2.0),
        ("ratio", "min", 1.0), ("ratio", "mean", 1.5), ("ratio", "sum", 3.0), ("self_time_us", "max", 2.0),
    ],
)  # fmt: skip
def test_times_sizes_and_counts_add_up_and_of_others_the_largest_counts(
    tree: Trace, column: str, how: Any, expected: float
) -> None:
    rows = pd.DataFrame({"module": ["0", "0"], column: [1.0, 2.0]})
    assert values(tree.color_by(rows, column, how=how)) == {"0": expected}


def test_what_counts_all_below_a_module_is_not_summed_again(tree: Trace) -> None:
    one_each = pd.DataFrame({"module": ["", "1"], "total_time_us": [9.0, 4.0], "self_time_us": [1.0, 2.0]})
    assert tree.color_by(one_each, "total_time_us").meta["overlay"]["is_inclusive"]
    assert not tree.color_by(one_each, "self_time_us").meta["overlay"]["is_inclusive"]
    several = pd.concat([one_each, one_each], ignore_index=True)
    assert not tree.color_by(several, "total_time_us").meta["overlay"]["is_inclusive"]
    assert tree.color_by(tree.modules, "params").meta["overlay"]["is_inclusive"]


def test_texts_and_booleans_are_categories_and_several_where_rows_differ(tree: Trace) -> None:
    rows = pd.DataFrame({"module": ["0", "0", "1.1", "1.1"], "ok": [True, False, True, True], "x": list("abcc")})
    assert values(tree.color_by(rows, "ok"), "category") == {"0": "several", "1.1": "True"}
    assert values(tree.color_by(rows.astype({"x": "category"}), "x"), "category") == {"0": "several", "1.1": "c"}


def test_ops_of_the_same_recording_join_by_their_id(recorded: Trace) -> None:
    colored = nbkit.opgraph(recorded).color_by(recorded.ops, "total_time_us")
    rows = colored.overlay.merge(colored.nodes, on="node_id")
    expected = recorded.ops.set_index("op_id")["total_time_us"].loc[rows["op_id"].to_numpy(np.int64)]
    assert len(rows) == colored.nodes["op_id"].notna().sum() and rows["value"].tolist() == expected.tolist()


def test_in_a_graph_of_a_step_rows_color_the_module_in_their_phase_and_without_one_in_the_forward() -> None:
    graph = training_graph(1)
    phases = ["forward", "backward", "backward"]
    rows = frame(module=["lm_head", "lm_head", ""], phase=phases, x=[1, 2, 3])

    def of_parts(colored: Trace) -> list[list[Any]]:
        return colored.overlay.merge(graph.parts, on="part_id")[["phase", "name", "value"]].to_numpy().tolist()

    expected = [["forward", "lm_head", 1.0], ["backward", "backward", 3.0], ["backward", "lm_head", 2.0]]
    assert of_parts(graph.color_by(rows, "x")) == expected
    plain = graph.color_by(rows.drop(columns="phase"), "x")
    assert of_parts(plain) == [["forward", "forward", 3.0], ["forward", "lm_head", 2.0]]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (frame(module=["0"], x=[1]), {"column": "y"}, "This frame has no column 'y'; its columns are module, x."),
        (frame(name=["0"], x=[1]), {}, "no column 'module' or 'op_id' to join it by; its columns are name, x."),
        (frame(module=["a"], x=[1]), {}, r"No module of this frame \('a' ...\) is in the graph \('', '0', '1' ...\)"),
        (frame(module=["0"], x=[1]), {"by": "op_id"}, "This frame has no column 'op_id' to join it by"),
        (frame(module=["0"], x=[1]), {"by": "name"}, "by='name' is unknown"),
        (frame(op_id=[0], x=[1]), {}, "This graph has no ops of a recorded step to join by op_id; give a frame with"),
        (frame(module=["0"], x=[1]), {"how": "median"}, "how='median' is unknown; give one of 'sum', 'max'"),
        (frame(module=["0"], x=["a"]), {"how": "sum"}, "how='sum' is for numbers, and the column 'x' holds categories"),
        (frame(module=["0"], x=[None]), {}, "The column 'x' is null in every row"),
        (frame(module=[None, "0"], x=[1.0, None]), {}, "No row of this frame has both 'module' and 'x'"),
        (frame(module=["0"], x=[[1]]), {}, "The column 'x' holds values of the type list; give numbers, texts or bool"),
        (frame(module=["0"], x=[1j]), {}, "The column 'x' holds values of the type complex"),
        (frame(module=["0", "0"], model=["A", "B"], x=[1, 2]), {}, r"2 models \('A', 'B'\).*frame\['model'\] == 'A'"),
        (pd.DataFrame([["0", 1, 2]], columns=["module", "x", "x"]), {}, "This frame has 2 columns 'x'; rename all but"),
        (small_trace(), {}, "A frame is needed to color by, and this is a Trace; give such as trace.ops."),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused_with_the_columns_that_are_there(
    tree: Trace, rows: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        tree.color_by(rows, **{"column": "x", **options})


def test_a_graph_without_module_paths_is_joined_with_no_module(tmp_path: Any) -> None:
    (tmp_path / "program.txt").write_text(MODERN)
    graph = nbkit.opgraph(tmp_path / "program.txt")
    with pytest.raises(OptionError, match="The parts of this graph have no module paths, so that no frame can be join"):
        graph.color_by(frame(module=["0"], x=[1]), "x")


def test_ops_of_another_recording_are_refused_and_can_be_joined_by_module(recorded: Trace) -> None:
    graph = nbkit.opgraph(recorded)
    others = recorded.ops.assign(op=recorded.ops["op"].shift(-1))
    with pytest.raises(OptionError, match=r"op \d+ is .* in this frame and .* in the graph, as they are of two"):
        graph.color_by(others, "total_time_us")
    assert set(values(graph.color_by(others, "total_time_us", by="module"))) >= {"0", "1.0", "1.1"}
    with pytest.raises(OptionError, match="No op of this frame is in the graph"):
        graph.color_by(frame(op_id=[10_000], x=[1]), "x")


def test_what_has_no_graph_is_not_colored(recorded: Trace) -> None:
    with pytest.raises(OptionError, match=r"This trace has no graph to color; make one with nbkit.opgraph\(\)"):
        recorded.color_by(recorded.ops, "op")


def test_colors_are_saved_with_the_graph_and_are_taken_away_by_none_or_a_new_graph(tree: Trace, tmp_path: Any) -> None:
    colored = tree.color_by(tree.modules, "params")
    loaded = Trace.load(colored.save(tmp_path / "graph"))
    pd.testing.assert_frame_equal(loaded.overlay, colored.overlay)
    assert loaded.meta["overlay"] == colored.meta["overlay"]
    for plain in (loaded.color_by(None), nbkit.opgraph(loaded)):
        assert "overlay" not in plain.frames and "overlay" not in plain.meta
        pd.testing.assert_frame_equal(plain.nodes, tree.nodes)


def program(tmp_path: Any, name: str = "program.txt", text: str = MODERN) -> Trace:
    ring = "    {Out=['y']} = c_allreduce_sum(inputs={X=['y']}, ring_id = 4)\n"
    (tmp_path / name).write_text(text[:-2] + ring + ring.replace("4", "7") + "}\n")
    return nbkit.opgraph(tmp_path / name)


def of_nodes(graph: Trace, colored: Trace) -> dict[str, Any]:
    rows = colored.overlay.merge(graph.nodes, on="node_id")
    return dict(zip(rows["node_id"], rows["category"], strict=True))


def test_columns_of_the_graphs_own_nodes_color_each_node(tmp_path: Any) -> None:
    graph = program(tmp_path)
    count = len(graph.nodes)
    rings = {count - 2: "ring 4", count - 1: "ring 7"}  # numbers that are names
    assert of_nodes(graph, graph.color_by(graph.nodes, "ring")) == rings
    some = graph.nodes[graph.nodes["ring"] == 7]
    assert of_nodes(graph, graph.color_by(some, "ring")) == {count - 1: "ring 7"}
    assert graph.color_by(graph.nodes, "ring").meta["overlay"]["by"] == "node_id"
    tensors = graph.color_by(graph.graph_tensors, "size_bytes").overlay
    assert tensors["node_id"].tolist() == sorted(
        set(graph.graph_tensors.dropna(subset=["node_id", "size_bytes"])["node_id"])
    )
    assert of_nodes(graph, nbkit.opgraph(graph, color="ring")) == rings


def test_nodes_of_another_graph_are_refused(tmp_path: Any, tree: Trace) -> None:
    graph = program(tmp_path)
    with pytest.raises(OptionError, match=r"node 0 is .* in this frame and .* in the graph, as they are of two graphs"):
        graph.color_by(tree.nodes, "kind")
    with pytest.raises(OptionError, match="No node of this frame is in the graph; give the frame nodes"):
        graph.color_by(graph.nodes.assign(node_id=graph.nodes["node_id"] + 1000), "kind")
    with pytest.raises(OptionError, match="This frame has no column 'rings'; its columns are node_id, graph"):
        nbkit.opgraph(graph, color="rings")
    with pytest.raises(OptionError, match="The column 'sbp' is null in every row"):
        nbkit.opgraph(graph, color="sbp")


def test_both_sides_of_a_comparison_are_colored_by_their_nodes(tmp_path: Any, tree: Trace) -> None:
    left, right = program(tmp_path), program(tmp_path, "other.txt", MODERN.replace("sgd", "momentum"))
    both = nbkit.opgraph(left, against=right, color="ring")
    count = len(left.nodes)
    rows = both.overlay
    assert rows["node_id"].tolist() == [count - 2, count - 1, 2 * count - 2, 2 * count - 1]
    assert rows["category"].tolist() == ["ring 4", "ring 7"] * 2
    one = nbkit.opgraph(left, against=tree, color="ring")
    assert one.overlay["node_id"].tolist() == [count - 2, count - 1]
    assert one.meta["overlay"]["sides"][1] is None
    with pytest.raises(OptionError, match="On the left: The column 'sbp' is null in every row"):
        nbkit.opgraph(left, against=right, color="sbp")
