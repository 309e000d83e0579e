"""The data of a step: what no op of the model has made, where an op first computes with it."""

import torch
import torch.nn.functional as F
from torch import nn

from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.watch.inputs import InputsObserver

DATA = torch.arange(24.0).reshape(6, 4)


def looks(step, held=()):
    observer = InputsObserver(held)
    with Recorder(observer):
        step()
    return [(one.op, one.shape, one.largest) for one in observer.inputs]


def test_inputs_and_targets_are_data_and_what_the_model_holds_or_makes_is_not():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 4))
    held = [*model.parameters(), *model.buffers()]
    target = -torch.ones(6, 4)
    found = looks(lambda: F.mse_loss(model(DATA), target).backward(), held)
    rows = tuple(DATA.amax(1).tolist())
    assert found == [("aten.addmm.default", (6, 4), rows), ("aten.mse_loss.default", (6, 4), (1.0,) * 6)]


def test_a_batch_that_is_cut_moved_and_cast_is_looked_at_where_it_is_used():
    weight = torch.ones(4, 2, requires_grad=True)
    found = looks(lambda: DATA.double()[torch.tensor([1, 5])].float() @ weight)
    assert found == [("aten.mm.default", (2, 4), (7.0, 23.0))]


def test_integers_and_single_numbers_are_left_alone():
    table = torch.ones(9, 2, requires_grad=True)
    assert looks(lambda: F.embedding(torch.tensor([1, 2]), table) * torch.tensor(3.0)) == []


def test_numbers_that_the_step_draws_are_data():
    weight = torch.ones(4, 2, requires_grad=True)
    ((op, shape, largest),) = looks(lambda: torch.full((3, 4), -2.0) @ weight)
    assert (op, shape, largest) == ("aten.mm.default", (3, 4), (2.0, 2.0, 2.0))


def test_module_and_line_of_the_first_op_are_told():
    model = nn.Sequential(nn.Linear(4, 3))
    observer = InputsObserver([*model.parameters()])
    with Recorder(observer):
        made = DATA @ torch.ones(4, 4, requires_grad=True)
        model(torch.ones(2, 4))
    outside, *_, inside = observer.inputs
    assert (outside.op, outside.module, outside.source_text) == (
        "aten.mm.default",
        None,
        "made = DATA @ torch.ones(4, 4, requires_grad=True)",
    )
    assert (inside.op, inside.module, inside.source_text) == ("aten.addmm.default", "0", "model(torch.ones(2, 4))")
    assert made.shape == (6, 4)


def test_the_inf_that_hides_in_a_mask_is_no_value_of_a_batch():
    scores = torch.ones(2, 2, requires_grad=True)
    hidden = torch.tensor([[0.5, -torch.inf], [0.0, -3.0]])
    assert looks(lambda: (scores + hidden).softmax(-1)) == [("aten.add.Tensor", (2, 2), (0.5, 3.0))]
    assert looks(lambda: scores + hidden.neg())[-1][2] == (torch.inf, 3.0)
    assert looks(lambda: scores @ hidden)[-1][2] == (torch.inf, 3.0)
