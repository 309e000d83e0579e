"""Special values, dtypes and shapes, each with its verdict on a really compared op."""

import pytest
import torch

import nbkit
from tests.capture.diff.planted import compared, only, with_fault, wrong

EXP = "aten.exp.default"


def rows_of(step, op):
    diffs = compared(step).diffs
    return diffs[diffs["op"] == op]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_integers_are_exact(dtype):
    """Defect B30."""
    x = torch.arange(20, dtype=dtype)
    assert only(compared(lambda: x + x))["status"] == "ok"
    row = only(with_fault(lambda: x + x, "aten.add.Tensor", lambda func, args, out: out.sub_(2)))
    # The first element of uint8 wraps around on the device, not in the comparison: 254 against 0.
    largest = 254 if dtype == torch.uint8 else 2
    assert (row["status"], row["max_abs_error"], row["max_ulp"], row["mismatch_count"]) == (
        "mismatch",
        largest,
        largest,
        20,
    )


def test_bools_are_exact():
    x = torch.randn(10)
    assert only(compared(lambda: x > 0))["status"] == "ok"
    row = only(with_fault(lambda: x > 0, "aten.gt.Scalar", lambda func, args, out: ~out))
    assert (row["status"], row["mismatch_fraction"], row["dtype"]) == ("mismatch", 1.0, "bool")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_defect_b32_complex_ops_are_compared_in_both_parts(dtype):
    x = torch.randn(8, 8, dtype=dtype)
    assert only(compared(lambda: x @ x))["status"] == "ok"
    row = only(with_fault(lambda: x @ x, "aten.mm.default", lambda func, args, out: out.conj_physical_()))
    assert row["status"] == "mismatch"


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_defect_b13_float8_is_compared(dtype):
    x = torch.randn(100)
    row = rows_of(lambda: x.to(dtype), "aten._to_copy.default").iloc[0]
    assert (row["status"], row["dtype"]) == ("ok", str(dtype).removeprefix("torch."))
    assert 0.3 < row["max_ulp"] <= 0.5


def test_empty_tensors_are_compared():
    """Defect B10."""
    row = only(compared(lambda: torch.zeros(0, 3).exp(), ops="aten.exp"))
    assert (row["status"], row["shape"], row["max_abs_error"], row["mismatch_count"]) == ("ok", "[0, 3]", 0, 0)


def test_another_shape_or_number_of_tensors_is_a_row():
    """Defects B26 and B41."""
    x = torch.randn(4, 5)
    row = only(with_fault(lambda: x.exp(), EXP, lambda func, args, out: out[:2]))
    assert (row["status"], row["message"]) == ("shape", "shape [2, 5], expected [4, 5]")
    row = only(compared(lambda: x.sort(), reference=lambda op, args, kwargs: op(*args, **kwargs)[0]))
    assert (row["status"], row["message"]) == ("shape", "2 tensors, expected 1")


def test_another_kind_of_dtype_is_a_row():
    x = torch.randn(4)
    row = only(with_fault(lambda: x.exp(), EXP, lambda func, args, out: out.int()))
    assert (row["status"], row["message"]) == ("dtype", "dtype int32, expected float64")


def test_inf_and_nan_of_both_sides_agree():
    """Defect B29."""
    x = torch.tensor([1.0, 0.0, -1.0, float("nan")])
    row = rows_of(lambda: x / 0, "aten.div.Tensor").iloc[0]
    assert (row["status"], row["actual_nan_count"], row["expected_nan_count"]) == ("ok", 2, 2)
    assert (row["actual_inf_count"], row["expected_inf_count"]) == (2, 2)


@pytest.mark.parametrize(("dtype", "large"), [(torch.float32, 3.4e38), (torch.float16, 6e4), (torch.bfloat16, 3.3e38)])
def test_overflow_of_the_dtype_is_no_mismatch(dtype, large):
    """3.4028e38 + 3.4028e38."""
    x = torch.full((3,), large, dtype=dtype)
    assert (only(compared(lambda: x + x))["status"], (x + x).isinf().all().item()) == ("ok", True)


def test_defect_b25_the_reference_is_not_rounded_down():
    """A bfloat16 result of 1.0 where 1.003 is right: within rounding, but the error is said."""
    x = torch.full((4,), 0.5015, dtype=torch.float64).bfloat16()
    row = only(compared(lambda: x + 0.00025))
    assert (row["status"], row["max_abs_error"] > 0, row["max_ulp"] <= 0.5) == ("ok", True, True)


def test_contiguous_as_strided_and_half_precision():

    def step():
        x = torch.randn(4, 6, requires_grad=True)
        half = torch.randn(5, dtype=torch.float16, requires_grad=True)
        y = x.contiguous().as_strided((3, 2), (1, 4)).double().t().contiguous()
        (y.sum() + half.exp().float().sum()).backward()

    assert wrong(compared(step)).empty


def test_transposed_expanded_and_overlapping_inputs():
    x = torch.randn(300, 200)
    y = torch.randn(1, 300).expand(200, 300)

    def step():
        z = x.t() * y
        z.t().add_(1)
        z[::2, 1::3] *= 2
        x.as_strided((3, 4), (1, 1)).sum()

    assert wrong(compared(step)).empty


def test_sparse_tensors_never_break_the_step():
    """Defect B11."""
    x, outs = torch.eye(4).to_sparse(), []
    trace = compared(lambda: outs.append(torch.sparse.mm(x, torch.ones(4, 2))))
    assert torch.equal(outs[0], torch.ones(4, 2))
    assert wrong(trace).empty


def test_transforms_of_functions_pass():
    """Defect B12: nothing under vmap crashes."""
    x, outs = torch.randn(3, 4), []
    trace = compared(lambda: outs.append(torch.func.vmap(lambda row: row.softmax(0))(x)))
    assert torch.equal(outs[0], x.softmax(1))
    assert wrong(trace).empty


def test_meta_tensors_have_no_values_and_are_counted():
    trace = compared(lambda: torch.ones(3, device="meta") + 1)
    assert trace.meta["skipped"]["not compared: tensors without values (meta, fake)"] >= 1
    assert wrong(trace).empty


def test_structured_results_keep_their_type():
    """Defect B6."""
    outs = []
    trace = compared(lambda: outs.append(torch.randn(9).sort()))
    assert outs[0].values.shape == outs[0].indices.shape
    assert (trace.diffs["op"] == "aten.sort.default").sum() == 2


def test_a_trace_with_diffs_is_saved_and_loaded(tmp_path):
    trace = compared(lambda: torch.randn(3).exp())
    loaded = nbkit.load(trace.save(tmp_path / "t"))
    assert loaded.diffs.equals(trace.diffs)
    assert "opdiff" in trace.summary()
