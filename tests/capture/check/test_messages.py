"""Tests what a finding says: the elements that made the bad one, numbers among them, and nothing that is not so."""

import pytest
import torch
import torch.nn.functional as F

import nbkit
from tests.capture.check.test_findings import found

SCALE = 2.0**40


def only(step):
    [message] = found(step).findings["message"]
    return message


MESSAGES = {
    "whole numbers": (
        lambda: torch.tensor([1, 0]) / torch.tensor([1, 0]),
        "1 of 2 elements is NaN, the first at [1]; inputs there: 0, 0",
    ),
    "a number": (lambda: torch.ones(2) / 0, "2 of 2 elements are Inf, the first at [0]; inputs there: 1, 0"),
    "one element": (lambda: torch.zeros(1).log(), "its only element is Inf; inputs there: 0"),
    "overwritten": (
        lambda: torch.ones(2).div_(torch.zeros(2)),
        "2 of 2 elements are Inf, the first at [0]; inputs there: 0; it overwrote its input",
    ),
    "a list": (
        lambda: torch._foreach_div([torch.ones(2), torch.ones(3)], [torch.ones(2), torch.zeros(3)]),
        "3 of 3 elements are Inf, the first at [0]; inputs there: 1, 0",
    ),
    "a product": (
        lambda: torch.full((2, 2), 1e30) @ torch.full((2, 2), 1e30),
        "4 of 4 elements are Inf where 2e+60 does not fit (float32 ends at 3.403e+38), the first at [0, 0]; "
        "inputs: shape [2, 2] from 1e+30 to 1e+30; shape [2, 2] from 1e+30 to 1e+30",
    ),
    "a sum of squares": (
        lambda: torch.full((9,), 1e38).norm(),
        "its only element is Inf where the exact result 3e+38 fits (float32 ends at 3.403e+38): the op overflows on "
        "its way to it; inputs: shape [9] from 1e+38 to 1e+38",
    ),
    "overwritten by what does not fit": (
        lambda: torch.full((2,), 6e4).half().add_(2e4),
        "2 of 2 elements are Inf where the exact result does not fit (float16 ends at 6.55e+04), the first at [0]; "
        "inputs there: 2e+04; it overwrote its input",
    ),
    "parts": (
        lambda: torch.full((2, 2), 2.0**100 + 0j) @ torch.full((2, 2), 2.0**100 + 0j),
        f"4 of 4 elements are Inf where {complex(2.0**201)} does not fit (complex64 ends at 3.403e+38), the first at "
        "[0, 0]; inputs: shape [2, 2]; shape [2, 2]",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_finding_tells_the_inputs_of_the_bad_element(case):
    step, expected = MESSAGES[case]
    assert only(step) == expected


def test_labels_that_are_all_left_out_are_seen():
    assert "shape [2] from -100 to -100" in only(lambda: F.cross_entropy(torch.ones(2, 3), torch.full((2,), -100)))


def test_a_variance_below_zero_is_seen_where_it_is_only_read():
    message = only(lambda: F.batch_norm(torch.ones(2, 1), torch.zeros(1), torch.full((1,), -1.0)))
    assert "shape [1] from -1 to -1" in message and "overwrote" not in message


def test_a_scaler_explains_an_overflow_of_scaled_gradients():
    net = torch.nn.Linear(4, 4)
    optimizer, scaler = torch.optim.SGD(net.parameters()), torch.amp.GradScaler("cpu", init_scale=SCALE)

    def step():
        with torch.autocast("cpu", torch.float16):
            loss = net(torch.full((2, 4), 1e4)).float().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)

    [note] = [note for note in found(step).meta["notes"] if "GradScaler" in note]
    assert "skips the optimizer's step" in note and "expected" in note


def test_the_error_of_stop_says_where_in_the_model_a_backward_op_is():
    net, x = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Hardtanh()), torch.zeros(2, requires_grad=True)
    net[1].forward = torch.sqrt
    loss = net(x).sum()
    with pytest.raises(nbkit.NonFiniteError) as caught, nbkit.opcheck(stop=True):
        loss.backward()
    [place] = caught.value.__notes__
    assert place.startswith("backward, ")
