"""Each compared tensor has its row and no other thing has one: docs/development/known_defects.md has the numbers."""

import torch
from torch import nn

from tests.capture.diff.planted import compared, scaled, with_fault, wrong
from tests.capture.models import train_step


def test_defect_b14_compiled_code_runs():
    compiled, outs = torch.compile(lambda x: x.sin() + 1, backend="eager"), []
    x = torch.randn(4)
    trace = compared(lambda: outs.append(compiled(x)))
    assert torch.equal(outs[0], x.sin() + 1)
    assert wrong(trace).empty


def test_defect_b17_an_op_called_twice_before_backward_is_compared_twice():
    x = torch.randn(3, requires_grad=True)
    diffs = compared(lambda: (x.sin() + x.sin()).sum().backward()).diffs
    assert (diffs["op"] == "aten.sin.default").sum() == (diffs["op"] == "aten.cos.default").sum() == 2


def test_defect_b27_each_tensor_has_its_own_row():
    """Outputs (x, x) against (x, -x): a row each, not the best cosine of the two."""
    x = torch.tensor([3.0, 1.0, 2.0])

    def change(func, args, out):
        out[1].mul_(-1)
        return out

    trace = with_fault(lambda: x.sort(), "aten.sort.default", change)
    assert trace.diffs["status"].tolist() == ["ok", "mismatch"]


def test_defect_b36_markers_of_the_profiler_are_no_rows():
    trace = compared(train_step("mlp"))
    assert not trace.diffs["op"].str.startswith("profiler").any()


def test_defect_b40_a_single_element_is_compared_without_a_warning(recwarn):
    assert wrong(compared(lambda: torch.randn(()).exp())).empty
    assert [str(one.message) for one in recwarn] == []


def test_defect_b43_keyword_tensors_are_compared():
    x, out = torch.randn(4), torch.zeros(4)
    trace = with_fault(lambda: torch.exp(input=x, out=out), "aten.exp.out", scaled)
    assert wrong(trace)["op"].tolist() == ["aten.exp.out"]


def test_defect_b51_storages_are_not_walked():
    x, outs = torch.randn(1 << 18), []
    compared(lambda: outs.append(x.untyped_storage().nbytes()))
    assert outs == [1 << 20]


def test_defect_b60_a_changed_scalar_is_the_op_at_fault():
    """LayerNorm with eps 1.0 in place of 1e-5: the row of the norm, as scalars are no input error."""
    model, x = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 2)), torch.randn(4, 8)
    wider = lambda func, args, out: func(*args[:4], 1.0)  # noqa: E731
    trace = with_fault(lambda: model(x), "aten.native_layer_norm.default", wider)
    assert set(wrong(trace)["op"]) == {"aten.native_layer_norm.default"}


def test_defect_b63_no_callable_is_wrapped():
    before = torch.nn.functional.gelu
    compared(lambda: torch.nn.functional.gelu(torch.randn(2)))
    assert torch.nn.functional.gelu is before
