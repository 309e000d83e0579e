"""Tests which op is named for a NaN, an Inf, an overflow or an underflow, and which is not."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses import FakeTensorMode

import nbkit
from tests.capture.models import trained

INF = math.inf


def found(step):
    with nbkit.opcheck() as trace:
        step()
    return trace


def measured(trace):
    """What was measured of each finding."""
    return [json.loads(text) for text in trace.findings["evidence"]]


def kinds(step):
    return [(row.op.split(".")[1], row.rule) for row in found(step).findings.itertuples()]


def ones(*shape, **options):
    return torch.ones(shape, **options)


CASES = {
    "x/0": (lambda: ones(3) / torch.zeros(3), [("div", "inf")]),
    "0/0": (lambda: torch.zeros(3) / torch.zeros(3), [("div", "nan")]),
    "sum of two largest": (lambda: torch.full((2,), 3.4028e38) + torch.full((2,), 3.4028e38), [("add", "overflow")]),
    "1e5 as float16": (lambda: torch.full((2,), 1e5).half(), [("_to_copy", "overflow")]),
    "1e-9 as float16": (lambda: torch.full((2,), 1e-9).half(), [("_to_copy", "underflow")]),
    "float16 gradients": (lambda: ones(4, dtype=torch.half).mul(1e-4).mul(1e-4), [("mul", "underflow")]),
    "log of 0": (lambda: torch.zeros(2).log(), [("log", "inf")]),
    "root of -1": (lambda: (-ones(2)).sqrt(), [("sqrt", "nan")]),
    "a row that is masked out": (lambda: torch.full((1, 3), -INF).softmax(-1), [("_softmax", "nan")]),
    "Inf - Inf": (lambda: torch.full((2,), INF) - INF, [("sub", "nan")]),
    "in-place": (lambda: ones(3).div_(0), [("div_", "inf")]),
    "in-place, too large": (lambda: torch.full((2,), 6e4).half().add_(2e4), [("add_", "overflow")]),
    "in-place, a product": (lambda: torch.full((2,), 6e4).half().mul_(2), [("mul_", "overflow")]),
    "in-place, a quotient": (lambda: torch.full((2,), 6e4).half().div_(0.5), [("div_", "overflow")]),
    "in-place, log of 0": (lambda: torch.zeros(2).log_(), [("log_", "inf")]),
    "in-place, log1p of -1": (lambda: (-ones(2)).log1p_(), [("log1p_", "inf")]),
    "in-place, 1/0": (lambda: torch.zeros(2).reciprocal_(), [("reciprocal_", "inf")]),
    "several results": (lambda: torch.std_mean(torch.zeros(0)), [("std_mean", "nan")]),
    "out=": (lambda: torch.log(torch.zeros(2), out=torch.full((2,), math.nan)), [("log", "inf")]),
    "complex": (lambda: torch.zeros(2, dtype=torch.complex64).reciprocal(), [("reciprocal", "nan")]),
    "float8": (lambda: torch.full((2,), 1e6).to(torch.float8_e5m2), [("_to_copy", "overflow")]),
    "foreach": (lambda: torch._foreach_log([ones(2), torch.zeros(2)]), [("_foreach_log", "inf")]),
}
HEALTHY = {
    "a mask of -Inf": lambda: (torch.randn(3, 3) + torch.full((3, 3), -INF).triu(1)).softmax(-1),
    "masked_fill": lambda: torch.randn(3, 3).masked_fill(torch.eye(3) > 0, -INF).softmax(-1),
    "where with a number": lambda: torch.where(torch.eye(3) > 0, torch.tensor(-INF), torch.randn(3, 3)),
    "an Inf by keyword": lambda: torch.add(ones(2), ones(2), alpha=INF),
    "zeros": lambda: (torch.zeros(4) * 3, ones(4) - ones(4), ones(4).relu() * 0),
    "empty memory": lambda: torch.empty(1000).fill_(1).add_(1),
    "no elements": lambda: torch.zeros(0).log().sum(),
    "integers": lambda: torch.arange(4) // 2,
    "dropout": lambda: F.dropout(ones(100), 0.999),
    "sparse": lambda: torch.eye(3).to_sparse() * 2,
    "meta": lambda: torch.ones(3, device="meta").log(),
    "logsigmoid, whose note is small": lambda: F.logsigmoid(torch.full((4,), -12.0).half()),
    "layer_norm, whose note is small": lambda: F.layer_norm(torch.tensor([6e4, -6e4]).half(), [2]),
    "paths that the CTC loss rules out": lambda: ctc_loss([3, 2], [9, 8]).backward(),
}


def ctc_loss(lengths, frames, **options):
    """The loss of two sequences; its op also returns logarithms of probabilities, -Inf of what cannot be."""
    scores = torch.randn(9, 2, 5, requires_grad=True).log_softmax(-1)
    return F.ctc_loss(scores, torch.tensor([[1, 2, 3], [2, 4, 0]]), frames, lengths, **options)


@pytest.mark.filterwarnings("ignore:std_mean")
@pytest.mark.parametrize("case", CASES)
def test_the_op_that_goes_wrong_is_named(case):
    """What is no number, and what goes wrong besides."""
    step, expected = CASES[case]
    assert kinds(step) == expected


def test_tensors_without_values_are_counted():
    with nbkit.opcheck() as trace, FakeTensorMode():
        torch.ones(3).log().sum()
    with nbkit.opcheck() as other:
        torch.ones(3, device="meta").log().add_(1)
    reason = "not looked at: tensors without values (meta, fake)"
    assert (trace.meta["skipped"][reason], other.meta["skipped"][reason]) == (3, 3)


@pytest.mark.parametrize("case", HEALTHY)
def test_what_is_given_on_purpose_is_no_finding(case):
    """Defect B10: an empty tensor is no error either."""
    assert kinds(HEALTHY[case]) == []


def test_a_ctc_loss_that_is_infinite_is_named():
    trace = found(lambda: ctc_loss([3, 2], [2, 8], reduction="none"))
    assert trace.findings[["op", "rule"]].to_numpy().tolist() == [["aten._ctc_loss.default", "inf"]]
    assert measured(trace)[0]["position"] == 0


def test_what_propagates_is_counted_not_named():
    trace = found(lambda: torch.zeros(2).log().exp().log().neg())
    assert trace.findings[["op", "count"]].to_numpy().tolist() == [["aten.log.default", 2]]  # the line has both
    assert trace.meta["propagated_ops"] == 1


def test_a_gradient_that_goes_wrong_is_named_with_its_module_and_forward_op():
    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()

    model, x = nn.Sequential(nn.Identity(), Root()), torch.zeros(3, requires_grad=True)
    trace = found(lambda: model(x).sum().backward())
    [first] = trace.findings.itertuples()
    assert (first.op, first.rule, first.phase, first.module) == ("aten.div.Tensor", "inf", "backward", "1")
    assert "test_findings.py" in first.source
    assert first.message == "3 of 3 elements are Inf, the first at [0]; inputs there: 1, 0"


def test_findings_name_the_optimizer_step_as_ops_do():
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1.0)  # the second step's weight is 0

    def step():
        for _ in range(3):
            (1 / weight).sum().backward()
            weight.grad.fill_(1)
            optimizer.step()

    trace = found(step)
    assert trace.findings[["op", "step"]].to_numpy().tolist() == [["aten.reciprocal.default", 1]]
    assert trace.ops["step"][trace.findings["op_id"][0]] == 1


def test_an_overflow_under_a_scaler_is_found_in_the_backward_pass():
    model, scaler = nn.Linear(4, 4), torch.amp.GradScaler("cpu", init_scale=2.0**40)
    x = torch.full((2, 4), 1e4)

    def step():
        with torch.autocast("cpu", torch.float16):
            loss = model(x).float().pow(2).sum()
        scaler.scale(loss).backward()

    trace = found(step)
    first = trace.findings.iloc[0]
    assert (first["rule"], first["phase"], measured(trace)[0]["dtype"]) == ("overflow", "backward", "float16")


def test_a_tensor_that_comes_in_with_nan_is_named_once():
    x = torch.tensor([1.0, math.nan])
    trace = found(lambda: (x + 1, x * 2, x.exp()))
    [first] = trace.findings.itertuples()
    assert (first.rule, measured(trace)[0]["role"], measured(trace)[0]["nan_count"]) == ("input", "input", 1)
    assert trace.meta["propagated_ops"] == 3


def test_a_part_written_with_nan_keeps_the_whole_from_being_clean():
    def step():
        x = torch.zeros(4)
        x[0] = math.nan
        x[1] = 1.0
        x.add_(1)

    assert kinds(step) == []  # given as a number; add_ propagates it


@pytest.mark.parametrize("ignored", [-100, 1])
def test_a_mean_over_no_target_is_told_as_that(ignored):
    targets = torch.full((3,), ignored)
    trace = found(lambda: nn.functional.cross_entropy(torch.randn(3, 4), targets, ignore_index=ignored))
    assert trace.findings["rule"].tolist() == ["nan"]
    assert trace.findings["advice"][0].startswith("Every target is ignore_index, so that the mean is over none")


def test_a_loss_of_nan_with_targets_that_count_is_not_told_as_that():
    scores, targets = torch.tensor([[math.inf, 0.0]] * 2), torch.tensor([0, -100])
    advice = found(lambda: nn.functional.cross_entropy(scores, targets)).findings["advice"]
    assert len(advice) and not advice.str.contains("ignore_index").any()


def put_at_an_index(x):
    x = x.clone()
    x[0, 1] = math.nan
    return x


@pytest.mark.parametrize(
    ("put", "op"),
    [
        (put_at_an_index, "aten.copy_.default"),
        (lambda x: x.masked_fill(x > 1, math.nan), "aten.masked_fill.Scalar"),
        (lambda x: torch.full_like(x, math.nan), "aten.full_like.default"),
    ],
)
def test_a_nan_that_the_step_puts_there_is_found_where_it_reaches_the_gradients(put, op):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    x = torch.arange(8.0).view(2, 4)
    trace = found(lambda: model(put(x)).mean().backward())
    assert bool(model[0].weight.grad.isnan().any())
    assert trace.findings[["op", "rule", "severity"]].to_numpy().tolist() == [[op, "nan", "error"]]


@pytest.mark.parametrize(
    "use",
    [
        lambda z, nan: torch.where(z > 0, z, nan).nanmean(),
        lambda z, nan: torch.where(z > 0, z, nan).nan_to_num().sum(),
        lambda z, nan: (torch.where(z > 0, z.detach(), nan).nansum(), z.sum())[1],
    ],
)
def test_a_nan_that_the_step_puts_there_and_takes_out_is_none(use):
    layer = nn.Linear(4, 4)
    trace = found(lambda: use(layer(torch.randn(3, 4)), torch.full((4,), math.nan)).backward())
    assert bool(layer.weight.grad.isfinite().all())
    assert trace.findings.empty


def test_each_tensor_of_a_list_has_its_finding():
    trace = found(lambda: torch._foreach_div([ones(2), ones(2)], [torch.zeros(2), torch.zeros(2)]))
    assert [found["position"] for found in measured(trace)] == [0, 1]


@pytest.mark.parametrize("model", ["rwkv4", "llama", "conv"])
def test_a_healthy_step_under_autocast_has_no_finding(model):
    with torch.autocast("cpu", torch.bfloat16), nbkit.opcheck() as trace:
        list(trained(model, "adamw", steps=1))
    assert trace.findings.empty, trace.findings.to_string()


def test_of_very_many_zeros_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr("nbkit.capture.check.checker.MOST_RERUNS", 2)
    with nbkit.opcheck() as trace:
        for _ in range(5):
            torch.full((2,), 1e-9).half()
    assert [count for reason, count in trace.meta["skipped"].items() if "not looked at for underflow" in reason] == [3]
