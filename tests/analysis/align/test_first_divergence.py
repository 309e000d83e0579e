"""first_divergence: the place of each side is that of its own op, whatever module the other side's is in."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import nbkit


class Theirs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.mid, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.mid(torch.relu(self.stem(x)))))


class Flat(nn.Module):
    """Holds the parameters of the other one in itself, so that all its ops are in the root."""

    def __init__(self, theirs: nn.Module, wrong: str) -> None:
        super().__init__()
        self.held = nn.ParameterDict({name.replace(".", "_"): one for name, one in theirs.state_dict().items()})
        self.wrong = wrong

    def forward(self, x: Tensor) -> Tensor:
        held = self.held
        h = torch.relu(F.linear(x, held.stem_weight, held.stem_bias))
        h = torch.tanh(F.linear(h, held.mid_weight, held.mid_bias))
        h = h.flip(-1) if self.wrong == "flip" else h * 1.3
        return F.linear(h, held.head_weight, held.head_bias)


class Block(nn.Module):
    def __init__(self, has_residual: bool) -> None:
        super().__init__()
        self.norm, self.inner, self.has_residual = nn.LayerNorm(8), nn.Linear(8, 8), has_residual

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.inner(x))
        return self.norm(x + h if self.has_residual else h)


def first_of(left: nn.Module, right: nn.Module) -> tuple[dict, dict]:
    """Returns the places of both sides, each with the module of its result in the frame `results`."""
    both = nbkit.opalign(left, right, inputs=(torch.randn(5, 8),))
    first, results = both.meta["first_divergence"], both.results.set_index("result_id")
    for side in ("left", "right"):
        first[side]["of_results"] = results.loc[first[side]["result_id"], "module"]
    return first["left"], first["right"]


@pytest.mark.parametrize(("wrong", "op"), [("flip", "aten.flip.default"), ("scale", "aten.mul.Tensor")])
def test_the_module_of_a_place_is_that_of_its_op_beside_a_flat_model(wrong, op):
    torch.manual_seed(0)
    theirs = Theirs()
    left, right = first_of(theirs, Flat(theirs, wrong))
    assert (left["name"], left["module"], left["of_results"]) == ("addmm_2", "head", "head")
    assert (right["op"], right["module"], right["of_results"]) == (op, "", "")


def test_the_module_of_a_place_is_that_of_its_op_where_ops_read_other_values():
    torch.manual_seed(0)
    with_residual = nn.Sequential(nn.Linear(8, 8), Block(True), Block(True), nn.Linear(8, 3))
    without = nn.Sequential(nn.Linear(8, 8), Block(True), Block(False), nn.Linear(8, 3))
    without.load_state_dict(with_residual.state_dict())
    left, right = first_of(with_residual, without)
    assert (left["module"], right["module"]) == (left["of_results"], right["of_results"])
    assert left["module"].startswith("2") and right["module"] == "2.norm"
