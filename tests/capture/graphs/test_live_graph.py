import pytest
import torch
from torch import nn

from nbkit.capture.graphs.live_graph import live_graph
from nbkit.errors import OptionError


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (nn.ReLU, r"ReLU is a class; give a model, such as ReLU\(\.\.\.\)\."),
        (int, "There is no graph of the type type; give a torch.nn.Module"),
        (3, "There is no graph of the type int; give a torch.nn.Module"),
    ],
)
def test_what_has_no_graph_is_named(source, message):
    with pytest.raises(OptionError, match=message):
        live_graph(source)


@pytest.mark.parametrize(
    ("make", "name", "source"),
    [
        (lambda model: model, "Sequential", "torch module"),
        (lambda model: torch.export.export(model, (torch.ones(2),)), "Sequential", "torch.export program"),
        (torch.fx.symbolic_trace, "Sequential", "FX graph"),
    ],
)
def test_a_graph_says_what_it_is_of(make, name, source):
    meta = live_graph(make(nn.Sequential(nn.ReLU()))).meta
    assert (meta["name"], meta["source"], meta["complete"]) == (name, source, True)


def test_of_many_tied_parameters_a_note_names_the_first():
    layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(6))
    for layer in layers[1:]:
        layer.weight = layers[0].weight
    assert live_graph(layers).meta["notes"] == [
        "tied parameters are counted once: 1.weight is 0.weight, 2.weight is 0.weight, 3.weight is 0.weight, 2 more"
    ]
    assert live_graph(nn.Linear(2, 2)).meta["notes"] == []
