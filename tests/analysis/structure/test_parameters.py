import pandas as pd
import torch
from torch import nn

import nbkit
from nbkit.analysis.structure.parameters import held_parameters
from nbkit.analysis.structure.recognise import recognise
from nbkit.schema import GRAPH_TENSORS
from sample_models.llama import Llama, LlamaConfig
from tests.analysis.structure.graphs import Ops


def test_a_part_has_the_elements_of_its_parameters_as_far_as_sizes_are_known():
    ops = Ops()
    known, unknown = ops("parameter", shape=(4, 3), module="a"), ops("parameter", shape=(None, 5), module="b")
    ops("Mul", known, ops("Relu", unknown, module="b"), module="a.c")
    parts = recognise(ops.frames)["parts"]
    assert dict(zip(parts["module"], parts["params"], strict=True)) == {"a": 12, "a.c": 0, "b": 0}


def test_layers_whose_parameters_have_other_shapes_are_no_repeats():
    ops = Ops()
    for layer, size in enumerate((4, 8, 8)):
        ops("Mul", ops("parameter", shape=(size,), module=f"h.{layer}"), module=f"h.{layer}")
    parts = recognise(ops.frames)["parts"]
    assert parts["module"].tolist() == ["h", "h.0", "h.1", "h.2"]
    assert parts["repeat_of"].fillna(-1).tolist() == [-1, -1, 2, 2]


class Tied(nn.Module):
    """An embedding whose weight is also that of the head, in another part; and a part of 16 bit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.top = nn.Sequential(nn.Linear(4, 3).to(torch.bfloat16), nn.Linear(4, 10, bias=False), nn.LazyLinear(2))
        self.top[1].weight = self.embed.weight


def test_tied_parameters_count_where_they_first_stand_so_that_parts_beside_each_other_add_up():
    trace = nbkit.opgraph(Tied())
    held = held_parameters(trace.nodes, trace.parts, trace.graph_tensors)
    rows = dict(zip(trace.parts["module"], held.to_dict("records"), strict=True))
    columns = ("counted_params", "counted_bytes", "tied_params", "unsized_params", "dtypes", "tied_to")
    found = {path: tuple(None if pd.isna(row[name]) else row[name] for name in columns) for path, row in rows.items()}
    assert found == {
        "": (55, 190, 0, 2, "float32, bfloat16", None),
        "embed": (40, 160, 0, 0, "float32", None),
        "top": (15, 30, 40, 2, "bfloat16", "embed.weight"),
        "top.0": (15, 30, 0, 0, "bfloat16", None),
        "top.1": (0, 0, 40, 0, None, "embed.weight"),
        "top.2": (0, 0, 0, 2, None, None),
    }


def test_what_all_parts_count_is_what_torch_counts():
    model = Llama(LlamaConfig(97, 16, 24, 3, 4, 2))
    model.lm_head.weight = model.model.embed_tokens.weight
    trace = nbkit.opgraph(model)
    held = held_parameters(trace.nodes, trace.parts, trace.graph_tensors)
    is_leaf = ~trace.parts["part_id"].isin(trace.parts["parent_id"].dropna())
    total = sum(parameter.numel() for parameter in model.parameters())
    assert held["counted_params"].iloc[0] == held.loc[is_leaf.to_numpy(), "counted_params"].sum() == total
    assert held["counted_bytes"].iloc[0] == 4 * total


def test_a_graph_without_parameters_as_nodes_has_no_counts_of_them():
    ops = Ops()
    ops("Relu", module="a")
    frames = recognise(ops.frames)
    held = held_parameters(frames["nodes"], frames["parts"], GRAPH_TENSORS.frame())
    assert held["counted_params"].isna().all() and len(held) == 1
