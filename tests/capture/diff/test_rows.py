"""Rows of a comparison are right and none is silently missing: docs/development/known_defects.md has the numbers."""

from pathlib import Path

import pandas as pd
import pytest
import torch
import torch.distributed as dist
from torch import nn, relu

import nbkit
from nbkit import schema
from nbkit.magics import CELL_MAGICS
from nbkit.numerics.noise_ratio import THRESHOLD
from tests.capture.diff.planted import compared, only, with_fault, wrong
from tests.capture.models import train_step

X = torch.linspace(-1, 1, 16).reshape(4, 4)


def ops_of(trace):
    return trace.diffs["op"].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("op", ["mul", "matmul"])
def test_right_gradients_are_right_in_the_devices_dtype(op, dtype):
    """B23: their errors of 2.4e-7 and 4e-6 are what float32 allows, however precise the reference is."""
    x, y = torch.randn(2, 64, 64, dtype=dtype).unbind()
    x.requires_grad_(), y.requires_grad_()
    trace = compared(lambda: getattr(torch, op)(x, y).pow(2).sum().backward())
    backward = trace.diffs[trace.diffs["phase"] == "backward"]
    assert len(backward) >= 3 and (backward["max_abs_error"] > 0).any()
    assert wrong(trace).empty and backward["noise_ratio"].max() < THRESHOLD / 2


@pytest.mark.parametrize("same", [lambda x: x.contiguous(), lambda x: x.to(torch.float32), lambda x: x.view_as(x)])
def test_what_returns_its_input_has_neither_an_empty_row_nor_anothers_gradient(same):
    """B26 and B39: rows are those of exp and of its gradient."""
    x = torch.ones(3, requires_grad=True)
    trace = compared(lambda: same(x.exp()).sum().backward())
    assert ops_of(trace) == ["aten.exp.default", "aten.sum.default", "aten.ones_like.default", "aten.mul.Tensor"]
    assert (trace.diffs["status"] == "ok").all()


@pytest.mark.parametrize(
    ("tolerance", "status"), [((0, 1e-3), "ok"), ((1.0, 0), "ok"), ((1e-3, 0), "mismatch"), ((0, 1e-9), "mismatch")]
)
def test_absolute_and_relative_tolerance_are_not_mistaken_for_each_other(tolerance, status):
    """B41: an error of 0.5 at 1000."""
    x = torch.full((3,), 500.0)
    trace = with_fault(
        lambda: x + x, "aten.add.Tensor", lambda func, args, out: out.add_(0.5), tolerances={"add": tolerance}
    )
    assert (only(trace)["status"], only(trace)["atol"], only(trace)["rtol"]) == (status, *tolerance)


def test_a_model_on_the_cpu_is_compared_and_checked():
    """B42: an op whose arguments are all on the CPU is not left out."""
    assert compared(train_step("mlp")).meta["compared_ops"] > 50
    with nbkit.opcheck() as trace:
        train_step("mlp")()
    assert trace.meta["checked_tensors"] > 50


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("re:aten.(sin|cos).*", ["aten.sin.default", "aten.cos.default"]),
        (" aten.sin ,  aten.cos ", ["aten.sin.default", "aten.cos.default"]),
        ("aten.s.n", []),
        ("atenXsin", []),
        ("", []),
    ],
)
def test_filters_match_whole_names(ops, expected):
    """B44, B45 and B46: groups work, spaces are of no account, plain names are literal."""
    assert ops_of(compared(lambda: (X.sin(), X.cos(), X.exp()), ops=ops)) == expected


def test_recordings_have_their_own_options():
    """B52: filters, samples and skipped ops of one are not those of another that runs at the same time."""
    with nbkit.opdiff(ops="sin") as outer, nbkit.opdiff(ops="cos", sample=2) as inner:
        (X.sin(), X.cos(), X.sin(), X.cos())
    assert (ops_of(outer), ops_of(inner)) == (["aten.sin.default"] * 2, ["aten.cos.default"])
    assert "not compared: not sampled (one call of an op in 2 is)" not in outer.meta["skipped"]


