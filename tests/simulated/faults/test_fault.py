"""Tests a fault: its options, when it fires, and what the report says about one that did not."""

import pytest
import torch

import nbkit
from nbkit import Fault
from nbkit.schema import FAULTS
from nbkit.simulated.faults.kinds import KINDS
from nbkit.simulated.faults.kinds.kind import Kind

LAST = ["calls", "fired", "changed", "status", "message"]


@pytest.fixture
def x():
    return torch.arange(1.0, 5.0).to("sim")


def report_of(device, fault, step):
    """Returns the last columns of the report on a fault planted while `step` ran."""
    with device.planted(fault) as planted:
        step()
    return FAULTS.check(planted.report())[LAST].iloc[0].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "relativ_error"}, "kind='relativ_error' is not known; did you mean 'relative_error'"),
        ({"op": " "}, "names no op; give a name or a pattern"),
        ({"op": "re:("}, "is not a regular expression"),
        ({"phase": "back"}, "phase='back' is not known; did you mean 'backward'"),
        ({"nth_call": 0}, "nth_call must be a call, got 0; give a whole number from 1 up"),
        ({"nth_call": "1"}, "nth_call must be a call, got '1'"),
        ({"output": -1}, "output must be a result, got -1; give a whole number from 0 up"),
        ({"min_numel": 1.5}, "min_numel must be a number of elements, got 1.5"),
        ({"where": "large"}, "where must be a function, got 'large'; give one that takes the op's inputs"),
        ({"size": "1%"}, "size='1%' is not between"),
        ({"kind": "stale_result", "size": 2}, "kind='stale_result' has no size; leave size=2 out"),
        ({"kind": "approximate_exp", "size": 0}, "size=0 is not between 1 and 8; .* it is the degree"),
    ],
)
def test_a_bad_option_is_refused(options, message):
    with pytest.raises(nbkit.NbkitError, match=message):
        Fault(**{"op": "mm", **options})


def test_a_fault_names_ops_as_optrace_does(device, x):
    with device.planted(Fault("aten.mul.Tensor, exp", size=1.0)):
        assert (x * x).tolist() == [2.0, 8.0, 18.0, 32.0]
        assert (x + x).tolist() == [2.0, 4.0, 6.0, 8.0]
        assert x.exp()[0].item() == pytest.approx(2 * 2.7182818)


def test_a_wrong_gradient_only(device):
    x = torch.ones(2, 2, device="sim", requires_grad=True)
    with device.planted(Fault("mm", size=1.0, phase="backward")) as planted:
        y = x.mm(torch.eye(2, device="sim"))
        y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([[1.0, 1.0]] * 2, [[2.0, 2.0]] * 2)
    assert planted.report()[["calls", "fired"]].to_numpy().tolist() == [[2, 1]]


def test_a_wrong_forward_only(device):
    x = torch.ones(2, 2, device="sim", requires_grad=True)
    with device.planted(Fault("mm", size=1.0, phase="forward")):
        y = x.mm(torch.eye(2, device="sim"))
        y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([[2.0, 2.0]] * 2, [[1.0, 1.0]] * 2)


def test_only_beyond_a_size(device, x):
    with device.planted(Fault("mul", size=1.0, min_numel=4)):
        assert (x[:3] * 1).tolist() == [1.0, 2.0, 3.0]
        assert (x * 1).tolist() == [2.0, 4.0, 6.0, 8.0]


def test_only_in_the_nth_call_that_fits(device, x):
    with device.planted(Fault("mul", size=1.0, min_numel=4, nth_call=2)):
        results = [(part * 1)[0].item() for part in (x, x[:3], x, x)]
    assert results == [1.0, 1.0, 2.0, 1.0]


def test_only_where_the_inputs_say_so(device, x):
    with device.planted(Fault("mul", size=1.0, where=lambda tensors: tensors[0].dtype == torch.bfloat16)):
        assert (x * 1).tolist() == [1.0, 2.0, 3.0, 4.0]
        assert (x.bfloat16() * 1).tolist() == [2.0, 4.0, 6.0, 8.0]


def test_only_one_of_the_results(device, x):
    with device.planted(Fault("sort", size=1.0, output=0)):
        values, indices = x.sort()
    assert (values.tolist(), indices.tolist()) == ([2.0, 4.0, 6.0, 8.0], [0, 1, 2, 3])


def test_two_faults_of_one_op_take_turns(device, x):
    with device.planted(Fault("mul", size=1.0, nth_call=1), Fault("mul", size=2.0, nth_call=2)):
        assert [(x * 1)[0].item() for _ in range(3)] == [2.0, 3.0, 1.0]


def test_an_in_place_op_is_spoilt_in_place(device, x):
    row = x[1:]
    with device.planted(Fault("add_", size=1.0)):
        assert row.add_(1) is row
    assert x.tolist() == [1.0, 6.0, 8.0, 10.0]


