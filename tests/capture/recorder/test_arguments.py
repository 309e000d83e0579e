"""Tests what is recorded of an op's arguments that are no tensors, and the shapes of those that are."""

import json

import pytest
import torch

import nbkit
from nbkit.compat.torch_versions import PARAMETER_MUTATIONS
from tests.capture.models import train_step
from tests.support.timed_names import timed_name

INF = float("inf")
CASES = {
    "a dim": (lambda x: x.softmax(-1), "_softmax", {"dim": -1, "half_to_float": False}),
    "an eps and sizes": (
        lambda x: torch.nn.functional.layer_norm(x, (4,), eps=1e-3),
        "native_layer_norm",
        {"normalized_shape": [4], "eps": 1e-3},
    ),
    "a scale": (lambda x: torch.add(x, x, alpha=3), "add", {"alpha": 3}),
    "a number among tensors": (lambda x: x * 2.5, "mul", {"other": 2.5}),
    "a truth value": (lambda x: x * True, "mul", {"other": True}),
    "a number that JSON lacks": (lambda x: x.masked_fill(x > 0, -INF), "masked_fill", {"value": "-inf"}),
    "a dtype": (lambda x: x.to(torch.bfloat16), "_to_copy", {"dtype": "bfloat16", "non_blocking": False}),
    "a layout": (
        lambda x: torch.empty(2, device="cpu", dtype=torch.int64),
        "empty",
        {"size": [2], "dtype": "int64", "device": "cpu", "pin_memory": False},
    ),
    "a text": (lambda x: torch.div(x, 3, rounding_mode="floor"), "div", {"other": 3, "rounding_mode": "floor"}),
    "tensors alone": (lambda x: x @ x, "mm", None),
}


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", request.param)


def recorded(step):
    with nbkit.optrace() as trace:
        step()
    assert not any("described" in reason for reason in trace.meta["skipped"])
    return trace.ops


@pytest.mark.parametrize("case", CASES)
def test_arguments_have_the_names_of_the_schema(case):
    step, name, expected = CASES[case]
    x = torch.randn(4, 4)
    ops = recorded(lambda: step(x))
    [text] = ops["arguments"][ops["op"].str.startswith(f"aten.{name}.")]
    assert (json.loads(text) if isinstance(text, str) else None) == expected


def test_numbers_that_are_equal_keep_their_types():
    x = torch.ones(2)
    ops = recorded(lambda: (x * 1, x * 1.0, x * True, x * 1))
    texts = ops["arguments"][ops["op"] == "aten.mul.Tensor"].tolist()
    assert texts == ['{"other": 1}', '{"other": 1.0}', '{"other": true}', '{"other": 1}']


def test_shapes_stand_where_the_arguments_do():
    x, index = torch.ones(2, 3), torch.tensor([1])
    ops = recorded(lambda: (torch.cat([x, x[:1]]), x[:, index], torch.addmm(torch.ones(3), x, torch.ones(3, 3))))
    shapes = dict(zip(ops["op"], ops["input_shapes"], strict=True))
    assert shapes["aten.cat.default"] == "[[[2, 3], [1, 3]], []]"
    assert shapes["aten.index.Tensor"] == "[[2, 3], [[1]]]"
    assert shapes["aten.addmm.default"] == "[[3], [2, 3], [3, 3], [], []]"


def test_api_calls_have_neither():
    ops = recorded(lambda: torch.ones(2).softmax(-1))
    api = ops[ops["level"] == "api"]
    assert len(api) and api[["arguments", "input_shapes"]].isna().all(axis=None)


@pytest.mark.parametrize("model", ["llama", "rwkv4"])
def test_shapes_are_those_of_the_profiler(model):
    """But for lists of tensors, of which it tells nothing."""
    step = train_step(model)
    step()
    with nbkit.optime(shapes=True) as timed:
        step()
    theirs = set(zip(timed.ops["op"], timed.ops["input_shapes"], strict=True))
    mine = recorded(step)
    mine = mine[(mine["level"] == "aten") & ~mine["input_shapes"].str.contains("[[[", regex=False).fillna(False)]
    pairs = set(zip(mine["op"], mine["input_shapes"], strict=True))
    strange = {(op, shapes) for op, shapes in pairs if (timed_name(op), shapes) not in theirs}
    # A dispatch mode makes torch run these where it runs others without; in torch 2.8 and older views, too.
    of_a_mode = {"aten.detach.default", "aten.add.Tensor", *([] if PARAMETER_MUTATIONS else ["aten.view.default"])}
    assert {op for op, _ in strange} <= of_a_mode
    assert len(pairs - strange) > 60
