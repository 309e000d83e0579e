"""Two LLaMAs of different authors with equal logits: what is paired, by the values that both recorded."""

import re
from collections import OrderedDict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.analysis.graph_match.compare_graphs import compare_graphs
from sample_models.llama import LLAMA_TINY
from tests.support.second_llama import Ways, first_name, two_llamas

# Of the pairs of ops: the two turn queries and keys, and attend, by other ops.
LEAST_RIGHT = {(True, False): 0.95, (False, False): 0.9, (True, True): 0.9, (False, True): 0.88}


@cache
def compared(is_fused, is_training, attends_apart=False):
    """The correspondence, and nodes and first results by op_id of both sides."""
    ids = torch.randint(0, 96, (2, 12), generator=torch.Generator().manual_seed(1))
    sides = []
    for model in two_llamas(Ways(is_fused, attends_apart=attends_apart)):
        with nbkit.optrace(values="stats") as trace:
            model(ids, ids).backward() if is_training else model(ids)
        results = trace.tensors.query("role == 'output' and position == 0").set_index("op_id")
        sides.append((nbkit.opgraph(trace).frames, results))
    (left, _), (right, _) = sides
    return compare_graphs(left, right), *((frames["nodes"], results) for frames, results in sides)


def op_pairs(correspondence, left, right):
    rows = correspondence.query("level == 'op' and action == 'match'")
    nodes = left.loc[rows["left_id"]], right.loc[rows["right_id"]]
    are_ops = (nodes[0]["kind"] == "op").to_numpy() & (nodes[1]["kind"] == "op").to_numpy()
    return [side[are_ops] for side in nodes]


@pytest.mark.parametrize("attends_apart", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("is_fused", [False, True])
def test_every_parameter_meets_its_own(is_fused, is_training, attends_apart):
    correspondence, *_ = compared(is_fused, is_training, attends_apart)
    rows = correspondence.query("level == 'parameter'")
    assert set(rows["action"]) == {"match"} and len(rows) == 21
    assert rows["left_name"].tolist() == [first_name(name) for name in rows["right_name"]]


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("is_fused", [False, True])
def test_pairs_of_ops_have_the_same_values_and_layer(is_fused, is_training):
    correspondence, (left, left_results), (right, right_results) = compared(is_fused, is_training)
    ours, theirs = op_pairs(correspondence, left, right)
    layers = [
        [re.search(r"(?:layers|blocks)\.(\d+)|$", module)[1] for module in nodes["module"].fillna("")]
        for nodes in (ours, theirs)
    ]
    assert layers[0] == layers[1]
    made = [
        results.loc[nodes["op_id"], ["numel", "norm", "max"]].to_numpy(float)
        for nodes, results in ((ours, left_results), (theirs, right_results))
    ]
    assert (made[0][:, 0] == made[1][:, 0]).all()
    is_right = np.isclose(*made, rtol=1e-3, equal_nan=True).all(axis=1)
    assert is_right.mean() > LEAST_RIGHT[is_fused, is_training]
    assert len(ours) > 0.6 * (left["kind"] == "op").sum()
    products = (ours["op"] == "aten.mm.default").to_numpy()
    assert is_right[products].all() and products.sum() == (left["op"] == "aten.mm.default").sum()


@pytest.mark.parametrize("attends_apart", [False, True])
@pytest.mark.parametrize("is_fused", [False, True])
def test_queries_and_keys_of_one_size_meet_their_own_whichever_are_made_first(is_fused, attends_apart):
    config = replace(LLAMA_TINY, num_key_value_heads=LLAMA_TINY.num_attention_heads)
    ids, sides = torch.arange(12)[None], []
    for model in two_llamas(Ways(is_fused, attends_apart=attends_apart), config):
        with nbkit.optrace() as trace:
            model(ids)
        sides.append(nbkit.opgraph(trace).frames)
    rows = compare_graphs(*sides).query("level == 'parameter'")
    assert len(rows) == 21
    assert rows["left_name"].tolist() == [first_name(name) for name in rows["right_name"]]


@pytest.mark.parametrize("attends_apart", [False, True])
def test_a_block_that_holds_projections_itself_is_a_block(attends_apart):
    correspondence, *_ = compared(True, False, attends_apart)
    parts = correspondence.query("level == 'part' and role == 'block'")
    assert parts["left_name"].tolist() == ["model.layers.0", "model.layers.1"]
    assert parts["right_name"].tolist() == ["blocks.0", "blocks.1"]
    norms = correspondence.query("level == 'part' and role == 'norm'")
    assert norms[["left_name", "right_name"]].to_numpy().tolist()[:2] == [
        ["model.layers.0.input_layernorm", "blocks.0.n1"],
        ["model.layers.0.post_attention_layernorm", "blocks.0.n2"],
    ]


@pytest.mark.parametrize("attends_apart", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
def test_layers_meet_by_the_parameters_that_they_hold_in_every_phase(is_training, attends_apart):
    correspondence, *_ = compared(True, is_training, attends_apart)
    parts = correspondence.query("level == 'part'")
    layers = parts[parts["left_op"].eq("Linear") | parts["right_op"].eq("Linear")]
    assert len(layers) == 15 * (1 + is_training) and (layers["action"] == "match").all()
    assert layers["left_name"].tolist() == [first_name(name) for name in layers["right_name"]]
    # What only one of the two has modules for.
    alone = parts.query("action != 'match'")
    assert set(alone["left_op"]) <= {"LlamaModel", "MLP"} | ({"Attention"} if not attends_apart else set())


class Turned(nn.Module):
    """A layer whose weight is stored as (in, out), as that of transformers' Conv1D."""

    def __init__(self, size, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(size, width)), nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


def feed_forward(layer, *names):
    layers = (layer(8, 32), nn.GELU(), layer(32, 8))
    return nn.Sequential(OrderedDict(mlp=nn.Sequential(OrderedDict(zip(names, layers, strict=True)))))


@pytest.mark.parametrize("second", [nn.Linear, Turned])
def test_weights_that_are_stored_turned_meet_those_of_their_layer(second):
    """Both have a weight of either shape: of (8, 32) and (32, 8) only the order of use tells which is which."""
    traces = []
    for model in (feed_forward(nn.Linear, "fc1", "act", "fc2"), feed_forward(second, "c_fc", "act", "c_proj")):
        with nbkit.optrace() as trace:
            model(torch.randn(3, 8))
        traces.append(nbkit.opgraph(trace).frames)
    parameters = compare_graphs(*traces).query("level == 'parameter'")
    names = {"fc1": "c_fc", "fc2": "c_proj"}
    assert parameters["right_name"].tolist() == [
        ".".join(names.get(part, part) for part in name.split(".")) for name in parameters["left_name"]
    ]
    weights = parameters[parameters["left_name"].str.endswith("weight")]
    assert set(weights["relation"]) == {"same" if second is nn.Linear else "permute"}