def test_the_optimizer_can_be_faulty(device):
    weight = torch.nn.Parameter(torch.ones(2, device="sim"))
    weight.grad = torch.ones(2, device="sim")
    with device.planted(Fault("_foreach_add_", size=1.0)) as planted:
        torch.optim.SGD([weight], lr=0.5, foreach=True).step()
    assert weight.tolist() == [1.0, 1.0]
    assert planted.report()["changed"].tolist() == [1]


def test_transfers_are_never_faulty(device, x):
    with device.planted(Fault("*", size=1.0)):
        assert torch.ones(2).to("sim").cpu().tolist() == [1.0, 1.0]
        assert torch.empty(2).copy_(x[:2]).tolist() == [1.0, 2.0]


def test_a_fault_that_changed_results(device, x):
    assert report_of(device, Fault("mul"), lambda: x * 1)[:4] == [1, 1, 1, "changed"]


def test_a_fault_below_rounding(device, x):
    *counts, message = report_of(device, Fault("mul", size=1e-9), lambda: x * 1)
    assert counts == [1, 1, 0, "no effect"]
    assert message.startswith("each result was correct to the bit")


def test_an_op_that_never_ran(device, x):
    *counts, message = report_of(device, Fault("aten.mull.Tensor"), lambda: x * 1)
    assert counts == [0, 0, 0, "never ran"]
    assert message == "no op of the device fits 'aten.mull.Tensor'; did you mean 'aten.mul.Tensor'?"


def test_ops_that_ran_in_a_block_are_known_around_it(device, x):
    def step():
        with device.planted(Fault("add")):
            x.mul(1)

    message = report_of(device, Fault("aten.mull.Tensor"), step)[-1]
    assert message == "no op of the device fits 'aten.mull.Tensor'; did you mean 'aten.mul.Tensor'?"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("view"), "aten.view.default gives a view of its input and computes nothing"),
        (Fault("argmax"), "aten.argmax.default has no floating-point result"),
        (Fault("empty_like"), "aten.empty_like.default makes memory and writes nothing into it"),
        (Fault("add", output=3), "aten.add.Tensor has no result 3; it has 1"),
    ],
)
def test_a_fault_that_cannot_befall_the_op(device, x, fault, reason):
    def step():
        x.view(2, 2), x.argmax(), torch.empty_like(x), x + 1

    assert report_of(device, fault, step) == [1, 0, 0, "cannot apply", reason]


def test_a_device_on_which_nothing_ran(device):
    assert report_of(device, Fault("mul"), lambda: None)[-1] == "no op of the device fits 'mul'; none has run."


def test_a_kind_that_fails_spares_the_step_and_says_so(device):
    def step():
        assert torch.empty(0, 3, device="sim").mean(0).isnan().all()
        assert torch.empty(2, 0, device="sim").amax(0).numel() == 0

    fault = Fault("mean", "low_precision_accumulation")
    assert report_of(device, fault, step)[3:] == ["cannot apply", "aten.mean.dim has nothing to sum in an empty tensor"]
    status, message = report_of(device, Fault("amax", "approximate_exp"), step)[3:]
    assert (status, message.partition(";")[0]) == ("cannot apply", "aten.amax.default is not built on exp")


def test_an_unforeseen_failure_of_a_kind_spares_the_step(device, x, monkeypatch):
    def broken(call, size, memory):
        return [call.results[0].view(3, 3)]

    monkeypatch.setitem(KINDS, "relative_error", Kind("relative_error", broken, "broken", "share"))
    status, message = report_of(device, Fault("mul"), lambda: x * 1)[3:]
    assert status == "cannot apply"
    assert message.startswith("relative_error failed on aten.mul.Tensor: shape '[3, 3]' is invalid")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("mul", min_numel=5), "none of 1 calls met its conditions (phase, min_numel, where)"),
        (Fault("mul", nth_call=2), "1 calls met its conditions, so there was no call 2"),
        (Fault("mul", "stale_result"), "no call that was due had an earlier call with results of the same sizes"),
    ],
)
def test_a_fault_that_was_never_due(device, x, fault, reason):
    assert report_of(device, fault, lambda: x * 1) == [1, 0, 0, "not reached", reason]


def test_the_report_repeats_what_was_planted(device):
    fault = Fault("mm", "wrong_epsilon", phase="backward", min_numel=4, nth_call=2)
    with device.planted(fault, Fault("bmm")) as planted:
        row = planted.report().iloc[0].to_dict()
    expected = {"op": "mm", "kind": "wrong_epsilon", "size": 1000.0, "phase": "backward", "min_numel": 4, "nth_call": 2}
    assert {name: row[name] for name in expected} == expected
    assert planted.report()["fault_id"].tolist() == [0, 1]
