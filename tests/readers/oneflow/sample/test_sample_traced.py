"""Tests the traced graph of the real log against numbers that were counted without nbkit."""

from collections import Counter

import pytest

from tests.readers.oneflow.frames import attributes, counts, edges_of, nodes_of, tensors_of

GRAPH = "GraphBase_0 traced"


@pytest.fixture
def nodes(sample):
    return nodes_of(sample, GRAPH)


def test_rows_are_all_ops_that_were_added(nodes, sample):
    assert counts(nodes["kind"]) == {"op": 899, "parameter": 116, "input": 2, "output": 1, "buffer": 1}
    assert nodes["op"].nunique() + nodes.loc[nodes["kind"] != "op", "kind"].nunique() == 42
    assert nodes.loc[nodes["kind"] == "buffer", "name"].tolist() == ["model.copy_mask"]  # of the tree; no op reads it
    assert sample.meta["oneflow"]["graphs"][0]["not_added"] == []
    assert sample.meta["skipped_lines"] == []


def test_types(nodes):
    most = dict(list(counts(nodes["op"].fillna(nodes["kind"])).items())[:6])
    assert most.pop("reduce_sum_like") == 60
    assert most == {
        "broadcast_mul": 216,
        "add_n": 135,
        "parameter": 116,
        "broadcast_matmul": 90,
        "scalar_mul": 68,
    }


def test_phases_begin_with_the_first_gradient(nodes):
    ops = nodes[nodes["kind"] == "op"]
    assert counts(ops["phase"]) == {"backward": 548, "forward": 351}
    assert ops.loc[ops["phase"] == "backward", "op"].iloc[0] == "ones_like"
    assert sorted(ops["name"].str.rpartition("-")[2].astype(int)) == list(range(899))
    assert counts(nodes["inserted"]) == {"autograd": 548}


def test_edges_are_resolved_and_in_order(sample):
    edges = edges_of(sample, GRAPH)
    assert (len(edges), int(edges["src"].isna().sum())) == (1628, 0)
    assert (edges["src"] < edges["dst"]).all()
    assert len(edges[["src", "dst"]].drop_duplicates()) == 1600


def test_tensors(sample, nodes):
    tensors = tensors_of(sample, GRAPH)
    assert (len(tensors), int((tensors["reads"] == 0).sum())) == (1080, 147)
    assert set(tensors["writes"]) == {1}
    assert int((~nodes["node_id"].isin(edges_of(sample, GRAPH)["src"])).sum()) == 133


def test_attributes_have_their_kinds(nodes):
    found = [one.get("attr", {}) for one in attributes(nodes[nodes["kind"] == "op"])]
    kinds = Counter(kind for one in found for value in one.values() for kind in value)
    assert (kinds.total(), len(kinds)) == (1425, 9)
    assert sum(not one for one in found) == 411
    reshape = next(one for one in found if "shape" in one and "at_shape" in one["shape"])
    assert reshape["shape"]["at_shape"] == [8192, 6064]


def test_devices_scopes_and_source_lines(nodes):
    assert counts(nodes["device"]) == {"cuda": 1015, "cpu": 3}
    ops = nodes[nodes["kind"] != "buffer"]
    assert len({one["scope_symbol_id"] for one in attributes(ops)}) == 296
    sourced = nodes[nodes["source"].notna()]
    assert (len(sourced), sourced["source"].nunique(), set(sourced["phase"])) == (304, 19, {"forward"})
    assert sourced["source"].iloc[0].endswith("/libai/layers/embedding.py:160")
    assert sourced["name"].iloc[0] == "model.emb-gather-0"


def test_parameters(nodes, sample):
    tensors = tensors_of(sample, GRAPH)
    parameters = tensors[tensors["kind"] == "parameter"]
    assert len(parameters) == 116
    assert (int(parameters["numel"].sum()), int(parameters["size_bytes"].sum())) == (94_803_968, 379_215_872)
    assert {str(one) for one in attributes(parameters)} == {"{'sbp': ['B']}"}
    assert set(nodes.loc[nodes["kind"] == "parameter", "dtype"]) == {"float32"}


def test_ops_of_a_block(nodes):
    ops = nodes[(nodes["kind"] == "op") & nodes["module"].notna()]
    for number in range(6):
        for module, forward, backward in (("att", 29, 47 if number == 0 else 44), ("ffn", 21, 31)):
            below = ops[(ops["module"] + ".").str.startswith(f"model.blocks.{number}.{module}.")]
            assert counts(below["phase"]) == {"forward": forward, "backward": backward}, (number, module)


def test_argument_order_is_that_of_the_call(sample, nodes):
    wkv = nodes.loc[nodes["op"].str.startswith("wkv", na=False), "node_id"].iloc[0]
    edges = sample.edges[sample.edges["dst"] == wkv]
    assert edges["slot"].tolist() == ["w", "u", "k", "v"]
    assert edges["dst_port"].tolist() == [0, 1, 2, 3]


def test_shapes_come_from_the_listing(nodes):
    row = nodes[nodes["name"] == "model.emb-gather-0"].iloc[0]
    assert (row["shape"], row["dtype"] if isinstance(row["dtype"], str) else None) == ("[8, 1024, 1024]", None)
