"""Two models that have not run: what no name and no op pairs, shapes alone do not make the same."""

import pandas as pd
import torch
from torch import nn

import nbkit


def nested(**modules: nn.Module) -> nn.Module:
    return nn.ModuleDict(modules)


def theirs() -> nn.Module:
    """Two layers with queries, keys, values and an output of one shape."""

    def layer() -> nn.Module:
        attention = nested(
            self=nested(query=nn.Linear(8, 8), key=nn.Linear(8, 8), value=nn.Linear(8, 8)),
            output=nested(dense=nn.Linear(8, 8), LayerNorm=nn.LayerNorm(8)),
        )
        return nested(attention=attention, up=nn.Linear(8, 16), down=nn.Linear(16, 8), LayerNorm=nn.LayerNorm(8))

    return nested(layer=nn.ModuleList([layer(), layer()]))


def mine() -> nn.Module:
    """The same with one projection for queries, keys and values."""

    def layer() -> nn.Module:
        norms = {name: nn.LayerNorm(8) for name in ("n1", "n2")}
        return nested(qkv=nn.Linear(8, 24), o=nn.Linear(8, 8), f1=nn.Linear(8, 16), f2=nn.Linear(16, 8), **norms)

    return nested(layers=nn.ModuleList([layer(), layer()]))


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
    found = parameters(theirs(), mine())
    assert not found.index.str.contains("query|key|value|dense").any()
    assert not found["right_name"].str.contains(r"\.o\.|qkv").any()


def test_a_bias_of_a_layer_never_meets_a_norm():
    one = nested(layer=nn.ModuleList([nested(a=nn.Linear(8, 16), b=nn.Linear(8, 12))]))
    other = nested(layer=nn.ModuleList([nested(c=nn.Linear(9, 16), d=nn.LayerNorm(12))]))
    assert parameters(one, other)["right_name"].to_dict() == {"layer.0.a.bias": "layer.0.c.bias"}


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
    summary = nbkit.opgraph(model).summary()
    assert summary.startswith("4 modules, 40 parameters.") and "parameters 40 (160 B)" in summary
