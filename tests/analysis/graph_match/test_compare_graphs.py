"""Small graphs of several frameworks against each other: what corresponds, in literal rows."""

from itertools import pairwise

import pandas as pd
import torch
from torch import nn

import nbkit
from nbkit.analysis.graph_match.compare_graphs import compare_graphs, compared_graphs
from nbkit.schema import TEXT
from tests.support.graph_frames import make_graph, mlp, renamed

ATEN = {"linear": "aten.linear.default", "relu": "aten.relu.default"}
PADDLE = {"linear": "matmul_v2", "relu": "relu"}


def pairs(found: pd.DataFrame, level: str, *columns: str) -> list[tuple]:
    rows = found[found["level"] == level]
    chosen = rows[["left_name", "right_name", *columns]]
    return list(chosen.astype(object).where(chosen.notna(), None).itertuples(index=False, name=None))


def test_paths_pair_parameters_and_the_dataflow_pairs_ops():
    found = compare_graphs(mlp("export", "", ATEN), mlp("block 0", "model.", PADDLE, dtype="float16"))
    assert pairs(found, "parameter", "evidence", "relation") == [
        ("up.weight", "model.up.weight", "name", "cast"),
        ("down.weight", "model.down.weight", "name", "cast"),
    ]
    assert pairs(found, "op", "left_op", "right_op") == [
        ("x", "x", None, None),
        ("export a", "block 0 a", "aten.linear.default", "matmul_v2"),
        ("export b", "block 0 b", "aten.relu.default", "relu"),
        ("export c", "block 0 c", "aten.linear.default", "matmul_v2"),
    ]


def test_transposed_weights_are_told():
    found = compare_graphs(mlp("export", "", ATEN), mlp("block 0", "", PADDLE, turned=True))
    rows = found[found["level"] == "parameter"]
    assert rows["relation"].tolist() == ["permute", "permute"]
    assert rows["message"].tolist() == [
        "transposed; [8, 4] on the left, [4, 8] on the right",
        "transposed; [4, 8] on the left, [8, 4] on the right",
    ]


def chain(graph: str, *ops: str) -> dict[str, pd.DataFrame]:
    """A graph of ops that each read the one before."""
    names = ["x", *(f"{graph} {number} {op}" for number, op in enumerate(ops))]
    nodes = [(name, op, "", [2], (before,)) for (before, name), op in zip(pairwise(names), ops, strict=True)]
    return make_graph(graph, ("x", "input", "", [2], ()), *nodes)


def test_what_only_one_side_has_stands_where_it_is():
    found = compare_graphs(chain("one", "exp", "tanh"), chain("other", "exp", "cast", "tanh", "relu"))
    assert pairs(found, "op", "action", "relation") == [
        ("x", "x", "match", "same"),
        ("one 0 exp", "other 0 exp", "match", "same"),
        (None, "other 1 cast", "right_only", "cast"),
        ("one 1 tanh", "other 2 tanh", "match", "same"),
        (None, "other 3 relu", "right_only", None),
    ]


def test_arithmetic_may_be_spelled_in_other_ways():
    found = compare_graphs(chain("one", "exp", "aten.rsub.Scalar", "tanh"), chain("other", "exp", "scale", "tanh"))
    assert pairs(found, "op", "evidence")[2:] == [
        ("one 1 aten.rsub.Scalar", "other 1 scale", "structure"),
        ("one 2 tanh", "other 2 tanh", "structure"),
    ]


def test_ops_of_one_source_are_paired_by_their_names():
    frames = chain("traced", "exp", "tanh", "relu", "exp", "exp")
    other = renamed(frames, "compiled")
    nodes = other["nodes"].assign(op=other["nodes"]["op"].replace("relu", "gelu"))
    found = compare_graphs(frames, {**other, "nodes": nodes})
    found = found[found["level"] == "op"]
    assert found["evidence"].dropna().unique().tolist() == ["name"]
    assert found[found["action"] != "match"]["action"].tolist() == ["right_only", "left_only"]


def test_in_graphs_of_one_source_names_alone_decide():
    frames = chain("traced", *["exp", "tanh"] * 10)
    other = renamed(frames, "compiled")
    names = other["nodes"]["name"].replace("traced 6 exp", "another exp")
    found = compare_graphs(frames, {**other, "nodes": other["nodes"].assign(name=names)})
    assert [pair for pair in pairs(found, "op") if pair[0] != pair[1]] == [
        (None, "another exp"),
        ("traced 6 exp", None),
    ]


def test_graphs_of_equal_names_are_compared_else_the_first_with_ops():
    left = pd.DataFrame({"graph": ["tree", "a", "a", "b"], "kind": ["module", "input", "op", "op"]})
    right = pd.DataFrame({"graph": ["b", "c"], "kind": ["op", "op"]})
    assert compared_graphs(left, right) == [("b", "b")]
    assert compared_graphs(left, right[1:]) == [("a", "c")]
    assert compared_graphs(left[:1], right) == [("tree", "b")]
    assert compared_graphs(left[:0], right) == []


def test_two_layers_find_the_first_two_of_three():
    layers = [mlp_layers(count) for count in (2, 3)]
    found = compare_graphs(*layers)
    blocks = found[(found["level"] == "parameter") & (found["action"] == "match")]
    assert blocks["left_name"].tolist() == blocks["right_name"].tolist() == ["layers.0.w", "layers.1.w"]
    assert found[found["level"] == "parameter"]["action"].tolist() == ["match", "match", "right_only"]


