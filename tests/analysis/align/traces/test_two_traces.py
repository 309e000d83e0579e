"""Two recorded traces say in opalign what they say in compare_values, with places on both sides."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.analysis.align.traces.from_trace import trace_execution
from nbkit.analysis.align.traces.two_traces import aligned
from tests.analysis.values.test_compare_values import Net, attention, between, expanded, training
from tests.analysis.values.test_other_modules import trace_of
from tests.capture.diff.planted import Planted, scaled
from tests.capture.models import record
from tests.support.second_llama import Ways, two_llamas


def first_of(left: nbkit.Trace, right: nbkit.Trace) -> dict[str, Any]:
    return nbkit.opalign(left, right).meta["first_divergence"]


@pytest.mark.parametrize(("name", "op"), [("conv", "convolution.default"), ("llama", "lerp_.Scalar")])
def test_a_planted_fault_is_where_compare_values_finds_it(name, op):
    right = training(name)
    with Planted(f"aten.{op}", scaled):
        left = training(name)
    expected = nbkit.compare_values(left, right).attrs["first_divergence"]
    trace = nbkit.opalign(left, right)
    first = trace.meta["first_divergence"]
    assert [first[side]["op"] for side in ("left", "right")] == [f"aten.{op}"] * 2
    assert (first["left"]["module"], first["left"]["source"]) == (expected["module"], expected["source"])
    assert (first["message"], first["error"]) == (expected["message"], pytest.approx(1e-4, rel=0.05))
    row = trace.alignment.loc[first["row"]]
    assert (row["error_class"], row["mark"], row["message"]) == ("local", "~", first["message"])
    behind = trace.alignment[trace.alignment["error_class"] == "propagated"]
    assert len(behind) and first["row"] in set(behind["origin_id"])


def test_equal_runs_agree_in_every_result():
    trace = nbkit.opalign(training("mlp"), training("mlp"))
    rows = trace.alignment[trace.alignment["error_class"].notna()]
    assert trace.meta["first_divergence"] is None
    assert (set(rows["mark"]), set(rows["error_class"])) == ({"="}, {"clean"})
    assert set(trace.alignment["action"]) == {"match"}


def test_a_changed_weight_is_named_itself():
    def change(model):
        with torch.no_grad():
            model[3].bias.mul_(1.01)

    first = first_of(training("mlp", change), training("mlp"))
    assert (first["left"]["kind"], first["left"]["name"], first["right"]["name"]) == ("parameter", "3.bias", "3.bias")
    assert first["message"] == "the parameter 3.bias has other values on the right (relative error 0.0099)"


@pytest.mark.parametrize(
    ("function", "op", "side"), [(F.gelu, "aten.gelu.default", "left"), (lambda x: x, "aten.relu.default", "right")]
)
def test_another_op_is_where_they_part(function, op, side):
    first = first_of(between(function), between(F.relu))
    assert (first[side]["op"], first["kind"]) == (op, None)


def test_an_op_that_may_have_changed_the_order_of_elements_is_named():
    left, right = (attention(lambda heads, dim=dim: expanded(heads, dim)) for dim in (1, 2))
    first = first_of(left, right)
    assert first["left"]["op"] == "aten.unsqueeze.default"
    assert "it can change the order of elements, which statistics do not show" in first["message"]


@pytest.mark.parametrize(("eps", "op"), [(1e-5, None), (1e-3, "aten.add.Tensor")])
def test_two_implementations_part_only_where_a_constant_differs(eps, op):
    first, second = two_llamas(Ways(eps=eps))
    found = first_of(trace_of(first), trace_of(second))
    assert (found and found["left"]["op"]) == op


def test_a_number_that_differs_in_nested_tensors_is_named():
    values = [torch.ones(2, 8), torch.ones(3, 8)]

    def scaled(factor):
        return (torch.nested.nested_tensor(values, layout=torch.jagged) * factor).sin().values()

    left, right = (record(lambda factor=factor: scaled(factor), values="stats") for factor in (2, 3))
    trace = nbkit.opalign(left, right)
    assert trace.meta["first_divergence"]["left"]["op"] == "aten.mul.Tensor"
    shapes, sizes = trace.nodes["shape"].dropna(), trace.results[trace.results["shape"] == "[2, null, 8]"]["numel"]
    assert "[2, null, 8]" in set(shapes) and not shapes.str.contains("-").any() and not sizes.any()


def test_traces_without_statistics_are_matched_by_names_and_structure():
    torch.manual_seed(0)
    model, x = Net(F.relu), torch.randn(4, 8)
    matches = aligned(*(trace_execution(record(lambda: model(x))) for _ in range(2))).matches.all
    assert "name" in {match.evidence for match in matches} and not any(match.agrees for match in matches)


def test_a_trace_beside_a_model_is_matched_by_values_where_they_are_known():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(8, 8), nn.GELU()).eval(), torch.randn(4, 8)
    with torch.no_grad():
        trace = nbkit.opalign(record(lambda: model(x), values="stats"), model, inputs=[x])
    assert {"values"} <= set(trace.alignment["evidence"].dropna())


def models_and_batches() -> Iterator[tuple[nn.Module, torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    x, ids = torch.randn(4, 8), torch.tensor([[3, 1, 4, 1, 5]])
    yield nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)), x, x + 0.1
    yield nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 3)), ids, ids + 2


@pytest.mark.parametrize(("model", "recorded", "given"), [*models_and_batches()])
def test_another_batch_beside_a_trace_is_the_input_that_differs(model, recorded, given):
    step = record(lambda: model(recorded), values="stats")
    for sides, name in (((step, model), "right"), ((model, step), "left")):
        trace = nbkit.opalign(*sides, inputs=(given,))
        first = trace.meta["first_divergence"]
        assert (first["message"], first[name]["kind"]) == ("the input input has other values on the right", "input")
        assert trace.alignment.loc[first["row"], "error_class"] == "input"
        same = nbkit.opalign(*sides, inputs=(recorded,))
        assert same.meta["first_divergence"] is None and set(same.alignment["mark"]) == {"="}


@pytest.mark.parametrize(
    ("left", "right", "op"),
    [
        (torch.relu, lambda x: torch.relu(x) * 2, "aten.mul.Tensor"),
        (lambda x: torch.tanh(x + 1), lambda x: x + 1, "aten.tanh.default"),
        (lambda x: torch.ones(3), lambda x: torch.eye(2), "aten.eye.default"),
    ],
)
def test_a_last_op_of_one_run_alone_is_where_they_part(left, right, op):
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    first = first_of(*(record(lambda step=step: step(x), values="stats") for step in (left, right)))
    assert (first["left"] or first["right"])["op"] == op
    assert first["message"].startswith(f"only the {'left' if first['left'] else 'right'} one has it")
