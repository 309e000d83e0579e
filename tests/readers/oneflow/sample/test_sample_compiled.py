"""Tests the compiled graph of the real log against numbers that were counted without nbkit."""

import json
from collections import Counter

import pytest

from tests.readers.oneflow.frames import attributes, counts, edges_of, nodes_of, tensors_of

GRAPH = "GraphBase_0 compiled"


@pytest.fixture
def nodes(sample):
    return nodes_of(sample, GRAPH)


def test_operators_are_kept_pruned_or_added(nodes, sample):
    about = sample.meta["oneflow"]["graphs"][0]
    assert (len(nodes), nodes["name"].nunique()) == (1622, 1622)
    assert (about["kept"], about["pruned"]) == (
        914,
        {"hierarchical_parallel_cast": 44, "add_n": 32, "constant": 28},
    )
    assert about["added"] == {"optimizer": 354, "amp": 346, "boxing": 8}
    traced = set(nodes_of(sample, "GraphBase_0 traced")["name"])
    assert (len(traced & set(nodes["name"])), len(traced - set(nodes["name"]))) == (914, 105)


def test_what_was_added(nodes):
    names = nodes.loc[nodes["inserted"].isin(["amp", "optimizer", "boxing"]), "name"]
    ends = ("-cast_f2h", "-cast_h2f", "-m", "-v", "_optimizer")
    assert {end: int(names.str.endswith(end).sum()) for end in ends} == dict(
        zip(ends, (187, 159, 116, 116, 116), strict=True)
    )
    assert int(names.str.contains("adam_bias_correction_factor").sum()) == 2
    assert int(names.str.startswith("System-Train-TrainStep").sum()) == 4
    assert len(names) == 708


def test_phases_of_the_kept_ones(nodes):
    kept = nodes[~nodes["inserted"].isin(["amp", "optimizer", "boxing"])]
    assert counts(kept["phase"]) == {"backward": 493, "forward": 302}
    assert counts(kept.loc[kept["phase"].isna(), "kind"]) == {"parameter": 116, "input": 2, "output": 1}
    added = nodes[nodes["inserted"].isin(["amp", "optimizer", "boxing"])]
    assert int(added["phase"].isna().sum()) == 0
    assert set(added.loc[added["inserted"] == "optimizer", "phase"]) == {"optimizer"}


def test_references(sample):
    edges = edges_of(sample, GRAPH)
    assert (len(edges), edges.loc[edges["src"].isna(), "tensor"].tolist()) == (
        2704 + 20,  # what the listing prints, and what fused additions add
        ["System-Train-LearningRate-Scheduler_63/out"],
    )
    assert len(edges[["src", "dst"]].dropna().drop_duplicates()) == 2675 + 20
    assert sample.meta["oneflow"]["graphs"][0]["from_outside"]["compiled"] == [
        "System-Train-LearningRate-Scheduler_63/out"
    ]


def test_results(sample, nodes):
    tensors = tensors_of(sample, GRAPH)
    assert (len(tensors), int((tensors["reads"] == 0).sum())) == (1566, 2)
    assert counts(tensors["dtype"]) == {"bfloat16": 785, "float32": 772, "int64": 9}
    sbp = Counter(",".join(one["sbp"]) for one in attributes(tensors))
    assert sbp == {"B": 1472, "S(0)": 66, "P": 17, "S(1)": 7, "S(2)": 4}
    assert counts(nodes["device"]) == {"cuda [0, 1]": 1613, "cpu [0]": 7, "cpu [0, 1]": 2}
    assert sum(len(one.get("lists", [])) for one in attributes(nodes)) == 103
    assert int(tensors["shape"].isna().sum()) == 0


def test_bare_results_belong_to_their_op(sample, sample_path):
    tensors = tensors_of(sample, GRAPH)
    own = tensors[tensors["tensor"].str.endswith("/out")]
    assert sample_path.read_text(encoding="utf-8").count("(out:sbp=") == 358
    assert len(own) == 358 + 3  # inputs and the output print their names whole
    assert own["node_id"].nunique() == 361


def test_boxing_that_is_not_printed(sample, nodes):
    own = nodes.set_index("node_id")
    read = {node: one.get("input_sbp") for node, one in zip(nodes["node_id"], attributes(nodes), strict=True)}
    tensors = tensors_of(sample, GRAPH)
    made = {row: one["sbp"] for row, one in zip(tensors["tensor"], attributes(tensors), strict=True)}
    edges = edges_of(sample, GRAPH).dropna(subset=["src"]).query("slot != '_add_to_output'")
    other_sbp = sum(read[row.dst][row.dst_port] != made[row.tensor] for row in edges.itertuples())
    src, dst = own.loc[edges["src"].astype(int)], own.loc[edges["dst"]]
    assert other_sbp == 30
    assert [",".join(made[tensor]) for tensor in tensors["tensor"]] == tensors["sbp"].tolist()
    assert [",".join(read[row.dst][row.dst_port]) for row in edges.itertuples()] == edges["sbp"].tolist()
    assert int((src["device"].to_numpy() != dst["device"].to_numpy()).sum()) == 5
    dtypes = tensors.set_index("tensor")["dtype"]
    assert (dtypes.loc[edges["tensor"]].to_numpy() == edges["dtype"].to_numpy()).all()


def test_hidden_inputs_of_fused_additions(sample, nodes):
    hidden = {
        name: one["hidden_inputs"]
        for name, one in zip(nodes["name"], attributes(nodes), strict=True)
        if "hidden_inputs" in one
    }
    phases = nodes.set_index("name")["phase"]
    assert sample.meta["oneflow"]["graphs"][0]["hidden_inputs"] == 20
    assert Counter(phases[name] for name in hidden) == {"backward": 13, "forward": 7}
    residual = [name for name in hidden if ".att.output-" in name and phases[name] == "forward"]
    assert len(residual) == 6
    assert hidden["model.blocks.0.att.output-broadcast_matmul-31"] == [
        {"op": "model.blocks.0-add_n-32", "tensor": "model.blocks.0.ln0-layer_norm-1/y_0"}
    ]
    added = sample.edges.query("slot == '_add_to_output'")
    own = nodes.set_index("node_id")["name"]
    read = {(own[row.dst], row.tensor) for row in added.itertuples()}
    assert len(added) == 20
    assert read == {(name, one["tensor"]) for name, every in hidden.items() for one in every}


def test_modules_are_as_printed(nodes):
    assert int(nodes["module"].isna().sum()) == 0
    elsewhere = nodes[(nodes["module"] == "model") & nodes["name"].str.startswith("model.emb")]
    assert len(elsewhere) == 7
    scheduled = nodes[nodes["name"] == "ones_like-351"].iloc[0]
    assert (scheduled["module"], scheduled["phase"]) == ("", "backward")


def test_slots_and_lines_of_a_kept_op(sample, nodes):
    norm = nodes[nodes["name"] == "model.blocks.0.ln1-layer_norm-2"].iloc[0]
    slots = sample.edges.loc[sample.edges["dst"] == norm["node_id"], "slot"].tolist()
    assert slots == ["x", "gamma", "beta"]
    assert (norm["op"], norm["dtype"], json.loads(norm["shape"])) == ("layer_norm", "float32", [8, 1024, 1024])
    assert norm["source"].endswith("/libai/layers/layer_norm.py:77")
