import pytest
from torch import nn

from nbkit.capture.graphs.live_graph import live_graph
from nbkit.errors import OptionError


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (nn.ReLU, r"ReLU is a class; give a model, such as ReLU\(\.\.\.\)\."),
        (int, "There is no graph of a type; give a torch.nn.Module"),
        (3, "There is no graph of a int; give a torch.nn.Module"),
    ],
)
def test_what_has_no_graph_is_named(source, message):
    with pytest.raises(OptionError, match=message):
        live_graph(source)


def test_a_graph_is_named_after_the_class_of_its_model():
    meta = live_graph(nn.Sequential(nn.ReLU())).meta
    assert (meta["name"], meta["source"], meta["complete"]) == ("Sequential", "torch module", True)
