"""Results of earlier calls: told from sums of squares, without keeping a tensor."""

import json

import pytest
import torch

from tests.capture.diff.planted import with_fault, wrong

GENERATOR = torch.Generator().manual_seed(4)
X, Y, W = (torch.randn(12, 12, generator=GENERATOR) for _ in range(3))


def step():
    return [x @ W for x in (X, Y, X + Y)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_result_of_an_earlier_call_is_stale(dtype):
    x, y, w = X.to(dtype), Y.to(dtype), W.to(dtype)
    trace = with_fault(lambda: (x @ w, y @ w), "aten.mm.default", lambda func, args, out: x @ w, call=1)
    [row] = wrong(trace).to_dict("records")
    products = trace.ops.index[trace.ops["op"] == "aten.mm.default"].tolist()
    assert row["pattern"] == "stale"
    assert json.loads(row["pattern_evidence"]) == {"earlier_op_id": products[0]}
    assert row["message"].startswith(f"the result is that of an earlier call of the op (op {products[0]}); worst at ")


def test_a_result_added_to_an_earlier_one_is_accumulated():
    trace = with_fault(step, "aten.mm.default", lambda func, args, out: out + X @ W, call=2)
    products = trace.diffs[trace.diffs["op"] == "aten.mm.default"]
    assert products["pattern"].tolist()[2] == "accumulated"
    assert json.loads(products["pattern_evidence"].iloc[2])["earlier_op_id"] == products["op_id"].iloc[0]


def test_numbers_of_few_bits_prove_nothing():
    ones = torch.ones(16, 16)
    trace = with_fault(
        lambda: (ones.mul(2.0), ones.mul(4.0)), "aten.mul.Tensor", lambda func, args, out: out / 2, call=1
    )
    assert wrong(trace)["pattern"].isna().all()


def test_another_wrong_result_is_not_stale():
    trace = with_fault(step, "aten.mm.default", lambda func, args, out: out + (Y * 1.5) @ W.t(), call=2)
    assert wrong(trace)["pattern"].isna().tolist() == [True]
