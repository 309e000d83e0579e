"""Tests call_of: the call's tensors as they were, and one sentence where there are none."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.capture.calls.call_of import op_of
from nbkit.errors import OptionError, TraceError
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("captured") / "calls"
    weight = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with nbkit.opcapture(path) as trace:
        loss = torch.mm(torch.ones(4, 2), weight).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad)
    return path, trace, weight


def test_a_folder_of_opcapture_is_read_as_the_calls_that_it_holds(folder):
    path, trace, _ = folder
    loaded = nbkit.load(path)
    pd.testing.assert_frame_equal(loaded.captures, trace.captures)
    assert loaded.brief().startswith(f"{len(trace.captures)} calls saved to calls.")


def test_tensors_of_a_captured_call_are_read_by_its_record(folder):
    path, trace, weight = folder
    number = trace.captures.drop_duplicates("op").set_index("op")["record"]
    product, update = (nbkit.call_of(path, number[op]) for op in ("aten.mm.default", "aten.sub_.Tensor"))
    assert product.args[1].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert product.actual.tolist() == [[3.0, 5.0, 7.0]] * 4
    assert product.expected is None
    assert update.args[1].tolist() == [[24.0, 40.0, 56.0]] * 2  # 2 * 4 * (3, 5, 7)
    assert update.actual.tolist() == weight.tolist()
    assert product.op(*product.args).equal(product.actual)


def test_views_have_shapes_alone_and_what_is_not_there_is_one_sentence(folder):
    path, trace, _ = folder
    view = nbkit.call_of(path, trace.captures.drop_duplicates("op").set_index("op")["record"]["aten.t.default"])
    assert (view.actual.device.type, view.actual.shape) == ("meta", (2, 4))
    with pytest.raises(OptionError, match=f"has no call 99; its {len(trace.captures)} calls are numbered from 0"):
        nbkit.call_of(path, 99)
    with pytest.raises(OptionError, match="those of opcapture are in its folder"):
        nbkit.call_of(trace, 0)


def test_a_folder_whose_record_is_damaged_lists_the_others(folder, tmp_path):
    path, trace, _ = folder
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    lines = (copy / "calls.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "calls.jsonl").write_bytes(b"".join([lines[0][:-9] + b"\n", *lines[1:]]))
    loaded = nbkit.load(copy)
    assert loaded.captures["record"].tolist() == [*range(1, len(trace.captures))]
    assert loaded.meta["skipped"] == {"calls whose record in calls.jsonl is damaged": 1}
    with pytest.raises(TraceError, match="Call 0 of .* cannot be used: its record is cut off or damaged"):
        nbkit.call_of(copy, 0)
