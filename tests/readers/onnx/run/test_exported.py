"""Tests modules that torch.onnx.export wrote: their parameters and modules are named as torch names them."""

import warnings

import numpy as np
import pytest
import torch

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from nbkit.readers.onnx.run.execution import onnx_execution
from tests.readers.onnx.run.models import named, values
from tests.support.installed import needs

pytestmark = needs("onnxscript")

LEVELS = [None, "basic", "extended"]


class Attention(torch.nn.Module):
    """One head with a mask, behind a norm."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.query, self.key, self.value = (torch.nn.Linear(64, 64, bias=False) for _ in range(3))
        self.register_buffer("mask", torch.full((5, 5), -torch.inf).triu(1))

    def forward(self, x):
        x = self.norm(x)
        scores = self.query(x) @ self.key(x).mT / 8 + self.mask
        return torch.softmax(scores, -1) @ self.value(x)


@pytest.fixture(scope="module")
def exported():
    """Module, input and what the exporter writes, as it is and optimized."""
    torch.manual_seed(0)
    module, x = Attention().eval(), torch.randn(2, 5, 64)
    torch.nn.init.uniform_(module.norm.weight)
    torch.nn.init.uniform_(module.norm.bias)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = [
            torch.onnx.export(module, (x,), dynamo=True, verbose=False, optimize=each) for each in (False, True)
        ]
    return module, x, programs


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("which", [0, 1])
def test_parameters_have_their_names_and_modules(exported, which, level):
    module, x, programs = exported
    execution = onnx_execution(programs[which], [x.numpy()], optimized=level)
    found = {result.name: result for result in execution.results if result.kind == "parameter"}
    assert found.keys() == dict(module.named_parameters()).keys()
    assert all(result.module == name.rpartition(".")[0] for name, result in found.items())
    for name, parameter in module.named_parameters():
        value, expected = execution.value(found[name].result_id), parameter.detach().numpy()
        assert np.array_equal(value, expected) or np.array_equal(value, expected.T)
    assert [result.name for result in execution.results if result.kind == "buffer"] == ["mask"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("which", [0, 1])
def test_outputs_are_those_of_torch_and_ops_know_their_module(exported, which, level):
    module, x, programs = exported
    execution = onnx_execution(programs[which], [x.numpy()], optimized=level)
    (output,) = execution.outputs.values()
    np.testing.assert_allclose(execution.value(output), module(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    results = named(execution)
    assert results["layer_norm"].module == "norm"
    assert "test_exported.py:" in results["layer_norm"].source
    assert results["linear_2"].module == "value"


@pytest.mark.parametrize("level", LEVELS)
def test_all_replaced_by_themselves_gives_the_same(exported, level):
    _, x, programs = exported
    execution = onnx_execution(programs[1], [x.numpy()], optimized=level)
    kept = {result.result_id: execution.value(result.result_id) for result in execution.results}
    ops = [result.result_id for result in execution.results if result.kind == "op"]
    found = execution.recompute(kept, ops)
    assert list(found) == ops
    for key in ops:
        np.testing.assert_allclose(found[key], kept[key], rtol=1e-4, atol=1e-5)
    assert values(execution).keys() == {execution.results[key].name for key in ops}