def test_results_are_frames_and_the_first_finding_is_the_first_row():
    """B55."""
    with nbkit.opcheck() as trace:
        X.log().exp().sum()
    assert trace.findings["op"].iloc[0] == "aten.log.default"
    assert isinstance(compared(X.exp).diffs, pd.DataFrame)
    schema.DIFFS.check(compared(X.exp).diffs)


def test_collectives_are_counted_with_the_reason():
    """B56: the result of an asynchronous one is not looked at before it is there."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.ones(3)
        trace = compared(lambda: dist.all_reduce(x, async_op=True).wait())
    finally:
        dist.destroy_process_group()
    assert wrong(trace).empty
    assert trace.meta["skipped"]["not compared: collectives: their result depends on other processes"] == 1


def test_no_op_is_missing_silently():
    """B57 and B58: what msprobe leaves out is a row or is counted, without any option."""

    def step():
        torch.sparse.mm(X.to_sparse(), X)
        parts = X.transpose(0, 1).reshape(2, 8).chunk(2)
        torch.cat(parts).to(torch.float64).float()
        torch.stack([X[0], torch.zeros_like(X[1]), torch.ones(4), torch.arange(4.0)])

    trace = compared(step)
    names = {op.split(".")[1] for op in trace.ops["op"][trace.ops["level"] == "aten"]}
    looked_at = {op.split(".")[1] for op in ops_of(trace)}
    assert names >= {"cat", "stack", "_to_copy", "zeros_like", "ones", "arange", "transpose", "split", "select"}
    assert looked_at >= {"cat", "stack", "_to_copy", "zeros_like", "ones", "arange"}
    skipped = {name: n for name, n in trace.meta["skipped"].items() if name.startswith("not compared: ")}
    assert sum(skipped.values()) + trace.diffs["op_id"].nunique() == (trace.ops["level"] == "aten").sum()


def test_functions_imported_before_are_seen_and_stay_what_they_are():
    """B59: no namespace is patched."""
    before = torch.relu
    trace = compared(lambda: relu(X))
    assert ops_of(trace) == ["aten.relu.default"]
    assert torch.relu is before is relu


def test_thresholds_in_docs_and_traces_are_those_of_the_code():
    """B62: one value feeds the code, the help of the magic and the trace; the page of the verb says the same."""
    page = " ".join((Path(__file__).parents[3] / "docs/verbs/opdiff.md").read_text(encoding="utf-8").split())
    assert compared(X.exp).meta["threshold"] == THRESHOLD
    assert f"(default: {THRESHOLD:g})" in " ".join(CELL_MAGICS["opdiff"].parser.format_help().split())
    assert f"above {THRESHOLD:g} the row is a mismatch" in page and f"`threshold={THRESHOLD:g}`" in page


def test_a_reference_that_gives_a_dictionary_is_a_row():
    """Another structure than the op's is a mismatch with its reason."""
    row = only(compared(lambda: X @ X, reference=lambda op, args, kwargs: {"out": op(*args, **kwargs)}))
    assert (row["status"], row["message"]) == ("shape", "1 tensor, expected 0")


def test_results_on_another_device_are_compared_by_value():
    """The device is a reason to compare, not a mismatch."""
    device = nbkit.SimulatedDevice()
    x = X.to(device.torch_device)
    assert only(compared(lambda: x @ x))["status"] == "ok"
    to_device = lambda op, args, kwargs: op(*args, **kwargs).to(device.torch_device)  # noqa: E731
    assert only(compared(lambda: X @ X, reference=to_device))["status"] == "ok"


def test_a_list_without_tensors_has_no_row():
    """Nothing against nothing is no mismatch."""
    trace = compared(lambda: nn.utils.clip_grad_norm_([nn.Parameter(torch.ones(2))], 1.0))
    assert wrong(trace).empty
