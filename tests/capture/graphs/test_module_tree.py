"""Tests that the module tree has every module, parameter and buffer once per path, as torch itself lists them."""

import json

import pytest
import torch
from torch import nn

from nbkit.capture.graphs.module_tree import module_tree
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY


class Tied(nn.Module):
    """Has tied weights, a layer under two paths, a lazy layer, a buffer that is not saved and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight
        self.part = nn.Sequential(nn.LayerNorm(3), self.head)
        self.part[0].bias.requires_grad_(False)
        self.later = nn.LazyLinear(2, bias=False)
        self.register_buffer("table", torch.ones(4, dtype=torch.int32), persistent=False)

    def forward(self, ids):
        return self.part(self.embed(ids))


def rows(frame, kind, *columns):
    return frame.loc[frame["kind"] == kind, list(columns)].values.tolist()


@pytest.mark.parametrize("model", [Llama(LLAMA_TINY), RWKV4(RWKV4_TINY), nn.Transformer(8, 2, 1, 1, 8)])
def test_modules_parameters_and_buffers_are_those_that_torch_names(model):
    nodes = module_tree(model)["nodes"]
    assert rows(nodes, "module", "name", "op") == [[path, type(it).__name__] for path, it in model.named_modules()]
    for kind, named in (("parameter", model.named_parameters()), ("buffer", model.named_buffers())):
        expected = [[path, str(list(it.shape)), path.rpartition(".")[0]] for path, it in named]
        assert sorted(rows(nodes, kind, "name", "shape", "module")) == sorted(expected)


def test_parts_stand_below_what_holds_them():
    names = module_tree(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, affine=False))))["nodes"]["name"]
    kept = ["1.0.running_mean", "1.0.running_var", "1.0.num_batches_tracked"]
    assert names.tolist() == ["", "0", "0.weight", "0.bias", "1", "1.0", *kept]


def test_what_is_shared_stands_at_each_path_and_counts_once():
    frames = module_tree(Tied())
    same = {name: json.loads(text).get("same_as") for name, text in _attributes(frames["nodes"]).items()}
    assert {name: first for name, first in same.items() if first} == {"head.weight": "embed.weight", "part.1": "head"}
    tensors = frames["graph_tensors"]
    assert tensors["tensor"].tolist() == ["table", "embed.weight", "part.0.weight", "part.0.bias", "later.weight"]
    assert tensors["numel"].tolist()[:4] == [4, 15, 3, 3]
    assert frames["modules"].set_index("module").loc["", "params"] == 15 + 3 + 3


def test_attributes_say_what_torch_says_of_a_part():
    said = _attributes(module_tree(Tied().eval())["nodes"])
    assert json.loads(said["embed"]) == {"extra_repr": "5, 3", "training": False}
    assert json.loads(said["table"]) == {"persistent": False}
    assert json.loads(said["part.0.bias"]) == {"requires_grad": False}


def test_a_lazy_parameter_has_no_size_yet():
    later = module_tree(Tied())["graph_tensors"].set_index("tensor").loc["later.weight"]
    assert later[["shape", "numel", "size_bytes"]].isna().all()


def test_the_source_of_a_module_is_its_own_forward():
    source = module_tree(Tied())["nodes"].set_index("name")["source"]
    line = Tied.forward.__code__.co_firstlineno
    assert source[""].endswith(f"test_module_tree.py:{line}")
    assert source[["embed", "part.0"]].isna().all()


class Rude(nn.Module):
    def extra_repr(self):
        raise ValueError("not now\nnor later")


def test_odd_names_and_errors_of_the_model_are_text():
    model = nn.Module()
    model.add_module("</script>{{7*7}}__import__('os')", Rude())
    nodes = module_tree(model)["nodes"]
    assert nodes["name"].tolist() == ["", "</script>{{7*7}}__import__('os')"]
    assert json.loads(nodes["attributes"][1]) == {"extra_repr_error": "not now"}


def test_a_scripted_model_has_its_tree():
    nodes = module_tree(torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU())))["nodes"]
    assert nodes["name"].tolist() == ["", "0", "0.weight", "0.bias", "1"]


def _attributes(nodes):
    return nodes.set_index("name")["attributes"].dropna().to_dict()
