"""Tests call_of: the call's tensors as they were, and one sentence where there are none."""

import pytest
import torch

import nbkit
from nbkit.capture.calls.call_of import op_of
from nbkit.errors import OptionError
from nbkit.trace.captured_calls import why_not_captured
from tests.capture.diff.planted import compared, scaled, with_fault
from tests.support.fakes import small_trace


def kept_of(step, op):
    trace = compared(step, keep_ops=op)
    return nbkit.call_of(trace, next(iter(trace.captured)))


def bits(x):
    return x.resolve_conj().contiguous().view(torch.uint8).tolist() if x.numel() else []


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(3, 4).t(),
        torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        torch.randn(3, 1).expand(3, 5),
        torch.randn(100, 8)[::50, ::2],
        torch.arange(5.0).as_strided((3, 3), (1, 1)),
        torch.randn(4, dtype=torch.bfloat16),
        torch.randn(4, dtype=torch.float64) * 1e300,
        torch.tensor([float("nan"), float("-inf"), -0.0]),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.randn(0, 3),
    ],
    ids=[
        "transposed",
        "channels",
        "expanded",
        "gaps",
        "overlaps",
        "bfloat16",
        "float64",
        "special",
        "conj",
        "empty",
    ],
)
def test_an_input_comes_back_to_the_bit(x):
    call = kept_of(lambda: torch.neg(x), "aten.neg.default")
    (back,) = call.args
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    assert bits(back) == bits(x)


def test_layout_comes_back():
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert kept_of(lambda: torch.neg(x), "aten.neg.default").args[0].stride() == x.stride()


def test_arguments_of_every_kind_come_back():
    x = torch.randn(3, 4)
    call = kept_of(lambda: torch.cat([x, x.half().float()], dim=1), "aten.cat.default")
    assert torch.equal(call.args[0][0], x) and call.args[1] == 1
    call = kept_of(lambda: x.sum(dim=(0, 1), dtype=torch.float64), "aten.sum.dim_IntList")
    assert (call.args[1], call.kwargs) == ([0, 1], {"dtype": torch.float64})
    call = kept_of(lambda: x.to(torch.complex64) * (1 + 2j), "aten.mul.Tensor")
    assert (call.args[1], type(call.args[1])) == (1 + 2j, complex)
    call = kept_of(lambda: torch.full_like(x, 0.5, device="cpu"), "aten.full_like.default")
    assert (call.args[1], call.kwargs["device"]) == (0.5, torch.device("cpu"))


def test_one_tensor_given_twice_is_one():
    x = torch.randn(3, 3)
    call = kept_of(lambda: torch.mm(x, x), "aten.mm.default")
    assert call.args[0] is call.args[1]


def test_the_call_runs_again_to_what_the_trace_has():
    x = torch.randn(5, 5)
    trace = with_fault(lambda: x.softmax(-1), "aten._softmax.default", scaled)
    call = nbkit.call_of(trace, next(iter(trace.captured)))
    assert call.device == "cpu"
    error = trace.diffs.query("status == 'mismatch'")["max_abs_error"].item()
    assert (call.actual.double() - call.expected).abs().max().item() == error
    assert torch.equal(call.op(*call.args, **call.kwargs), x.softmax(-1))


def test_why_values_are_not_there_is_one_sentence():
    x = torch.randn(3)
    trace = compared(lambda: x.exp())
    with pytest.raises(OptionError, match="it is not a mismatch; record with keep_ops='aten.exp.default'"):
        nbkit.call_of(trace, int(trace.diffs["op_id"][0]))
    few = with_fault(lambda: x.exp(), "aten.exp.default", scaled, keep=0)
    assert "the first 0 mismatched calls are captured; record with a larger keep=" in why_not_captured(few, 1)
    assert why_not_captured(small_trace(), 1) == "only nbkit.opdiff keeps values"


def test_a_saved_trace_without_values_says_how_to_save_them(tmp_path):
    x = torch.randn(3)
    trace = with_fault(lambda: x.exp(), "aten.exp.default", scaled)
    loaded = nbkit.Trace.load(trace.save(tmp_path / "bare"))
    with pytest.raises(OptionError, match="save it with values='captured'"):
        nbkit.call_of(loaded, next(iter(trace.captured)))
    full = nbkit.Trace.load(trace.save(tmp_path / "full", values="captured"))
    assert torch.equal(nbkit.call_of(full, next(iter(trace.captured))).args[0], x)


def test_an_op_that_is_not_known_here_is_said():
    with pytest.raises(OptionError, match="torch knows no op 'mylib.thing.default' here"):
        op_of("mylib.thing.default")