def mlp_layers(count: int) -> dict[str, pd.DataFrame]:
    nodes = [("x", "input", "", [4], ())]
    for layer in range(count):
        module, last = f"layers.{layer}", nodes[-1][0]
        nodes.append((f"{module}.w", "parameter", module, [4, 4], ()))
        nodes.append((f"mm {layer}", "aten.mm.default", module, [4], (last, f"{module}.w")))
    return make_graph("export", *nodes)


def test_a_part_meets_one_of_its_name_that_was_not_recognised():
    frames = mlp("export", "mlp.", ATEN)
    unknown = renamed(frames, "other")
    parts = unknown["parts"].assign(role=None, evidence=None).astype({"role": TEXT, "evidence": TEXT})
    found = compare_graphs(frames, {**unknown, "parts": parts})
    assert set(found[found["level"] == "part"]["action"]) == {"match"}


def test_a_node_has_the_role_of_its_side_or_of_the_part_around_it():
    frames = mlp("export", "mlp.", ATEN)
    no_role = frames["nodes"].assign(role=None).astype({"role": TEXT})
    found = compare_graphs(mlp("other", "", PADDLE), {**frames, "nodes": no_role})
    assert pairs(found, "parameter", "role")[0] == ("up.weight", "mlp.up.weight", "mlp")
    assert [role for _, _, role in pairs(found, "op", "role")] == [None, "mlp", "mlp", "mlp"]


def test_what_such_a_part_holds_meets_nothing_outside_it():
    """Both have an `up` inside the feed-forward network, and one behind it."""

    def graph(name: str) -> dict[str, pd.DataFrame]:
        made = [("x", "input", "", [2, 4], ())]
        for module, shape in (("mlp.up", [8, 4]), ("mlp.down", [4, 8]), ("up", [6, 4])):
            made.append((f"{module}.weight", "parameter", module, shape, ()))
            read = "x" if module == "mlp.up" else made[-2][0]
            made.append((f"{name} {module}", ATEN["linear"], module, [2, shape[0]], (read, f"{module}.weight")))
            if module == "mlp.up":
                made.append((f"{name} act", ATEN["relu"], "mlp", [2, 8], (made[-1][0],)))
        return make_graph(name, *made)

    left, right = graph("one"), graph("other")
    assert "mlp" in set(left["parts"]["role"])
    parts = right["parts"].assign(role=None, evidence=None).astype({"role": TEXT, "evidence": TEXT})
    found = compare_graphs(left, {**right, "parts": parts})
    names = ["mlp", "mlp.up", "mlp.down", "up"]
    assert pairs(found, "part")[1:] == [(name, name) for name in names]


def test_state_of_an_optimizer_is_no_parameter():
    frames = mlp("export", "", ATEN)
    step = make_graph(
        "trace", ("w.exp_avg", "buffer", None, [4, 8], ()), ("x", "aten.lerp_.Scalar", None, [4, 8], ("w.exp_avg",))
    )
    found = compare_graphs(frames, step)
    assert pairs(found, "state") == [(None, "w.exp_avg")]
    assert pairs(found, "parameter") == [("up.weight", None), ("down.weight", None)]


def test_square_weights_are_taken_to_be_as_the_others():
    def graph(name: str, wide: list[int]) -> dict[str, pd.DataFrame]:
        return make_graph(
            name,
            ("x", "input", "", [2, 4], ()),
            ("square", "parameter", "", [4, 4], ()),
            ("wide", "parameter", "", wide, ()),
            (f"{name} 1", "aten.linear.default", "", [2, 4], ("x", "square")),
            (f"{name} 2", "aten.linear.default", "", [2, 8], (f"{name} 1", "wide")),
        )

    for wide, relation in (([4, 8], "permute"), ([8, 4], "same")):
        found = compare_graphs(graph("one", [8, 4]), graph("other", wide))
        assert found[found["level"] == "parameter"]["relation"].tolist() == [relation, relation]


def two_products(graph: str, *names: str) -> dict[str, pd.DataFrame]:
    """A graph without parts, of products with parameters of one shape."""
    states = [(name, "parameter", "", [4, 4], ()) for name in names]
    products = [(f"{graph} {name}", "aten.mm.default", "", [4], ("x", name)) for name in names]
    return make_graph(graph, ("x", "input", "", [4], ()), *states, *products)


def test_parameters_of_one_shape_are_not_paired_where_nothing_says_which_is_which():
    found = compare_graphs(two_products("one", "up", "down"), two_products("other", "key", "value"))
    assert set(found[found["level"] == "parameter"]["action"]) == {"left_only", "right_only"}


class Gate(nn.Module):
    """Has no role that is recognized."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class Gates(nn.Module):
    def __init__(self, *names: str) -> None:
        super().__init__()
        self.gates = [Gate(size) for size in (4, 1)]
        for name, gate in zip(names, self.gates, strict=True):
            self.add_module(name, gate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gate in self.gates:
            x = gate(x).tanh()
        return x


def test_parts_of_other_names_are_paired_and_so_is_what_holds_them():
    batch = (torch.ones(2, 4),)
    sides = [torch.export.export(Gates(*names), batch) for names in (("first", "second"), ("other", "another"))]
    found = nbkit.opgraph(sides[0], against=sides[1]).correspondence
    assert pairs(found, "part", "evidence") == [
        ("Gates", "Gates", "name"),
        ("first", "other", "structure"),
        ("second", "another", "structure"),
    ]
