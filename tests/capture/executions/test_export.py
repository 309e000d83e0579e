"""Tests that modules are exported to ONNX with their inputs by name, silently, and are left as they were."""

import logging
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from nbkit.capture.executions.export import _named_inputs, exported, exported_onnx
from nbkit.errors import OptionError
from tests.support.installed import needs

pytestmark = needs("onnxscript")
onnxruntime = pytest.importorskip("onnxruntime")


class Nested(torch.nn.Module):
    """Takes tensors in containers, numbers and nothing."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x, pair, table=None, scale=2, shift=None):
        return self.linear(x).relu() * pair[1] - pair[0] * table["a"] * scale + (0 if shift is None else shift)


def _run(model, inputs):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize("optimize", [True, False])
def test_nested_arguments_get_the_names_of_the_models_inputs(optimize):
    torch.manual_seed(0)
    module, x, pair = Nested(), torch.randn(2, 3), (torch.randn(4), torch.randn(4))
    keywords = {"shift": torch.randn(4), "scale": 3, "table": {"a": torch.randn(4)}}
    model, inputs = exported_onnx(module, (x, pair), keywords, optimize=optimize)
    assert {name: array.shape for name, array in inputs.items()}.keys() == {"x", "pair_0", "pair_1", "table_a", "shift"}
    expected = module(x, pair, **keywords).detach().numpy()
    np.testing.assert_allclose(_run(model, inputs)[0], expected, rtol=1e-4, atol=1e-5)


def test_inputs_are_copies():
    x = torch.ones(2, 3)
    _, inputs = exported_onnx(torch.nn.Linear(3, 1), (x,))
    x.zero_()
    assert inputs["input"].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_bfloat16_and_complex_inputs_are_what_numpy_has():
    class Both(torch.nn.Module):
        def forward(self, b, c):
            return b.float() * torch.view_as_real(c).sum()

    _, inputs = exported_onnx(Both(), (torch.ones(2, dtype=torch.bfloat16), torch.tensor([1 + 2j])))
    assert {name: (array.dtype, array.tolist()) for name, array in inputs.items()} == {
        "b": (np.float32, [1, 1]),
        "c": (np.float32, [[1, 2]]),
    }


def test_an_opset_is_asked_for():
    model, _ = exported_onnx(torch.nn.ReLU(), (torch.ones(1),), opset=19)
    assert [each.version for each in model.opset_import if each.domain == ""] == [19]


def test_nothing_is_said_and_nothing_is_changed(capfd):
    module, x = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout()), torch.randn(2, 3, requires_grad=True)
    state, training = torch.get_rng_state(), [each.training for each in module.modules()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exported_onnx(module, (x,))
    assert (caught, tuple(capfd.readouterr())) == ([], ("", ""))
    assert torch.equal(torch.get_rng_state(), state)
    assert [each.training for each in module.modules()] == training
    assert x.grad is None
    assert logging.getLogger(__name__).isEnabledFor(logging.WARNING)


class Branching(torch.nn.Module):
    """Goes on a value, which torch.export cannot trace."""

    def forward(self, x):
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("module", "args", "message"),
    [
        (Branching(), (torch.ones(3),), "torch.onnx.export cannot export Branching: "),
        (Nested(), (torch.ones(3),), "torch.onnx.export cannot export Nested: missing a required argument: 'pair'; "),
    ],
)
def test_what_cannot_be_exported_is_refused_in_a_sentence(module, args, message):
    with pytest.raises(OptionError) as caught:
        exported_onnx(module, args)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def _of(inputs, specs, values):
    """A program of torch.onnx.export: the model's inputs, the exported ones, and the values of the call."""
    graph = SimpleNamespace(inputs=[SimpleNamespace(name=name) for name in inputs])
    kinds = [InputSpec(InputKind.USER_INPUT, TensorArgument(name=name), None) for name in specs]
    signature = SimpleNamespace(input_specs=kinds)
    program = SimpleNamespace(graph_signature=signature, example_inputs=values)
    return SimpleNamespace(model=SimpleNamespace(graph=graph), exported_program=program)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (_of(["x"], ["x"], None), "The exporter does not say what the inputs of M are"),
        (_of(["x"], ["x", "y"], ((torch.ones(1),), {})), "M was called with 1 values and exported with 2 inputs"),
        (
            _of(["x", "z"], ["x", "y"], ((torch.ones(1), torch.ones(2)), {})),
            "The exported M has inputs that belong to no tensor of the call: 'z'; the tensors are 'x', 'y'.",
        ),
    ],
)
def test_inputs_that_cannot_be_paired_are_refused(program, message):
    with pytest.raises(OptionError, match=message):
        _named_inputs(program, "M")


def test_only_modules_are_exported():
    with pytest.raises(OptionError, match="only a module can be exported, and this is a int"):
        exported(3, (), {})
