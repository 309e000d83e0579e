"""Two models that have not run: what no name and no op pairs, shapes alone do not make the same."""

import pandas as pd
import torch
from torch import nn

import nbkit


class Theirs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({name: nn.Linear(8, 8) for name in ("query", "key", "value", "dense")})
        self.up, self.down, self.LayerNorm = nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8)


class Mine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o, self.n1, self.n2 = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.f1, self.f2 = nn.Linear(8, 16), nn.Linear(16, 8)


class Pair(nn.Module):
    """Holds two layers of one size, under names that the caller gives."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.register_parameter(f"{name}_gain", nn.Parameter(torch.ones(8, 8)))


def parameters(left: nn.Module, right: nn.Module) -> pd.DataFrame:
    """Returns the pairs of parameters, by the name of the left one."""
    rows = nbkit.opgraph(left, against=right).correspondence.query("level == 'parameter' and action == 'match'")
    return rows.set_index("left_name")


def test_one_of_several_layers_of_a_shape_is_not_paired():
    found = parameters(Theirs(), Mine())
    assert not found.index.str.startswith("attention.").any()
    assert "o.weight" not in set(found["right_name"])


def test_a_bias_of_a_layer_never_meets_a_norm():
    norms = ("LayerNorm", "n1", "n2")
    found = parameters(Theirs(), Mine())
    for left, right in found["right_name"].items():
        assert left.startswith(norms) == right.startswith(norms)
        assert left.rpartition(".")[2] == right.rpartition(".")[2]


def test_what_shapes_alone_pair_is_not_called_the_same():
    found = parameters(Pair("a", "b"), Pair("c", "d"))
    assert found["right_name"].to_dict() == {"a_gain": "c_gain", "b_gain": "d_gain"}
    assert (found["relation"] == "other").all() and found["message"].isna().all()
    assert (parameters(Pair("a", "b"), Pair("a", "b"))["relation"] == "same").all()


def test_a_module_in_several_places_is_counted_once():
    model = nn.Module()
    model.first = nn.Linear(4, 4)
    model.again = model.first
    model.layers = nn.ModuleList([model.first, nn.Linear(4, 4)])
    assert len([*model.named_modules()]) == 4
    assert nbkit.opgraph(model).summary().startswith("opgraph Module: 4 modules, parameters 40 (160 B)")
